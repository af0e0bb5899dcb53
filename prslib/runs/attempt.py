"""Runs, each trained once whoever asks for it, and what came of them."""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import NamedTuple

from filelock import Timeout

from prslib.config import RunConfig
from prslib.results import Run
from prslib.runs.units import train
from prslib.store import CHECKPOINT, FAILURE, LOCK, SAVE_EVERY, Store


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
        What `prslib.runs.units.train` takes; often a single run.
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
                runs = train(mine, device, checkpoint, save_every)
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


def in_words(identity: dict) -> str:
    """Return what `RunConfig.identity` names in a few words."""
    rho = f" rho={identity['rho']:g}" if "rho" in identity else ""
    return f"{identity['method']}{rho} on {identity['dataset']}, seed {identity['seed']}"
