"""Many runs at once: what is stored is loaded, what is missing is trained side by side."""

from collections.abc import Sequence

from joblib import Parallel, cpu_count, delayed
from tqdm import tqdm

from prslib.attempt import Outcome, attempt, check, describe
from prslib.checkpoint import SAVE_EVERY
from prslib.config import RunConfig, check_all
from prslib.datasets import load_dataset
from prslib.experiment import Run
from prslib.store import Store


def run_all(
    configs: Sequence[RunConfig],
    store: Store | None = None,
    workers: int | None = None,
    device: str = "cpu",
    save_every: float = SAVE_EVERY,
) -> list[Run]:
    """Return the runs of all configurations, training only those that no one has trained yet.

    Parameters
    ----------
    configs : sequence of RunConfig
        What is wanted.
    store : Store, optional
        Where finished runs are kept, by default the cache.
    workers : int, optional
        Processes side by side, one thread each; by default one for each core that this process may
        use.
    device : str
        Where to compute, "cpu" or "cuda".
    save_every : float
        Seconds after which a run under way saves its state again.

    Returns
    -------
    list of Run
        In the order of the configurations.

    Raises
    ------
    ValueError
        If a configuration does not fit its data set; raised before any training.
    NewerStoreError
        If a newer version of prslib stored one of the runs; raised before any training.
    OSError
        If runs are missing and the store cannot be written or its disk is full; likewise.
    RuntimeError
        If runs failed; raised when all others are stored.

    Notes
    -----
    A run is stored the moment it ends, and saves its state on the way, so that an interruption
    loses a few minutes of the runs under way. Processes that ask for the same runs share the work:
    what another one is at comes last, and is loaded when that one has stored it.
    """
    store = store or Store()
    check_all(configs)
    found = {config.hash: store.load(config) for config in configs}
    missing = list({c.hash: c for c in configs if found[c.hash] is None}.values())
    if missing:
        for name in dict.fromkeys(config.dataset for config in missing):
            load_dataset(name)  # made once here, not once in each process
        store.check_space()
        with store.lock(missing[0]):  # raises where the folder cannot be written
            pass
        outcomes = _train(missing, store, workers or cpu_count(), device, save_every)
        check(outcomes)
        found |= {config.hash: store.load(config) for config in missing}
    return [found[config.hash] for config in configs]


def _train(configs, store, workers, device, save_every) -> list[Outcome]:
    """Attempt every run, those that other processes are at a second time when the rest is done."""
    outcomes = {}
    with tqdm(total=len(configs), desc="training", unit="run", smoothing=0) as bar:
        for wait in (False, True):
            left = [config for config in configs if config.hash not in outcomes]
            if not left:
                break
            tasks = (delayed(attempt)(config, store, device, save_every, wait) for config in left)
            with Parallel(min(workers, len(left)), return_as="generator_unordered") as pool:
                for outcome in pool(tasks):
                    if not outcome.busy:
                        outcomes[outcome.config.hash] = outcome
                        said = f"{describe(outcome.config)}: {outcome.seconds:.0f} s"
                        bar.set_postfix_str(said, refresh=False)
                        bar.update()
    return list(outcomes.values())
