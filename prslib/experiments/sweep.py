"""Load the runs that are stored and train the missing ones, here or on a Ray cluster.

One process asks for the runs: it locks each, hands it to a pool, and stores the result.
The pool is this process, worker processes of this machine (loky), or a cluster (Ray).
"""

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from functools import partial
from numbers import Real
from typing import Any

from filelock import Timeout
from tqdm import tqdm

from prslib.checks import whole
from prslib.experiments.pool import check_hashes, make_pool, progress_stream
from prslib.experiments.store import CHECKPOINT, FAILURE, LOCK, Store, describe
from prslib.training import round_alike
from prslib.training.config import SAVE_EVERY, Run, RunConfig
from prslib.training.grids import check_all
from prslib.training.methods import registered, with_registered

POLL = 0.5  # seconds after which Ctrl-C and the locks of other processes are looked at
KILLED = "its process was killed twice, most likely as the memory did not suffice"


def run_all(
    configs: Sequence[RunConfig],
    store: Store | None = None,
    workers: int | None = None,
    device: str = "cpu",
    save_every: float = SAVE_EVERY,
    address: str | None = None,
) -> list[Run]:
    """Return the runs of all configurations; train only those that are not stored yet.

    Parameters
    ----------
    configs : sequence of RunConfig
        The runs, in any number and order.
    store : Store, optional
        The folder of finished runs, by default that of the cache.
    workers : int, optional
        Processes side by side, one thread each. The default is one for each core that
        this process may use, on a GPU at most as many as share it
        (`Architecture.gpu_share`). A cluster has as many as its machines have cores and
        GPUs.
    device : str
        "cpu" or "cuda".
    save_every : float
        Seconds between two checkpoints of a run. There are none on a cluster.
    address : str, optional
        Address of a Ray cluster that trains the runs: "host:port", or "auto" for that
        of this machine. The default is the environment variable RAY_ADDRESS; without it
        this machine trains.

    Returns
    -------
    list of Run
        In the order of the configurations.

    Raises
    ------
    TypeError
        If ``workers`` is no whole number or ``save_every`` no number.
    ValueError
        If a configuration does not fit its data set, ``workers`` is below 1,
        ``save_every`` is not above 0, or runs are missing and the device is not there.
    NewerStoreError
        If a newer version of prslib stored one of the runs.
    OSError
        If runs are missing and the store cannot be written or its disk is full, or if
        there is a folder in the place of a result.
    ModuleNotFoundError, ConnectionError, ClusterError
        If there is an address and no Ray, no cluster that answers within a minute, or
        one that lacks a data set or a GPU.
    RuntimeError
        If runs failed, when all others are stored; or if a run was removed after its
        training.

    Notes
    -----
    All errors but RuntimeError are raised before any training.

    Each run is stored when it ends and saves checkpoints on the way, so that an
    interruption loses a few minutes. Runs that differ only in what they look at, such
    as the test set, are trained as one. A run whose process is killed is tried once
    more, by itself.

    Processes that ask for the same runs share the work: each trains what no other one
    trains, then loads what the others have stored. Worker processes are spawned, not
    forked, so that each may use a GPU.
    """
    if workers is not None:
        workers = whole("workers", workers, least=1)
    if isinstance(save_every, bool) or not isinstance(save_every, Real):
        raise TypeError(f"save_every must be a number of seconds, got {save_every!r}")
    if not save_every > 0:
        raise ValueError(
            f"save_every must be above 0 seconds, got {save_every}; choose for example "
            "300"
        )
    store = store or Store()
    check_all(configs)
    store.settle()
    runs = {config.hash: store.load(config) for config in configs}
    missing = {c.hash: c for c in configs if runs[c.hash] is None}
    if missing:
        store.check_writable()
        round_alike()  # before a worker process loads numpy
        address = address or os.environ.get("RAY_ADDRESS")
        jobs = list(missing.values())
        pool = partial(make_pool, jobs, workers, device, address)
        sweep = Sweep(store, pool, device, None if address else save_every)
        sweep.train(jobs)
        runs |= {name: store.load(config) for name, config in missing.items()}
    if gone := [name for name, run in runs.items() if run is None]:
        raise RuntimeError(
            f"expected {', '.join(gone)} in {store.folder}, where they were stored, "
            "and they can no longer be read: someone has removed or changed the files; "
            "ask again to train them again"
        )
    return [runs[config.hash] for config in configs]  # ty: ignore


class Sweep:
    """Missing runs of a store, trained by a pool and locked until they are stored."""

    def __init__(
        self, store: Store, pool: Callable, device: str, save_every: float | None
    ):
        self.store, self.pool = store, pool
        self.device, self.save_every = device, save_every
        self.errors: dict[RunConfig, Exception] = {}
        self.again: list[RunConfig] = []  # failed in a group, or were killed

    def train(self, configs: Sequence[RunConfig]) -> None:
        """Train and store runs; raise RuntimeError at the end if some failed."""
        groups = {}
        for config in configs:
            groups.setdefault(config.training, []).append(config)
        how = {"total": len(configs), "unit": "run", "smoothing": 0}
        with tqdm(desc="training", file=progress_stream(), **how) as self.bar:
            self.work(groups.values())
            if self.again:  # one by one, so that none takes another one with it
                self.work([[config] for config in self.again.copy()], alone=True)
        if self.errors:
            lines = [
                f"{describe(config.identity)} ({config.hash}): "
                f"{type(error).__name__}: {error}"
                for config, error in self.errors.items()
            ]
            raise RuntimeError(
                f"{len(lines)} of {len(configs)} runs failed, the others are stored; "
                "`python -m prslib runs` shows them, and asking again begins at their "
                "last checkpoint:\n" + "\n".join(lines)
            ) from next(iter(self.errors.values()))

    def work(self, groups: Iterable[list[RunConfig]], alone: bool = False) -> None:
        """Train groups of runs that train alike: lock, submit, collect, unlock."""
        queue, in_pool = deque(groups), {}
        with ExitStack() as all_locks, self.pool(len(queue)) as pool:
            limit = 1 if alone else pool.limit
            while queue or in_pool:
                for _ in range(len(queue)):  # one look at each
                    if len(in_pool) == limit:
                        break
                    locks = all_locks.enter_context(ExitStack())
                    group, busy = self.lock(queue.popleft(), locks)
                    if busy:
                        queue.append(busy)
                    if group:
                        future = self.submit(pool, group)
                        in_pool[future] = group, locks
                    else:
                        locks.close()
                if not in_pool:  # other processes train what is left
                    time.sleep(POLL)
                    continue
                done, _ = wait(in_pool, POLL, FIRST_COMPLETED)
                for future in done:
                    group, locks = in_pool.pop(future)
                    self.collect(future, group, alone)
                    locks.close()

    def lock(
        self, group: list[RunConfig], locks: ExitStack
    ) -> tuple[list[RunConfig], list[RunConfig]]:
        """Lock runs; return those to train, and those that another process trains."""
        missing, busy = [], []
        for config in group:
            try:
                locks.enter_context(self.store.lock(config))
                if self.store.load(config) is None:
                    self.store.check_writable()
                    self.store.remove_files(config)
                    missing.append(config)
                else:
                    self.finish(config)
            except Timeout:
                busy.append(config)
            except Exception as error:
                self.fail(config, error)
        return missing, busy

    def submit(self, pool: Executor, group: list[RunConfig]) -> Future:
        """Let the pool train a group; its runs share a checkpoint."""
        hashes = [config.hash for config in group]
        options = {}
        if self.save_every is not None:
            options["checkpoint"] = self.store.folder / f"{min(hashes)}{CHECKPOINT}"
            options["save_every"] = self.save_every
        train = partial(train_group, hashes=hashes, device=self.device, **options)
        return pool.submit(with_registered, registered(), train, group)

    def collect(self, future: Future, group: list[RunConfig], alone: bool) -> None:
        """Store the runs that a pool returns, or note the error."""
        try:
            runs, seconds = future.result()
        except Exception as error:
            killed = isinstance(error, BrokenProcessPool)
            if len(group) > 1 or (killed and not alone):
                self.again += group
            else:
                self.fail(group[0], ChildProcessError(KILLED) if killed else error)
            return
        for run in runs:
            try:
                self.store.save(run)
            except Exception as error:
                self.fail(run.config, error)
        for config in group:  # after all are stored, as they share a checkpoint
            if config not in self.errors:
                self.finish(config, seconds / len(group))

    def finish(self, config: RunConfig, seconds: float = 0.0) -> None:
        """Remove all files but the result, the lock last."""
        self.store.remove_files(config, CHECKPOINT, FAILURE, LOCK)
        done = f"{describe(config.identity)}: {seconds:.0f} s"
        self.bar.set_postfix_str(done, refresh=False)
        self.bar.update()

    def fail(self, config: RunConfig, error: Exception) -> None:
        """Record the error that ended a run."""
        if isinstance(cause := getattr(error, "cause", None), Exception):
            cause.add_note(str(error))  # where on the cluster it arose
            error = cause
        self.errors[config] = error
        self.store.record_failure(config, error)
        self.bar.update()


def train_group(
    group: list[RunConfig], hashes: list[str], device: str, **options: Any
) -> tuple[list[Run], float]:
    """Train runs that train alike, on whatever machine; return the seconds it took."""
    from prslib.training.run import run_at_once  # loads torch

    start = time.perf_counter()
    check_hashes(group, hashes)
    runs = run_at_once(group, device, **options)
    return runs, time.perf_counter() - start
