"""Name the folders of the project, and check and write files.

Relative paths in environment variables refer to `project_root`, wherever a process was
started. ``~`` is expanded here, because no shell expands it in variables from files.
"""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from prslib.checks import expected, one_of

PACKAGE = Path(__file__).resolve().parent
# embedded data sets and weights, which only a checkout contains
DATA = PACKAGE.parent / "data"
DEFAULT = "quick"  # the profile with the parameters in the notebooks
SUMS = "SHA256SUMS"  # lists the files of a folder, as `sha256sum *` does


def project_root() -> Path:
    """Return the checkout's root or, for an installed package, the working directory."""
    checkout = PACKAGE.parent
    return checkout if (checkout / "pyproject.toml").is_file() else Path.cwd()


def named_folder(variable: str) -> Path | None:
    """Return the folder that an environment variable names, None if unset or empty."""
    text = os.environ.get(variable, "")
    if "$" in text or text != text.strip().strip("'\""):  # no shell has read it
        raise ValueError(expected(f"{variable} with no quote, blank or $", repr(text)))
    return project_root() / Path(text).expanduser() if text else None


def cache_dir() -> Path:
    """Return ``PRSLIB_CACHE``, by default ``cache/`` of a checkout or a user's cache."""
    if named := named_folder("PRSLIB_CACHE"):
        return named
    root = project_root()
    if (root / "params").is_dir():
        return root / "cache"
    usual = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(usual) / "prslib"


def data_dir() -> Path:
    """Return ``PRSLIB_DATA``, the folder of downloads."""
    named = named_folder("PRSLIB_DATA")
    if not named or not named.is_dir():
        what = "the environment variable PRSLIB_DATA to name the folder of downloads"
        advice = "set it (`make figures DATA=/path`); `prslib prepare --help` says more"
        raise FileNotFoundError(expected(what, named, advice))
    return named


def figures_dir(profile: str) -> Path:
    """Return a profile's folder in ``PRSLIB_FIGURES``, by default ``figures/``."""
    return (named_folder("PRSLIB_FIGURES") or project_root() / "figures") / profile


def notebook_file(name: str) -> Path:
    """Return a notebook's file."""
    return project_root() / "notebooks" / f"{name}.ipynb"


def params_file(profile: str, notebook: str) -> Path:
    """Return the YAML file of the parameters that a profile overrides in a notebook."""
    return project_root() / "params" / profile / f"{notebook}.yaml"


def known_profiles() -> list[str]:
    """Return the names of the profiles: the folders of ``params/``, and `DEFAULT`."""
    folders = (project_root() / "params").glob("*/")
    return sorted({DEFAULT, *(folder.name for folder in folders)})


def known_notebooks(profile: str) -> list[str]:
    """Return the notebooks that have a YAML file in a profile; for `DEFAULT`, return all.

    Copies and other files in the folder are left out, because they do not read parameters
    under their own file name.
    """
    root = project_root()
    notebooks = sorted(
        file.stem
        for file in (root / "notebooks").glob("*.ipynb")
        if f'Settings.read(\\"{file.stem}\\"'.encode() in file.read_bytes()
    )
    if profile == DEFAULT:
        return notebooks
    files = (root / "params" / profile).glob("[!.]*.yaml")
    return sorted(one_of("notebook", file.stem, notebooks) for file in files)


def check_embedded(file: Path) -> None:
    """Raise FileNotFoundError if a file of `DATA` is missing."""
    if file.is_relative_to(DATA) and not file.is_file():
        raise FileNotFoundError(
            f"{file.name} needs a checkout of prslib, because pip install leaves out "
            "data/; clone the repository and run pip install -e . there"
        )


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Write a binary file next to ``path``, and rename it to ``path`` once it is on disk.

    Until then readers see the old file, even after a power failure. If an error is raised,
    the old file stays.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.{uuid.uuid4().hex}.part")
    try:
        with open(beside, "w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
