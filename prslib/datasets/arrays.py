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
from pathlib import Path
from types import ModuleType

import numpy as np

from prslib.paths import cache_dir, ending_with_us, remove_parts, replacing

SUM = np.dtype("<u8")  # of a checksum
SAMPLE = 1 << 30  # bytes of a large array that are compared when it is opened
CHUNK = 512  # rows that are made before they are written; a kill loses no more
RESOLUTION = 256  # pixels of each side of a prepared image; the released code's size
PIXELS = (RESOLUTION, RESOLUTION, 3)


def read_arrays(
    file: Path, names: Iterable[str], kind: str, advice: str
) -> dict[str, np.ndarray]:
    """Read some arrays of an npz file; errors say what it should be and what to do."""
    try:
        with zipfile.ZipFile(file) as stored:
            return {name: _parse(stored.read(f"{name}.npy")) for name in names}
    except (FileNotFoundError, PermissionError):
        raise
    except Exception as error:  # whatever a damaged file leads to
        raise ValueError(
            f"expected {file} as {kind}, but it cannot be read ({error}); {advice}"
        ) from error


def _parse(content: bytes) -> np.ndarray:
    """Parse the bytes of an npy file, which zipfile has compared with a checksum."""
    stream = BytesIO(content)
    array = np.load(stream, allow_pickle=False)
    if stream.read(1):
        raise ValueError(f"more bytes than an array of shape {array.shape} has")
    return array


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


def open_rows(
    file: Path, count: int, shape: tuple[int, ...], dtype: type, whole: bool = False
) -> np.ndarray:
    """Map rows into memory once a sample or the whole has the right checksums."""
    advice = f"delete {file.with_suffix('')}.* and run `python -m prslib prepare` again"
    try:
        sums = np.fromfile(file.with_suffix(".sums"), SUM)
        array = np.memmap(file, dtype, "r", shape=(count, *shape))
    except ValueError as error:
        raise ValueError(
            f"expected {count} rows in {file}, got fewer; {advice}"
        ) from error
    if len(sums := sums[sums > 0]) != count or file.stat().st_size != array.nbytes:
        raise ValueError(
            f"expected {count} rows of {array.nbytes // count} bytes in {file} and "
            f"their checksums, got {file.stat().st_size} bytes and {len(sums)}; "
            f"{advice}"
        )
    rows = np.random.default_rng().permutation(count)  # others at each opening
    rows = rows if whole else rows[: SAMPLE // array[0].nbytes]
    if wrong := [row for row in rows.tolist() if checksum(array[row]) != sums[row]]:
        raise ValueError(
            f"expected the rows of {file} as they were written, but {len(wrong)} of "
            f"{len(rows)} have changed, such as row {min(wrong)}; {advice}"
        )
    return array


def checksum(row: np.ndarray) -> int:
    """Return a row's checksum, 1 or more: 0 stands for a row that could not be made."""
    return zlib.crc32(row) + 1


class RowFile:
    """A file of rows that is made once, in order; an interrupted run is resumed."""

    # Rows are appended to X.part, then their checksums to X.sums; rows without one are
    # cut off when work goes on. A row that failed has the checksum 0 and takes no
    # place. X.files tells what the rows are of. At last X.part becomes X.bin.

    def __init__(
        self, file: Path, sources: Sequence[str], shape: tuple[int, ...], dtype: type
    ):
        self.file = file
        self.sources = list(sources)
        self.shape = shape  # of a row
        self.dtype = np.dtype(dtype)
        self.part = file.with_suffix(".part")
        self.sums = file.with_suffix(".sums")
        self._list = file.with_suffix(".files")
        self._digest = hashlib.sha256("\n".join(self.sources).encode()).hexdigest()
        if self._list.is_file() and self._list.read_text() != self._digest:
            raise ValueError(
                f"expected {file.parent} to be empty or to hold these "
                f"{len(self.sources)} images, got the work on another selection (other "
                "ids, another seed or other annotations); move it away or delete it"
            )

    def fill(
        self,
        items: Sequence,
        workers: int | None,
        title: str,
        read: Callable,
        compute: Callable = np.stack,
        at_once: int = 1,
    ) -> dict[int, str]:
        """Make the rows that lack; return those that failed, and why."""
        # Worker processes send rows here: only this process, which has the lock,
        # writes.
        from joblib import Parallel, cpu_count, delayed  # loading labels needs neither
        from tqdm import tqdm

        first, problems = self._begin(), {}
        bar = tqdm(total=len(items), initial=first, desc=title, unit="image")
        pool = Parallel(workers or cpu_count(), **ending_with_us())
        with pool, bar:
            for start in range(first, len(items), CHUNK):
                chunk = items[start : start + CHUNK]
                results = pool(
                    delayed(_make)(chunk[i : i + at_once], read, compute)
                    for i in range(0, len(chunk), at_once)
                )
                rows = [row for result in results for row in result]
                failed = {i: row for i, row in enumerate(rows) if isinstance(row, str)}
                problems |= {start + i: why for i, why in failed.items()}
                made = [
                    row.astype(self.dtype) for row in rows if not isinstance(row, str)
                ]
                _append(self.part, b"".join(row.tobytes() for row in made))
                sums = np.zeros(len(rows), SUM)
                sums[[i for i in range(len(rows)) if i not in failed]] = [
                    *map(checksum, made)
                ]
                _append(self.sums, sums.tobytes())
                bar.update(len(rows))
        return problems

    def _begin(self) -> int:
        """Cut off what is torn or follows a failure; return the next row."""
        if not self._list.is_file():
            with replacing(self._list) as stream:  # a kill must not leave it empty
                stream.write(self._digest.encode())
        self.part.touch()
        self.sums.touch()
        sums = np.fromfile(self.sums, SUM)
        first = int(np.append(sums, 0).argmin())  # the first 0, or the end
        size = int(np.prod(self.shape)) * self.dtype.itemsize
        os.truncate(self.part, first * size)
        os.truncate(self.sums, first * SUM.itemsize)
        needed = (len(self.sources) - first) * size
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


def _make(items: Sequence, read: Callable, compute: Callable) -> list[np.ndarray | str]:
    """Compute the rows of some items, or say why an item has none."""
    rows: list[np.ndarray | str] = []
    inputs = []
    for item in items:
        try:
            inputs.append(read(item))
            rows.append("")
        except FileNotFoundError:
            rows.append("missing")
        except OSError as error:
            rows.append(f"broken: {error}")
    made = iter(compute(inputs) if inputs else ())
    return [reason or next(made) for reason in rows]
