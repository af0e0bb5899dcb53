"""Registrations that tests undo, cells as of a notebook, and runs without processes."""

import linecache
from contextlib import ExitStack, contextmanager
from unittest.mock import patch


@contextmanager
def forgetting():
    """Undo at the end all registrations of the block."""
    from prslib import runs

    tables = [*runs.TABLES.values(), runs.REGISTERED]
    with ExitStack() as stack:
        for table in tables:
            stack.enter_context(patch.dict(table))
        yield
    runs.fingerprint.cache_clear()
    runs.code_of.cache_clear()


def execute_cell(source, name="<cell 1 of a test>"):
    """Execute a cell as IPython does, which keeps its source."""
    lines = source.splitlines(keepends=True)
    linecache.cache[name] = len(source), None, lines, name
    space = {"__name__": "__main__"}
    exec(compile(source, name, "exec"), space)
    return space


def call_in_turn(*_, **__):
    """Replace `joblib.Parallel`: call in this process, as others would import torch."""
    return lambda calls: (function(*row, **options) for function, row, options in calls)
