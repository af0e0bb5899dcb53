"""Keep arrays on disk: a cache of what is drawn, and arrays with a row for each image of a set."""

from __future__ import annotations

import hashlib
import math
import os
import shutil
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import ModuleType

import numpy as np

from prslib.paths import cache_dir, ending_with_us, remove_parts, replacing

RESOLUTION = 256  # pixels of each side; the released code's size
PIXELS = (RESOLUTION, RESOLUTION, 3)
WAITING, DONE, MOVED = 0, 1, 2  # values of the status file, one for each row
AT_ONCE = 4096  # images that processes may be ahead of the disk, and so in memory


def cached_arrays(
    name: str,
    parts: Iterable[str],
    makers: tuple[ModuleType, ...],
    make: Callable[[], dict[str, np.ndarray]],
) -> dict[str, np.ndarray]:
    """Load the arrays of all parts from the cache, or make them and store them there."""
    path = cache_dir() / "datasets" / f"{name}-{_fingerprint(makers)}.npz"
    remove_parts(path)
    try:
        with open(path, "rb") as file, np.load(file) as stored:
            return {part: stored[part] for part in parts}
    except FileNotFoundError:
        pass
    except Exception as error:  # whatever a damaged file leads to
        warnings.warn(f"cannot read {path} ({error}); making it again", stacklevel=2)
    arrays = make()
    try:
        with replacing(path) as file:
            np.savez(file, **arrays)
    except OSError as error:
        warnings.warn(
            f"cannot write {path} ({error}); set PRSLIB_CACHE to a folder that can be written",
            stacklevel=2,
        )
    return arrays


def _fingerprint(makers: tuple[ModuleType, ...]) -> str:
    """Hash the source of what makes arrays: other code makes them again."""
    digest = hashlib.sha256(np.__version__.encode())
    for module in makers:
        digest.update(Path(module.__file__).read_bytes())
    return digest.hexdigest()[:16]


def read_image(file: str | os.PathLike) -> np.ndarray:
    """Decode an image as RGB, uint8 (256, 256, 3), whatever its shape; Sec. 6.1."""
    from PIL import Image  # here, as loading features needs no pillow

    size = (RESOLUTION, RESOLUTION)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd metadata do no harm to the pixels
            with Image.open(file) as image:
                # both sides scaled on their own, as in the released code
                return np.asarray(image.convert("RGB").resize(size, Image.Resampling.BICUBIC))
    except (SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise OSError(f"cannot decode {file}: {error}") from error


class ImageArray:
    """Fill ``images.npy`` in a folder, a row an image; an interrupted run is resumed."""

    # The unfinished array is written in place, as it has gigabytes. It has files beside it: the
    # status of every row, the fingerprint of the files asked for, and, once decoded rows are moved
    # together, which rows stay.

    def __init__(
        self, folder: Path, files: Sequence[str], stem="images", shape=PIXELS, dtype=np.uint8
    ):
        self.files = list(files)
        self.folder = folder
        self.shape, self.dtype = (len(self.files), *shape), np.dtype(dtype)
        self.finished = folder / f"{stem}.npy"
        self._array = folder / f"{stem}.part.npy"
        self._status = folder / f"{stem}.status.npy"
        self._kept = folder / f"{stem}.kept.npy"
        self._asked = folder / f"{stem}.files.txt"
        self._fingerprint = hashlib.sha256("\n".join(self.files).encode()).hexdigest()
        begun = self._asked.is_file()
        if begun and self._asked.read_text().strip() != self._fingerprint:
            raise ValueError(
                f"expected {self.folder} to be empty or to hold these {len(self.files)} images, "
                "got the work on another selection (other ids, another seed or other "
                "annotations); move it away or delete it"
            )
        if begun and self._array.is_file():
            check_rows(_open(self._array, "r"), self._array, self.shape[1:], self.dtype)
        if self.is_finished:
            self._remove_state()  # a process that was killed did not

    @property
    def is_finished(self) -> bool:
        """Tell whether the whole array is there; ValueError where it is damaged."""
        if not (self.finished.is_file() and self._asked.is_file()):
            return False
        check_rows(_open(self.finished, "r"), self.finished, self.shape[1:], self.dtype)
        return True

    @property
    def is_decoded(self) -> bool:
        """Tell whether decoding is over and rows are being moved together."""
        return self._kept.is_file()

    @property
    def waiting(self) -> np.ndarray:
        """Rows that are not filled yet, int64."""
        if not self._status.is_file():
            return np.arange(len(self.files))
        return np.flatnonzero(_open(self._status) == WAITING)

    def decode(self, root: Path, workers: int | None = None) -> dict[int, str]:
        """Decode the waiting rows; return the rows that failed, and why."""
        if self.is_decoded:
            return {}
        return self.fill([root / file for file in self.files], workers, "decoding", read_image)

    def fill(
        self, items: Sequence, workers: int | None, doing: str, read, compute=np.stack, at_once=1
    ) -> dict[int, str]:
        """Fill waiting rows with what is read or computed; return those that failed, and why."""
        # Worker processes send their rows here: only this one, which holds the lock, writes.
        from joblib import Parallel, cpu_count, delayed  # here, as loading labels needs neither
        from tqdm import tqdm

        self._reserve()
        waiting, problems = self.waiting, {}
        array, status = (_open(file, "r+") for file in (self._array, self._status))
        count = len(self.files)
        pool = Parallel(workers or cpu_count(), return_as="generator_unordered", **ending_with_us())
        with pool, tqdm(total=count, initial=count - len(waiting), desc=doing, unit="image") as bar:
            for start in range(0, len(waiting), AT_ONCE):
                part = waiting[start : start + AT_ONCE]
                for rows, values, failed in pool(
                    delayed(_rows)(rows, [items[i] for i in rows], read, compute)
                    for rows in np.split(part, range(at_once, len(part), at_once))
                ):
                    if len(values):
                        array[rows] = values
                        status[rows] = DONE
                    problems |= failed
                    bar.update(len(rows) + len(failed))
        return dict(sorted(problems.items()))

    def _reserve(self) -> None:
        """Take the disk space that the array needs, before any work."""
        if self._array.is_file() and self._status.is_file():
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        self._array.unlink(missing_ok=True)
        needed = np.prod(self.shape) * self.dtype.itemsize
        free = shutil.disk_usage(self.folder).free
        if free < needed:
            raise OSError(
                f"expected {needed / 1e9:.1f} GB free for {len(self.files)} images in "
                f"{self.folder}, got {free / 1e9:.1f} GB; free some, or set PRSLIB_DATA to a "
                "folder on a larger disk"
            )
        self._asked.write_text(self._fingerprint + "\n")
        try:
            np.lib.format.open_memmap(self._array, mode="w+", dtype=self.dtype, shape=self.shape)
            if hasattr(os, "posix_fallocate"):  # else a full disk would end in a bus error
                with open(self._array, "r+b") as file:
                    os.posix_fallocate(file.fileno(), 0, self._array.stat().st_size)
        except BaseException:
            self._array.unlink(missing_ok=True)
            raise
        _save(self._status, np.full(len(self.files), WAITING, dtype=np.uint8))

    def move_together(self) -> np.ndarray:
        """Move the decoded rows to the front; return which rows stay, bool (N,)."""
        # A row is moved and then marked, so that an interrupted move goes on where it stopped.
        if not self.is_decoded:
            _save(self._kept, _open(self._status) == DONE)
        kept = _open(self._kept)
        sources = np.flatnonzero(kept)
        array = _open(self._array, "r+")
        status = _open(self._status, "r+")
        for row in range(int((status == MOVED).sum()), len(sources)):
            if sources[row] != row:
                array[row] = array[sources[row]]
            status[row] = MOVED
        array.flush()
        return kept

    def finish(self) -> None:
        """Cut the array to the rows that stay and give it its name."""
        shape = (int(np.load(self._kept).sum()), *self.shape[1:])
        header = {"descr": "|u1", "fortran_order": False, "shape": shape}
        with open(self._array, "r+b") as file:
            np.lib.format.write_array_header_1_0(file, header)  # numpy pads it to one length
            file.truncate(file.tell() + math.prod(shape))
        self.close()

    def close(self) -> None:
        """Give the whole array its name, once it is on the disk."""
        with open(self._array, "r+b") as file:
            os.fsync(file.fileno())
        os.replace(self._array, self.finished)
        self._remove_state()

    def _remove_state(self) -> None:
        for file in (self._status, self._kept):
            file.unlink(missing_ok=True)


def _rows(
    rows: np.ndarray, items: Sequence, read: Callable, compute: Callable
) -> tuple[list[int], np.ndarray, dict[int, str]]:
    """Read items and compute their rows; return which those are, the values, and problems."""
    found, problems = {}, {}
    for row, item in zip(rows.tolist(), items, strict=True):
        try:
            found[row] = read(item)
        except FileNotFoundError:
            problems[row] = "missing"
        except OSError as error:
            problems[row] = f"broken: {error}"
    return list(found), compute(list(found.values())) if found else np.empty(0), problems


def _open(file: Path, mode: str | None = None) -> np.ndarray:
    """Load an array; ValueError where the file was cut off."""
    try:
        return np.load(file, mmap_mode=mode)
    except FileNotFoundError:
        raise
    except Exception as error:  # whatever a damaged header leads to
        raise ValueError(
            f"expected {file} as a whole array, but it cannot be read ({error}); delete "
            f"{file.parent / file.name.split('.')[0]}.* and run the command again, to begin anew"
        ) from error


def _save(path: Path, array: np.ndarray) -> None:
    with replacing(path) as file:
        np.save(file, array)


def open_images(folder: Path, count: int, released: bool) -> np.ndarray:
    """Map a prepared set's images into memory; they are read from disk as they are used."""
    name = folder.name
    file = folder / "images.npy"
    if not file.is_file():
        begun = (folder / "images.part.npy").is_file()
        ids = " --ids DIR" if released else ""
        raise FileNotFoundError(
            f"expected the images of {name} in {file}, got "
            + ("an unfinished array; go on with" if begun else "labels alone; run")
            + f" `python -m prslib prepare {name} --images DIR --annotations DIR{ids}` (what is "
            "decoded stays), or load the set with images=False"
        )
    array = _open(file, "r")
    check_rows(array, file, PIXELS, np.uint8)
    if len(array) != count:
        raise ValueError(
            f"expected {count} images in {file}, one a row of labels.npz, got "
            f"{len(array)}; delete {folder} and prepare the set again"
        )
    return array


def check_rows(array: np.ndarray, file: Path, shape: tuple[int, ...], dtype: type) -> None:
    """Raise ValueError unless an array has rows of a shape and type."""
    if array.dtype != dtype or array.shape[1:] != shape:
        raise ValueError(
            f"expected {file} to hold {np.dtype(dtype)} images of shape {shape}, got {array.dtype} "
            f"of {array.shape[1:]}; delete it and run `python -m prslib prepare` again"
        )


def require_an_image(root: Path, files: Sequence[str]) -> None:
    """Raise FileNotFoundError unless one or more of the files are in a folder."""
    if not any((root / file).is_file() for file in files):
        raise FileNotFoundError(
            f"expected images in {root}, got none of {len(files)}, the first tried is "
            f"{root / files[0]}; --images names the folder that such paths begin in"
        )
