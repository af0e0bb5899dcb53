"""One run, trained once whoever asks for it, and what came of it."""

import time
from collections.abc import Sequence
from typing import NamedTuple

from prslib.checkpoint import SAVE_EVERY
from prslib.config import RunConfig
from prslib.experiment import run
from prslib.store import CHECKPOINT, FAILURE, LOCK, Store


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


def attempt(
    config: RunConfig,
    store: Store,
    device: str = "cpu",
    save_every: float = SAVE_EVERY,
    wait: bool = True,
) -> Outcome:
    """Train and store a run that no one has stored yet; our own.

    Parameters
    ----------
    config : RunConfig
        The run.
    store : Store
        Where its result, and its state on the way, are kept.
    device : str
        Where to compute, "cpu" or "cuda".
    save_every : float
        Seconds between two savings of its state.
    wait : bool
        Whether to wait for another process that is at this run.

    Returns
    -------
    Outcome
        An error is told in it and recorded in the store, not raised, so that it ends this run and
        no other.
    """
    start = time.perf_counter()
    try:
        with store.lock(config, wait):
            if store.load(config) is None:
                store.check_space()
                store.tidy(config)
                store.save(run(config, device, store.path(config, CHECKPOINT), save_every))
            # the lock goes last: whoever still waits for it finds the result
            store.tidy(config, CHECKPOINT, FAILURE, LOCK)
    except TimeoutError:
        return Outcome(config, busy=True)
    except Exception as error:
        store.record_failure(config, error)
        said = f"{type(error).__name__}: {error}"
        return Outcome(config, time.perf_counter() - start, error=said)
    return Outcome(config, time.perf_counter() - start)


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
    rho = f" rho={config.rho:g}" if "rho" in config.identity else ""
    return f"{config.method}{rho} on {config.dataset}, seed {config.seed}"
