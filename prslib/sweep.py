"""Many runs at once: what is stored is loaded, what is missing is trained side by side."""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing

from joblib import Parallel, cpu_count, delayed
from tqdm import tqdm

from prslib.attempt import Outcome, attempt_unit, check, describe
from prslib.checkpoint import SAVE_EVERY
from prslib.cluster import attempt_on, gpu_share
from prslib.config import RunConfig, check_all
from prslib.datasets import load_dataset
from prslib.residence import check_device
from prslib.results import Run
from prslib.store import LOCK, Store
from prslib.units import units_of

KILLED = "its process was killed, most likely as the memory did not suffice"


def run_all(
    configs: Sequence[RunConfig],
    store: Store | None = None,
    workers: int | None = None,
    device: str = "cpu",
    save_every: float = SAVE_EVERY,
    address: str | None = None,
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
        use, and on a GPU no more than its memory is meant for (`Architecture.gpu_share`). A cluster
        has as many as its machines have cores and GPUs.
    device : str
        Where to compute, "cpu" or "cuda".
    save_every : float
        Seconds after which a run under way saves its state again; on a cluster none does.
    address : str, optional
        Of a Ray cluster that trains the runs: "host:port", or "auto" for that of this machine. By
        default the environment variable RAY_ADDRESS; where that is not set, this machine trains.

    Returns
    -------
    list of Run
        In the order of the configurations.

    Raises
    ------
    ValueError
        If a configuration does not fit its data set, or the device is not there; raised before any
        training.
    NewerStoreError
        If a newer version of prslib stored one of the runs; raised before any training.
    OSError
        If runs are missing and the store cannot be written or its disk is full; likewise.
    RuntimeError
        If runs failed; raised when all others are stored.
    ModuleNotFoundError, ConnectionError, ClusterError
        If there is an address and no Ray, no cluster, or one that lacks a data set or a GPU; before
        any training.

    Notes
    -----
    A run is stored the moment it ends, and saves its state on the way, so that an interruption
    loses a few minutes of the runs under way. Runs that differ only in what they look at, such as
    the test set, are trained as one. Processes that ask for the same runs share the work:
    what another one is at comes last, and is loaded when that one has stored it. On a GPU small
    runs of one shape are too (`prslib.stacked`).

    Processes are started anew, not forked, so that each may use a GPU whatever the caller did with
    it. On one GPU every process has its own copy of the images where they fit beside what the
    others took, and fetches them from the host where they do not.
    """
    store, address = store or Store(), address or os.environ.get("RAY_ADDRESS")
    check_all(configs)
    if not address:  # else the GPUs are the cluster's
        check_device(device)
    found = {config.hash: store.load(config) for config in configs}
    missing = list({c.hash: c for c in configs if found[c.hash] is None}.values())
    if missing:
        store.check_writable()
        check(_train(missing, store, workers, device, save_every, address))
        found |= {config.hash: store.load(config) for config in missing}
    return [found[config.hash] for config in configs]


def _train(configs, store, workers, device, save_every, address) -> list[Outcome]:
    """Attempt every run, those that other processes are at a second time when the rest is done."""
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
    return list(outcomes.values())


def _attempt_here(units, store, workers, device, save_every, wait) -> Iterator[Outcome]:
    configs = [config for unit in units for config in unit]
    for name in dict.fromkeys(config.dataset for config in configs):
        load_dataset(name)  # made once here, not once in each process
    workers = workers or _side_by_side(gpu_share(configs, device))
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


def _side_by_side(share: float) -> int:
    """Return how many processes a machine takes whose runs need this part of its GPU."""
    return min(cpu_count(), int(1 / share)) if share else cpu_count()
