"""Collect the runs of notebooks, for all commands and the ledger.

A notebook that trains has a cell with the tag `runs`, which defines a function
``runs(settings)``. The cell is executed here without a kernel.
"""

from prslib.paths import known_notebooks
from prslib.report.build import LEDGER
from prslib.report.notebook import Settings, cells_with
from prslib.train import RunConfig

# no claim is about their runs
NO_CLAIM = ("when_it_pays", "memory_or_loss", "sensitivity", LEDGER)
# first, because the first run of a data set is the standard that others vary
STANDARD = ("main_results", "precision_recall", "single_label")


def definitions(notebook: str, *tags: str) -> dict:
    """Execute a notebook's cells with some tags; return the functions that they define."""
    scope = {"__name__": "__main__"}  # so that worker processes get functions by value
    for tag in tags or ("runs",):
        for source in cells_with(tag, notebook):
            exec(compile(source, f"{notebook}.ipynb", "exec"), scope)
    return scope


def runs_of(profile: str, notebook: str) -> list[RunConfig]:
    """Return the runs of a notebook under a profile."""
    runs = definitions(notebook).get("runs", lambda settings: [])
    return runs(Settings.of(profile, notebook))


def runs(profile: str) -> tuple[dict[str, list[RunConfig]], dict[str, str]]:
    """Return the runs that claims are about, and errors, both by notebook."""
    by_notebook = {}
    errors = {}
    names = [name for name in known_notebooks(profile) if name not in NO_CLAIM]
    for name in sorted(names, key=lambda name: name not in STANDARD):
        try:
            by_notebook[name] = runs_of(profile, name)
        except FileNotFoundError as error:
            errors[name] = str(error)
    if errors and not any(by_notebook.values()):
        raise FileNotFoundError(next(iter(errors.values())))
    return by_notebook, errors
