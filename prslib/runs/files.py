"""Files that appear whole or not at all."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

PART = ".part"  # ends the name of a file that is being written


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Write a file beside its place and move it there at the end; our own.

    Parameters
    ----------
    path : Path
        Where the file goes; its folder is made where it is missing.

    Yields
    ------
    file
        To be written to, in binary. Readers of ``path`` see the old file until the new one is on
        the disk whole, also after a loss of power.

    Raises
    ------
    OSError
        If the disk is full or the folder cannot be written; ``path`` is then as it was.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(Path(folder) / "deep" / "three") as file:
    ...         _ = file.write(b"3")
    ...     (Path(folder) / "deep" / "three").read_text()
    '3'
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.{uuid.uuid4().hex[:8]}{PART}")
    try:
        with open(beside, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
