"""Saved states of samplers, and the checks that a state fits together."""

from __future__ import annotations

import copy
import inspect
from typing import TYPE_CHECKING, Any

import numpy as np

from prslib.samplers import books

if TYPE_CHECKING:
    from prslib.samplers.base import Sampler


def arguments(sampler: Sampler) -> dict[str, Any]:
    """Return the arguments of a sampler's constructor, without the seed."""
    names = inspect.signature(type(sampler)).parameters
    return {name: getattr(sampler, name) for name in names if name != "seed"}


def extras(sampler: Sampler) -> dict[str, Any]:
    """Return the arrays and numbers that a sampler adds to the base's state."""
    kinds, mine = np.ndarray | bool | int | float | str, arguments(sampler)
    return {
        name: value
        for name, value in vars(sampler).items()
        if isinstance(value, kinds) and name[0] != "_" and name not in mine
    }


def saved(sampler: Sampler) -> dict[str, Any]:
    """Return a copy of a sampler's state."""
    entries = {
        "sampler": type(sampler).__name__,
        "generator": sampler.rng.bit_generator.state,
        "seen": sampler.seen,
        "class_freq": sampler.class_freq,
        "labels": sampler.labels,
        "members": books.all_members(sampler.state),
    }
    return copy.deepcopy(entries | arguments(sampler) | extras(sampler))


def restore(sampler: Sampler, state: dict[str, Any]) -> None:
    """Check a state, then let a sampler go on from it."""
    expect("state", isinstance(state, dict), "a dict", type(state).__name__)
    mine = saved(sampler)
    for name in ("sampler", *arguments(sampler)):
        expect(name, state.get(name) == mine[name], repr(mine[name]), state.get(name))
    expect("entries", state.keys() == mine.keys(), sorted(mine), sorted(state))
    for name, value in mine.items():
        if name not in ("generator", "members"):
            check_alike(name, state[name], value)
    check_books(state)
    sampler.check_state(state)
    rng = restored_generator(state["generator"])
    sampler.state = books.restored(
        state["seen"], state["class_freq"], state["labels"], state["members"]
    )
    sampler.rng = rng
    vars(sampler).update(copy.deepcopy({name: state[name] for name in extras(sampler)}))


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
        # a matrix without columns waits for its first sample: any width fits
        if value.ndim == like.ndim and 0 in (value.shape[-1:] + like.shape[-1:]):
            like = np.empty((*like.shape[:-1], value.shape[-1]), like.dtype)
    if isinstance(like, np.ndarray):
        expected = f"{like.dtype} {like.shape}"
    expect(name, kind == expected, expected, kind)


def expect(name: str, right: object, expected: object, value: object) -> None:
    """Raise ValueError for an entry of a state that does not fit."""
    if not right:
        raise ValueError(f"expected {name} {expected}, got {value}")
