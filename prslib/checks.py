"""Check what users pass in; errors say what was expected, what came, what to do."""

import math
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from numbers import Integral, Real

import numpy as np

LARGEST_POWER = 1e6  # beyond it n^rho is 0 or 1 for any two counts, and soon overflows


def expected(what: str, got: object, advice: str = "") -> str:
    """Return the text of an error: what was expected, what came and what to do."""
    return f"expected {what}, got {got}" + (f"; {advice}" if advice else "")


@contextmanager
def naming_extra(extra: str, otherwise: str = "") -> Generator[None]:
    """Let the error about a package that is not installed say how to install it."""
    try:
        yield
    except ModuleNotFoundError as error:
        named = (error.name or "prslib").split(".")[0]
        if named == "prslib" or "pip install '.[" in str(error):
            raise
        raise ModuleNotFoundError(
            f"expected the package {error.name}, which is not installed; run "
            f"pip install '.[{extra}]' in the checkout of prslib{otherwise}"
        ) from error


def one_of(name: str, value: str, known: Iterable[str]) -> str:
    """Return a name; raise ValueError, which lists the known ones, for any other."""
    known = list(known)
    if value not in known:
        raise ValueError(
            f"unknown {name} {value!r}; known {name}s: {', '.join(sorted(known))}"
        )
    return value


def whole(name: str, value: object, least: int) -> int:
    """Return an int; raise TypeError for another type, ValueError below ``least``."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(
            f"{name} must be a whole number, got {value!r} ({type(value).__name__})"
        )
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}")
    return int(value)


def finite(name: str, value: object) -> float:
    """Return a float; raise TypeError for another type, ValueError for inf and NaN."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise TypeError(
            f"{name} must be a number, got {value!r} ({type(value).__name__})"
        )
    try:
        value = float(value)
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        raise ValueError(f"{name} must be finite, got {value}; choose for example 0.0")
    return value


def power(name: str, value: object) -> float:
    """Return a power of allocation as a float, or raise as `finite` does."""
    value = finite(name, value)
    if abs(value) > LARGEST_POWER:
        raise ValueError(
            f"{name} must be between {-LARGEST_POWER:g} and {LARGEST_POWER:g}, "
            f"got {value:g}; 0 asks for equal shares, 1 for the stream's"
        )
    return value
