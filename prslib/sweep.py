"""Many runs at once: what is stored is loaded, what is missing is trained side by side."""

import time
from collections.abc import Sequence

from joblib import Parallel, cpu_count, delayed
from tqdm import tqdm

from prslib.config import RunConfig, check_all
from prslib.datasets import load_dataset
from prslib.experiment import Run, run
from prslib.store import Store


def run_all(
    configs: Sequence[RunConfig],
    store: Store | None = None,
    workers: int | None = None,
    device: str = "cpu",
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

    Returns
    -------
    list of Run
        In the order of the configurations.

    Raises
    ------
    ValueError
        If a configuration does not fit its data set; raised before any training.

    Notes
    -----
    A run is stored the moment it ends, so that an interruption loses only the runs under way.
    """
    store = store or Store()
    check_all(configs)
    found = {config.hash: store.load(config) for config in configs}
    missing = list({c.hash: c for c in configs if found[c.hash] is None}.values())
    if missing:
        for name in dict.fromkeys(config.dataset for config in missing):
            load_dataset(name)  # made once here, not once in each process
        _train(missing, store, workers or cpu_count(), device)
        found |= {config.hash: store.load(config) for config in missing}
    return [found[config.hash] for config in configs]


def _train(configs: list[RunConfig], store: Store, workers: int, device: str) -> None:
    tasks = (delayed(_train_one)(config, store, device) for config in configs)
    with (
        Parallel(n_jobs=min(workers, len(configs)), return_as="generator_unordered") as pool,
        tqdm(total=len(configs), desc="training", unit="run", smoothing=0) as bar,
    ):
        for config, seconds in pool(tasks):
            bar.set_postfix_str(f"{describe(config)}: {seconds:.0f} s", refresh=False)
            bar.update()


def _train_one(config: RunConfig, store: Store, device: str) -> tuple[RunConfig, float]:
    start = time.perf_counter()
    store.save(run(config, device))
    return config, time.perf_counter() - start


def describe(config: RunConfig) -> str:
    """Return a run in a few words, "PRS rho=0.1 on digits70seq, seed 2"."""
    rho = f" rho={config.rho:g}" if "rho" in config.identity else ""
    return f"{config.method}{rho} on {config.dataset}, seed {config.seed}"
