"""Check what users pass in; errors say what was expected, what came, what to do."""

import hashlib
import math
import re
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any

import numpy as np

Seed = int | np.random.SeedSequence | np.random.Generator
VARIANTS = ("paper", "authors")  # of PRS
LARGEST_POWER = 1e6  # beyond it n^rho is 0 or 1 for any two counts, and soon overflows


def expected(what: str, got: object, advice: str = "") -> str:
    """Return the text of an error: what was expected, what came and what to do."""
    return f"expected {what}, got {got}" + (f"; {advice}" if advice else "")


@contextmanager
def readable(what: str, advice: str) -> Generator[None]:
    """Turn whatever a damaged file leads to into one error; a missing file is another."""
    try:
        yield
    except (FileNotFoundError, PermissionError, ModuleNotFoundError):
        raise
    except Exception as error:
        raise ValueError(
            f"expected {what}, but it cannot be read ({type(error).__name__}: {error}); "
            f"{advice}"
        ) from error


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


def one_of(name: str, value: str, names: Iterable[str]) -> str:
    """Return a name; raise ValueError, which lists the known ones, for any other."""
    names = list(names)
    if value not in names:
        plural = f"{name}es" if name.endswith("ss") else f"{name}s"
        raise ValueError(
            f"unknown {name} {value!r}; known {plural}: {', '.join(sorted(names))}"
        )
    return value


def device_name(device: object) -> str:
    """Return a device's name as text, wherever it is; refuse what is none."""
    name = str(device)
    if not re.fullmatch(r"auto|cpu|mps|cuda(:\d+)?", name):
        known = "auto, cpu, cuda, cuda:1 for the second GPU, mps"
        raise ValueError(f"unknown device {name!r}; known devices: {known}")
    return name


def whole(name: str, value: object, least: int) -> int:
    """Return an int; raise TypeError for another type, ValueError below ``least``."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be a whole number, got {value!r}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}")
    return int(value)


def flag(name: str, value: object) -> bool:
    """Return a bool; raise TypeError for another type."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def finite(name: str, value: object, least: float = -math.inf) -> float:
    """Return a float; raise TypeError for another type, ValueError for inf and NaN."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, got {value!r}")
    number = float(value) + 0.0  # -0.0 is 0.0
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite, got {value}")
    if number < least:
        raise ValueError(f"{name} must be at least {least:g}, got {value}")
    return number


def power(name: str, value: object) -> float:
    """Return a power of allocation as a float, or raise as `finite` does."""
    value = finite(name, value)
    if abs(value) > LARGEST_POWER:
        raise ValueError(f"{name} must be within ±{LARGEST_POWER:g}, got {value:g}")
    return value


def plain_options(
    owner: str, defaults: dict[str, object], options: dict[str, object]
) -> dict[str, object]:
    """Return options as Python's numbers and text; refuse other names and values."""
    values = {}
    for name, value in options.items():
        if name not in defaults:
            what = f"one of the options of {owner}, {', '.join(defaults) or 'none'}"
            raise TypeError(expected(what, name))
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, float) or isinstance(defaults[name], float):
            value = finite(name, value)
        if not isinstance(value, bool | int | float | str | None):
            raise TypeError(expected(f"option {name} as number or text", value))
        values[name] = value
    return values


def generator_of(seed: Seed) -> np.random.Generator:
    """Return the generator of a sampler's decisions; refuse another kind of seed."""
    if isinstance(seed, bool) or not isinstance(seed, Seed | Integral):
        what = "an int, SeedSequence or Generator"
        raise TypeError(f"seed: {expected(what, repr(seed))}")
    if isinstance(seed, Integral):  # a stream is often drawn from the same int: spawn
        (seed,) = np.random.SeedSequence(int(seed)).spawn(1)
    return np.random.default_rng(seed)


def finite_array(
    name: str, values: np.ndarray, shape: tuple[int, ...], dtype: type
) -> np.ndarray:
    """Return an array of numbers; refuse another shape and what is not finite."""
    if np.shape(values) != shape:
        raise ValueError(f"{name}: {expected(f'shape {shape}', np.shape(values))}")
    with np.errstate(over="ignore"):  # what is too large for the dtype is refused below
        values = np.ascontiguousarray(values, dtype)
    if not np.isfinite(values).all():
        what = f"finite {dtype.__name__} numbers"
        text = expected(what, "others", "has the network diverged?")
        raise ValueError(f"{name}: {text}")
    return values


def multi_hot(labels: Any, num_classes: int | None) -> np.ndarray:
    """Return labels as compiled code reads them, bool (B, C); refuse what is ambiguous.

    Without ``num_classes`` there are as many classes as the labels name. NaN, a label
    that is not known, is none.
    """
    if not isinstance(labels, np.ndarray):
        labels = _as_array(labels, num_classes)
    if isinstance(labels, np.ma.MaskedArray):
        raise TypeError(f"labels: {expected('bool', 'a masked array', 'fill it')}")
    if labels.dtype != bool:
        labels = _of_numbers(labels, num_classes)
    if labels.ndim != 2 or num_classes not in (None, labels.shape[1]):
        what = f"shape (B, {num_classes or 'C'}), or class numbers (B,)"
        raise ValueError(f"labels: {expected(what, labels.shape)}")
    labels = np.asarray(labels, order="C")
    return labels if labels.flags.writeable else labels.copy()


def from_class_numbers(
    samples: np.ndarray, classes: np.ndarray, length: int, num_classes: int | None
) -> np.ndarray:
    """Return multi-hot labels, bool (B, C); sample ``samples[i]`` has ``classes[i]``."""
    count = num_classes
    if count is None:
        count = int(classes.max(initial=-1)) + 1
    outside = classes[(classes < 0) | (classes >= count)]
    if outside.size:
        last = "" if num_classes is None else f" to {count - 1}"
        advice = "a list of lists has [] for a sample without a label"
        text = expected(f"class numbers from 0{last}", outside[0], advice)
        raise ValueError(f"labels: {text}")
    labels = np.zeros((length, count), np.bool_)
    labels[samples, classes] = True
    return labels


def _as_array(labels: Any, num_classes: int | None) -> np.ndarray:
    """Return what tensors, frames, sparse matrices and lists of labels hold."""
    if hasattr(labels, "detach"):  # a tensor, wherever it lies
        return labels.detach().cpu().numpy()
    for name in ("toarray", "to_numpy"):  # sparse matrices, frames
        if hasattr(labels, name):
            return getattr(labels, name)()
    if not isinstance(labels, list | tuple):
        return np.asarray(labels)
    rows = [row.tolist() if hasattr(row, "tolist") else row for row in labels]
    are_lists = [isinstance(row, list | tuple | set) for row in rows]
    if all(are_lists):
        rows = [list(row) for row in rows]
        return _of_lists(rows, num_classes)
    if any(are_lists):
        wrong = rows[are_lists.index(False)]
        what = "a list of class numbers for each sample"
        raise TypeError(f"labels: {expected(what, repr(wrong))}")
    return np.array(rows)


def _of_lists(rows: list[list], num_classes: int | None) -> np.ndarray:
    """Return rows of 0 and 1, or lists of class numbers, as an array (B, C)."""
    flat = [value for row in rows for value in row]
    lengths = {len(row) for row in rows}
    are_numbers = all(isinstance(value, Integral) for value in flat)
    if any(isinstance(value, bool) for value in flat) or not are_numbers:
        if len(lengths) > 1:
            what = "rows of one length, or lists of class numbers"
            raise ValueError(f"labels: {expected(what, f'lengths {sorted(lengths)}')}")
        return np.array(rows)
    is_grid = len(lengths) == 1 and num_classes in (None, *lengths)
    if flat and is_grid and {*flat} <= {0, 1}:
        if any(len(row) != len(set(row)) for row in rows):  # classes are not repeated
            return np.array(rows)
        if lengths != {1} or num_classes == 1:
            what = "rows that are either multi-hot labels or class numbers"
            advice = "write np.array(labels, dtype=bool) for multi-hot labels"
            raise ValueError(f"labels: {expected(what, repr(rows)[:60], advice)}")
    samples = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    classes = np.array(flat, np.int64)
    return from_class_numbers(samples, classes, len(rows), num_classes)


def _of_numbers(labels: np.ndarray, num_classes: int | None) -> np.ndarray:
    """Return class numbers (B,), or rows of 0 and 1, as bool (B, C); refuse others."""
    if labels.dtype == object:  # of pandas: lists of class numbers, or True and False
        labels = _as_array(labels.tolist(), num_classes)
        if labels.dtype == bool:
            return labels
    if labels.dtype.kind not in "iuf":
        what = "bool, 0 and 1, or class numbers"
        advice = "np.unique(names, return_inverse=True) numbers names"
        raise TypeError(f"labels: {expected(what, labels.dtype, advice)}")
    if labels.ndim == 0:
        return labels
    length = len(labels)
    if labels.shape == (0,):
        return np.zeros((0, num_classes or 0), np.bool_)
    if labels.ndim == 1 and labels.dtype.kind in "iu":
        return from_class_numbers(np.arange(length), labels, length, num_classes)
    ones = labels == 1
    other = labels[~ones & (labels != 0) & (labels == labels)]
    if other.size:
        advice = "write labels > 0.5 for scores, labels == 1 for -1 and 1"
        if labels.shape[1:] == (1,):
            advice = "write labels[:, 0] for class numbers"
        raise ValueError(f"labels: {expected('0 and 1', other.flat[0], advice)}")
    return ones


def checksum(state: dict[str, Any]) -> str:
    """Return a digest of a state's entries, but for the checksum itself."""
    digest = hashlib.sha256()
    for name in sorted(state.keys() - {"checksum"}):
        value = state[name]
        if isinstance(value, dict):
            value = checksum(value)
        elif hasattr(value, "dtype"):
            digest.update(_bytes_of(value))
            value = value.dtype, tuple(value.shape)
        digest.update(f"{name}={value!r};".encode())
    return digest.hexdigest()


def _bytes_of(array: Any) -> bytes:
    """Return the bytes of an array, or of a tensor wherever it lies."""
    if hasattr(array, "cpu"):
        uint8 = array.new_zeros(0).byte().dtype  # numpy has no bfloat16
        array = array.cpu().contiguous().view(uint8).numpy()
    elif array.dtype.names:  # there may be unused bytes between the fields
        return b"".join(_bytes_of(array[name]) for name in array.dtype.names)
    elif array.dtype.kind == "T":  # whose bytes are pointers
        return repr(array.tolist()).encode()
    return array.tobytes()
