"""Compile samplers ahead of their first use, in processes of their own.

``python -m prslib.samplers.compiling NAME`` compiles one; numba keeps what it made on disk, for
every other process.
"""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import numpy as np

from prslib.samplers import SAMPLERS, make_sampler


def compile_sampler(name: str) -> None:
    """Let a sampler that looks at labels alone decide once; our own.

    Parameters
    ----------
    name : str
        A key of `SAMPLERS`.

    Examples
    --------
    >>> compile_sampler("crs")
    """
    make_sampler(name, size=1, num_classes=1, seed=0).place(np.ones((2, 1), dtype=bool))


@contextmanager
def compiling(names: Sequence[str] | None = None) -> Iterator[None]:
    """Compile samplers while this process does something else; our own.

    Parameters
    ----------
    names : sequence of str, optional
        Keys of `SAMPLERS`, by default all that look at labels alone.

    Yields
    ------
    None
        At once; at the end of the block all are compiled. PRS takes ten seconds the first time and
        none later.
    """
    if names is None:
        names = [name for name, sampler in SAMPLERS.items() if not sampler.needs]
    with ExitStack() as running:
        for name in names:
            command = [sys.executable, "-m", "prslib.samplers.compiling", name]
            running.enter_context(subprocess.Popen(command))
        yield


if __name__ == "__main__":
    compile_sampler(sys.argv[1])
