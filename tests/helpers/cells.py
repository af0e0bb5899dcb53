"""Functions that are defined in a notebook's cells, for their tests."""

from types import SimpleNamespace

from prslib.report.topics import definitions


def functions_of(notebook):
    """Return what a notebook's cells `runs` and `functions` define."""
    return SimpleNamespace(**definitions(notebook, "runs", "functions"))
