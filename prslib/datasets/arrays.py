"""Read and write npz files, read photographs, and read and write npy files by rows."""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

import numpy as np

from prslib.checks import expected, readable
from prslib.paths import check_embedded, replacing

# pixels per side of a prepared image, as in the released code
RESOLUTION = 256


def read_arrays(file: Path, *names: str) -> dict[str, np.ndarray]:
    """Read some or all arrays of an npz file; ValueError if it is damaged."""
    check_embedded(file)
    with (
        readable(f"whole arrays in {file}"),
        open(file, "rb") as stream,
        np.load(stream) as stored,
    ):
        return {name: stored[name] for name in names or stored.files}


def write_arrays(file: Path, **arrays: np.ndarray) -> None:
    """Write arrays as a compressed npz file."""
    with replacing(file) as stream:
        # a type checker fears that an array is called allow_pickle
        np.savez_compressed(stream, **arrays)  # ty: ignore[invalid-argument-type]


def write_images(
    stream: BinaryIO, images: Iterable[np.ndarray | None], count: int
) -> tuple[np.ndarray, str]:
    """Write images as one npy file; return which of them are None, bool (N,), and a digest."""
    digest = hashlib.sha256()
    lost = np.zeros(count, dtype=bool)
    write_header(stream, count)
    for row, image in enumerate(images):
        lost[row] = image is None
        if image is not None:
            stream.write(image.data)
            digest.update(image.data)
    stream.seek(0)
    write_header(stream, count - int(lost.sum()))
    return lost, digest.hexdigest()


def write_header(stream: BinaryIO, count: int) -> None:
    """Write the header of a file of images, which has the same length for any number."""
    shape = count, RESOLUTION, RESOLUTION, 3
    header = {"descr": "|u1", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, header)


def check_made(file: Path) -> None:
    """Raise an error if a file or folder that `prslib prepare` makes is missing."""
    if not file.exists():
        raise FileNotFoundError(expected(file, "none", "see prslib prepare --help"))


def open_rows(file: Path, count: int) -> np.ndarray:
    """Map an npy file of ``count`` rows into memory."""
    check_made(file)
    with readable(f"{count} rows in {file}"):
        # copy-on-write, because torch warns about read-only arrays
        rows = np.load(file, mmap_mode="c")
        if len(rows) != count:
            raise ValueError(f"{len(rows)} rows")
    return rows


def read_image(file: Path) -> np.ndarray | None:
    """Decode a JPEG image and scale it to uint8 RGB (256, 256, 3).

    Return None if it is missing or broken.
    """
    # imported here, because loading features does not need pillow
    from PIL import Image

    size = RESOLUTION, RESOLUTION
    try:
        with Image.open(file, formats=["JPEG"]) as image:
            # the aspect ratio is not kept, as in the released code
            scaled = image.convert("RGB").resize(size, Image.Resampling.BICUBIC)
    except Exception:
        return None
    return np.asarray(scaled)
