"""Checks of what a user passes in: what was expected, what came, what to do."""

import math
from collections.abc import Iterable
from numbers import Integral, Real


def one_of(name: str, value: object, known: Iterable[str]) -> None:
    """Raise ValueError unless the value is among the known names; the message lists them."""
    known = list(known)
    if value not in known:
        raise ValueError(f"unknown {name} {value!r}; known {name}s: {', '.join(sorted(known))}")


def whole(name: str, value: object, least: int) -> None:
    """Raise TypeError unless the value is an integer, ValueError if it is below ``least``."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be a whole number, got {value!r} ({type(value).__name__})")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}")


def finite(name: str, value: object) -> None:
    """Raise TypeError unless the value is a real number, ValueError unless it is finite."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, got {value!r} ({type(value).__name__})")
    if not math.isfinite(value):
        raise ValueError(f"{name} must be finite, got {value}; choose for example 0.0")
