"""Store finished runs under the hash of their configuration."""

import io
import json
import os
import traceback
import warnings
import zipfile
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from filelock import FileLock

from prslib.checks import expected, finite, one_line
from prslib.datasets.arrays import check_members, digest_of_members
from prslib.paths import cache_dir, replacing
from prslib.training.config import Run, RunConfig
from prslib.training.validation import check_run

# columns of tables
TEXT: dict = dict.fromkeys(
    ("dataset", "method", "schedule", "task", "group", "metric"), str
)
NUMBERS: dict = dict.fromkeys(("rho", "value"), lambda text: float(text or "nan"))

# files of a run, named after its hash, and after `training_hash` until it ends
RESULT = ".zip"
RECORD = ".json"
CHECKPOINT = ".checkpoint"
FAILURE = ".failed"
LOCK = ".lock"
RUNNING = ".txt"  # which run the lock is for: Windows does not let others read a lock
FORMAT = {"format": 1}  # of the files, beside a configuration's identity
UNNAMED = ("rho", "format", "data", "protocol")  # by `describe`, or not in this way


class Store:
    """A folder of finished runs, each a zip file that appears whole or not at all.

    A file holds ``config.json``, ``scores.csv`` and ``memory_labels.npy``. Where the
    configuration asks for them, it also holds ``features.npy``,
    ``gradient_variance.csv``, and ``resampled.npy`` with ``resampled_rows.npy``, the
    rows of the scores that it is of. Any tool can read it; its comment is a digest of
    the members. Beside it, a JSON file says how the
    run was computed (`Run.record`); equal runs have equal zip files, however they were
    computed. An unfinished run has other files, where ID is its
    `RunConfig.training_hash`: ``ID.lock``, locked by the process that trains it,
    ``ID.txt``, which run that is, ``ID.checkpoint``, where it goes on after an
    interruption, and ``ID.failed``, the error that ended it.

    Parameters
    ----------
    folder : path-like, optional
        Folder of the files, by default ``runs/`` in the cache.

    Raises
    ------
    ValueError
        If the folder is an empty text, which is the working directory to the system.

    Examples
    --------
    >>> Store("nowhere").load(RunConfig()) is None
    True
    """

    def __init__(self, folder: str | os.PathLike | None = None):
        if folder == "":
            raise ValueError(expected("the folder of a store", "an empty text"))
        self.folder = Path(folder) if folder is not None else cache_dir() / "runs"

    def path(self, config: RunConfig, kind: str = RESULT) -> Path:
        """Return the file of a run, or a file of all runs that share its training."""
        is_result = kind in (RESULT, RECORD)
        name = config.hash if is_result else config.training_hash
        return self.folder / f"{name}{kind}"

    def load(self, config: RunConfig) -> Run | None:
        """Return a stored run, or None where there is none that can be read.

        A file that is damaged, or not of this configuration, gives a warning and counts
        as absent: the run is trained again.
        """
        try:
            return self.read(config)
        except FileNotFoundError:
            return None
        except Exception as error:  # whatever a damaged file leads to
            warnings.warn(
                f"the stored run {self.path(config)} cannot be read "
                f"({one_line(error)}); it will be trained again",
                stacklevel=2,
            )
            return None

    def read(self, config: RunConfig) -> Run:
        """Return a stored run; ValueError where it is not what its name says."""
        with zipfile.ZipFile(self.path(config)) as file:  # compares the checksums
            check_members(file)
            stored = json.loads(file.read("config.json"))
            run = _read_run(config, file)
        settings = json.loads(json.dumps(config.identity | FORMAT))
        if stored != settings:
            raise ValueError(different(settings, stored))
        check_run(run)
        return replace(run, record=self.record(config))

    def record(self, config: RunConfig) -> dict | None:
        """Return how a stored run was computed; None where that is not known."""
        return read_record(self.path(config, RECORD))

    def save(self, run: Run) -> Path:
        """Write a run atomically and return its file.

        Raises
        ------
        ValueError
            If the run is not what its configuration says.
        """
        check_run(run)
        settings = run.config.identity | FORMAT
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
        # the record first: a result never waits for it
        record = self.path(run.config, RECORD)
        if run.record is None:
            record.unlink(missing_ok=True)
        else:
            with replacing(record) as raw:
                raw.write(json.dumps(run.record, indent=2).encode())
        path = self.path(run.config)
        with replacing(path) as raw, zipfile.ZipFile(raw, "w") as file:
            for name, content in members.items():
                info = zipfile.ZipInfo(name)  # of 1980: equal runs are equal bytes
                file.writestr(info, content, zipfile.ZIP_DEFLATED)
            file.comment = digest_of_members(file)
        return path

    def lock(self, config: RunConfig) -> FileLock:
        """Lock runs that share a training; TimeoutError if another process trains them."""
        self.folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.path(config, LOCK), timeout=0)
        lock.acquire()
        self.path(config, RUNNING).write_text(describe(config.identity))
        return lock

    def record_failure(self, config: RunConfig, error: Exception) -> None:
        """Write down the error that ended a run."""
        text = "".join(traceback.format_exception(error))
        with replacing(self.path(config, FAILURE)) as file:
            file.write(f"{describe(config.identity)}\n{text}".encode())

    def finish(self, configs: Sequence[RunConfig]) -> None:
        """Remove all but the results of runs that share a training, under the lock."""
        unfinished = [f"{config.hash}.*.part" for config in configs]
        for pattern in (f"{configs[0].training_hash}.*", *unfinished):
            for path in self.folder.glob(pattern):
                with suppress(
                    PermissionError
                ):  # Windows removes the lock at its release
                    path.unlink()


def different_members(path: Path, other: Path) -> list[str]:
    """Return the members that differ between two results, by name: "scores"."""
    with zipfile.ZipFile(path) as file, zipfile.ZipFile(other) as second:
        ours, theirs = [
            {(info.filename, info.CRC) for info in each.infolist()}
            for each in (file, second)
        ]
    return sorted({Path(name).stem for name, _ in ours ^ theirs})


def _read_run(config: RunConfig, file: zipfile.ZipFile) -> Run:
    """Return what a file holds."""
    members = file.namelist()
    scores = _read_rows(file, "scores.csv")
    measured: dict[str, Any] = {}
    if "features.npy" in members:
        measured["features"] = _read_array(file, "features.npy")
    if "resampled.npy" in members:
        rows = _read_array(file, "resampled_rows.npy")
        measured["resampled"] = pd.DataFrame(_read_array(file, "resampled.npy"), rows)
    if "gradient_variance.csv" in members:
        measured["gradient_variance"] = _read_rows(file, "gradient_variance.csv")
    return Run(config, scores, _read_array(file, "memory_labels.npy"), **measured)


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


def read_record(path: Path) -> dict | None:
    """Return how a run was computed; None where no file says it."""
    try:
        record = json.loads(path.read_text())
        for name in ("steps", "seconds"):
            finite(name, record[name], least=0)
        conditions_of(record)
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return record


def conditions_of(record: dict | None) -> str:
    """Return on what a run was computed: "cpu (x86_64), torch 2.11.0, numpy 2.3.1"."""
    if record is None:
        return "what is not recorded"
    record = {name: one_line(value) for name, value in record.items()}
    text = f"{record['device']} ({record['card']})"
    text += f", torch {record['torch']}, numpy {record['numpy']}"
    if "cudnn" in record:
        text += f", cuDNN {record['cudnn']}"
    return f"{text}, TF32" if record.get("tf32") == "True" else text


def mixture(conditions: Iterable[str]) -> str:
    """Name the conditions (`conditions_of`) of runs where there are several; else ""."""
    counts = Counter(conditions).most_common()
    if len(counts) < 2:
        return ""
    ways = [f"{count} on {text}" for text, count in counts]
    return f"runs computed in {len(ways)} ways: {'; '.join(ways)}"


def different(settings: dict, stored: dict) -> str:
    """Return the text of an error: which settings are not those of a configuration."""
    if not isinstance(stored, dict):
        return expected("settings", repr(stored))
    names = sorted(
        name
        for name in settings.keys() | stored.keys()
        if settings.get(name) != stored.get(name)
    )
    ours = {name: settings.get(name) for name in names}
    theirs = {name: stored.get(name) for name in names}
    return expected(f"settings {one_line(ours)}", one_line(theirs))


def describe(identity: dict) -> str:
    """Return a `RunConfig.identity` in a few words, "PRS rho=0.1 on digits, seed 2".

    Settings that are not the usual ones of the data set and the method are named.
    """
    head = [identity["method"]]
    if "rho" in identity:
        head.append(f"rho={identity['rho']:g}")
    with suppress(ValueError, TypeError, OSError):  # of a data set that is not here
        usual = RunConfig(identity["dataset"], identity["method"], identity["seed"])
        usual = json.loads(json.dumps(usual.identity))
        for name, value in json.loads(json.dumps(identity)).items():
            if name not in UNNAMED and usual.get(name) != value:
                head.append(f"{name}={_short(value)}")
    return f"{' '.join(head)} on {identity['dataset']}, seed {identity['seed']}"


def _short(value: object) -> str:
    """Return a setting as text without spaces."""
    if isinstance(value, list):
        return ",".join(map(str, value))
    if isinstance(value, dict):
        return ",".join(f"{name}:{each}" for name, each in value.items())
    return str(value)[:19]  # of a digest
