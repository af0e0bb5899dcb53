"""Check what every sampler promises, one of prslib or of one's own."""

from collections.abc import Callable
from typing import Any

import numpy as np

PROMISED = ("place", "needs", "class_freq", "class_counts", "labels", "__len__")


def is_sampler(thing: object) -> bool:
    """Tell whether something offers all that a memory's user asks a sampler for."""
    return all(hasattr(thing, name) for name in PROMISED)


def check_sampler(make: Callable, context: Callable | None = None) -> None:
    """Check what every sampler promises, as scikit-learn's `check_estimator` does.

    Parameters
    ----------
    make : callable
        ``make(size, num_classes, seed)`` returns an empty sampler, as its class does.
    context : callable, optional
        ``context(sampler, labels, start)`` returns the keyword arguments that ``place``
        needs for the labels, which are the stream's from row ``start`` on. By default a
        sampler that needs ``features`` gets random ones.

    Raises
    ------
    AssertionError
        With what was expected and what came.

    Examples
    --------
    >>> from prslib.samplers import SAMPLERS
    >>> check_sampler(SAMPLERS["cbrs"])
    """
    rng = np.random.default_rng(0)
    stream = rng.random((400, 8)) < [0.5, 0.4, 0.3, 0.2, 0.2, 0.1, 0.1, 0.1]
    stream[:200, 7] = False
    stream[5] = False
    before, numbers = stream.copy(), global_numbers()
    frozen = np.repeat(stream, 2, axis=1)[:, ::2]
    frozen.flags.writeable = False
    advice = "draw all numbers from self.rng or take them from u"
    _, first, second, _ = (_run(make, context, stream, b) for b in (1, 7, 7, 1000))
    _expect((stream == before).all(), "place to leave the labels alone", "others")
    _expect(
        (first == second).all(), "equal slots from equal seeds", f"others; {advice}"
    )
    same = np.array_equal(global_numbers(), numbers)
    _expect(same, "numpy's global generator not to be used", f"its use; {advice}")
    same = (_run(make, context, frozen, 7) == first).all()
    _expect(same, "equal slots from read-only labels in another layout", "others")
    _run(make, context, np.ones((50, 1), bool), 10, size=1)
    _check_restoring(make, context or _features, stream)


def global_numbers() -> np.ndarray:
    """Return the state of numpy's global generator, a copy."""
    return np.random.get_state(legacy=False)["state"]["key"].copy()


def _check_restoring(make: Callable, context: Callable, stream: np.ndarray) -> None:
    """Check that a sampler goes on from its state, as a run does after a kill."""
    sampler = make(25, 8, 7)
    if not hasattr(sampler, "load_state_dict"):  # not of prslib: it saves itself
        return
    sampler.place(stream[:200], **context(sampler, stream[:200], 0))
    other = make(25, 8, 8)
    try:
        other.load_state_dict(sampler.state_dict())
    except (AttributeError, ValueError) as error:
        advice = "make every array in __init__, and keep options under their names"
        _expect(False, "a state that load_state_dict takes", f"{error!r}; {advice}")
    slots = [
        s.place(stream[200:], **context(s, stream[200:], 200)) for s in (sampler, other)
    ]
    advice = "keep all of the state in arrays and numbers without a leading underscore"
    _expect(np.array_equal(*slots), "equal slots after restoring", f"others; {advice}")


def _features(sampler: Any, labels: np.ndarray, start: int) -> dict:
    if "features" not in sampler.needs:
        return {}
    features = np.random.default_rng(1).normal(size=(start + len(labels), 4))
    return {"features": features[start:].astype(np.float32)}


def _run(
    make: Callable,
    context: Callable | None,
    stream: np.ndarray,
    batch: int,
    size: int = 25,
) -> np.ndarray:
    """Let a new sampler decide a stream, check every batch, and return all slots."""
    sampler, classes = make(size, stream.shape[1], 7), stream.shape[1]
    lacks = [name for name in PROMISED if not hasattr(sampler, name)]
    _expect(not lacks, f"a sampler with {', '.join(PROMISED)}", f"one without {lacks}")
    mirror, answers = np.zeros((size, classes), bool), []
    for start in (0, *range(0, len(stream), batch)):
        rows = stream[start : start + batch] if answers else stream[:0]
        arguments = (context or _features)(sampler, rows, start)
        slots = np.asarray(sampler.place(rows, **arguments))
        fit = slots.shape == (len(rows),) and slots.dtype.kind == "i"
        _expect(fit, f"{len(rows)} whole numbers as slots", f"{slots!r}")
        inside = ((slots >= -1) & (slots < size)).all()
        _expect(inside, f"slots from -1 to {size - 1}", f"{slots}")
        unlabelled = slots[~rows.any(axis=1)]
        _expect((unlabelled == -1).all(), "-1 for a sample without label", "a slot")
        answers.append(slots)
        for row, slot in zip(rows, slots, strict=True):
            mirror[slot] = row if slot >= 0 else mirror[slot]
        if hasattr(sampler, "vectors"):  # it merges samples
            mirror = sampler.labels.copy()
        books = {"class_freq": stream[: start + len(rows)].sum(axis=0)}
        books |= {"class_counts": mirror.sum(axis=0), "labels": mirror}
        for name, value in books.items():
            came = getattr(sampler, name)
            _expect(np.array_equal(came, value), f"{value} as {name}", f"{came}")
            came[:] = -1
            same = np.array_equal(getattr(sampler, name), value)
            _expect(same, f"a copy of {name}", "the state itself")
        filled = np.count_nonzero(mirror.any(axis=1))
        _expect(len(sampler) == filled, f"a length of {filled}", f"{len(sampler)}")
    _expect(filled == size, f"all {size} slots to be filled at the end", f"{filled}")
    return np.concatenate(answers)


def _expect(right: bool | np.bool_, what: str, came: str) -> None:
    if not right:
        said = f"expected {what}, got {came}"
        raise AssertionError(f"check_sampler: {said}; see prslib.Sampler")
