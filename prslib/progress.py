"""Show one bar for the steps of all runs, which worker processes count in a file."""

import os
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from tqdm import tqdm

POLL = 0.2  # seconds between updates of the bar


class Bar(tqdm):
    """A bar that ignores write errors, such as of a pipe that ``head`` has closed.

    After such an error, tqdm would keep its lock and wait for it forever.
    """

    def display(self, *arguments: Any, **options: Any) -> bool:
        """Write the bar."""
        with suppress(OSError):
            super().display(*arguments, **options)
        return True

    def close(self) -> None:
        """Write the bar for the last time."""
        with suppress(OSError):
            super().close()


# only this process writes bars; a killed kernel would leave tqdm's own lock, a semaphore
Bar.set_lock(threading.RLock())


@contextmanager
def counting(steps: Sequence[int]) -> Iterator[Path]:
    """Show one bar for the steps of all runs; yield the file in which runs count them."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "steps"
        done = np.memmap(file, np.int64, "w+", shape=len(steps))
        over = threading.Event()
        title = f"training {len(steps)} run{'s' if len(steps) > 1 else ''}"
        how = {"desc": title, "unit": "step", "unit_scale": True, "smoothing": 0.05}
        how |= {"mininterval": 0.5}
        with Bar(total=sum(steps), file=bar_stream(), **how) as bar:

            def show() -> None:
                while not over.wait(POLL):
                    if new_steps := int(done.sum()) - bar.n:
                        bar.update(new_steps)

            thread = threading.Thread(target=show)
            thread.start()
            try:
                yield file
            finally:
                over.set()
                thread.join()
                bar.update(int(done.sum()) - bar.n)


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
