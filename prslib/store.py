"""Finished runs on disk, each under the hash of its configuration."""

import errno
import io
import json
import os
import shutil
import tempfile
import traceback
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
from filelock import FileLock

from prslib.config import RunConfig
from prslib.paths import cache_dir
from prslib.results import Run
from prslib.runs.files import PART, replacing

EPOCH = (1980, 1, 1, 0, 0, 0)  # the date of every member, so that equal runs are equal bytes
WHOLE = {"memory_size", "seed", "trained_tasks", "images", "samples"}  # columns of integers
FORMAT = 1  # of the files; raised when an older version could misread them
LEAST_FREE = 16 * 2**20  # bytes on the disk without which no run begins
SAVE_EVERY = 300.0  # seconds after which a run under way saves its state
POLL = 0.5  # seconds between two looks at a lock that another process holds

# a run's files, all named after its hash
RESULT, CHECKPOINT, FAILURE, LOCK = ".zip", ".checkpoint", ".failed.json", ".lock"


class NewerStoreError(RuntimeError):
    """A stored run that only a newer version of prslib can read; it is not touched."""


class Store:
    """A folder of finished runs; a run is one zip file that appears whole or not at all.

    A file holds ``config.json``, ``scores.csv`` and ``memory_labels.npy``, and as far as the
    configuration asks for them ``features.npy`` and ``gradient_variance.csv``: any tool can read
    it. Beside it, as long as it is not finished, are ``HASH.lock``, which the process that trains
    it holds, ``HASH.checkpoint``, where it goes on after an interruption, and
    ``HASH.failed.json``, with the error that ended it.

    Parameters
    ----------
    folder : path-like, optional
        Where the files are, by default ``runs/`` in the cache.

    Examples
    --------
    >>> Store("nowhere").load(RunConfig()) is None
    True
    """

    def __init__(self, folder: str | os.PathLike | None = None):
        self.folder = Path(folder) if folder is not None else cache_dir() / "runs"

    def path(self, config: RunConfig, kind: str = RESULT) -> Path:
        """Return the file in which a configuration's run is kept, or another of its files."""
        return self.folder / f"{config.hash}{kind}"

    def load(self, config: RunConfig) -> Run | None:
        """Return a stored run, or None where there is none that can be read.

        Parameters
        ----------
        config : RunConfig
            The run.

        Returns
        -------
        Run or None
            A file that cannot be read gives a warning and counts as absent: the run is trained
            again.

        Raises
        ------
        NewerStoreError
            If a newer version of prslib wrote the file; it stays as it is.
        """
        path = self.path(config)
        try:
            with zipfile.ZipFile(path) as file:
                _check_format(path, json.loads(file.read("config.json")))
                scores = _read_rows(file.read("scores.csv"))
                labels = _read_array(file.read("memory_labels.npy"))
                extras = {
                    name: read(file.read(f"{name}{ending}"))
                    for name, field, ending, read in EXTRAS
                    if field in config.identity
                }
        except FileNotFoundError:
            return None
        except NewerStoreError:
            raise
        except Exception as error:  # whatever a damaged file leads to, the run can start over
            warnings.warn(
                f"the stored run {path} cannot be read ({error}); it will be trained again",
                stacklevel=2,
            )
            return None
        return Run(config, scores, labels, **extras)

    def save(self, run: Run) -> Path:
        """Write a run atomically and return its file."""
        members = {
            "config.json": _json(run.config.identity | {"format": FORMAT}),
            "scores.csv": run.scores.to_csv(index=False),
            "memory_labels.npy": _array_bytes(run.memory_labels),
        }
        if run.features is not None:
            members["features.npy"] = _array_bytes(run.features)
        if run.gradient_variance is not None:
            members["gradient_variance.csv"] = run.gradient_variance.to_csv(index=False)
        with replacing(self.path(run.config)) as raw, zipfile.ZipFile(raw, "w") as file:
            for name, content in members.items():
                info = zipfile.ZipInfo(name, EPOCH)
                file.writestr(info, content, zipfile.ZIP_DEFLATED)
        return self.path(run.config)

    @contextmanager
    def lock(self, config: RunConfig, wait: bool = True) -> Iterator[None]:
        """Hold a run, so that no other process trains it meanwhile.

        Parameters
        ----------
        config : RunConfig
            The run.
        wait : bool
            Whether to wait while another process holds it.

        Yields
        ------
        None
            While the run is held. The operating system frees it when the process ends, in whatever
            way.

        Raises
        ------
        TimeoutError
            If another process holds it and ``wait`` is False.
        OSError
            If the folder cannot be written.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.path(config, LOCK)
        with FileLock(path, timeout=-1 if wait else 0, poll_interval=POLL):
            path.write_text(_json(config.identity))
            yield

    def check_writable(self) -> None:
        """Raise OSError, before a run begins, where its result could not be stored."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.folder):
                free = shutil.disk_usage(self.folder).free
            if free < LEAST_FREE:
                need = f"{LEAST_FREE >> 20} MiB free"
                raise OSError(errno.ENOSPC, f"expected {need}, got {free >> 20}")
        except OSError as error:
            raise OSError(
                error.errno,
                f"no run can be stored in {self.folder} ({error.strerror}); what is stored can be "
                "loaded, for more make room, or set PRSLIB_CACHE to a folder that can be written",
            ) from error

    def record_failure(self, config: RunConfig, error: Exception) -> None:
        """Keep the error that ended a run; where even that cannot be written, only the error."""
        record = {
            "config": config.identity,
            "error": f"{type(error).__name__}: {error}",
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            "traceback": "".join(traceback.format_exception(error)),
        }
        with suppress(OSError), replacing(self.path(config, FAILURE)) as file:
            file.write(_json(record).encode())

    def tidy(self, config: RunConfig, *kinds: str) -> None:
        """Remove files of a run, and what was left of interrupted writing; call under its lock."""
        for path in self.folder.glob(f"{config.hash}.*{PART}"):
            path.unlink(missing_ok=True)
        for kind in kinds:
            self.path(config, kind).unlink(missing_ok=True)


def _json(content: dict) -> str:
    return json.dumps(content, indent=2, sort_keys=True)


def _check_format(path: Path, config: dict) -> None:
    written = config.get("format", FORMAT)  # the first files did not say
    if written > FORMAT:
        raise NewerStoreError(
            f"the stored run {path} has format {written}, expected at most {FORMAT}: a newer "
            "version of prslib wrote it. Update prslib, or set PRSLIB_CACHE to another folder; the "
            "file stays as it is"
        )


def _read_rows(content: bytes) -> pd.DataFrame:
    rows = pd.read_csv(io.BytesIO(content), dtype=str, keep_default_na=False)
    for name in WHOLE & set(rows):
        rows[name] = rows[name].astype("int64")
    for name in ("rho", "value"):  # Python's float gives back every bit that repr wrote
        rows[name] = np.array([float(text or "nan") for text in rows[name]])
    return rows


def _read_array(content: bytes) -> np.ndarray:
    return np.load(io.BytesIO(content), allow_pickle=False)


def _array_bytes(array: np.ndarray) -> bytes:
    content = io.BytesIO()
    np.save(content, array, allow_pickle=False)
    return content.getvalue()


# what a run may leave on top: its attribute, the field that asks for it, its member's ending
EXTRAS = (
    ("features", "features_per_class", ".npy", _read_array),
    ("gradient_variance", "variance_points", ".csv", _read_rows),
)
