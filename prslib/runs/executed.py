"""Executed copies of notebooks: where they are, and whether they are up to date."""

from pathlib import Path

from prslib.paths import PACKAGE, cache_dir, figures_dir, params_file, project_root


def executed_file(profile: str, name: str) -> Path:
    """Return where a notebook's executed copy is kept."""
    return cache_dir() / "executed" / profile / f"{name}.ipynb"


def stale(profile: str, name: str) -> bool:
    """Whether a notebook's figures are to be drawn again.

    They are where the notebook, its parameters or the package changed since it was last executed,
    and where the profile's folder of figures is gone.
    """
    executed = executed_file(profile, name)
    if not (executed.is_file() and figures_dir(profile).is_dir()):
        return True
    read = (".py", ".csv", ".mplstyle", ".pth")
    sources = [file for file in PACKAGE.rglob("*") if file.suffix in read]
    sources += [project_root() / "notebooks" / f"{name}.ipynb", params_file(profile, name)]
    return max(file.stat().st_mtime for file in sources) > executed.stat().st_mtime
