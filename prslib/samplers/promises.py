"""Check what every sampler promises, one of prslib or of one's own."""

from collections.abc import Callable
from typing import Any

import numpy as np

from prslib.checks import expected


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
    AttributeError
        If the sampler lacks an attribute that all have: place, needs, class_freq,
        class_counts or labels.
    ValueError
        If it does not take its own state: ``__init__`` must make every array.

    Examples
    --------
    >>> from prslib.samplers import SAMPLERS
    >>> check_sampler(SAMPLERS["cbrs"])
    """
    context = context or _features
    rng = np.random.default_rng(0)
    stream = rng.random((400, 8)) < [0.5, 0.4, 0.3, 0.2, 0.2, 0.1, 0.1, 0.1]
    stream[:200, 7] = False
    stream[5] = False
    stream.flags.writeable = False
    before = str(np.random.get_state())
    for batch in (1, 1000):
        _run(make, context, stream, batch)
    first, second = (_run(make, context, stream, batch=7) for _ in range(2))
    _run(make, context, np.ones((50, 1), bool), 10, size=1)
    advice = "draw all numbers from self.rng or take them from u"
    same = np.array_equal(first, second)
    _expect(same, "equal slots from equal seeds", f"others; {advice}")
    same = str(np.random.get_state()) == before
    _expect(same, "numpy's global generator not to be used", f"its use; {advice}")
    if hasattr(make(25, 8, 7), "load_state_dict"):
        restored = _run(make, context, stream, 7, restored_at=196)
        advice = "keep all of the state in arrays and numbers without a leading _"
        same = np.array_equal(first, restored)
        _expect(same, "equal slots after restoring", f"others; {advice}")


def _features(sampler: Any, labels: np.ndarray, start: int) -> dict:
    if "features" not in sampler.needs:
        return {}
    features = np.random.default_rng(1).normal(size=(start + len(labels), 4))
    return {"features": features[start:].astype(np.float32)}


def _run(
    make: Callable,
    context: Callable,
    stream: np.ndarray,
    batch: int,
    size: int = 25,
    restored_at: int | None = None,
) -> np.ndarray:
    """Let a new sampler decide a stream, check every batch, and return all slots."""
    sampler = make(size, stream.shape[1], 7)
    memory, answers = np.zeros((size, stream.shape[1]), bool), []
    for start in (0, *range(0, len(stream), batch)):  # an empty batch comes first
        if start == restored_at:
            state = sampler.state_dict()  # a run goes on from it after a kill
            sampler = make(size, stream.shape[1], 8)
            sampler.load_state_dict(state)
        rows = stream[start : start + batch] if answers else stream[:0]
        slots = np.asarray(sampler.place(rows, **context(sampler, rows, start)))
        fit = slots.shape == (len(rows),) and slots.dtype.kind == "i"
        _expect(fit, f"{len(rows)} whole numbers as slots", repr(slots))
        inside = ((slots >= -1) & (slots < size)).all()
        _expect(inside, f"slots from -1 to {size - 1}", str(slots))
        unlabelled = slots[~rows.any(axis=1)]
        _expect((unlabelled == -1).all(), "-1 for a sample without label", "a slot")
        answers.append(slots)
        for row, slot in zip(rows, slots, strict=True):
            if slot >= 0:
                memory[slot] = row
        if hasattr(sampler, "vectors"):  # it merges samples
            memory = sampler.labels
        freq = stream[: start + len(rows)].sum(axis=0)
        books = {"class_freq": freq, "class_counts": memory.sum(axis=0)}
        for name, value in (books | {"labels": memory}).items():
            came = getattr(sampler, name)
            _expect(np.array_equal(came, value), f"{value} as {name}", str(came))
        filled = np.count_nonzero(memory.any(axis=1))
        _expect(len(sampler) == filled, f"a length of {filled}", str(len(sampler)))
    _expect(filled == size, f"all {size} slots to be filled at the end", str(filled))
    return np.concatenate(answers)


def _expect(right: bool | np.bool_, what: str, came: str) -> None:
    if not right:
        said = expected(what, came, "see prslib.Sampler")
        raise AssertionError(f"check_sampler: {said}")
