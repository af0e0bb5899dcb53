"""Read arrays from disk only where their checksums are right, and write them.

Two forms. An ``npz`` file has a checksum of every array, which is compared whenever one
is read. The rows of a prepared set are gigabytes: they are mapped into memory, and the
file beside them has a checksum for each. Every time they are opened, as many random
rows are compared as a gigabyte holds, in about a second: all of a small set, a tenth
of COCOseq's 11.3 GB. ``python -m prslib prepare`` compares all, in twelve seconds.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterable, Sequence
from io import BytesIO
from itertools import chain
from pathlib import Path
from types import ModuleType

import numpy as np

from prslib.checks import readable
from prslib.paths import cache_dir, ending_with_us, remove_parts, replacing

SUM = np.dtype("<u8")  # of a checksum
SAMPLE = 1 << 30  # bytes of a large array that are compared when it is opened
CHUNK = 512  # rows that are made before they are written; a kill loses no more
# rows that a process makes at once: of more, a network's maps leave the cache
BATCH = 8
RESOLUTION = 256  # pixels of each side of a prepared image; the released code's size
PIXELS = np.dtype((np.uint8, (RESOLUTION, RESOLUTION, 3)))  # a row of images.bin


def read_arrays(
    file: Path, names: Iterable[str], kind: str, advice: str
) -> dict[str, np.ndarray]:
    """Read some arrays of an npz file; errors say what it should be and what to do."""
    with readable(f"{file} as {kind}", advice), zipfile.ZipFile(file) as stored:
        # read whole, so that zipfile compares the checksum; np.load stops early
        content = {name: BytesIO(stored.read(f"{name}.npy")) for name in names}
        return {name: np.load(content[name], allow_pickle=False) for name in names}


def cached_arrays(
    name: str,
    parts: Iterable[str],
    makers: tuple[ModuleType, ...],
    make: Callable[[], dict[str, np.ndarray]],
) -> dict[str, np.ndarray]:
    """Load arrays from the cache, or make them and store them there."""
    file = cache_dir() / "datasets" / f"{name}-{source_digest(makers)}.npz"
    remove_parts(file)
    try:
        return read_arrays(file, parts, "arrays that prslib stored", "making it again")
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:
        warnings.warn(str(error), stacklevel=2)
    arrays = make()
    try:
        with replacing(file) as stream:
            np.savez(stream, **arrays)
    except OSError as error:
        warnings.warn(
            f"cannot write {file} ({error}); set PRSLIB_CACHE to a folder that can be "
            "written",
            stacklevel=2,
        )
    return arrays


def source_digest(makers: tuple[ModuleType, ...]) -> str:
    """Hash the source of what makes arrays: other code makes them again."""
    digest = hashlib.sha256(np.__version__.encode())
    for module in makers:
        digest.update(Path(str(module.__file__)).read_bytes())
    return digest.hexdigest()[:16]


def open_rows(file: Path, count: int, row: np.dtype, whole: bool = False) -> np.ndarray:
    """Map rows into memory once a sample or the whole has the right checksums."""
    advice = f"delete {file.with_suffix('')}.* and run `python -m prslib prepare` again"
    sums = np.fromfile(file.with_suffix(".sums"), SUM)
    sums = sums[sums > 0]
    if len(sums) != count or file.stat().st_size != count * row.itemsize:
        raise ValueError(
            f"expected {count} rows of {row.itemsize} bytes in {file} and their "
            f"checksums, got {file.stat().st_size} bytes and {len(sums)}; {advice}"
        )
    array = np.memmap(file, row, "r", shape=(count,))
    rows = np.random.default_rng().permutation(count)  # others at each opening
    rows = rows if whole else rows[: SAMPLE // row.itemsize]
    if wrong := [i for i in rows.tolist() if checksum(array[i]) != sums[i]]:
        raise ValueError(
            f"expected the rows of {file} as they were written, but {len(wrong)} of "
            f"{len(rows)} have changed, such as row {min(wrong)}; {advice}"
        )
    return array


def checksum(row: np.ndarray | bytes) -> int:
    """Return a row's checksum, 1 or more: 0 stands for a row that could not be made."""
    return zlib.crc32(row) + 1


class RowFile:
    """A file of rows that is made once, in order; an interrupted run is resumed."""

    # Rows are appended to X.part, then their checksums to X.sums; rows without one are
    # cut off when work goes on. A row that failed has the checksum 0 and takes no
    # place. X.files tells what the rows are of. At last X.part becomes X.bin.

    def __init__(self, file: Path, sources: Sequence[str], row: np.dtype):
        self.file = file
        self.sources = list(sources)
        self.row = row  # shape and type of one row
        self.part = file.with_suffix(".part")
        self.sums = file.with_suffix(".sums")
        listed = file.with_suffix(".files")
        digest = hashlib.sha256("\n".join(self.sources).encode()).hexdigest()
        if not listed.is_file():
            with replacing(listed) as stream:  # a kill must not leave it empty
                stream.write(digest.encode())
        if listed.read_text() != digest:
            raise ValueError(
                f"expected {file.parent} to be empty or to hold these "
                f"{len(self.sources)} images, got the work on another selection (other "
                "ids, another seed or other annotations); move it away or delete it"
            )

    def fill(
        self,
        items: Sequence,
        make: Callable[[Sequence], Iterable],
        workers: int | None,
        title: str,
    ) -> dict[int, str]:
        """Make the rows that lack; return those that failed, and why.

        `make` takes a few items and returns a row for each, or why there is none.
        """
        # Worker processes send rows here: only this process, which has the lock,
        # writes.
        from joblib import Parallel, cpu_count, delayed  # loading labels needs neither
        from tqdm import tqdm

        first, problems = self._begin(), {}
        bar = tqdm(total=len(items), initial=first, desc=title, unit="image")
        with Parallel(workers or cpu_count(), **ending_with_us()) as pool, bar:
            for start in range(first, len(items), CHUNK):
                chunk = items[start : start + CHUNK]
                batches = [chunk[i : i + BATCH] for i in range(0, len(chunk), BATCH)]
                rows = list(chain.from_iterable(pool(map(delayed(make), batches))))
                contents = [
                    b"" if isinstance(row, str) else row.astype(self.row.base).tobytes()
                    for row in rows
                ]
                sums = [checksum(content) if content else 0 for content in contents]
                _append(self.part, b"".join(contents))
                _append(self.sums, np.array(sums, SUM).tobytes())
                bar.update(len(rows))
                problems |= {
                    number: row
                    for number, row in enumerate(rows, start)
                    if isinstance(row, str)
                }
        return problems

    def _begin(self) -> int:
        """Cut off what is torn or follows a failure; return the next row."""
        self.part.touch()
        self.sums.touch()
        sums = np.fromfile(self.sums, SUM)
        first = int(np.append(sums, 0).argmin())  # the first 0, or the end
        os.truncate(self.part, first * self.row.itemsize)
        os.truncate(self.sums, first * SUM.itemsize)
        needed = (len(self.sources) - first) * self.row.itemsize
        free = shutil.disk_usage(self.file.parent).free
        if free < needed:
            raise OSError(
                f"expected {needed / 1e9:.1f} GB free for {len(self.sources)} images "
                f"in {self.file.parent}, got {free / 1e9:.1f} GB; free some, or set "
                "PRSLIB_DATA to a folder on a larger disk"
            )
        return first

    def finish(self) -> None:
        """Give the rows their name."""
        os.replace(self.part, self.file)


def _append(file: Path, content: bytes) -> None:
    """Write to the end of a file, and wait until it is on the disk."""
    with open(file, "ab") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
