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


class Store:
    """A folder of finished runs; a run is one zip file that appears whole or not at all.

    A file holds ``config.json``, ``scores.csv`` and ``memory_labels.npy``: any tool can read it.

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
                scores = _read_scores(file.read("scores.csv"))
                labels = np.load(io.BytesIO(file.read("memory_labels.npy")), allow_pickle=False)
        except FileNotFoundError:
            return None
        except (zipfile.BadZipFile, zlib.error, KeyError, ValueError, EOFError, OSError) as error:
            warnings.warn(
                f"the stored run {path} cannot be read ({error}); it will be trained again",
                stacklevel=2,
            )
            return None
        return Run(config, scores, labels)

    def save(self, run: Run) -> Path:
        """Write a run atomically and return its file."""
        self.folder.mkdir(parents=True, exist_ok=True)
        labels = io.BytesIO()
        np.save(labels, run.memory_labels, allow_pickle=False)
        members = {
            "config.json": json.dumps(run.config.identity, indent=2, sort_keys=True),
            "scores.csv": run.scores.to_csv(index=False),
            "memory_labels.npy": labels.getvalue(),
        }
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


def _read_scores(content: bytes) -> pd.DataFrame:
    scores = pd.read_csv(io.BytesIO(content), dtype=str, keep_default_na=False)
    for name in ("memory_size", "seed", "trained_tasks"):
        scores[name] = scores[name].astype("int64")
    for name in ("rho", "value"):  # Python's float gives back every bit that repr wrote
        scores[name] = np.array([float(text or "nan") for text in scores[name]])
    return scores
