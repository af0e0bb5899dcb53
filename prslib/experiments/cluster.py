"""Train runs on a Ray cluster, and lock, collect and store them on this machine.

Ray's ports take code from anyone who reaches them, also on 127.0.0.1 some listen on all addresses:
use it in a trusted network only.

The machines share nothing but the network. Each needs prslib and the data sets, and sends its runs
back. A run whose machine is lost begins anew on another one; a run that raises an error does not.
"""

import logging
import socket
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import ModuleType

from prslib.checks import naming_extra
from prslib.datasets import fingerprint, load_dataset
from prslib.experiments.store import Store
from prslib.experiments.workers import (
    Outcome,
    failure,
    gpu_share,
    lock_missing,
    store_runs,
    train_group,
)
from prslib.training.config import Run, RunConfig
from prslib.training.methods import registered, with_registered

RETRIES = 3  # of a run whose process or machine is lost
IN_FLIGHT = 256  # groups handed to the cluster at once; each holds a lock
TIMEOUT = 10.0  # seconds in which the cluster's port must answer
POLL = 1.0  # seconds after which Ctrl-C is noticed at the latest


class ClusterError(RuntimeError):
    """A cluster that cannot train the runs; raised before any training."""


def train_on_cluster(
    address: str, groups: Sequence[Sequence[RunConfig]], store: Store, device: str, wait: bool
) -> Iterator[Outcome]:
    """Train groups on a Ray cluster, store them here, yield each run's outcome; Ctrl-C ends all."""
    with connected(address) as ray:
        _check_machines(ray, groups, device)
        yield from _train(ray, groups, store, device, wait)


@contextmanager
def connected(address: str) -> Iterator[ModuleType]:
    """Connect to a cluster, or use the present connection; the context's value is `ray`."""
    with naming_extra("cluster", ", or leave RAY_ADDRESS unset to train on this machine"):
        import ray
        import ray.util.scheduling_strategies
    if ray.is_initialized():
        yield ray
        return
    try:
        _check_port(address)
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, RuntimeError, ValueError) as error:
        raise ConnectionError(
            f"expected a Ray cluster at {address!r}, got none ({error}); start one (`ray start "
            "--head --port=6379` here, `ray start --address=HOST:6379` on every other machine), or "
            "leave RAY_ADDRESS unset to train on this machine"
        ) from error
    try:
        yield ray
    finally:
        ray.shutdown()


def _check_port(address: str) -> None:
    """Raise OSError now where nobody listens, for which Ray itself takes a minute."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=TIMEOUT).close()


def _check_machines(ray: ModuleType, groups: Sequence[Sequence[RunConfig]], device: str) -> None:
    """Let every machine that can train a run load the data sets; raise ClusterError for faults."""
    configs = [config for group in groups for config in group]
    share = gpu_share(configs, device)
    nodes = [node for node in ray.nodes() if node["Alive"]]
    needed = {"CPU": 1, "GPU": share}
    fit = [n for n in nodes if all(n["Resources"].get(k, 0) >= v for k, v in needed.items())]
    if not fit:
        raise ClusterError(
            f"expected a machine with a CPU{' and a GPU' if share else ''} in the cluster, got "
            f"{len(nodes)} machines without; start one (`ray start --address=HOST:PORT`), or "
            "choose another device"
        )
    expected = {name: fingerprint(name) for name in {config.dataset for config in configs}}
    answers, faults = [], []
    for node in fit:
        there = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node["NodeID"], False)
        task = ray.remote(with_registered).options(
            num_cpus=0, max_retries=0, scheduling_strategy=there, name="prslib data sets"
        )
        answer = task.remote(registered(), data_set_faults, expected)
        answers.append((node["NodeManagerAddress"], answer))
    for host, answer in answers:
        try:
            faults += [f"{host}: {line}" for line in ray.get(answer)]
        except ray.exceptions.RayTaskError as error:  # no prslib there, or another version
            faults.append(f"{host}: {error.cause}")
        except ray.exceptions.RayError:  # lost meanwhile: it gets no run either
            continue
    if faults:
        raise ClusterError(
            f"expected {', '.join(sorted(expected))} on every machine of the cluster, as they are "
            "here; prepare them there and set PRSLIB_DATA before `ray start`, or take the machine "
            "out (`ray stop`). Got:\n" + "\n".join(faults)
        )


def data_set_faults(expected: dict[str, str]) -> list[str]:
    """Load data sets on a machine of the cluster; return a line for each other fingerprint."""
    lines = []
    for name, wanted in expected.items():
        try:
            load_dataset(name)
            if (found := fingerprint(name)) != wanted:
                lines.append(f"{name}: other labels (fingerprint {found}, expected {wanted})")
        except (OSError, ValueError) as error:
            lines.append(f"{name}: {error}")
    return lines


def _train(ray, groups, store, device, wait) -> Iterator[Outcome]:
    waiting, in_flight = deque(groups), {}
    with ExitStack() as all_locks:  # however this ends, the locks are freed
        while waiting or in_flight:
            while waiting and len(in_flight) < IN_FLIGHT:
                group, locks = waiting.popleft(), all_locks.enter_context(ExitStack())
                try:
                    missing, outcomes = lock_missing(group, store, wait, locks)
                except Exception as error:
                    locks.close()
                    yield from _failures(error, group, store, waiting)
                    continue
                if missing:
                    in_flight[_submit(ray, missing, device)] = missing, locks
                else:
                    locks.close()
                yield from outcomes
            done, _ = ray.wait(list(in_flight), timeout=POLL) if in_flight else ([], [])
            for answer in done:
                group, locks = in_flight.pop(answer)
                try:
                    runs, seconds = _fetch(ray, answer)
                    outcomes = store_runs(runs, store, seconds)
                except Exception as error:
                    outcomes = _failures(error, group, store, waiting)
                locks.close()
                yield from outcomes


def _failures(error: Exception, group: Sequence[RunConfig], store: Store, waiting: deque):
    """Return the outcome of a run that an error ended; the runs of a group are tried one by one."""
    if len(group) > 1:
        waiting.extend((config,) for config in group)
        return []
    return [failure(group[0], store, error)]


def _submit(ray: ModuleType, configs: Sequence[RunConfig], device: str):
    hashes, share = tuple(config.hash for config in configs), gpu_share(configs, device)
    how = {"num_cpus": 1, "num_gpus": share, "max_retries": RETRIES, "retry_exceptions": False}
    task = ray.remote(with_registered).options(**how, name=f"prslib {hashes[0]}")
    return task.remote(registered(), train_there, tuple(configs), hashes, device)


def train_there(
    configs: Sequence[RunConfig], hashes: Sequence[str], device: str
) -> tuple[list[Run], float]:
    """Train a group on a machine of the cluster; return its runs and the seconds they took."""
    start = time.perf_counter()
    found = tuple(config.hash for config in configs)
    if found != tuple(hashes):
        raise ValueError(
            f"{socket.gethostname()}: expected runs {', '.join(hashes)}, got {', '.join(found)}: "
            "this machine has other data or another version of prslib than the one that asked; "
            "install the same there"
        )
    return train_group(configs, device), time.perf_counter() - start


def _fetch(ray: ModuleType, answer) -> tuple[list[Run], float]:
    """Return what a machine sent back, or raise the run's own error with a note where it arose."""
    try:
        return ray.get(answer)
    except Exception as raised:
        if (error := getattr(raised, "cause", None)) is None:
            raise
        error.add_note(str(raised))
        raise error from None
