"""Store finished runs under the hash of their configuration."""

import io
import json
import os
import traceback
import warnings
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from filelock import FileLock

from prslib.paths import cache_dir, replacing
from prslib.training.config import Run, RunConfig

# columns of tables
TEXT = dict.fromkeys(("dataset", "method", "schedule", "task", "group", "metric"), str)
NUMBERS = dict.fromkeys(("rho", "value"), lambda text: float(text or "nan"))

# files of a run, named after its hash, and after its `RunConfig.training` until it ends
RESULT = ".zip"
CHECKPOINT = ".checkpoint"
FAILURE = ".failed"
LOCK = ".lock"


class Store:
    """A folder of finished runs, each a zip file that appears whole or not at all.

    A file holds ``config.json``, ``scores.csv`` and ``memory_labels.npy``. Where the
    configuration asks for them, it also holds ``features.npy``,
    ``gradient_variance.csv``, and ``resampled.npy`` with ``resampled_rows.npy``, the
    rows of the scores that it is of. Any tool can read it. An unfinished run has other
    files, where ID is its `RunConfig.training`: ``ID.lock``, locked by the process that
    trains it, ``ID.checkpoint``, where it goes on after an interruption, and
    ``ID.failed``, the error that ended it.

    Parameters
    ----------
    folder : path-like, optional
        Folder of the files, by default ``runs/`` in the cache.

    Examples
    --------
    >>> Store("nowhere").load(RunConfig()) is None
    True
    """

    def __init__(self, folder: str | os.PathLike | None = None):
        self.folder = Path(folder) if folder is not None else cache_dir() / "runs"

    def path(self, config: RunConfig, kind: str = RESULT) -> Path:
        """Return the file of a run, or a file that runs that train alike share."""
        name = config.hash if kind == RESULT else config.training
        return self.folder / f"{name}{kind}"

    def load(self, config: RunConfig) -> Run | None:
        """Return a stored run, or None where there is none that can be read.

        A damaged file gives a warning and counts as absent: the run is trained again.
        """
        path = self.path(config)
        try:
            with zipfile.ZipFile(path) as file:  # compares the checksums
                return _read_run(config, file)
        except FileNotFoundError:
            return None
        except Exception as error:  # whatever a damaged file leads to
            warnings.warn(
                f"the stored run {path} cannot be read ({error}); it will be trained "
                "again",
                stacklevel=2,
            )
            return None

    def save(self, run: Run) -> Path:
        """Write a run atomically and return its file."""
        settings = run.config.identity | {"format": 1}
        members = {
            "config.json": json.dumps(settings, indent=2, sort_keys=True),
            "scores.csv": run.scores.to_csv(index=False),
            "memory_labels.npy": _array_bytes(run.memory_labels),
        }
        if run.features is not None:
            members["features.npy"] = _array_bytes(run.features)
        if run.resampled is not None:
            members["resampled.npy"] = _array_bytes(run.resampled.to_numpy())
            rows = run.resampled.index.to_numpy()  # of the scores
            members["resampled_rows.npy"] = _array_bytes(rows)
        if run.gradient_variance is not None:
            variances = run.gradient_variance.to_csv(index=False)
            members["gradient_variance.csv"] = variances
        path = self.path(run.config)
        with replacing(path) as raw, zipfile.ZipFile(raw, "w") as file:
            for name, content in members.items():
                info = zipfile.ZipInfo(name)  # of 1980: equal runs are equal bytes
                file.writestr(info, content, zipfile.ZIP_DEFLATED)
        return path

    def lock(self, config: RunConfig) -> FileLock:
        """Lock runs that train alike; TimeoutError if another process trains them."""
        self.folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.path(config, LOCK), timeout=0)
        lock.acquire()
        self.path(config, LOCK).write_text(describe(config.identity))
        return lock

    def record_failure(self, config: RunConfig, error: Exception) -> None:
        """Write down the error that ended a run."""
        text = "".join(traceback.format_exception(error))
        with replacing(self.path(config, FAILURE)) as file:
            file.write(f"{describe(config.identity)}\n{text}".encode())

    def finish(self, configs: Sequence[RunConfig]) -> None:
        """Remove all but the results of runs that train alike, under the lock."""
        unfinished = [f"{config.hash}{RESULT}.*.part" for config in configs]
        for pattern in (f"{configs[0].training}.*", *unfinished):
            for path in self.folder.glob(pattern):
                path.unlink()


def _read_run(config: RunConfig, file: zipfile.ZipFile) -> Run:
    scores = _read_rows(file, "scores.csv")
    identity = config.identity
    extras = {}
    if identity["features_per_class"]:
        extras["features"] = _read_array(file, "features.npy")
    if "resampled.npy" in file.namelist():
        rows = _read_array(file, "resampled_rows.npy")
        extras["resampled"] = pd.DataFrame(_read_array(file, "resampled.npy"), rows)
    if identity.get("variance_points"):
        extras["gradient_variance"] = _read_rows(file, "gradient_variance.csv")
    return Run(config, scores, _read_array(file, "memory_labels.npy"), **extras)


def _read_rows(file: zipfile.ZipFile, name: str) -> pd.DataFrame:
    content = io.BytesIO(file.read(name))
    # a schedule may be empty; Python's float gives back every bit
    return pd.read_csv(content, dtype=TEXT, keep_default_na=False, converters=NUMBERS)


def _read_array(file: zipfile.ZipFile, name: str) -> np.ndarray:
    return np.load(io.BytesIO(file.read(name)), allow_pickle=False)


def _array_bytes(array: np.ndarray) -> bytes:
    content = io.BytesIO()
    np.save(content, array, allow_pickle=False)
    return content.getvalue()


def describe(identity: dict) -> str:
    """Return a `RunConfig.identity` in a few words, "PRS rho=0.1 on digits, seed 2"."""
    rho = f" rho={identity['rho']:g}" if "rho" in identity else ""
    where = f"{identity['dataset']}, seed {identity['seed']}"
    return f"{identity['method']}{rho} on {where}"
