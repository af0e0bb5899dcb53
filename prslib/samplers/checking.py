"""Check what every sampler does, one of prslib or a custom one."""

import copy
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

SIZE, NUM_CLASSES, CUT = 25, 8, 196  # CUT: where a sampler is restored, or grows


def check_sampler(make: Callable, context: Callable | None = None) -> None:
    """Check a sampler, as scikit-learn's `check_estimator` checks an estimator.

    Its slots must be possible, and its counts and labels those of the slots; the same
    seed must give the same slots, also after a state was restored and when the last
    class is added late; numpy's global generator must not be used.

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
        With what is not as it should be. Errors of the sampler itself pass through.

    Examples
    --------
    >>> from prslib.samplers import SAMPLERS
    >>> check_sampler(SAMPLERS["cbrs"])
    """
    rng = np.random.default_rng(0)
    stream = rng.random((400, NUM_CLASSES)) < [0.5, 0.4, 0.3, 0.2, 0.2, 0.1, 0.1, 0.1]
    stream[: CUT + 4, -1] = False  # the last class comes late
    stream[5] = False
    before = str(np.random.get_state())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # one has no label
        for batch in (1, 1000):
            _slots(make, context, stream, batch)
        slots = _slots(make, context, stream, 7)
        again = _slots(make, context, stream, 7)
        assert slots == again, "the same seed gives other slots; draw from u or rng"
        same = str(np.random.get_state()) == before
        assert same, "numpy's global generator is used; draw from u or rng"
        restored = _slots(make, context, stream, 7, at_cut=_restore)
        text = "other slots after load_state_dict; keep all state in arrays and numbers"
        assert slots == restored, f"{text} without a leading _"
        grown = _slots(make, context, stream, 7, at_cut=_grow)
        text = "other slots when a class is added late; name arrays with an entry per"
        assert grown in (None, slots), f"{text} class in by_class"


def _slots(
    make: Callable,
    context: Callable | None,
    stream: np.ndarray,
    batch: int,
    at_cut: Callable | None = None,
) -> list[int] | None:
    """Return the slots of a stream; check them and the counts after each batch."""
    num_classes = NUM_CLASSES - (at_cut is _grow)
    sampler = make(SIZE, num_classes, 7)
    memory = np.zeros((SIZE, NUM_CLASSES), bool)
    taken = []
    for start in range(0, len(stream), batch):
        if start == CUT and at_cut is not None:
            sampler = at_cut(sampler, make)
            if sampler is None:
                return None
        labels = stream[start : start + batch, : sampler.num_classes]
        more = (context or _features)(sampler, labels, start)
        slots = sampler.place(labels, **more)
        is_whole = slots.shape == (len(labels),) and slots.dtype.kind == "i"
        assert is_whole, f"expected {len(labels)} whole numbers as slots, got {slots}"
        inside = (slots >= -1) & (slots < SIZE)
        assert inside.all(), f"expected slots from -1 to {SIZE - 1}, got {slots}"
        for row, slot in zip(stream[start : start + batch], slots, strict=True):
            if slot >= 0:
                memory[slot] = row
        _check_counts(sampler, memory, stream[: start + batch])
        taken += slots.tolist()
    assert len(sampler) == SIZE, f"{SIZE - len(sampler)} slots are free at the end"
    return taken


def _check_counts(sampler: Any, memory: np.ndarray, seen: np.ndarray) -> None:
    """Compare what a sampler says of memory and stream with what they are."""
    num_classes = sampler.num_classes
    if hasattr(sampler, "vectors"):  # it merges samples
        memory = sampler.labels
    truth = {
        "class_freq": seen[:, :num_classes].sum(axis=0),
        "class_counts": memory[:, :num_classes].sum(axis=0),
        "labels": memory[:, :num_classes],
    }
    for name, value in truth.items():
        got = getattr(sampler, name)
        assert np.array_equal(got, value), f"expected {value} as {name}, got {got}"
    filled = np.count_nonzero(memory.any(axis=1))
    assert len(sampler) == filled, f"expected length {filled}, got {len(sampler)}"


def _restore(sampler: Any, make: Callable) -> Any:
    """Return another sampler that goes on from a sampler's state."""
    other = make(SIZE, NUM_CLASSES, 8)
    other.load_state_dict(copy.deepcopy(sampler.state_dict()))
    return other


def _grow(sampler: Any, make: Callable) -> Any:
    """Let a sampler know the last class; None if it refuses, as ExStream does."""
    try:
        sampler.add_classes(1)
    except TypeError:
        return None
    return sampler


def _features(sampler: Any, labels: np.ndarray, start: int) -> dict[str, np.ndarray]:
    """Return random features, the same for the same rows of the stream."""
    if "features" not in sampler.needs:
        return {}
    features = np.random.default_rng(1).normal(size=(start + len(labels), 4))
    return {"features": features[start:].astype(np.float32)}
