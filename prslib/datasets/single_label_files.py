"""Read MNIST and SVHN from the files in which they are distributed, without their libraries.

A reader takes a folder and returns, for "train" and "test", the images (uint8, N x H x W x
channels; None where only labels are wanted) and the digit of each.
"""

from __future__ import annotations

import gzip
import zipfile
import zlib
from pathlib import Path

import numpy as np

Part = tuple[np.ndarray | None, np.ndarray]

MNIST_FILES = "mnist.npz (Keras), or MNIST/raw/train-images-idx3-ubyte and its like (torchvision)"
SVHN_FILES = "train_32x32.mat and test_32x32.mat (torchvision), there or in SVHN/"
BROKEN = (OSError, EOFError, ValueError, LookupError, TypeError, zipfile.BadZipFile, zlib.error)


def read_mnist(folder: Path, images: bool = True) -> dict[str, Part]:
    """Read MNIST, from Keras's file or torchvision's folder; LeCun et al. 1998.

    Parameters
    ----------
    folder : Path
        Holds ``mnist.npz`` or ``MNIST/raw/``, the four files there plain or ending in ``.gz``.
    images : bool
        False for the labels alone.

    Returns
    -------
    dict of str to (ndarray or None, ndarray of int64)
        Images (N, 28, 28, 1) and digits of "train" and "test".

    Raises
    ------
    FileNotFoundError
        If the folder holds neither.
    ValueError
        If a file is damaged.
    """
    if (folder / "mnist.npz").is_file():
        return _checked(_from_keras(folder / "mnist.npz", images), folder, (28, 28, 1))
    raw = folder / "MNIST" / "raw"
    parts = {}
    for part, prefix in (("train", "train"), ("test", "t10k")):
        paths = [
            _idx_file(raw, f"{prefix}-{what}", folder) for what in ("images-idx3", "labels-idx1")
        ]
        pixels = _read_idx(paths[0], 3)[..., None] if images else None
        parts[part] = pixels, _read_idx(paths[1], 1)
    return _checked(parts, folder, (28, 28, 1))


def _from_keras(path: Path, images: bool) -> dict[str, Part]:
    try:
        with open(path, "rb") as raw, np.load(raw, allow_pickle=False) as file:
            return {
                part: (file[f"x_{part}"][..., None] if images else None, file[f"y_{part}"])
                for part in ("train", "test")
            }
    except BROKEN as error:
        raise _damaged(path, error) from error


def _idx_file(raw: Path, name: str, folder: Path) -> Path:
    for path in (raw / f"{name}-ubyte", raw / f"{name}-ubyte.gz"):
        if path.is_file():
            return path
    raise _missing(f"MNIST/raw/{name}-ubyte", folder, "imbal-mnistseq", MNIST_FILES)


def _read_idx(path: Path, dimensions: int) -> np.ndarray:
    """Read the array of bytes in an idx file: magic number, sizes (big endian), bytes."""
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except BROKEN as error:
        raise _damaged(path, error) from error
    head = 4 * (dimensions + 1)
    numbers = np.frombuffer(content[:head], dtype=">i4").tolist() if len(content) >= head else []
    if numbers[:1] != [0x0800 + dimensions]:
        raise _damaged(path, f"no idx file of {dimensions} dimensions")
    shape = numbers[1:]
    if len(content) != head + np.prod(shape):
        raise _damaged(path, f"{len(content) - head} bytes for an array of shape {tuple(shape)}")
    return np.frombuffer(content, dtype=np.uint8, offset=head).reshape(shape)


def read_svhn(folder: Path, images: bool = True) -> dict[str, Part]:
    """Read SVHN's cropped digits, from torchvision's folder; Netzer et al. 2011.

    Parameters
    ----------
    folder : Path
        Holds ``train_32x32.mat`` and ``test_32x32.mat``, or a folder ``SVHN`` that does.
    images : bool
        False for the labels alone.

    Returns
    -------
    dict of str to (ndarray or None, ndarray of int64)
        Images (N, 32, 32, 3) and digits of "train" and "test".

    Raises
    ------
    FileNotFoundError
        If a file is not there.
    ValueError
        If a file is damaged.

    Notes
    -----
    The files call the digit 0 class 10; here it is class 0.
    """
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    parts = {}
    for part in ("train", "test"):
        name = f"{part}_32x32.mat"
        path = next((p for p in (folder / name, folder / "SVHN" / name) if p.is_file()), None)
        if path is None:
            raise _missing(name, folder, "imbal-svhnseq", SVHN_FILES)
        try:
            content = loadmat(path, variable_names=["X", "y"] if images else ["y"])
            pixels = np.ascontiguousarray(content["X"].transpose(3, 0, 1, 2)) if images else None
            parts[part] = pixels, content["y"].ravel() % 10
        except (*BROKEN, MatReadError) as error:
            raise _damaged(path, error) from error
    return _checked(parts, folder, (32, 32, 3))


def _checked(parts: dict[str, Part], folder: Path, shape: tuple[int, ...]) -> dict[str, Part]:
    """Return the parts with int64 digits once they fit together."""
    for part, (pixels, digits) in parts.items():
        if digits.ndim != 1 or not np.isin(digits, np.arange(10)).all():
            raise ValueError(
                f"expected digits 0 to 9 as labels of {part!r} in {folder}, got others"
            )
        if pixels is None:
            continue
        if pixels.dtype != np.uint8 or pixels.shape != (len(digits), *shape):
            raise ValueError(
                f"expected uint8 images of shape {(len(digits), *shape)} in {folder} for {part!r}, "
                f"one a label, got {pixels.dtype} {pixels.shape}; download the data set again"
            )
    return {part: (pixels, digits.astype(np.int64)) for part, (pixels, digits) in parts.items()}


def _missing(name: str, folder: Path, dataset: str, files: str) -> FileNotFoundError:
    return FileNotFoundError(
        f"{name} is missing in {folder}; put there {files}, or run "
        f"`python -m prslib prepare {dataset} --download`"
    )


def _damaged(path: Path, why: object) -> ValueError:
    return ValueError(
        f"{path} cannot be read ({why}): truncated or no such file; delete it and download it again"
    )
