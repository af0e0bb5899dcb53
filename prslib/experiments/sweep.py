"""Load the runs that are stored and train the missing ones, here or on a Ray cluster.

One process asks for the runs: it locks each, hands it to a pool, and stores the result.
"""

import os
import socket
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, ExitStack, suppress
from functools import partial
from typing import Any

from filelock import Timeout
from tqdm import tqdm

from prslib.checks import expected, whole
from prslib.experiments.pool import Pool, make_pool
from prslib.experiments.store import CHECKPOINT, Store, describe
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
        If ``workers`` is no whole number.
    ValueError
        If a configuration does not fit its data set, ``workers`` is below 1, or runs
        are missing and the device is not there.
    OSError
        If runs are missing and the store cannot be written.
    ModuleNotFoundError, ConnectionError
        If there is an address and no Ray, or no cluster that answers or has a GPU for
        ``device="cuda"``.
    RuntimeError
        If runs failed, when all others are stored.

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
    store = store or Store()
    check_all(configs)
    by_hash = {config.hash: config for config in configs}
    runs = {name: store.load(config) for name, config in by_hash.items()}
    missing = [config for name, config in by_hash.items() if runs[name] is None]
    if missing:
        round_alike()  # before a worker process loads numpy
        address = address or os.environ.get("RAY_ADDRESS")
        options = {"device": device}
        if not address:  # a cluster's machines share no folder
            options["save_every"] = save_every
        pool = make_pool(missing, device, workers, address)
        Sweep(store, options).train(missing, pool)
        runs |= {config.hash: store.load(config) for config in missing}
    return [runs[config.hash] for config in configs]  # ty: ignore


class Sweep:
    """Missing runs of a store; those that train alike are locked until they are stored."""

    def __init__(self, store: Store, options: dict):
        self.store, self.options = store, options
        self.errors: dict[str, str] = {}  # by hash
        self.cause: Exception | None = None  # of the last of them
        self.killed: list[list[RunConfig]] = []

    def train(
        self, configs: Sequence[RunConfig], pool: AbstractContextManager[Pool]
    ) -> None:
        """Train and store runs; raise RuntimeError at the end if some failed."""
        groups = {}
        for config in configs:
            groups.setdefault(config.training, []).append(config)
        how = {"desc": "training", "unit": "run", "smoothing": 0}
        with pool as (self.call, limit), tqdm(total=len(configs), **how) as self.bar:
            self.work(list(groups.values()), limit)
            # one by one, so that none takes another one with it
            self.work(self.killed.copy(), limit=1)
        if self.errors:
            what = f"{len(self.errors)} of {len(configs)} runs failed"
            lines = [f"{what}, the others are stored:", *self.errors.values()]
            raise RuntimeError("\n".join(lines)) from self.cause

    def work(self, waiting: list[list[RunConfig]], limit: int) -> None:
        """Lock groups of runs that train alike, let a pool train them, store them."""
        in_pool = {}
        with ExitStack() as locks:
            while waiting or in_pool:
                for group in waiting.copy():
                    if len(in_pool) == limit:
                        break
                    try:
                        lock = self.store.lock(group[0])
                    except Timeout:  # another process trains it: look again later
                        continue
                    locks.callback(lock.release)
                    waiting.remove(group)
                    missing = [c for c in group if self.store.load(c) is None]
                    if missing:
                        in_pool[self.submit(missing)] = group, lock
                    else:  # another process has stored them meanwhile
                        self.finish(group)
                        lock.release()
                if waiting and not in_pool:
                    time.sleep(POLL)
                done, _ = wait(in_pool, POLL, FIRST_COMPLETED)
                for future in done:
                    group, lock = in_pool.pop(future)
                    self.collect(future, group)
                    lock.release()

    def submit(self, group: list[RunConfig]) -> Future:
        """Let a pool train runs that train alike; they share a checkpoint."""
        hashes = [config.hash for config in group]
        task = partial(train_group, hashes=hashes, **self.options)
        if "save_every" in self.options:
            task = partial(task, checkpoint=self.store.path(group[0], CHECKPOINT))
        return self.call(with_registered, registered(), task, group)

    def collect(self, future: Future, group: list[RunConfig]) -> None:
        """Store the runs that a pool returns, or note the error."""
        try:
            for run in future.result():
                self.store.save(run)
        except BrokenProcessPool:
            if group in self.killed:
                self.fail(group, ChildProcessError(KILLED))
            else:
                self.killed.append(group)
        except Exception as error:
            self.fail(group, error)
        else:
            self.finish(group)

    def finish(self, group: list[RunConfig]) -> None:
        """Remove all files but the results."""
        self.store.finish(group)
        self.bar.set_postfix_str(describe(group[-1].identity), refresh=False)
        self.bar.update(len(group))

    def fail(self, group: list[RunConfig], error: Exception) -> None:
        """Record the error that ended runs."""
        with suppress(OSError):
            self.store.record_failure(group[0], error)
        self.cause = error = getattr(error, "cause", error)  # of Ray's error
        for config in group:
            text = f"{type(error).__name__}: {error}"
            self.errors[config.hash] = f"{describe(config.identity)}: {text}"
        self.bar.update(len(group))


def train_group(group: list[RunConfig], hashes: list[str], **options: Any) -> list[Run]:
    """Train runs that train alike, on whatever machine."""
    from prslib.training.run import run_at_once  # loads torch

    here = [config.hash for config in group]
    if here != hashes:
        what = f"runs {', '.join(hashes)} on {socket.gethostname()}"
        advice = "install there the data and the prslib of the machine that asked"
        raise ValueError(expected(what, ", ".join(here), advice))
    return run_at_once(group, **options)
