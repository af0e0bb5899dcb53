"""Where things are kept: one place, the same from JupyterLab, papermill and make."""

import os
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent


def project_root() -> Path:
    """Return the checkout's root, or the working directory when prslib is installed elsewhere."""
    checkout = PACKAGE.parent
    return checkout if (checkout / "pyproject.toml").is_file() else Path.cwd()


def cache_dir() -> Path:
    """Return the folder of what can be made again: data sets, runs, executed notebooks.

    The environment variable ``PRSLIB_CACHE`` moves it; otherwise it is ``cache/`` in the checkout.
    """
    return Path(os.environ.get("PRSLIB_CACHE") or project_root() / "cache")


def data_dir() -> Path:
    """Return the folder of the data sets that a user downloads, named by ``PRSLIB_DATA``.

    Raises
    ------
    FileNotFoundError
        If the environment variable is not set or names no folder.
    """
    named = os.environ.get("PRSLIB_DATA")
    if not named:
        raise FileNotFoundError(
            "expected the folder of the real data sets in the environment variable PRSLIB_DATA, "
            "got none; set it (`export PRSLIB_DATA=/path`, or `make ... DATA=/path`) and see "
            "`python -m prslib prepare --help`"
        )
    folder = Path(named)
    if not folder.is_dir():
        raise FileNotFoundError(
            f"expected PRSLIB_DATA to name a folder, got {named!r}, which is none; create it or "
            "name another"
        )
    return folder


def figures_dir(profile: str) -> Path:
    """Return the folder of a profile's pictures and CSV files, ``figures/<profile>``.

    The environment variable ``PRSLIB_FIGURES`` replaces ``figures/`` in the checkout.
    """
    return Path(os.environ.get("PRSLIB_FIGURES") or project_root() / "figures") / profile


def params_file(profile: str, notebook: str) -> Path:
    """Return the YAML file with a notebook's parameters under a profile."""
    return project_root() / "params" / profile / f"{notebook}.yaml"
