"""Name the folders of the project, write files whole or not at all, and end worker processes.

A relative folder in the environment is one in `project_root`, wherever a process was
started.
"""

import ctypes
import os
import signal
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # Windows, which removes no file that is open
    fcntl = None

PACKAGE = Path(__file__).resolve().parent
PART = ".part"  # ends the name of a file that is being written


def project_root() -> Path:
    """Return the checkout's root, or the working directory when prslib is installed elsewhere."""
    checkout = PACKAGE.parent
    return checkout if (checkout / "pyproject.toml").is_file() else Path.cwd()


def cache_dir() -> Path:
    """Return ``PRSLIB_CACHE``, by default ``cache/`` of a checkout or among the user's caches."""
    root, named = project_root(), os.environ.get("PRSLIB_CACHE")
    if named or (root / "params").is_dir():
        return root / (named or "cache")
    variable = "LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME"
    usual = Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")
    return Path(os.environ.get(variable) or usual) / "prslib"


def data_dir(files: str = "what `python -m prslib prepare --help` names") -> Path:
    """Return ``PRSLIB_DATA``, the folder of downloads; errors say that ``files`` belong there."""
    named = os.environ.get("PRSLIB_DATA")
    if not named:
        raise FileNotFoundError(
            "expected the environment variable PRSLIB_DATA to name the folder of downloaded data "
            f"sets, it is not set; set it (`make figures DATA=/path`) and put there {files}"
        )
    folder = project_root() / named
    if not folder.is_dir():
        raise FileNotFoundError(
            f"expected PRSLIB_DATA to name a folder, got {folder}, which is none; create it and "
            f"put there {files}"
        )
    return folder


def figures_dir(profile: str) -> Path:
    """Return a profile's folder in ``PRSLIB_FIGURES``, by default ``figures/``."""
    return project_root() / (os.environ.get("PRSLIB_FIGURES") or "figures") / profile


def params_file(profile: str, notebook: str) -> Path:
    """Return the YAML file with a notebook's parameters under a profile."""
    return project_root() / "params" / profile / f"{notebook}.yaml"


def known_profiles() -> list[str]:
    """Return the names of the profiles, the folders of ``params/``."""
    return sorted(
        file.name for file in (project_root() / "params").glob("*") if file.is_dir()
    )


def known_notebooks(profile: str) -> list[str]:
    """Return the names of the notebooks that a profile has parameters for."""
    return sorted(
        file.stem for file in params_file(profile, "any").parent.glob("*.yaml")
    )


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Write a binary file beside ``path``, and move it there when it is whole and on the disk.

    Readers see the old file until then, also after a loss of power. On an error it
    stays.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_parts(path)
    beside = path.with_name(f"{path.name}.{uuid.uuid4().hex[:8]}{PART}")
    try:
        with open(beside, "xb") as file:
            with suppress(OSError):  # a system without such locks
                if fcntl:
                    fcntl.flock(file, fcntl.LOCK_EX)  # tells that its process is alive
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException as error:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno:
            error.filename, error.filename2 = (
                str(path),
                None,
            )  # its own file's name is random
        raise


def remove_parts(path: Path) -> None:
    """Remove what writing a file left, or files of a pattern, where its process was killed."""
    for leftover in path.parent.glob(f"{path.name}.*{PART}"):
        with suppress(OSError):
            with open(leftover, "rb") as file:
                if fcntl:
                    # else it is being written
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            leftover.unlink()


def ending_with_us() -> dict:
    """Return the arguments that let a pool's processes end with this one, however it ends."""
    return {"initializer": _end_with, "initargs": (os.getpid(),)}


def _end_with(parent: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG

    def watch() -> None:
        while os.getppid() == parent:  # it can have ended before
            time.sleep(1)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()
