"""Compile the samplers by numba, and keep the machine code while it is that of the source.

A digest of all files of this folder names the cache, since numba itself sees a change of
the function's own file alone. Damaged and changed files of the cache are compiled anew.
Where no folder can be written, nothing is kept.
"""

import gc
import hashlib
import os
import pickle
import shutil
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import numba
from numba.core import config
from numba.core.caching import FunctionCache, IndexDataCacheFile, NullCache
from numba.extending import register_jitable

FOLDER = Path(__file__).resolve().parent
OWN = FOLDER / "__pycache__"
SETTINGS: Any = config  # numba's; their fields are set from the environment

# A function that compiled code calls; from Python it runs as it stands. A call that is
# not inlined counts the users of each of State's arrays, which costs more than most
# functions here do. So does a view of a row: inner loops take single numbers instead.
# Without wrappers for Python it compiles in less time.
compiled = register_jitable(
    error_model="numpy",
    forceinline=True,
    no_cpython_wrapper=True,
    no_cfunc_wrapper=True,
)


@lru_cache
def cache_folder() -> Path | None:
    """Return the folder of machine code of these sources; None where none can be written.

    It is in numba's ``NUMBA_CACHE_DIR``, beside the package, or among the user's caches.
    """
    digest = hashlib.sha256()
    for file in sorted(FOLDER.glob("*.py")):
        digest.update(file.name.encode() + file.read_bytes())
    name = f"prslib-{digest.hexdigest()[:16]}"
    usual = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    places = [OWN, Path(usual) / "prslib"]
    if SETTINGS.CACHE_DIR:
        places = [Path(SETTINGS.CACHE_DIR)]
    for place in places:
        with suppress(OSError):
            is_new = not (place / name).is_dir()
            (place / name).mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=place / name).close()
            if is_new and place == OWN:
                remove_others(name)
            return place / name
    return None


def remove_others(name: str) -> None:
    """Remove the machine code of earlier sources from the package's own cache."""
    for folder in OWN.glob("prslib-*"):
        if folder.name != name:
            shutil.rmtree(folder, ignore_errors=True)


class CheckedFile(IndexDataCacheFile):
    """A file of numba's cache whose content has a checksum."""

    def _save_data(self, name: str, data: Any) -> None:
        content = self._dump(data)
        super()._save_data(name, (hashlib.sha256(content).hexdigest(), content))

    def _load_data(self, name: str) -> Any:
        checksum, content = super()._load_data(name)
        if checksum != hashlib.sha256(content).hexdigest():
            raise ValueError(f"{name} was changed")
        return pickle.loads(content)


def tell(function: Any) -> None:
    """Say on stderr that a function is compiled, which takes some seconds."""
    name = f"{function.__module__}.{getattr(function, '__name__', function)}"
    text = f"prslib: compiling {name} for this processor, for some seconds"
    print(text, file=sys.stderr, flush=True)


def free_callers() -> None:
    """Free the frames that numba's errors hold in cycles, with a network's inputs in them."""
    gc.collect()


class CheckedCache(FunctionCache):
    """Numba's cache of a function; a file that cannot be read counts as missing."""

    def __init__(self, function: Callable, folder: Path):
        usual = SETTINGS.CACHE_DIR
        SETTINGS.CACHE_DIR = str(folder)
        try:
            super().__init__(function)
        finally:
            SETTINGS.CACHE_DIR = usual
        self._cache_file.__class__ = CheckedFile
        self.function = function

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the stored machine code; None, and say so, where it must be compiled."""
        found = None
        try:
            found = super().load_overload(sig, target_context)
        except Exception:  # whatever a file that was cut short or changed leads to
            with suppress(OSError):
                self.flush()
        if found is None:
            tell(self.function)
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store machine code, if there is room."""
        with suppress(OSError):
            super().save_overload(sig, data)
        free_callers()


class NoCache(NullCache):
    """A cache that keeps nothing, for where no folder can be written."""

    def __init__(self, function: Callable):
        self.function = function

    def load_overload(self, sig: Any, target_context: Any) -> None:
        """Say that the function is compiled."""
        tell(self.function)

    def save_overload(self, sig: Any, cres: Any) -> None:
        """Keep nothing."""
        free_callers()


def jit(function: Callable, **options: Any) -> Any:
    """Compile a function when it is first called, or load its machine code."""
    dispatcher = numba.njit(**options)(function)
    folder = cache_folder()
    cache = CheckedCache(function, folder) if folder else NoCache(function)
    dispatcher._cache = cache
    return dispatcher


def entry(function: Callable) -> Any:
    """Compile a function that Python calls."""
    return jit(function, error_model="numpy", no_cfunc_wrapper=True)


def in_any_order(function: Callable) -> Any:
    """Compile a sum whose terms may be added in any order: several at once."""
    return jit(function, fastmath={"reassoc", "nsz"})
