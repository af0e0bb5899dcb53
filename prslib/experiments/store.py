"""Store finished runs under the hash of their configuration, and list them."""

import errno
import io
import json
import os
import shutil
import tempfile
import traceback
import warnings
import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
from filelock import FileLock

from prslib.checks import expected, whole
from prslib.datasets import GROUPS, load_dataset
from prslib.datasets.base import task_name, tasks_together
from prslib.paths import cache_dir, remove_parts, replacing
from prslib.training.config import Run, RunConfig
from prslib.training.methods import METHODS

FORMAT = 1  # of the files; raised when an older version could misread them
EPOCH = (1980, 1, 1, 0, 0, 0)  # the date of every member: equal runs are equal bytes
INTEGERS = {"memory_size", "seed", "trained_tasks", "images", "samples"}  # columns
LEAST_FREE = 16 * 2**20  # bytes on the disk without which no run begins

# a run's files, all named after its hash
RESULT, CHECKPOINT, FAILURE, LOCK = ".zip", ".checkpoint", ".failed.json", ".lock"
BESIDE = (CHECKPOINT, FAILURE, LOCK)
HASH = "[0-9a-f]" * 12


class NewerStoreError(RuntimeError):
    """A stored run that only a newer version of prslib can read; it is not touched."""


class Store:
    """A folder of finished runs, each a zip file that appears whole or not at all.

    A file holds ``config.json``, ``scores.csv`` and ``memory_labels.npy``. Where the
    configuration asks for them, it also holds ``features.npy`` and
    ``gradient_variance.csv``. Any tool can read it. An unfinished run has other files:
    ``HASH.lock``, locked by the process that trains it, ``HASH.checkpoint``, where it
    goes on after an interruption, and ``HASH.failed.json``, with the error that ended
    it.

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

    def path(self, run: RunConfig | str, kind: str = RESULT) -> Path:
        """Return the file of a run, named by configuration or hash, or another file."""
        return self.folder / f"{getattr(run, 'hash', run)}{kind}"

    def load(self, config: RunConfig) -> Run | None:
        """Return a stored run, or None where there is none that can be read.

        A file that cannot be read gives a warning and counts as absent: the run is
        trained again.

        Raises
        ------
        NewerStoreError
            If a newer version of prslib wrote the file; it stays as it is.
        IsADirectoryError
            If there is a folder in the place of the file.
        """
        path = self.path(config)
        if path.is_dir():
            what = f"the file of a run or nothing at {path}"
            raise IsADirectoryError(expected(what, "a folder", "move it away"))
        try:
            with zipfile.ZipFile(path) as file:
                identity, version = _read_identity(file)
                if version > FORMAT:
                    raise NewerStoreError(
                        f"the stored run {path} has format {version}, expected at most "
                        f"{FORMAT}: a newer version of prslib wrote it. Update prslib, "
                        "or set PRSLIB_CACHE to another folder; the file stays as it is"
                    )
                return _read_run(config, identity, file)
        except FileNotFoundError:
            return None
        except NewerStoreError:
            raise
        except Exception as error:  # whatever a damaged file leads to
            warnings.warn(
                f"the stored run {path} cannot be read ({error}); it will be trained "
                "again",
                stacklevel=2,
            )
            return None

    def save(self, run: Run) -> Path:
        """Write a run atomically and return its file."""
        members = {
            "config.json": _json(run.config.identity | {"format": FORMAT}),
            "scores.csv": _csv(run.scores),
            "memory_labels.npy": _array_bytes(run.memory_labels),
        }
        for name, (_, member, _, content) in EXTRAS.items():
            if (extra := getattr(run, name)) is not None:
                members[member] = content(extra)
        path = self.path(run.config)
        with (
            self._advice(),
            replacing(path) as raw,
            zipfile.ZipFile(raw, "w") as file,
        ):
            for name, content in members.items():
                info = zipfile.ZipInfo(name, EPOCH)
                file.writestr(info, content, zipfile.ZIP_DEFLATED)
        return path

    @contextmanager
    def lock(self, config: RunConfig) -> Iterator[None]:
        """Lock a run, so that no other process trains it; TimeoutError if one does."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.path(config, LOCK)
        with FileLock(path, timeout=0):
            path.write_text(_json(config.identity))
            yield

    def check_writable(self) -> None:
        """Raise OSError, before a run begins, where its result could not be stored."""
        with self._advice():
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.folder):
                free = shutil.disk_usage(self.folder).free
            if free < LEAST_FREE:
                text = expected(f"{LEAST_FREE >> 20} MiB free", free >> 20)
                raise OSError(errno.ENOSPC, text)

    @contextmanager
    def _advice(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise OSError(
                error.errno,
                f"no run can be stored in {self.folder} ({error.strerror or error}); "
                "what is stored can be loaded, for more make room, or set PRSLIB_CACHE "
                "to a folder that can be written",
            ) from error

    def record_failure(self, config: RunConfig, error: Exception) -> None:
        """Write down the error that ended a run, if the folder can be written."""
        record = {
            "config": config.identity,
            "error": f"{type(error).__name__}: {error}",
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            "traceback": "".join(traceback.format_exception(error)),
        }
        with suppress(OSError), replacing(self.path(config, FAILURE)) as file:
            file.write(_json(record).encode())

    def remove_files(self, run: RunConfig | str, *kinds: str) -> None:
        """Remove files of a run, and what a killed writer left; call under its lock."""
        remove_parts(self.path(run, ""))
        for kind in kinds:
            self.path(run, kind).unlink(missing_ok=True)

    def files(self, name: str = HASH) -> dict[str, list[Path]]:
        """Return the files of runs by hash, of all runs or of one."""
        files = {}
        for kind in (RESULT, *BESIDE):
            for path in self.folder.glob(f"{name}{kind}"):
                if path.is_file():
                    files.setdefault(path.name.removesuffix(kind), []).append(path)
        return files

    def settle(self) -> None:
        """Remove what killed processes left beside results, and locks of no run."""
        remove_parts(self.path(HASH, ""))
        for name, paths in self.files().items():
            kinds = {path.name.removeprefix(name) for path in paths}
            if kinds == {RESULT} or not kinds & {RESULT, LOCK}:
                continue
            # an OSError: the run is under way, or its lock another user's
            with suppress(OSError), FileLock(self.path(name, LOCK), timeout=0):
                if self.state(name)[0] == "stored":
                    self.remove_files(name, *BESIDE)
                elif CHECKPOINT not in kinds:
                    self.remove_files(name, LOCK)

    def state(self, name: str, locked: bool = False) -> tuple[str, dict, str]:
        """Return a run's state, its identity ({} where no file tells) and its error."""
        with suppress(FileNotFoundError):
            try:
                with zipfile.ZipFile(self.path(name)) as file:
                    identity, version = _read_identity(file)
                return ("newer" if version > FORMAT else "stored"), identity, ""
            except FileNotFoundError:
                raise
            except Exception:  # whatever a damaged file leads to
                return "damaged", {}, ""
        if locked:
            return "running", _read_json(self.path(name, LOCK)), ""
        if self.path(name, FAILURE).exists():
            record = _read_json(self.path(name, FAILURE))
            return "failed", record.get("config", {}), str(record.get("error", ""))
        return "interrupted", _read_json(self.path(name, LOCK)), ""


def _read_identity(file: zipfile.ZipFile) -> tuple[dict, int]:
    identity = json.loads(file.read("config.json"))
    version = identity.pop("format", FORMAT)  # the first version wrote none
    return identity, whole("format", version, least=1)


def _read_run(config: RunConfig, identity: dict, file: zipfile.ZipFile) -> Run:
    if identity != json.loads(_json(config.identity)):
        raise ValueError("its config.json is another run's")
    scores = _read_rows(file.read("scores.csv"))
    labels = _read_array(file.read("memory_labels.npy"))
    _check_content(config, scores, labels)
    extras = {
        name: read(file.read(member))
        for name, (field, member, read, _) in EXTRAS.items()
        if field in identity
    }
    if "resampled" in extras:
        extras["resampled"] = _with_draws(scores, extras["resampled"])
    return Run(config, scores, labels, **extras)


def _json(content: dict) -> str:
    return json.dumps(content, indent=2, sort_keys=True)


def _read_json(path: Path) -> dict:
    """Return the content of a file beside a result, {} where it cannot be read."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _read_rows(content: bytes) -> pd.DataFrame:
    rows = pd.read_csv(io.BytesIO(content), dtype=str, keep_default_na=False)
    for name in INTEGERS & set(rows):
        rows[name] = rows[name].astype("int64")
    for name in ("rho", "value"):  # Python's float gives back every bit that repr wrote
        rows[name] = rows[name].replace("", "nan").to_numpy(object).astype(float)
    if np.isinf(rows["value"]).any():
        raise ValueError("a value is infinite")
    return rows


def _check_content(config: RunConfig, scores: pd.DataFrame, labels: np.ndarray) -> None:
    """Raise ValueError where scores and memory are not what the configuration gives."""
    settings, identity = config.resolved, config.identity
    shape = (
        identity.get("memory_size", 0),
        _num_classes(config.dataset, identity["data"]),
    )
    if labels.dtype != bool or labels.shape != shape:
        raise ValueError(f"{labels.dtype} {labels.shape} as labels, not {shape}")
    for name in ("dataset", "method", "seed"):
        if (scores[name] != getattr(config, name)).any():
            raise ValueError(f"its scores have another {name}")
    schedule = identity.get("schedule", range(len(settings["schedule"])))
    groups = [*map(task_name, tasks_together(schedule, settings["tasks_at_once"]))]
    first = len(groups) if METHODS[config.method].offline else 1
    trained = range(first, len(groups) + 1)
    cells = Counter(zip(scores["trained_tasks"], scores["task"].tolist(), strict=True))
    rows = cells[len(groups), "seen"]
    tasks = {count: ("seen", *groups[:count]) for count in trained}
    all_cells = {(count, task): rows for count in trained for task in tasks[count]}
    if settings["loss"] == "cross_entropy":
        all_cells |= {(count, "all"): 1 for count in trained}
    if dict(cells) != all_cells or not scores["value"].dropna().between(0, 1).all():
        raise ValueError("it lacks scores, or has others")


@lru_cache
def _num_classes(dataset: str, _fingerprint: str) -> int:
    return load_dataset(dataset, images=False).num_classes


def _with_draws(scores: pd.DataFrame, draws: np.ndarray) -> pd.DataFrame:
    """Return `Run.resampled`, of the scores of class groups on the joined test sets."""
    groups = scores["group"].isin(["overall", *GROUPS])
    rows = scores[(scores["task"] == "seen") & groups]
    rows = rows[["trained_tasks", "task", "group", "metric"]].reset_index(drop=True)
    return rows.assign(draws=list(draws))


def _read_array(content: bytes) -> np.ndarray:
    array = np.load(io.BytesIO(content), allow_pickle=False)
    if array.ndim != 2 or np.isinf(array).any():
        raise ValueError(f"{array.dtype} {array.shape}, not two dimensions, all finite")
    return array


def _array_bytes(array: np.ndarray) -> bytes:
    content = io.BytesIO()
    np.save(content, array, allow_pickle=False)
    return content.getvalue()


def _csv(rows: pd.DataFrame) -> str:
    return rows.to_csv(index=False)


def _draws_bytes(resampled: pd.DataFrame) -> bytes:
    return _array_bytes(np.array(resampled["draws"].tolist(), np.float32))


EXTRAS = {  # the field that asks for an optional result, its file, reader and writer
    "features": ("features_per_class", "features.npy", _read_array, _array_bytes),
    "resampled": ("test_resamples", "resampled.npy", _read_array, _draws_bytes),
    "gradient_variance": (
        "variance_points",
        "gradient_variance.csv",
        _read_rows,
        _csv,
    ),
}


def describe(identity: dict) -> str:
    """Return a `RunConfig.identity` in a few words, "PRS rho=0.1 on digits, seed 2"."""
    rho = f" rho={identity['rho']:g}" if "rho" in identity else ""
    where = f"{identity['dataset']}, seed {identity['seed']}"
    return f"{identity['method']}{rho} on {where}"


def final_table(run: Run) -> pd.DataFrame:
    """Lay out a run's scores after its last task, in percent: a row a class group."""
    scores = run.scores
    last = scores["trained_tasks"] == scores["trained_tasks"].max()
    rows = scores[last & scores["metric"].isin(["mAP", "C-F1", "O-F1", "accuracy"])]
    rows = rows[rows["task"] == "seen"].dropna(subset="value")
    cells = rows.assign(value=100 * rows["value"])
    table = cells.pivot(index="group", columns="metric", values="value")
    table = table.reindex(
        [name for name in ("overall", *GROUPS) if name in table.index]
    )
    columns = ["mAP", "C-F1", "O-F1", "accuracy"]
    return table[[name for name in columns if name in table]].rename_axis(columns=None)
