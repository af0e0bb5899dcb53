"""Do tasks in several processes of this machine, which end with this process."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import Any

from joblib import Parallel


def spread(tasks: Iterable, count: int, *set_up: Any, **options: Any) -> Iterator:
    """Do joblib's delayed tasks in `count` processes (1: in this process); yield results.

    `set_up` is a function, which each process calls first, and its arguments. Options are
    those of `joblib.Parallel`.
    """
    pool = Parallel(
        count,
        max_nbytes=None,  # arrays stay writable
        initializer=begin_worker,
        # joblib compares these, and starts new processes if they differ
        initargs=(os.getpid(), *set_up),
        **options,
    )
    with block_interrupts():
        results = pool(tasks)
    yield from results


def begin_worker(
    parent: int, set_up: Callable[..., None] | None = None, *arguments: Any
) -> None:
    """Leave Ctrl-C to the parent process, end with it, and set up what tasks need."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with(parent)
    if set_up:
        set_up(*arguments)


def end_with(parent: int) -> None:
    """End this process as soon as the parent process has ended."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def block_interrupts() -> Iterator[None]:
    """Shield new processes from Ctrl-C, until `begin_worker` ignores it.

    Otherwise Ctrl-C would end processes that are still importing, each with a
    traceback.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # its start would end the shield (Python 3.11)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
