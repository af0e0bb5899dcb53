"""Where things are kept: one place, the same from JupyterLab, papermill and make."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

PACKAGE = Path(__file__).resolve().parent


def project_root() -> Path:
    """Return the checkout's root, or the working directory when prslib is installed elsewhere."""
    checkout = PACKAGE.parent
    return checkout if (checkout / "pyproject.toml").is_file() else Path.cwd()


def cache_dir() -> Path:
    """Return the folder of what can be made again: data sets, runs, executed notebooks.

    The environment variable ``PRSLIB_CACHE`` moves it; otherwise it is ``cache/`` in the checkout.
    A relative path is one in `project_root`, wherever a process was started.
    """
    return project_root() / (os.environ.get("PRSLIB_CACHE") or "cache")


def data_dir(wanted: str = "what `python -m prslib prepare --help` names") -> Path:
    """Return the folder of what a user has downloaded, ``PRSLIB_DATA`` in the environment.

    A relative path is one in `project_root`, wherever a process was started.

    Parameters
    ----------
    wanted : str
        What the caller looks for there, for the error: "imbal-mnistseq: mnist.npz, or ...".

    Raises
    ------
    FileNotFoundError
        If the variable is not set, or names no folder.
    """
    named = os.environ.get("PRSLIB_DATA")
    if not named:
        raise FileNotFoundError(
            "expected the environment variable PRSLIB_DATA to name the folder of downloaded data "
            f"sets, it is not set; set it (`make figures DATA=/path`) and put there {wanted}"
        )
    folder = project_root() / named
    if not folder.is_dir():
        raise FileNotFoundError(
            f"expected PRSLIB_DATA to name a folder, got {folder}, which is none; create it and "
            f"put there {wanted}"
        )
    return folder


def figures_dir(profile: str) -> Path:
    """Return the folder of a profile's pictures and CSV files, ``figures/<profile>``.

    The environment variable ``PRSLIB_FIGURES`` replaces ``figures/`` in the checkout. A relative
    path is one in `project_root`, wherever a process was started.
    """
    return project_root() / (os.environ.get("PRSLIB_FIGURES") or "figures") / profile


def params_file(profile: str, notebook: str) -> Path:
    """Return the YAML file with a notebook's parameters under a profile."""
    return project_root() / "params" / profile / f"{notebook}.yaml"


def known_profiles() -> list[str]:
    """Return the names of the profiles, the folders of ``params/``."""
    return sorted(file.name for file in (project_root() / "params").glob("*") if file.is_dir())


def known_notebooks(profile: str) -> list[str]:
    """Return the names of the notebooks that a profile has parameters for."""
    return sorted(file.stem for file in params_file(profile, "any").parent.glob("*.yaml"))


PART = ".part"  # ends the name of a file that is being written


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Write a file beside its place and move it there at the end; our own.

    Parameters
    ----------
    path : Path
        Where the file goes; its folder is made where it is missing.

    Yields
    ------
    file
        To be written to, in binary. Readers of ``path`` see the old file until the new one is on
        the disk whole, also after a loss of power.

    Raises
    ------
    OSError
        If the disk is full or the folder cannot be written; ``path`` is then as it was.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(Path(folder) / "deep" / "three") as file:
    ...         _ = file.write(b"3")
    ...     (Path(folder) / "deep" / "three").read_text()
    '3'
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.{uuid.uuid4().hex[:8]}{PART}")
    try:
        with open(beside, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
