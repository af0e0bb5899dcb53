"""Load the runs that are stored and train the missing ones, here or on a Ray cluster.

One process asks for the runs: it locks each, hands it to a pool, and stores the result.
"""

import contextlib
import logging
import math
import os
import socket
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from typing import Any, TextIO

from filelock import Timeout
from joblib import cpu_count
from joblib.externals.loky import get_reusable_executor
from tqdm import tqdm

from prslib.checks import (
    check_int,
    check_text,
    device_name,
    expected,
    instance,
    items,
    naming_extra,
    seconds,
)
from prslib.datasets import load_dataset
from prslib.experiments.store import (
    CHECKPOINT,
    Store,
    conditions_of,
    describe,
    mixture,
)
from prslib.models import MODELS
from prslib.models.weights import EMBEDDED, file_of
from prslib.paths import ending_with_us
from prslib.training import set_deterministic
from prslib.training.config import SAVE_EVERY, Run, RunConfig
from prslib.training.grids import check_all
from prslib.training.methods import registered, with_registered

TRIES_ALONE = 2  # of a run that is killed by itself, too
POLL = 0.5  # seconds after which Ctrl-C and the locks of other processes are looked at
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
IN_CLUSTER = 256  # trainings at once; each holds a lock
START = "start one (`ray start --head --port=6379`), or leave RAY_ADDRESS unset"
# gives what submits a function that takes a share of a GPU, and its arguments; and how
# many Futures keep it busy
Submit = Callable[..., Future]
Pool = contextlib.AbstractContextManager[tuple[Submit, int]]


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
        this process may use, on a GPU at most as many as share it: each run takes its
        network's share (`Architecture.gpu_share`). A cluster has as many as its
        machines have cores and GPUs.
    device : str
        "cpu", "cuda", "cuda:1" for the second GPU, "mps", or "auto": a GPU where this
        machine has one.
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
        If ``configs`` is no list of RunConfig, or ``workers`` no whole number.
    ValueError
        If a configuration does not fit its data set, ``workers`` is below 1, the device
        is none, or runs are missing and it is not there.
    OSError
        If runs are missing and the store cannot be written.
    ModuleNotFoundError, ConnectionError
        If there is an address and no Ray, or no cluster that answers or has a GPU for
        ``device="cuda"``.
    RuntimeError
        If runs failed, when all others are stored.

    Notes
    -----
    All errors but RuntimeError are raised before any training. Runs that were computed
    on different devices, cards or versions of the packages give a warning.

    Each run is stored when it ends and saves checkpoints on the way, so that an
    interruption loses a few minutes. Runs that differ only in what they look at, such
    as the test set, are trained as one. A run whose process is killed, or whose GPU has
    too little memory, is tried again when all others are done, by itself; if it is
    killed there, once more.

    Processes that ask for the same runs share the work: each trains what no other one
    trains, then loads what the others have stored. Worker processes are spawned, not
    forked, so that each may use a GPU.
    """
    if workers is not None:
        workers = check_int("workers", workers, least=1)
    configs = [
        instance("a run", config, RunConfig) for config in items("configs", configs)
    ]
    device = device_name(device)
    save_every = seconds("save_every", save_every)
    if address is not None:
        check_text("address", address)
    store = Store() if store is None else instance("store", store, Store)
    by_hash = {config.hash: config for config in configs}
    runs = {name: store.load(config) for name, config in by_hash.items()}
    missing = [config for name, config in by_hash.items() if runs[name] is None]
    if missing:
        train_all(missing, store, workers, device, save_every, address)
        runs |= {config.hash: store.load(config) for config in missing}
    records = [run.record for run in runs.values() if run and run.record]
    if mixed := mixture(map(conditions_of, records)):
        warnings.warn(mixed, stacklevel=2)  # a figure of them is of no one machine
    return [runs[config.hash] for config in configs]  # ty: ignore


def train_all(
    configs: Sequence[RunConfig],
    store: Store,
    workers: int | None = None,
    device: str = "cpu",
    save_every: float = SAVE_EVERY,
    address: str | None = None,
) -> None:
    """Train and store runs that are not stored, as `run_all` does, and read none."""
    check_all(configs)
    set_deterministic()  # before a worker process loads numpy
    address = address or os.environ.get("RAY_ADDRESS")
    if address:  # its machines share no folder
        save_every = math.inf
    device, pool = make_pool(configs, device, workers, address)
    # a cluster counts them itself
    gpus = math.inf if address or workers else 1
    Sweep(store, device, save_every, gpus).train(configs, pool)


class Sweep:
    """Missing runs of a store; those that share a training are locked until stored."""

    def __init__(self, store: Store, device: str, save_every: float, gpus: float = 1):
        self.store = store
        self.gpus = gpus  # that the runs of a pool may share
        self.options: dict[str, Any] = {"device": device, "save_every": save_every}
        self.errors: list[str] = []
        self.cause: Exception | None = None  # of the last of them
        self.retried: list[list[RunConfig]] = []  # each alone, when others are done
        self.tries_alone: Counter[str] = Counter()  # that were killed, by training
        self.is_alone = False

    def train(self, configs: Sequence[RunConfig], pool: Pool) -> None:
        """Train and store runs; raise RuntimeError at the end if some failed."""
        groups = {}
        for config in configs:
            groups.setdefault(config.training_hash, []).append(config)
        how = {"desc": "training", "unit": "run", "smoothing": 0, "file": bar_stream()}
        bar = tqdm(total=len(configs), **how)
        with pool as (submit, limit), bar:
            self.submit_to_pool = submit
            self.bar = bar
            self.work(list(groups.values()), limit)
            # one by one, so that none takes another one with it
            self.is_alone = True
            while self.retried:
                waiting, self.retried = self.retried, []
                self.work(waiting, limit=1)
        if self.errors:
            what = f"{len(self.errors)} of {len(configs)} runs failed"
            lines = [f"{what}, the others are stored:", *self.errors]
            raise RuntimeError("\n".join(lines)) from self.cause

    def work(self, waiting: list[list[RunConfig]], limit: int) -> None:
        """Lock groups of runs that share a training, let a pool train them, store them."""
        in_pool = {}
        with contextlib.ExitStack() as locks:
            while waiting or in_pool:
                for group in waiting.copy():
                    if len(in_pool) == limit:
                        break
                    shares = [self.share(each) for each, _ in in_pool.values()]
                    if sum(shares) + self.share(group) > self.gpus:
                        continue  # a smaller one may still fit
                    try:
                        lock = self.store.lock(group[0])
                    except Timeout:  # another process trains it: look again later
                        continue
                    locks.callback(lock.release)
                    waiting.remove(group)
                    in_pool[self.submit(group)] = group, lock
                if waiting and not in_pool:
                    time.sleep(POLL)
                done, _ = wait(in_pool, POLL, FIRST_COMPLETED)
                for future in done:
                    group, lock = in_pool.pop(future)
                    self.collect(future, group)
                    lock.release()

    def submit(self, group: list[RunConfig]) -> Future:
        """Let a pool train what no other process has stored meanwhile."""
        missing = [config for config in group if self.store.load(config) is None]
        hashes = [config.hash for config in missing]
        checkpoint = self.store.path(group[0], CHECKPOINT)
        options = self.options | {"hashes": hashes, "checkpoint": checkpoint}
        task = partial(train_group, **options)
        arguments = registered(), task, missing
        return self.submit_to_pool(self.share(group), with_registered, *arguments)

    def share(self, group: list[RunConfig]) -> float:
        """Return the share of a GPU that runs which share a training take."""
        return gpu_share(group[0], self.options["device"])

    def collect(self, future: Future, group: list[RunConfig]) -> None:
        """Store the runs that a pool returns, or note the error."""
        try:
            for run in future.result():
                self.store.save(run)
        except Exception as error:
            if self.is_retried(group, error):
                self.retried.append(group)
            else:
                self.fail(group, error)
        else:
            self.store.finish(group)
            self.bar.set_postfix_str(describe(group[-1].identity), refresh=False)
            self.bar.update(len(group))

    def is_retried(self, group: list[RunConfig], error: Exception) -> bool:
        """Tell whether to try a run again: it may have failed for what others did."""
        # where one process of a pool is killed, all that are at work raise this
        killed = isinstance(error, BrokenProcessPool)
        if self.is_alone:
            name = group[0].training_hash
            self.tries_alone[name] += 1
            return killed and self.tries_alone[name] < TRIES_ALONE
        return killed or type(error).__name__ == "OutOfMemoryError"  # torch's

    def fail(self, group: list[RunConfig], error: Exception) -> None:
        """Record the error that ended runs."""
        with contextlib.suppress(OSError):
            self.store.record_failure(group[0], error)
        self.cause = error = getattr(error, "cause", error)  # of Ray's error
        text = f"{type(error).__name__}: {error}"
        self.errors += [f"{describe(config.identity)}: {text}" for config in group]
        self.bar.update(len(group))


def train_group(group: list[RunConfig], hashes: list[str], **options: Any) -> list[Run]:
    """Train runs that share a training, on whatever machine."""
    import torch

    from prslib.training.run import on_gpu, run_at_once

    here = [config.hash for config in group]
    if here != hashes:
        what = f"runs {', '.join(hashes)} on {socket.gethostname()}"
        advice = "install there the data and the prslib of the machine that asked"
        raise ValueError(expected(what, ", ".join(here), advice))
    try:
        return run_at_once(group, **options) if group else []
    except Exception as error:
        forget_locals(error)
        on_gpu.clear()
        raise
    finally:
        torch.cuda.empty_cache()  # other processes may need it; nothing without a GPU


def forget_locals(error: BaseException | None) -> None:
    """Free what the frames of an error hold: a network, its inputs on a GPU."""
    # this process's next run needs the room
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__


def bar_stream() -> TextIO:
    """Return stderr; what papermill's kernel writes goes to its terminal, too."""
    stream: Any = sys.stderr
    is_kernel = hasattr(stream, "echo")
    if is_kernel and "JPY_SESSION_NAME" not in os.environ:  # JupyterLab shows the cell
        terminal = open(stream.fileno(), "w", buffering=1, closefd=False)  # noqa: SIM115
        stream.echo = terminal
    return stream


# Pools that train runs: this process, this machine's processes, or a Ray cluster. Ray's
# ports take code from anyone who reaches them: use it in a trusted network only.


def gpu_share(config: RunConfig, device: str) -> float:
    """Return the share of a GPU that a run takes, 0.0 on a CPU."""
    if device == "cpu":
        return 0.0
    return MODELS[config.resolved["model"]].gpu_share


def make_pool(
    configs: Sequence[RunConfig], device: str, workers: int | None, address: str | None
) -> tuple[str, Pool]:
    """Return the device and what trains these runs."""
    if address:
        if device == "auto":
            advice = "its machines may have other ones than this"
            raise ValueError(
                expected("device cpu or cuda on a cluster", device, advice)
            )
        return device, cluster(address, device)
    if device != "cpu":
        from prslib.training.device import check_device  # loads torch

        device = check_device(device)
    share = min(gpu_share(config, device) for config in configs)
    for name in {config.dataset for config in configs}:
        load_dataset(name)  # its errors come before work
    check_files_of_weights(configs)
    trainings = {config.training_hash for config in configs}
    most = min(cpu_count(), int(1 / share)) if share else cpu_count()
    count = min(workers or most, len(trainings))
    return device, processes(count) if count > 1 else this_process()


def check_files_of_weights(configs: Sequence[RunConfig]) -> None:
    """Refuse files of weights that are none, or of another network, before work."""
    first = {}
    for config in configs:
        model, weights = config.resolved["model"], config.resolved["weights"]
        if file_of(weights) not in (None, *EMBEDDED.values()):
            first.setdefault((config.dataset, model, weights), config)
    for config in first.values():
        from prslib.training.run import initial_model

        initial_model(config, load_dataset(config.dataset))


@contextlib.contextmanager
def this_process() -> Iterator[tuple[Submit, int]]:
    """Call functions at once; leave no inputs on a GPU."""
    from prslib.training.run import on_gpu

    try:
        yield at_once, 1
    finally:
        on_gpu.clear()


def at_once(_share: float, function: Callable, *arguments: object) -> Future:
    """Call a function in this process."""
    future = Future()
    try:
        future.set_result(function(*arguments))
    except Exception as error:
        future.set_exception(error)
    return future


@contextlib.contextmanager
def processes(count: int) -> Iterator[tuple[Submit, int]]:
    """Let processes of this machine call functions; end them on an error or Ctrl-C."""
    # asked for each time: new processes take the next work where one is killed
    pool = partial(get_reusable_executor, count, env=ONE_THREAD, **ending_with_us())
    try:
        pool()
    except OSError as error:  # its locks are files in shared memory
        what = "room for the locks of worker processes in shared memory (/dev/shm)"
        advice = "make room there, or set workers=1"
        raise OSError(expected(what, error, advice)) from error
    try:
        # one more than processes, so that none waits for this one
        yield lambda _share, *task: pool().submit(*task), count + 1
    finally:  # joblib would find it, and it is none of its own
        pool().shutdown(kill_workers=True)


@contextlib.contextmanager
def cluster(address: str, device: str) -> Iterator[tuple[Submit, int]]:
    """Let the machines of a Ray cluster call functions; Ray tries again where one is lost."""
    with naming_extra("cluster", " or leave RAY_ADDRESS unset"):
        import ray
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        if host and port.isdigit():  # Ray asks for a minute where nobody listens
            socket.create_connection((host.strip("[]"), int(port)), 10).close()
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, RuntimeError, ValueError) as error:
        what = f"a Ray cluster at {address!r} that answers"
        raise ConnectionError(expected(what, error, START)) from error

    def submit(share: float, function: Callable, *arguments: object) -> Future:
        task = ray.remote(num_cpus=1, num_gpus=share)(function)
        return task.remote(*arguments).future()

    try:
        if device != "cpu" and not ray.cluster_resources().get("GPU", 0):
            raise ConnectionError(expected(f"a GPU in the cluster {address}", "none"))
        yield submit, IN_CLUSTER
    finally:
        ray.shutdown()  # ends what was submitted
