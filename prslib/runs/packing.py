"""The state of samplers and memories as tensors, numbers and text, and back."""

from typing import Any

import numpy as np
import torch


def pack(value: Any) -> Any:
    """Turn arrays and generators, in dicts and named tuples too, into what a checkpoint may hold.

    Parameters
    ----------
    value : None, bool, int, float, str, Tensor, ndarray or Generator
        A state, or a dict or NamedTuple of such.

    Returns
    -------
    object
        What `unpack` turns back into an equal one.

    Raises
    ------
    TypeError
        If there is something else in it.

    Examples
    --------
    >>> unpack(pack({"seen": np.array([3, 4])}), like={})
    {'seen': array([3, 4])}
    """
    if value is None or isinstance(value, bool | int | float | str | torch.Tensor):
        return value
    if isinstance(value, np.ndarray):
        return "array", torch.from_numpy(value)
    if isinstance(value, np.random.Generator):
        return "generator", value.bit_generator.state
    if hasattr(value, "_asdict"):
        return "fields", pack(value._asdict())
    if isinstance(value, dict):
        return "dict", {name: pack(part) for name, part in value.items()}
    raise TypeError(
        "a checkpoint holds numbers, text, arrays, tensors, generators, dicts and named tuples "
        f"of them, got {type(value).__name__}; keep a sampler's state in these"
    )


def unpack(packed: Any, like: Any) -> Any:
    """Undo `pack`; arrays and generators are new ones.

    Parameters
    ----------
    packed : object
        What `pack` returned.
    like : object
        A state of the same object, such as it has at the beginning: tells which named tuples it is
        made of.

    Returns
    -------
    object
        Equal to what was packed.
    """
    if not isinstance(packed, tuple):
        return packed
    kind, content = packed
    if kind == "array":
        return content.numpy()
    if kind == "generator":
        generator = np.random.default_rng()
        generator.bit_generator.state = content
        return generator
    if kind == "fields":
        return type(like)(**unpack(content, like._asdict()))
    return {name: unpack(part, like.get(name)) for name, part in content.items()}
