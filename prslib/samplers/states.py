"""Checks of a saved state: its counts and slots fit the labels in memory."""

import copy
from typing import Any

import numpy as np


def restored_generator(state: dict[str, Any]) -> np.random.Generator:
    """Return a generator in a saved state; raise ValueError for none."""
    try:
        rng = np.random.Generator(getattr(np.random, state["bit_generator"])())
        rng.bit_generator.state = copy.deepcopy(state)
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise ValueError(
            "expected generator the state of a numpy generator, "
            f"got another ({error!r})"
        ) from error
    return rng


def check_books(state: dict[str, Any]) -> None:
    """Check counts and slots against the labels."""
    labels, freq = state["labels"], state["class_freq"]
    size, num_classes = labels.shape
    filled = labels.any(axis=1)
    expect("labels", filled[: filled.sum()].all(), "the first slots filled", "gaps")
    counts = labels.sum(axis=0)
    expect("class_freq", (freq >= counts).all(), "at least the memory's", freq)
    least = max(filled.sum(), freq.max())
    fits = least <= state["seen"] <= freq.sum()
    expect("seen", fits, f"{least} to {freq.sum()}", state["seen"])
    members = state["members"]
    check_alike("members", members, np.zeros(counts.sum(), np.int32))
    inside = ((members >= 0) & (members < size)).all()
    expect("members", inside, f"slots from 0 to {size - 1}", "others")
    classes = np.repeat(np.arange(num_classes), counts)
    pairs = classes * size + members
    right = labels[members, classes].all() and len(np.unique(pairs)) == len(pairs)
    expect("members", right, "each slot once in each of its classes", "others")


def check_alike(name: str, value: Any, like: Any) -> None:
    """Refuse a value of a state that has another type, dtype or shape than ``like``."""
    kind, expected = type(value).__name__, type(like).__name__
    masked = isinstance(value, np.ma.MaskedArray)  # compiled code cannot read one
    if isinstance(like, np.ndarray) and isinstance(value, np.ndarray) and not masked:
        kind = f"{value.dtype} {value.shape}"
    if isinstance(like, np.ndarray):
        expected = f"{like.dtype} {like.shape}"
    expect(name, kind == expected, expected, kind)


def expect(name: str, right: object, expected: object, value: object) -> None:
    """Raise ValueError for an entry of a state that does not fit."""
    if not right:
        raise ValueError(f"expected {name} {expected}, got {value}")
