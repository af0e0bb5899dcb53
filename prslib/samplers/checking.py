"""Check that a built-in or custom sampler behaves as every sampler must."""

import copy
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

# a sampler is restored, or grows, after CUT samples
SIZE, NUM_CLASSES, CUT = 25, 8, 196


def check_sampler(make: Callable, context: Callable | None = None) -> None:
    """Check a sampler, as scikit-learn's `check_estimator` checks an estimator.

    The sampler must meet these conditions:

    - It returns valid slots, and its counts and labels agree with these slots.
    - The same seed gives the same slots, even if a state is restored or the last class
      is added late.
    - It does not use numpy's global generator.

    Parameters
    ----------
    make : callable
        ``make(size, num_classes, seed)`` returns an empty sampler. The class of a
        sampler is such a callable.
    context : callable, optional
        ``context(sampler, labels, start)`` returns the keyword arguments that ``place``
        needs for a batch. The batch has the labels ``labels`` and begins with row
        ``start`` of the stream. By default, a sampler that needs ``features`` receives
        random features.

    Raises
    ------
    AssertionError
        If a check fails; the message states the expected and the actual behaviour.
        Errors of the sampler itself are not caught.

    Examples
    --------
    >>> from prslib.samplers import SAMPLERS
    >>> check_sampler(SAMPLERS["cbrs"])
    """
    rng = np.random.default_rng(0)
    stream = rng.random((400, NUM_CLASSES)) < [0.5, 0.4, 0.3, 0.2, 0.2, 0.1, 0.1, 0.1]
    stream[: CUT + 4, -1] = False  # the last class comes late
    stream[5] = False
    context = context or _features
    before = str(np.random.get_state())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # one sample has no label
        for batch in (1, 1000):
            sampler = make(SIZE, NUM_CLASSES, 7)
            _slots(sampler, context, stream, batch)
            free = SIZE - len(sampler)
            assert not free, f"{free} slots are free at the end"
        slots = _slots(make(SIZE, NUM_CLASSES, 7), context, stream)
        again = _slots(make(SIZE, NUM_CLASSES, 7), context, stream)
        assert slots == again, "the same seed gives other slots; draw from u or rng"
        same = str(np.random.get_state()) == before
        assert same, "numpy's global generator is used; draw from u or rng"

        first, other = make(SIZE, NUM_CLASSES, 7), make(SIZE, NUM_CLASSES, 8)
        restored = _slots(first, context, stream[:CUT])
        other.load_state_dict(copy.deepcopy(first.state_dict()))
        restored += _slots(other, context, stream, start=CUT)
        text = "other slots after load_state_dict; keep all state in arrays and numbers"
        assert slots == restored, text

        sampler = make(SIZE, NUM_CLASSES - 1, 7)
        grown = _slots(sampler, context, stream[:CUT, :-1])
        try:
            sampler.add_classes(1)
        except TypeError:  # ExStream refuses
            return
        grown += _slots(sampler, context, stream, start=CUT)
        text = "other slots when a class is added late; name arrays with an entry per"
        assert grown == slots, f"{text} class in by_class"


def _slots(
    sampler: Any, context: Callable, stream: np.ndarray, batch: int = 7, start: int = 0
) -> list[int]:
    """Return the slots of a stream from row ``start`` on; check counts per batch."""
    memory = sampler.labels
    taken = []
    for first in range(start, len(stream), batch):
        labels = stream[first : first + batch]
        slots = sampler.place(labels, **context(sampler, labels, first))
        is_whole = slots.shape == (len(labels),) and slots.dtype.kind == "i"
        assert is_whole, f"expected {len(labels)} whole numbers as slots, got {slots}"
        inside = (slots >= -1) & (slots < SIZE)
        assert inside.all(), f"expected slots from -1 to {SIZE - 1}, got {slots}"
        for y, slot in zip(labels, slots, strict=True):
            if slot >= 0:
                memory[slot] = y
        _check_counts(sampler, memory, stream[: first + batch])
        taken += slots.tolist()
    return taken


def _check_counts(sampler: Any, memory: np.ndarray, seen: np.ndarray) -> None:
    """Compare a sampler's counts and labels with the actual memory and stream."""
    if hasattr(sampler, "vectors"):  # it merges samples
        memory = sampler.labels
    truth = {
        "class_freq": seen.sum(axis=0),
        "class_counts": memory.sum(axis=0),
        "labels": memory,
    }
    for name, value in truth.items():
        got = getattr(sampler, name)
        assert np.array_equal(got, value), f"expected {value} as {name}, got {got}"
    filled = np.count_nonzero(memory.any(axis=1))
    assert len(sampler) == filled, f"expected length {filled}, got {len(sampler)}"


def _features(sampler: Any, labels: np.ndarray, start: int) -> dict[str, np.ndarray]:
    """Return random features; a row of the stream always has the same features."""
    if "features" not in sampler.needs:
        return {}
    features = np.random.default_rng(1).normal(size=(start + len(labels), 4))
    return {"features": features[start:].astype(np.float32)}
