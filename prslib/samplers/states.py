"""Saved states of samplers: all arrays and numbers, with a checksum over them."""

from __future__ import annotations

import copy
import inspect
from typing import TYPE_CHECKING, Any

import numpy as np

from prslib.checks import check_state, checksum, expected, one_line, same_setting

if TYPE_CHECKING:
    from prslib.samplers.base import Sampler


ARRAYS = "books.numbers", "books.classes", "books.members"  # names of stored states
# names in saved states, where they are others than those of class and attribute
SAVED_AS = {"ReleasedPRS": "PRS", "last_partition": "partition"}


def arguments(sampler: Sampler) -> dict[str, Any]:
    """Return the arguments of a sampler's constructor, without the seed."""
    names = inspect.signature(type(sampler)).parameters
    return {name: getattr(sampler, name) for name in names if name != "seed"}


def extras(sampler: Sampler) -> dict[str, Any]:
    """Return the arrays and numbers that a sampler adds to the base's state."""
    kinds = np.ndarray | np.generic | bool | int | float | str
    return {
        name: value
        for name, value in vars(sampler).items()
        if isinstance(value, kinds) and name[0] != "_"
    }


def saved(sampler: Sampler) -> dict[str, Any]:
    """Return a copy of a sampler's state."""
    name = type(sampler).__name__
    state = {
        "sampler": SAVED_AS.get(name, name),
        "generator": sampler.rng.bit_generator.state,
        **dict(zip(ARRAYS, sampler._arrays, strict=True)),
        **arguments(sampler),
        **{SAVED_AS.get(name, name): value for name, value in extras(sampler).items()},
    }
    return copy.deepcopy(state | {"checksum": checksum(state)})


def restore(sampler: Sampler, state: dict[str, Any]) -> None:
    """Let a sampler go on from a state; refuse one that is not its own, or changed."""
    check_state(state)
    mine = saved(sampler)
    for name in ("sampler", *arguments(sampler)):
        may_differ = name == "num_classes" and sampler._grows
        saved_value = state.get(name)
        if not same_setting(saved_value, mine[name]) and not may_differ:
            got = one_line(saved_value)
            raise ValueError(expected(f"{name} {mine[name]!r}", got))
    if state.keys() != mine.keys():
        raise ValueError(expected(f"entries {sorted(mine)}", sorted(state)))
    # compiled code reads the arrays without a check of its own
    if not same_setting(state["checksum"], checksum(state)):
        raise ValueError(expected("a state as state_dict returned it", "a changed one"))
    arrays = {name: v for name, v in state.items() if isinstance(v, np.ndarray)}
    # a file may give them back read-only, or in another layout
    state = state | {name: np.array(v, order="C") for name, v in arrays.items()}
    generator = state["generator"]
    sampler.rng = np.random.Generator(getattr(np.random, generator["bit_generator"])())
    sampler.rng.bit_generator.state = generator
    sampler._arrays = tuple(state[name] for name in ARRAYS)
    sampler.num_classes = state["num_classes"]
    for name in extras(sampler):
        setattr(sampler, name, state[SAVED_AS.get(name, name)])
