"""Keep arrays that take a while to make on disk."""

from __future__ import annotations

import hashlib
import os
import tempfile
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np

from prslib.paths import cache_dir


def cached_arrays(
    name: str, makers: tuple[ModuleType, ...], make: Callable[[], dict[str, np.ndarray]]
) -> dict[str, np.ndarray]:
    """Load arrays from the cache, or make them and store them there; our own choice.

    Parameters
    ----------
    name : str
        Begins the file's name.
    makers : tuple of module
        Modules whose source decides what is made. A hash of it is part of the file's name, so
        that a file made by other code is never read.
    make : callable
        Returns the arrays by name.

    Returns
    -------
    dict of str to numpy.ndarray
        The arrays.

    Warns
    -----
    UserWarning
        If the file cannot be read, and is made again, or cannot be written.

    Examples
    --------
    >>> from unittest import mock
    >>> from prslib.datasets import cache
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with mock.patch.dict(os.environ, PRSLIB_CACHE=folder):
    ...         cached_arrays("doctest", (cache,), lambda: {"three": np.arange(3)})["three"]
    array([0, 1, 2])
    """
    path = cache_dir() / "datasets" / f"{name}-{_fingerprint(makers)}.npz"
    try:
        with open(path, "rb") as file, np.load(file) as stored:
            return {key: stored[key] for key in stored.files}
    except FileNotFoundError:
        pass
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        warnings.warn(f"cannot read {path} ({error}); making it again", stacklevel=2)
    arrays = make()
    try:
        _store(path, arrays)
    except OSError as error:
        warnings.warn(
            f"cannot write {path} ({error}); set PRSLIB_CACHE to a folder that can be written",
            stacklevel=2,
        )
    return arrays


def _fingerprint(makers: tuple[ModuleType, ...]) -> str:
    digest = hashlib.sha256(np.__version__.encode())
    for module in makers:
        digest.update(Path(module.__file__).read_bytes())
    return digest.hexdigest()[:16]


def _store(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """Write to a file beside the target, then move: readers see a whole file or none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=path.stem, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, **arrays)
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise
