"""Pools that train runs: this process, this machine's processes, or a Ray cluster.

Ray's ports take code from anyone who reaches them: use it in a trusted network only.
"""

import logging
import os
import socket
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from functools import partial
from types import ModuleType
from typing import TextIO

from joblib import cpu_count
from joblib.externals.loky import get_reusable_executor

from prslib.checks import expected, naming_extra
from prslib.datasets import load_dataset
from prslib.models import MODELS
from prslib.paths import ending_with_us
from prslib.training.config import RunConfig
from prslib.training.methods import registered, with_registered

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
RETRIES = 3  # by Ray, of a group whose process or machine is lost
START = (
    "look at `ray status`, or start one (`ray start --head --port=6379` here, "
    "`ray start --address=HOST:6379` on every other machine), or leave RAY_ADDRESS "
    "unset to train on this machine; gcs_server.out among Ray's logs tells why a head "
    "is down"
)


class ClusterError(RuntimeError):
    """A cluster that cannot train the runs; raised before any training."""


def make_pool(
    configs: Sequence[RunConfig],
    workers: int | None,
    device: str,
    address: str | None,
    groups: int,
) -> Executor:
    """Return what trains runs; its ``limit`` is how many groups it takes at once."""
    if address:
        return Cluster(address, configs, device)
    from prslib.training.device import check_device  # loads torch

    check_device(device)
    for name in dict.fromkeys(config.dataset for config in configs):
        load_dataset(name)  # its errors come before work
    count = min(workers or process_count(gpu_share(configs, device)), groups)
    return Workers(count) if count > 1 else ThisProcess()


def check_hashes(configs: Sequence[RunConfig], hashes: Sequence[str]) -> None:
    """Raise ValueError on a machine where the configurations are other runs."""
    here = [config.hash for config in configs]
    if here != list(hashes):
        raise ValueError(
            f"{socket.gethostname()}: expected runs {', '.join(hashes)}, got "
            f"{', '.join(here)}: this machine has other data or another version of "
            "prslib than the one that asked; install the same there"
        )


def process_count(share: float) -> int:
    """Return how many runs are side by side if each takes this share of the GPU."""
    return min(cpu_count(), int(1 / share)) if share else cpu_count()


def gpu_share(configs: Sequence[RunConfig], device: str) -> float:
    """Return the largest share of a GPU that one of the runs takes, 0.0 on a CPU."""
    if device == "cpu":
        return 0.0
    return max(MODELS[config.resolved["model"]].gpu_share for config in configs)


class ThisProcess(Executor):
    """A pool without processes: what is submitted is done at once."""

    limit = 1

    def submit(self, function: Callable, *arguments: object) -> Future:
        """Call a function, and return its result or error."""
        future = Future()
        try:
            future.set_result(function(*arguments))
        except Exception as error:
            future.set_exception(error)
        return future


class Workers(Executor):
    """Processes of this machine; new ones take the next work where one is killed."""

    def __init__(self, count: int):
        self.limit = count + 1  # one more, so that no process waits for this one
        self.make = partial(get_reusable_executor, count, env=ONE_THREAD)
        self.processes = None

    def submit(self, function: Callable, *arguments: object) -> Future:
        """Let a process call a function."""
        self.processes = self.make(**ending_with_us())
        return self.processes.submit(function, *arguments)

    def __exit__(self, kind: type | None, *_: object) -> None:
        """End the processes, at once where an error or Ctrl-C ends the sweep."""
        if self.processes is not None:
            self.processes.shutdown(wait=True, kill_workers=kind is not None)


class Cluster(Executor):
    """A Ray cluster, whose machines share nothing but the network."""

    limit = 256  # groups; each holds a lock

    def __init__(self, address: str, configs: Sequence[RunConfig], device: str):
        self.ray, self.connected = connect(address)
        share = gpu_share(configs, device)
        self.task = {"num_cpus": 1, "num_gpus": share, "max_retries": RETRIES}
        try:
            self.check(share, list({c.dataset: c for c in configs}.values()))
        except BaseException:
            self.shutdown()
            raise

    def submit(self, function: Callable, *arguments: object) -> Future:
        """Let a machine call a function; Ray tries again where the machine is lost."""
        task = self.ray.remote(function).options(**self.task, name="prslib run")
        return task.remote(*arguments).future()

    def shutdown(self, wait: bool = True, **_: object) -> None:
        """Leave the cluster, which ends what was submitted."""
        if self.connected:
            self.ray.shutdown()

    def check(self, share: float, configs: Sequence[RunConfig]) -> None:
        """Raise ClusterError where a machine that can train has other data."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        needs = {"CPU": 1, "GPU": share}
        alive = [node for node in self.ray.nodes() if node["Alive"]]
        nodes = [
            node
            for node in alive
            if all(node["Resources"].get(kind, 0) >= n for kind, n in needs.items())
        ]
        if not nodes:
            kind = "a CPU and a GPU" if share else "a CPU"
            got = f"{len(alive)} machines without"
            start = "start one (`ray start --address=HOST:6379`)"
            raise ClusterError(expected(f"a machine with {kind}", got, start))
        hashes, answers, faults = [c.hash for c in configs], {}, []
        for node in nodes:
            there = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            how = {"num_cpus": 0, "num_gpus": 0, "name": "prslib check"}
            task = self.ray.remote(with_registered)
            task = task.options(scheduling_strategy=there, max_retries=0, **how)
            answers[task.remote(registered(), check_hashes, configs, hashes)] = node
        for answer, node in answers.items():
            try:
                self.ray.get(answer)
            except self.ray.exceptions.RayTaskError as error:
                faults.append(f"{node['NodeManagerAddress']}: {error.cause}")
            except self.ray.exceptions.RayError:  # lost meanwhile: it gets no run
                continue
        if faults:
            what = "the same data sets and prslib on every machine of the cluster"
            advice = "prepare them there and set PRSLIB_DATA before `ray start`, or "
            advice += "take the machine out (`ray stop`)"
            raise ClusterError(expected(what, "\n".join(faults), advice))


def connect(address: str) -> tuple[ModuleType, bool]:
    """Return `ray`, connected to a cluster, and whether it was not connected before."""
    with naming_extra(
        "cluster", ", or leave RAY_ADDRESS unset to train on this machine"
    ):
        os.environ.setdefault("RAY_NUM_REDIS_GET_RETRIES", "1")  # 40 s each, else 20
        import ray
    if ray.is_initialized():
        return ray, False
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        if host and port.isdigit():  # Ray asks for a minute where nobody listens
            socket.create_connection((host.strip("[]"), int(port)), 10).close()
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, RuntimeError, ValueError) as error:
        what = f"a Ray cluster at {address!r} that answers within a minute"
        raise ConnectionError(expected(what, f"none ({error})", START)) from error
    return ray, True


def progress_stream() -> TextIO:
    """Return stderr; under papermill both the cell and its kernel's terminal."""
    kernel = type(sys.stderr).__module__.startswith("ipykernel")
    if (
        not kernel or "JPY_SESSION_NAME" in os.environ
    ):  # in JupyterLab the cell suffices
        return sys.stderr
    return Both(sys.stderr, open(sys.stderr.fileno(), "w", closefd=False))


class Both:
    """A cell's output and the terminal of its kernel."""

    def __init__(self, *streams: TextIO):
        self.streams = streams

    def write(self, text: str) -> None:
        """Write to both."""
        for stream in self.streams:
            stream.write(text)

    def flush(self) -> None:
        """Flush both."""
        for stream in self.streams:
            stream.flush()
