"""Read arrays from disk only where their checksums are right, and write them.

Two forms. An ``npz`` file has a checksum of every array, which is compared whenever one
is read; its comment is a digest of all names and checksums. The rows of a prepared set
are gigabytes: they are mapped into memory, and the file beside them has a checksum for
each. Every time they are opened, as many random rows are compared as a gigabyte holds,
in about a second: all of a small set, a tenth of COCOseq's 11.3 GB. ``python -m prslib
prepare`` compares all, in twelve seconds.
"""

from __future__ import annotations

import hashlib
import os
import zipfile
import zlib
from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from prslib.checks import expected, readable
from prslib.paths import check_embedded, ending_with_us, replacing

# bytes of an npz file's last record; two of them count its arrays
END = 22
# bytes of a digest of its arrays
DIGEST = 64
SUM = np.dtype("<u8")  # of a checksum
# bytes of a large array that are compared when it is opened
SAMPLE = 1 << 30
# rows that are made before they are written; a kill loses no more
CHUNK = 512
# pixels of each side of a prepared image; the released code's size
RESOLUTION = 256
# a row of images.bin
PIXELS = np.dtype((np.uint8, (RESOLUTION, RESOLUTION, 3)))


def read_arrays(
    file: Path, *names: str, advice: str = "make, download or install it again"
) -> dict[str, np.ndarray]:
    """Read some or all arrays of an npz file; ValueError where it is damaged."""
    check_embedded(file)
    with (
        readable(f"whole arrays in {file}", advice),
        open(file, "rb") as stream,
        zipfile.ZipFile(stream) as stored,
    ):
        check_members(stored)
        # zipfile reads on until a changed length says that the names end
        stream.seek(-END - len(stored.comment), os.SEEK_END)
        end = stream.read(END)
        if int.from_bytes(end[10:12], "little") != len(stored.namelist()):
            raise ValueError("its list of arrays has changed")
        # read whole, so that zipfile compares the checksum; np.load stops early
        all_names = [name.removesuffix(".npy") for name in stored.namelist()]
        chosen = names or all_names
        content = {name: BytesIO(stored.read(f"{name}.npy")) for name in chosen}
        return {name: np.load(content[name]) for name in chosen}


def write_arrays(file: Path, **arrays: np.ndarray) -> None:
    """Write arrays as a compressed npz file, which `read_arrays` reads."""
    with replacing(file) as stream:
        # to a type checker one of them might be called allow_pickle
        np.savez_compressed(stream, **arrays)  # ty: ignore[invalid-argument-type]
        with zipfile.ZipFile(stream, "a") as stored:
            stored.comment = digest_of_members(stored)


def digest_of_members(file: zipfile.ZipFile) -> bytes:
    """Return a digest of the names and checksums of a file's members."""
    members = sorted((info.filename, info.CRC) for info in file.infolist())
    return hashlib.sha256(repr(members).encode()).hexdigest().encode()


def check_members(file: zipfile.ZipFile) -> None:
    """Raise ValueError for members that were not written together."""
    # files of earlier versions have no comment, those of others perhaps their own
    is_digest = len(file.comment) == DIGEST
    if is_digest and file.comment != digest_of_members(file):
        raise ValueError(expected("the members that were written", "others"))


def row_checksum(row: np.ndarray | bytes) -> int:
    """Return a checksum, 1 or more: 0 stands for a row that could not be made."""
    return zlib.crc32(row.data if isinstance(row, np.ndarray) else row) + 1


def read_sums(file: Path) -> np.ndarray:
    """Read the checksums beside a file of rows, one for each item it was made of."""
    return np.fromfile(file.with_suffix(".sums"), SUM)


def open_rows(file: Path, count: int, row: np.dtype, whole: bool = False) -> np.ndarray:
    """Map rows into memory once a sample or the whole has the right checksums."""
    if not file.is_file():
        advice = "see `python -m prslib prepare --help`"
        raise FileNotFoundError(expected(f"rows in {file}", "none", advice))
    advice = f"delete {file.with_suffix('')}.* and run `python -m prslib prepare` again"
    with readable(f"{count} rows in {file} as they were written", advice):
        sums = read_sums(file)
        sums = sums[sums > 0]
        # torch warns of arrays that are read-only
        array = np.memmap(file, row, "c")
        if not len(array) == len(sums) == count:
            raise ValueError(f"{len(array)} rows and {len(sums)} checksums")
        # others at each opening
        rows = np.random.default_rng().permutation(count)
        rows = rows if whole else rows[: SAMPLE // row.itemsize]
        for number in rows.tolist():
            if row_checksum(array[number]) != sums[number]:
                raise ValueError(f"row {number} has changed")
    return array


def fill_rows(
    file: Path,
    row: np.dtype,
    items: Sequence | np.ndarray,
    make: Callable[[Any], np.ndarray | None],
    workers: int | None,
) -> None:
    """Write the row that `make` gives for each item; after a kill the call goes on."""
    # Rows are appended to X.part, then their checksums to X.sums; rows without one are
    # cut off when work goes on. A row that failed has the checksum 0 and takes no
    # place. At last X.part becomes X.bin. Only this process, which has the lock,
    # writes.
    # loading labels needs neither
    from joblib import Parallel, cpu_count, delayed
    from tqdm import tqdm

    if file.is_file():
        return
    unfinished = file.with_suffix(".part")
    with (
        open(unfinished, "ab", buffering=0) as rows_stream,
        open(file.with_suffix(".sums"), "ab", buffering=0) as sums_stream,
        Parallel(workers or cpu_count(), **ending_with_us()) as pool,
    ):
        sums = read_sums(file)
        sums_stream.truncate(int(sums.nbytes))
        rows_stream.truncate(int(np.count_nonzero(sums)) * row.itemsize)
        starts = range(len(sums), len(items), CHUNK)
        for start in tqdm(starts, file.stem, unit=f"{CHUNK} images"):
            made = pool(map(delayed(make), items[start : start + CHUNK]))
            rows = [b"" if x is None else x.astype(row.base).tobytes() for x in made]
            rows_stream.write(b"".join(rows))
            sums = [row_checksum(content) if content else 0 for content in rows]
            sums_stream.write(np.array(sums, SUM).tobytes())
    os.replace(unfinished, file)


def read_image(root: Path, name: str) -> np.ndarray | None:
    """Decode a JPEG image as RGB, uint8 (256, 256, 3), whatever its shape; Sec. 6.1.

    None where it is missing or broken. JPEG has no checksums. A file that ends early is
    broken, but of 60 bytes set to zero Pillow notices 3 %, and a strict decoder half:
    check a download with ``unzip -t``, which compares all bytes.
    """
    # here, as loading features needs no pillow
    from PIL import Image

    size = RESOLUTION, RESOLUTION
    try:
        with Image.open(root / name, formats=["JPEG"]) as image:
            # both sides scaled on their own, as in the released code
            scaled = image.convert("RGB").resize(size, Image.Resampling.BICUBIC)
    except Exception:
        return None
    return np.asarray(scaled)
