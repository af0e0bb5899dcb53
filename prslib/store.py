"""Finished runs on disk, each under the hash of its configuration."""

import io
import json
import os
import tempfile
import warnings
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pandas as pd

from prslib.config import RunConfig
from prslib.experiment import Run
from prslib.paths import cache_dir

EPOCH = (1980, 1, 1, 0, 0, 0)  # the date of every member, so that equal runs are equal bytes
WHOLE = {"memory_size", "seed", "trained_tasks", "images", "samples"}  # columns of integers


class Store:
    """A folder of finished runs; a run is one zip file that appears whole or not at all.

    A file holds ``config.json``, ``scores.csv`` and ``memory_labels.npy``, and as far as the
    configuration asks for them ``features.npy`` and ``gradient_variance.csv``: any tool can read
    it.

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

    def path(self, config: RunConfig) -> Path:
        """Return the file in which a configuration's run is kept."""
        return self.folder / f"{config.hash}.zip"

    def load(self, config: RunConfig) -> Run | None:
        """Return a stored run, or None where there is none that can be read.

        A file that cannot be read gives a warning and counts as absent: the run is trained again.
        """
        path = self.path(config)
        try:
            with zipfile.ZipFile(path) as file:
                scores = _read_rows(file.read("scores.csv"))
                labels = _read_array(file.read("memory_labels.npy"))
                extras = {
                    name: read(file.read(f"{name}{ending}"))
                    for name, field, ending, read in EXTRAS
                    if field in config.identity
                }
        except FileNotFoundError:
            return None
        except (zipfile.BadZipFile, zlib.error, KeyError, ValueError, EOFError, OSError) as error:
            warnings.warn(
                f"the stored run {path} cannot be read ({error}); it will be trained again",
                stacklevel=2,
            )
            return None
        return Run(config, scores, labels, **extras)

    def save(self, run: Run) -> Path:
        """Write a run atomically and return its file."""
        self.folder.mkdir(parents=True, exist_ok=True)
        members = {
            "config.json": json.dumps(run.config.identity, indent=2, sort_keys=True),
            "scores.csv": run.scores.to_csv(index=False),
            "memory_labels.npy": _array_bytes(run.memory_labels),
        }
        if run.features is not None:
            members["features.npy"] = _array_bytes(run.features)
        if run.gradient_variance is not None:
            members["gradient_variance.csv"] = run.gradient_variance.to_csv(index=False)
        handle, temporary = tempfile.mkstemp(dir=self.folder, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as raw, zipfile.ZipFile(raw, "w") as file:
                for name, content in members.items():
                    info = zipfile.ZipInfo(name, EPOCH)
                    file.writestr(info, content, zipfile.ZIP_DEFLATED)
            os.replace(temporary, self.path(run.config))
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        return self.path(run.config)


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
