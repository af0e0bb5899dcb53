"""Show a progress bar while runs are trained."""

import os
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, TextIO

from tqdm import tqdm


class Bar(tqdm):
    """A bar that does not end training if it cannot be written, such as to a closed pipe."""

    def display(self, *arguments: Any, **options: Any) -> bool:
        """Write the bar."""
        with suppress(OSError):
            super().display(*arguments, **options)
        return True

    def close(self) -> None:
        """Write the bar for the last time."""
        with suppress(OSError):
            super().close()


# A thread's lock suffices, because only this process writes bars; a killed kernel would
# leave tqdm's own lock, a semaphore, behind. Other bars keep tqdm's lock, because
# `process_map` sends it to its processes.
Bar.set_lock(threading.RLock())


def show_progress(results: Iterable[Any], count: int) -> Iterator[Any]:
    """Yield the results of runs, and show how many of all runs have finished."""
    title = f"training {count} run{'s' if count > 1 else ''}"
    yield from Bar(results, title, count, unit="run", file=bar_stream())


def bar_stream() -> TextIO:
    """Return stderr or, in a notebook, stdout, because notebooks show stderr in red.

    Unless the notebook is open in JupyterLab, its stdout is copied to the terminal.
    """
    stderr: Any = sys.stderr
    if not hasattr(stderr, "echo"):
        return stderr
    stdout: Any = sys.stdout
    if "JPY_SESSION_NAME" not in os.environ:  # JupyterLab shows the cell
        stdout.echo = open(stderr.fileno(), "w", buffering=1, closefd=False)  # noqa: SIM115
    return stdout
