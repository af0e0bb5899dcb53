"""Check arguments; an error states what was expected, what was received and what to do."""

import math
from collections import Counter
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any

import numpy as np

Seed = int | np.random.SeedSequence | np.random.Generator
LONGEST_LINE = 300  # characters that `one_line` keeps
LARGEST_POWER = 20  # n^rho is representable for all counts up to 10^15


def expected(what: object, got: object, advice: str = "") -> str:
    """Return an error message: what was expected, what was received and what to do."""
    return f"expected {what}, got {got}" + (f"; {advice}" if advice else "")


def one_line(text: object) -> str:
    """Return a text, such as an error, as one line without control characters."""
    line = " ".join(str(text).split())
    line = "".join(letter if letter.isprintable() else "?" for letter in line)
    return line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]} ..."


@contextmanager
def readable(what: str) -> Generator[None]:
    """Raise ValueError for any error in reading a file, unless a file or package is missing."""
    try:
        yield
    except (FileNotFoundError, PermissionError, ModuleNotFoundError):
        raise
    except Exception as error:
        why = f"{type(error).__name__}: {one_line(error)}"
        text = f"expected {what}, but it cannot be read ({why})"
        raise ValueError(text) from error


@contextmanager
def naming_extra(extra: str) -> Generator[None]:
    """Add installation instructions to the error about a missing package."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None:  # the message already says how
            raise
        raise ModuleNotFoundError(
            f"expected the package {error.name}, which is not installed; run "
            f"pip install -e '.[{extra}]' in the checkout of prslib"
        ) from error


def one_of(name: str, value: str, names: Iterable[str]) -> str:
    """Return a name if it is known, else raise a ValueError that lists the known names."""
    names = list(names)
    if value not in names:
        known = ", ".join(sorted(names))
        raise ValueError(f"unknown {name} {one_line(repr(value))}; known: {known}")
    return value


def check_names(names: Iterable[Any]) -> list[str]:
    """Return class names as text; refuse empty and repeated ones."""
    texts = [" ".join(str(name).split()) for name in names]
    wrong = [text for text, count in Counter(texts).items() if count > 1 or not text]
    if wrong:
        raise ValueError(f"class names: {expected('unique, not empty', wrong)}")
    return texts


def check_order(first: Any, second: Any) -> None:
    """Refuse series or frames with the same row or column names in different orders."""
    if not (hasattr(first, "axes") and hasattr(second, "axes")):
        return
    kinds = "index", "columns"
    for kind, one, other in zip(kinds, first.axes, second.axes, strict=False):
        if not one.equals(other) and sorted(map(str, one)) == sorted(map(str, other)):
            got = f"{list(one)[:5]} and {list(other)[:5]}"
            raise ValueError(expected(f"the same order of the {kind} in both", got))


def check_int(name: str, value: object, least: int, most: float = math.inf) -> int:
    """Return an int; raise TypeError for another type, ValueError if it is out of range."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be a whole number, got {one_line(repr(value))}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}")
    if int(value) > most:
        raise ValueError(f"{name} must be at most {most}, got {value}")
    return int(value)


def flag(name: str, value: object) -> bool:
    """Return a bool; raise TypeError for another type."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {one_line(repr(value))}")
    return bool(value)


def finite(name: str, value: object, least: float = -math.inf) -> float:
    """Return a float; raise TypeError for another type, ValueError for inf and NaN."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, got {one_line(repr(value))}")
    number = float(value) + 0.0  # -0.0 is 0.0
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite, got {value}")
    if number < least:
        raise ValueError(f"{name} must be at least {least:g}, got {value}")
    return number


def power(name: str, value: object) -> float:
    """Return a power of allocation as a float; raise errors as `finite` does."""
    value = finite(name, value)
    if abs(value) > LARGEST_POWER:
        raise ValueError(f"{name} must be within ±{LARGEST_POWER:g}, got {value:g}")
    return value


def generator_of(seed: Seed) -> np.random.Generator:
    """Return a sampler's random generator."""
    if isinstance(seed, Integral):  # spawned: a stream may be drawn from the same int
        (seed,) = np.random.SeedSequence(check_int("seed", seed, least=0)).spawn(1)
    return np.random.default_rng(seed)


def finite_array(
    name: str, values: Any, shape: tuple[int, ...], dtype: type
) -> np.ndarray:
    """Return an array of finite numbers; refuse other shapes and values."""
    with np.errstate(over="ignore"):  # infinity is refused below
        values = np.ascontiguousarray(as_array(name, values), dtype)
    if values.shape != shape or not np.isfinite(values).all():
        what = f"finite {dtype.__name__} numbers of shape {shape}"
        raise ValueError(f"{name}: {expected(what, f'shape {values.shape} or others')}")
    return values


def as_array(name: str, values: Any) -> np.ndarray:
    """Return an array, tensor or data frame as an array."""
    if isinstance(values, np.ma.MaskedArray):  # most of numpy ignores masks
        raise ValueError(f"{name}: {expected('an array', 'a masked one')}")
    if hasattr(values, "requires_grad"):
        values = values.detach().cpu().to_dense()
        if values.is_floating_point():  # numpy has no bfloat16
            values = values.double()
    return np.asarray(values)
