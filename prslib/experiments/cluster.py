"""Runs on many machines: a Ray cluster trains them, this process claims, collects and stores them.

Nothing is shared but the network: a machine of the cluster needs prslib and the data sets, and
sends back what a run leaves. A run whose machine is lost begins anew on another one; a run that
raises an error is not tried again.
"""

import logging
import socket
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import ModuleType

from prslib.datasets import fingerprint, load_dataset
from prslib.experiments import workers as training
from prslib.experiments.store import Store
from prslib.experiments.workers import Outcome, claim, failed, gpu_share, keep
from prslib.training.config import Run, RunConfig

RETRIES = 3  # of a run whose process or machine is lost
IN_FLIGHT = 256  # units handed to the cluster at once; each holds a lock
REACHABLE = 10.0  # seconds to answer
POLL = 1.0  # seconds after which Ctrl-C is noticed at the latest


class ClusterError(RuntimeError):
    """A cluster that cannot do the work, found out before any work starts."""


def attempt_on(
    address: str, units: Sequence[Sequence[RunConfig]], store: Store, device: str, wait: bool
) -> Iterator[Outcome]:
    """Train runs on a Ray cluster and store them here; our own.

    Parameters
    ----------
    address : str
        What `ray.init` takes: "host:port", or "auto" for the cluster of this machine.
    units : sequence of sequence of RunConfig
        Runs that one process of the cluster trains as one.
    store : Store
        Where results are kept, on this machine.
    device : str
        Where to compute, "cpu" or "cuda".
    wait : bool
        Whether to wait for runs that another process is at.

    Yields
    ------
    Outcome
        Of every run, as it comes.

    Raises
    ------
    ModuleNotFoundError
        If Ray is not installed.
    ConnectionError
        If no cluster answers.
    ClusterError
        If no machine of it has what a run needs, or one of those lacks a data set or has another.

    Notes
    -----
    A GPU is given to several runs at once where the network's `Architecture.gpu_share` says so. On
    Ctrl-C this process leaves, which ends its runs on the cluster and frees their locks.
    """
    with connected(address) as ray:
        _check_machines(ray, units, device)
        yield from _collect(ray, units, store, device, wait)


@contextmanager
def connected(address: str) -> Iterator[ModuleType]:
    """Connect to a cluster, or use the connection that is there.

    Parameters
    ----------
    address : str
        As for `attempt_on`.

    Yields
    ------
    module
        `ray`.

    Raises
    ------
    ModuleNotFoundError
        If Ray is not installed.
    ConnectionError
        If no cluster answers.
    """
    try:
        import ray
        import ray.util.scheduling_strategies
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"expected Ray, as the runs are to be trained on the cluster {address!r}; install it "
            "(pip install 'prslib[cluster]'), or leave RAY_ADDRESS unset to train on this machine"
        ) from error
    if ray.is_initialized():
        yield ray
        return
    try:
        _knock(address)
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


def _knock(address: str) -> None:
    """Raise OSError now where nobody listens, for which Ray itself takes a minute."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=REACHABLE).close()


def _check_machines(ray: ModuleType, units: Sequence[Sequence[RunConfig]], device: str) -> None:
    """Let every machine that may get a run load the data sets; each makes them once, here."""
    configs = [config for unit in units for config in unit]
    share = gpu_share(configs, device)
    nodes = [node for node in ray.nodes() if node["Alive"]]
    fit = [
        node
        for node in nodes
        if node["Resources"].get("CPU", 0) >= 1 and node["Resources"].get("GPU", 0) >= share
    ]
    if not fit:
        raise ClusterError(
            f"expected a machine with a CPU{' and a GPU' if share else ''} in the cluster, got "
            f"{len(nodes)} machines without; start one (`ray start --address=HOST:PORT`), or "
            "choose another device"
        )
    expected = {name: fingerprint(name) for name in {config.dataset for config in configs}}
    asked = {}
    for node in fit:
        at = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node["NodeID"], False)
        task = ray.remote(what_is_wrong).options(
            num_cpus=0, max_retries=0, scheduling_strategy=at, name="prslib data sets"
        )
        asked[node["NodeManagerAddress"], node["NodeID"]] = task.remote(expected)
    wrong = []
    for (host, _), answer in asked.items():
        try:
            wrong += [f"{host}: {line}" for line in ray.get(answer)]
        except ray.exceptions.RayTaskError as error:  # no prslib there, or another one
            wrong.append(f"{host}: {error.cause}")
        except ray.exceptions.RayError:  # lost meanwhile: it gets no run either
            continue
    if wrong:
        raise ClusterError(
            f"expected {', '.join(sorted(expected))} on every machine of the cluster, as they are "
            "here; prepare them there and set PRSLIB_DATA before `ray start`, or take the machine "
            "out (`ray stop`). Got:\n" + "\n".join(wrong)
        )


def what_is_wrong(expected: dict[str, str]) -> list[str]:
    """Load data sets on a machine of the cluster and say what is not as the driver has it.

    Parameters
    ----------
    expected : dict of str to str
        The `prslib.datasets.fingerprint` of each.

    Returns
    -------
    list of str
        A line for each that is missing or another.
    """
    lines = []
    for name, wanted in expected.items():
        try:
            load_dataset(name)
            found = fingerprint(name)
        except (OSError, ValueError) as error:
            lines.append(f"{name}: {error}")
            continue
        if found != wanted:
            lines.append(f"{name}: other labels (fingerprint {found}, expected {wanted})")
    return lines


def _collect(ray, units, store, device, wait) -> Iterator[Outcome]:
    waiting, under_way = deque(units), {}
    with ExitStack() as everything:  # however this ends, the locks are freed
        while waiting or under_way:
            while waiting and len(under_way) < IN_FLIGHT:
                unit, held = waiting.popleft(), everything.enter_context(ExitStack())
                try:
                    mine, others = claim(unit, store, wait, held)
                except Exception as error:
                    held.close()
                    yield from _ended(error, unit, store, waiting)
                    continue
                if mine:
                    under_way[_submit(ray, mine, device)] = mine, held
                else:
                    held.close()
                yield from others
            done, _ = ray.wait(list(under_way), timeout=POLL) if under_way else ([], [])
            for answer in done:
                mine, held = under_way.pop(answer)
                try:
                    runs, seconds = _fetched(ray, answer)
                    outcomes = keep(runs, store, seconds)
                except Exception as error:
                    outcomes = _ended(error, mine, store, waiting)
                held.close()
                yield from outcomes


def _ended(error: Exception, unit: Sequence[RunConfig], store: Store, waiting: deque):
    """Return the outcome of a run that an error ended; of several, each waits for itself."""
    if len(unit) > 1:
        waiting.extend((config,) for config in unit)
        return []
    return [failed(unit[0], store, error)]


def _submit(ray: ModuleType, configs: Sequence[RunConfig], device: str):
    task = ray.remote(train).options(
        num_cpus=1,
        num_gpus=gpu_share(configs, device),
        max_retries=RETRIES,
        retry_exceptions=False,
        name=f"prslib {configs[0].hash}",
    )
    return task.remote(tuple(configs), tuple(config.hash for config in configs), device)


def train(
    configs: Sequence[RunConfig], hashes: Sequence[str], device: str
) -> tuple[list[Run], float]:
    """Train runs on a machine of the cluster.

    Parameters
    ----------
    configs : sequence of RunConfig
        One run, or several that are trained as one.
    hashes : sequence of str
        What the driver makes of them.
    device : str
        Where to compute, "cpu" or "cuda".

    Returns
    -------
    list of Run
        One for each.
    float
        Seconds for all of them.

    Raises
    ------
    ValueError
        If this machine makes other runs of the same configurations.
    """
    start = time.perf_counter()
    found = tuple(config.hash for config in configs)
    if found != tuple(hashes):
        raise ValueError(
            f"{socket.gethostname()}: expected runs {', '.join(hashes)}, got {', '.join(found)}: "
            "this machine has other data or another version of prslib than the one that asked; "
            "install the same there"
        )
    return training.train_together(configs, device), time.perf_counter() - start


def _fetched(ray: ModuleType, answer) -> tuple[list[Run], float]:
    """Return what a machine sent back, or raise what the run raised there, and say where."""
    try:
        return ray.get(answer)
    except Exception as raised:
        error = getattr(raised, "cause", None)
        if error is None:
            raise
        error.add_note(str(raised))
        raise error from None
