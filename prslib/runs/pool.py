"""Runs that are missing, trained side by side: in processes of this machine, or on a cluster."""

from collections.abc import Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing

from joblib import Parallel, cpu_count, delayed
from tqdm import tqdm

from prslib.config import RunConfig
from prslib.datasets import load_dataset
from prslib.residence import check_device
from prslib.runs.attempt import Outcome, attempt_unit, check, describe
from prslib.runs.cluster import attempt_on, gpu_share
from prslib.runs.units import units_of
from prslib.store import LOCK, Store

KILLED = "its process was killed, most likely as the memory did not suffice"


def train(
    configs: Sequence[RunConfig],
    store: Store,
    workers: int | None,
    device: str,
    save_every: float,
    address: str | None,
) -> None:
    """Train and store runs that are missing, each as it ends.

    Those that other processes are at come a second time, when the rest is done.

    Parameters
    ----------
    configs : sequence of RunConfig
        Each once.
    store : Store
        Where they are kept; it can be written.
    workers, device, save_every
        As for `prslib.run_all`.
    address : str or None
        Of a Ray cluster; None for processes of this machine.

    Raises
    ------
    ValueError
        If the device is not there, before any training.
    RuntimeError
        If runs failed; raised when all others are stored.
    ModuleNotFoundError, ConnectionError, ClusterError
        As for `prslib.run_all`.
    """
    if not address:  # else the GPUs are the cluster's
        check_device(device)
    outcomes = {}
    with tqdm(total=len(configs), desc="training", unit="run", smoothing=0) as bar:
        for wait in (False, True):
            left = [config for config in configs if config.hash not in outcomes]
            if not left:
                break
            # who waits for several runs takes them one by one, and all processes in one order
            in_order = [(config,) for config in sorted(left, key=lambda config: config.hash)]
            units = in_order if wait else units_of(left, device)
            arriving = (
                attempt_on(address, units, store, device, wait)
                if address
                else _attempt_here(units, store, workers, device, save_every, wait)
            )
            with closing(arriving):
                for outcome in arriving:
                    if not outcome.busy:
                        outcomes[outcome.config.hash] = outcome
                        said = f"{describe(outcome.config)}: {outcome.seconds:.0f} s"
                        bar.set_postfix_str(said, refresh=False)
                        bar.update()
    check(list(outcomes.values()))


def _attempt_here(units, store, workers, device, save_every, wait) -> Iterator[Outcome]:
    configs = [config for unit in units for config in unit]
    for name in dict.fromkeys(config.dataset for config in configs):
        load_dataset(name)  # made once here, not once in each process
    workers = workers or side_by_side(gpu_share(configs, device))
    left, workers = {unit[0].hash: unit for unit in units}, min(workers, len(units))
    how = store, device, save_every, wait
    while left:
        tasks = [delayed(attempt_unit)(unit, *how) for unit in left.values()]
        try:
            with Parallel(workers, return_as="generator_unordered") as pool:
                for outcomes in pool(tasks):
                    for outcome in outcomes:
                        left.pop(outcome.config.hash, None)
                        yield outcome
        except BrokenProcessPool:  # a process was killed, and took the others with it
            begun = [
                key
                for key, unit in left.items()
                if any(store.path(config, LOCK).exists() for config in unit)
            ]
            for key in begun or list(left):
                yield from _attempt_alone(left.pop(key), *how)


def _attempt_alone(unit: Sequence[RunConfig], store: Store, *how) -> list[Outcome]:
    """Attempt a unit in a process that no other shares, so that one that is killed is its own."""
    try:
        with Parallel(2) as pool:  # with 1 it would be this process
            return pool([delayed(attempt_unit)(unit, store, *how)])[0]
    except BrokenProcessPool as error:
        for config in unit:
            store.record_failure(config, error)
        return [Outcome(config, error=KILLED) for config in unit]


def side_by_side(share: float) -> int:
    """Return how many processes this machine takes whose runs need this part of its GPU.

    Parameters
    ----------
    share : float
        As `prslib.runs.cluster.gpu_share` gives it; 0.0 for runs on the CPU.

    Returns
    -------
    int
        One for each core that this process may use, and no more than the GPU has room for.

    Examples
    --------
    >>> side_by_side(1.0)
    1
    """
    return min(cpu_count(), int(1 / share)) if share else cpu_count()
