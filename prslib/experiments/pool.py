"""Pools that train runs: this process, this machine's processes, or a Ray cluster.

Each is a context that gives ``submit(function, *arguments)``, which returns a Future,
and how many Futures keep it busy. Ray's ports take code from anyone who reaches them:
use it in a trusted network only.
"""

import logging
import socket
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager
from functools import partial

from joblib import cpu_count
from joblib.externals.loky import get_reusable_executor

from prslib.checks import expected, naming_extra
from prslib.datasets import load_dataset
from prslib.models import MODELS
from prslib.paths import ending_with_us
from prslib.training.config import RunConfig

Pool = tuple[Callable[..., Future], int]
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
IN_CLUSTER = 256  # trainings at once; each holds a lock
START = "start one (`ray start --head --port=6379`), or leave RAY_ADDRESS unset"


def process_count(share: float) -> int:
    """Return how many runs are side by side if each takes this share of the GPU."""
    return min(cpu_count(), int(1 / share)) if share else cpu_count()


def gpu_share(configs: Sequence[RunConfig], device: str) -> float:
    """Return the largest share of a GPU that one of the runs takes, 0.0 on a CPU."""
    if device == "cpu":
        return 0.0
    return max(MODELS[config.resolved["model"]].gpu_share for config in configs)


def make_pool(
    configs: Sequence[RunConfig], device: str, workers: int | None, address: str | None
) -> AbstractContextManager[Pool]:
    """Return what trains these runs."""
    share = gpu_share(configs, device)
    if address:
        return cluster(address, share)
    from prslib.training.device import check_device  # loads torch

    check_device(device)
    for name in {config.dataset for config in configs}:
        load_dataset(name)  # its errors come before work
    trainings = {config.training for config in configs}
    count = min(workers or process_count(share), len(trainings))
    return processes(count) if count > 1 else this_process()


@contextmanager
def this_process() -> Iterator[Pool]:
    """Call a function at once."""

    def submit(function: Callable, *arguments: object) -> Future:
        future = Future()
        try:
            future.set_result(function(*arguments))
        except Exception as error:
            future.set_exception(error)
        return future

    yield submit, 1


@contextmanager
def processes(count: int) -> Iterator[Pool]:
    """Let processes of this machine call functions; end them on an error or Ctrl-C."""
    # asked for each time: new processes take the next work where one is killed
    pool = partial(get_reusable_executor, count, env=ONE_THREAD, **ending_with_us())
    try:
        # one more than processes, so that none waits for this one
        yield lambda *task: pool().submit(*task), count + 1
    except BaseException:
        pool().shutdown(kill_workers=True)
        raise
    pool().shutdown()  # joblib would find it, and it is none of its own


@contextmanager
def cluster(address: str, share: float) -> Iterator[Pool]:
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

    def submit(function: Callable, *arguments: object) -> Future:
        task = ray.remote(num_cpus=1, num_gpus=share)(function)
        return task.remote(*arguments).future()

    try:
        if ray.cluster_resources().get("GPU", 0) < share:
            raise ConnectionError(expected(f"a GPU in the cluster {address}", "none"))
        yield submit, IN_CLUSTER
    finally:
        ray.shutdown()  # ends what was submitted
