"""Runs that one process trains as one: those of one training, and on a GPU those of one shape."""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, closing
from os import PathLike
from typing import NamedTuple

from filelock import Timeout
from joblib import Parallel, cpu_count, delayed
from tqdm import tqdm

from prslib.datasets import load_dataset
from prslib.experiments.stacked import run_stacked, shape
from prslib.experiments.store import CHECKPOINT, FAILURE, LOCK, Store, in_words
from prslib.models import MODELS
from prslib.training.config import SAVE_EVERY, Run, RunConfig
from prslib.training.device import check_device
from prslib.training.run import run_at_once

# Stacked, a run gives other bytes in other company. On a CPU it must not, and thousands of runs at
# once are `prslib.experiments.mlp_loop`'s, which is faster there (bench/many.py).
STACKED_ON = ("cuda",)
AT_ONCE = 64  # runs in a unit, the largest stack that bench/many.py measures


def units_of(configs: Sequence[RunConfig], device: str) -> list[tuple[RunConfig, ...]]:
    """Cut runs into those that one process trains as one.

    Parameters
    ----------
    configs : sequence of RunConfig
        What is to be trained.
    device : str
        Where to compute, "cpu" or "cuda".

    Returns
    -------
    list of tuple of RunConfig
        Up to `AT_ONCE` in one: on a GPU those of the same `prslib.experiments.stacked.shape`, elsewhere
        those of the same `RunConfig.training`, which then is gone through once.

    Examples
    --------
    >>> plain, watched, other = RunConfig(), RunConfig(variance_points=8), RunConfig(seed=1)
    >>> [len(unit) for unit in units_of([plain, other, watched], "cpu")]
    [2, 1]
    """
    groups = {}
    for config in configs:
        key = shape(config) if device.split(":")[0] in STACKED_ON else None
        groups.setdefault(key or config.training, []).append(config)
    return [
        tuple(group[start : start + AT_ONCE])
        for group in groups.values()
        for start in range(0, len(group), AT_ONCE)
    ]


def train_together(
    unit: Sequence[RunConfig],
    device: str,
    checkpoint: str | PathLike | None = None,
    save_every: float = SAVE_EVERY,
) -> list[Run]:
    """Train runs as one.

    Parameters
    ----------
    unit : sequence of RunConfig
        Of one training or one shape.
    device : str
        Where to compute, "cpu" or "cuda".
    checkpoint, save_every
        As for `prslib.run`; runs of several trainings save no state on the way.

    Returns
    -------
    list of Run
        One for each.

    Raises
    ------
    ValueError
        If a run does not fit its data set, or they cannot be trained as one.
    """
    if len({config.training for config in unit}) == 1:
        return run_at_once(unit, device, checkpoint, save_every)
    return run_stacked(unit, device)


class Outcome(NamedTuple):
    """What came of an attempt at a run.

    Parameters
    ----------
    config : RunConfig
        The run.
    seconds : float
        How long it took.
    busy : bool
        Whether another process is at it, so that nothing was done.
    error : str or None
        What ended it; None if it is stored.
    """

    config: RunConfig
    seconds: float = 0.0
    busy: bool = False
    error: str | None = None


def attempt_unit(
    unit: Sequence[RunConfig],
    store: Store,
    device: str = "cpu",
    save_every: float = SAVE_EVERY,
    wait: bool = True,
) -> list[Outcome]:
    """Train and store runs that no one has stored yet and that are trained as one; our own.

    Parameters
    ----------
    unit : sequence of RunConfig
        What `prslib.experiments.workers.train_together` takes; often a single run.
    store : Store
        Where results, and the state on the way, are kept.
    device : str
        Where to compute, "cpu" or "cuda".
    save_every : float
        Seconds between two savings of the state.
    wait : bool
        Whether to wait for another process that is at one of these runs.

    Returns
    -------
    list of Outcome
        One for each run. If an error ends the training of several, each is attempted for itself;
        that of a single one, and one that keeps a trained run from being stored, is told in its
        outcome and recorded in the store, not raised, so that it ends this run and no other.
    """
    start = time.perf_counter()
    mine, others = list(unit), []
    try:
        with ExitStack() as held:
            mine, others = claim(unit, store, wait, held)
            if mine:
                checkpoint = min(store.path(config, CHECKPOINT) for config in mine)
                runs = train_together(mine, device, checkpoint, save_every)
                others += keep(runs, store, time.perf_counter() - start)
    except Exception as error:
        if len(mine) > 1:
            how = store, device, save_every, wait
            return others + [attempt_unit((config,), *how)[0] for config in mine]
        return [*others, failed(mine[0], store, error, time.perf_counter() - start)]
    return others


def failed(config: RunConfig, store: Store, error: Exception, seconds: float = 0.0) -> Outcome:
    """Record the error that ended a run in the store, and return it as the run's outcome."""
    store.record_failure(config, error)
    return Outcome(config, seconds, error=f"{type(error).__name__}: {error}")


def claim(
    unit: Sequence[RunConfig], store: Store, wait: bool, held: ExitStack
) -> tuple[list[RunConfig], list[Outcome]]:
    """Take the locks of some runs.

    Parameters
    ----------
    unit : sequence of RunConfig
        The runs.
    store : Store
        Where their results are kept.
    wait : bool
        Whether to wait for runs that another process is at. Where several processes wait for
        several runs, all must take them in the same order.
    held : ExitStack
        Keeps the locks.

    Returns
    -------
    list of RunConfig
        Those that are ours to train.
    list of Outcome
        Of the others: stored already, or busy.

    Raises
    ------
    OSError
        If the store cannot be written or its disk is full.
    """
    mine, others = [], []
    for config in unit:
        try:
            held.enter_context(store.lock(config, wait))
        except Timeout:
            others.append(Outcome(config, busy=True))
            continue
        if store.load(config) is None:
            store.check_writable()
            store.tidy(config)
            mine.append(config)
        else:
            _settle(config, store)
            others.append(Outcome(config))
    return mine, others


def keep(runs: Sequence[Run], store: Store, seconds: float) -> list[Outcome]:
    """Store runs whose locks this process holds, then remove what they needed on the way.

    Parameters
    ----------
    runs : sequence of Run
        What was trained as one.
    store : Store
        Where they are kept.
    seconds : float
        How long all of them took.

    Returns
    -------
    list of Outcome
        One for each run; where one cannot be written, the error, and the others are stored.
    """
    outcomes, each = [], seconds / len(runs)
    for finished in runs:
        try:
            store.save(finished)
        except Exception as error:
            outcomes.append(failed(finished.config, store, error, each))
        else:
            outcomes.append(Outcome(finished.config, each))
    for outcome in outcomes:
        if outcome.error is None:
            _settle(outcome.config, store)
    return outcomes


def _settle(config: RunConfig, store: Store) -> None:
    # the lock goes last: whoever still waits for it finds the result
    store.tidy(config, CHECKPOINT, FAILURE, LOCK)


def check(outcomes: Sequence[Outcome]) -> None:
    """Raise RuntimeError where runs failed, when all others are stored.

    Parameters
    ----------
    outcomes : sequence of Outcome
        Of all runs that were attempted.

    Raises
    ------
    RuntimeError
        If one or more failed; the message names each with its error.
    """
    failed = [outcome for outcome in outcomes if outcome.error is not None]
    if failed:
        lines = [f"{describe(o.config)} ({o.config.hash}): {o.error}" for o in failed]
        raise RuntimeError(
            f"{len(failed)} of {len(outcomes)} runs failed, the others are stored; "
            "`python -m prslib runs` shows them, and asking again begins at their last "
            "checkpoint:\n" + "\n".join(lines)
        )


def describe(config: RunConfig) -> str:
    """Return a run in a few words, "PRS rho=0.1 on digits70seq, seed 2"."""
    return in_words(config.identity)


KILLED = "its process was killed, most likely as the memory did not suffice"


def train_missing(
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
            from prslib.experiments.cluster import attempt_on  # it needs this module

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
        As `prslib.experiments.workers.gpu_share` gives it; 0.0 for runs on the CPU.

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


def gpu_share(configs: Sequence[RunConfig], device: str) -> float:
    """Return the part of a GPU that the greediest of some runs takes, 0.0 on a CPU."""
    if device == "cpu":
        return 0.0
    return max(MODELS[config.resolved["model"]].gpu_share for config in configs)
