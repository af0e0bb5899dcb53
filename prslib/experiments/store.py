"""Store finished runs under the hash of their configuration, and list what a store holds."""

import errno
import io
import json
import os
import re
import shutil
import tempfile
import traceback
import warnings
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from filelock import FileLock, Timeout

from prslib.datasets import GROUPS
from prslib.datasets.base import task_name, tasks_together
from prslib.paths import PART, cache_dir, remove_parts, replacing
from prslib.training.config import Run, RunConfig
from prslib.training.methods import METHODS

FORMAT = 1  # of the files; raised when an older version could misread them
EPOCH = (1980, 1, 1, 0, 0, 0)  # the date of every member, so that equal runs are equal bytes
INTEGERS = {"memory_size", "seed", "trained_tasks", "images", "samples"}  # columns
LEAST_FREE = 16 * 2**20  # bytes on the disk without which no run begins
POLL = 0.5  # seconds between two looks at a lock that another process holds

# a run's files, all named after its hash
RESULT, CHECKPOINT, FAILURE, LOCK = ".zip", ".checkpoint", ".failed.json", ".lock"
KINDS = "|".join(map(re.escape, (RESULT, CHECKPOINT, FAILURE, LOCK)))
# a run's file, or what an interrupted writing of it left
FILE_NAME = re.compile(rf"([0-9a-f]{{12}})({KINDS})(\.[0-9a-f]{{8}}{re.escape(PART)})?")

STATES = {
    "stored": "finished",
    "running": "a process is training it",
    "interrupted": "its process ended; asked for again, it goes on at its checkpoint",
    "failed": "it ended with an error; asked for again, it is tried again",
    "damaged": "its file cannot be read; asked for again, it is trained again",
    "newer": "a newer version of prslib wrote its file",
}


class NewerStoreError(RuntimeError):
    """A stored run that only a newer version of prslib can read; it is not touched."""


class Store:
    """A folder of finished runs; a run is one zip file that appears whole or not at all.

    A file holds ``config.json``, ``scores.csv`` and ``memory_labels.npy``. Where the configuration
    asks for them, it also holds ``features.npy`` and ``gradient_variance.csv``. Any tool can read
    it. An unfinished run has other files: ``HASH.lock``, held by the process that trains it,
    ``HASH.checkpoint``, where it goes on after an interruption, and ``HASH.failed.json``, with the
    error that ended it.

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
        """Return the file of a configuration's run, or another of its files."""
        return self.folder / f"{config.hash}{kind}"

    def load(self, config: RunConfig) -> Run | None:
        """Return a stored run, or None where there is none that can be read.

        A file that cannot be read gives a warning and counts as absent: the run is trained again.

        Raises
        ------
        NewerStoreError
            If a newer version of prslib wrote the file; it stays as it is.
        IsADirectoryError
            If there is a folder in the place of the file.
        """
        path = self.path(config)
        if path.is_dir():
            raise IsADirectoryError(
                f"expected the file of a run or nothing at {path}, got a folder; move it away"
            )
        try:
            with zipfile.ZipFile(path) as file:
                identity = json.loads(file.read("config.json"))
                if (written := identity.pop("format", FORMAT)) > FORMAT:  # the first said none
                    raise NewerStoreError(
                        f"the stored run {path} has format {written}, expected at most {FORMAT}: a "
                        "newer version of prslib wrote it. Update prslib, or set PRSLIB_CACHE to "
                        "another folder; the file stays as it is"
                    )
                if identity != json.loads(_json(config.identity)):
                    raise ValueError("its config.json is another run's")
                scores = _read_rows(file.read("scores.csv"))
                labels = _read_array(file.read("memory_labels.npy"))
                _check_content(config, scores, labels)
                extras = {
                    name: read(file.read(member))
                    for name, (field, member, read, _) in EXTRAS.items()
                    if field in config.identity
                }
                if "resampled" in extras:
                    extras["resampled"] = with_draws(scores, extras["resampled"])
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
            "scores.csv": _csv(run.scores),
            "memory_labels.npy": _array_bytes(run.memory_labels),
        }
        for name, (_, member, _, content) in EXTRAS.items():
            if (extra := getattr(run, name)) is not None:
                members[member] = content(extra)
        path = self.path(run.config)
        with self._advice(), replacing(path) as raw, zipfile.ZipFile(raw, "w") as file:
            for name, content in members.items():
                info = zipfile.ZipInfo(name, EPOCH)
                file.writestr(info, content, zipfile.ZIP_DEFLATED)
        return path

    @contextmanager
    def lock(self, config: RunConfig, wait: bool = True) -> Iterator[None]:
        """Hold a run, so that no other process trains it; without wait TimeoutError if one does."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.path(config, LOCK)
        with FileLock(path, timeout=-1 if wait else 0, poll_interval=POLL):
            path.write_text(_json(config.identity))
            yield

    def check_writable(self) -> None:
        """Raise OSError, before a run begins, where its result could not be stored."""
        with self._advice():
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.folder):
                free = shutil.disk_usage(self.folder).free
            if free < LEAST_FREE:
                need = f"{LEAST_FREE >> 20} MiB free"
                raise OSError(errno.ENOSPC, f"expected {need}, got {free >> 20}")

    @contextmanager
    def _advice(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise OSError(
                error.errno,
                f"no run can be stored in {self.folder} ({error.strerror or error}); what is "
                "stored can be loaded, for more make room, or set PRSLIB_CACHE to a folder that "
                "can be written",
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

    def remove_files(self, config: RunConfig, *kinds: str) -> None:
        """Remove files of a run, and the rest of interrupted writing; call under its lock."""
        remove_parts(self.folder / config.hash)
        for kind in kinds:
            self.path(config, kind).unlink(missing_ok=True)

    def settle(self) -> None:
        """Remove what killed processes left: all beside a result, parts, and locks of no run."""
        remove_parts(self.folder / ("[0-9a-f]" * 12))
        for name, paths in _files(self.folder, "*").items():
            kinds = {path.name.removeprefix(name) for path in paths}
            if not (kinds > {RESULT} or (LOCK in kinds and CHECKPOINT not in kinds)):
                continue
            # no run that is under way, whose lock is held; another user's file stays too
            with suppress(OSError), FileLock(self.folder / f"{name}{LOCK}", timeout=0):
                files = [self.folder / f"{name}{kind}" for kind in (CHECKPOINT, FAILURE, LOCK)]
                if _state(self.folder, name, held=False)[0] != "stored":
                    files = [] if files[0].exists() else files[2:]
                for path in files:
                    path.unlink(missing_ok=True)


def _json(content: dict) -> str:
    return json.dumps(content, indent=2, sort_keys=True)


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
    """Raise ValueError where scores and memory are not as a run of the configuration gives them."""
    settings, identity = config.resolved, config.identity
    size = identity.get("memory_size", 0)
    if labels.dtype != bool or len(labels) != size:
        raise ValueError(f"{labels.dtype} {labels.shape} as labels of {size} samples")
    schedule = identity.get("schedule", range(len(settings["schedule"])))
    groups = [*map(task_name, tasks_together(schedule, settings["tasks_at_once"]))]
    trained = range(len(groups) if METHODS[config.method].offline else 1, len(groups) + 1)
    found = Counter(zip(scores["trained_tasks"], scores["task"].tolist(), strict=True))
    cells = [(count, task) for count in trained for task in ("seen", *groups[:count])]
    expected = dict.fromkeys(cells, found[len(groups), "seen"])
    if settings["loss"] == "cross_entropy":
        expected |= {(count, "all"): 1 for count in trained}
    values = scores["value"].dropna()
    if dict(found) != expected or not values.between(0, 1).all():
        raise ValueError("it lacks scores, or has others")


def with_draws(scores: pd.DataFrame, draws: np.ndarray) -> pd.DataFrame:
    """Return `Run.resampled`, of the scores of class groups on the joined test sets."""
    rows = scores[(scores["task"] == "seen") & scores["group"].isin(["overall", *GROUPS])]
    rows = rows[["trained_tasks", "task", "group", "metric"]].reset_index(drop=True)
    return rows.assign(draws=list(draws))


def _read_array(content: bytes) -> np.ndarray:
    array = np.load(io.BytesIO(content), allow_pickle=False)
    if array.ndim != 2 or np.isinf(array).any():
        raise ValueError(f"{array.dtype} {array.shape}, expected two dimensions, all finite")
    return array


def _array_bytes(array: np.ndarray) -> bytes:
    content = io.BytesIO()
    np.save(content, array, allow_pickle=False)
    return content.getvalue()


def _csv(rows: pd.DataFrame) -> str:
    return rows.to_csv(index=False)


def _draws_bytes(resampled: pd.DataFrame) -> bytes:
    return _array_bytes(np.array(resampled["draws"].tolist(), np.float32))


EXTRAS = {  # optional results: the field that asks for one, its file, and how it is read, written
    "features": ("features_per_class", "features.npy", _read_array, _array_bytes),
    "resampled": ("test_resamples", "resampled.npy", _read_array, _draws_bytes),
    "gradient_variance": ("variance_points", "gradient_variance.csv", _read_rows, _csv),
}


def describe(identity: dict) -> str:
    """Return a `RunConfig.identity` in a few words, "PRS rho=0.1 on digits70seq, seed 2"."""
    rho = f" rho={identity['rho']:g}" if "rho" in identity else ""
    return f"{identity['method']}{rho} on {identity['dataset']}, seed {identity['seed']}"


class Entry(NamedTuple):
    """A run in a store, finished or not."""

    hash: str
    state: str  # a key of `STATES`
    run: str  # in a few words, "" where no file says
    size: int  # bytes of all its files
    changed: datetime  # when the last of them was written
    error: str  # what ended a failed run, else ""


def inventory(store: Store) -> list[Entry]:
    """List a store's runs in the order of `STATES`, the oldest first, once it is settled."""
    store.settle()
    entries = []
    for name, paths in _files(store.folder, "*").items():
        with suppress(FileNotFoundError):  # another process has just finished or removed it
            entries.append(_entry(store.folder, name, paths))
    order = list(STATES)
    return sorted(entries, key=lambda entry: (order.index(entry.state), entry.changed))


def _files(folder: Path, name: str) -> dict[str, list[Path]]:
    """Return the files of runs by hash; name is a run's hash, or "*" for those of all."""
    files = {}
    for path in folder.glob(f"{name}.*"):
        if (found := FILE_NAME.fullmatch(path.name)) and path.is_file():
            files.setdefault(found[1], []).append(path)
    return files


def _entry(folder: Path, name: str, paths: list[Path]) -> Entry:
    found = [path.stat() for path in paths]
    changed = datetime.fromtimestamp(max(one.st_mtime for one in found), UTC)
    state, identity, error = _state(folder, name, is_held(folder / f"{name}{LOCK}"))
    try:
        run = describe(identity or _read_json(folder / f"{name}{LOCK}"))
    except (KeyError, TypeError, ValueError):  # no identity, or that of another version
        run = ""
    return Entry(name, state, run, sum(one.st_size for one in found), changed, error)


def _state(folder: Path, name: str, held: bool) -> tuple[str, dict, str]:
    """Return a run's state, its identity ({} where no file says) and its error."""
    result, failure = (folder / f"{name}{kind}" for kind in (RESULT, FAILURE))
    if result.exists():
        try:
            with zipfile.ZipFile(result) as file:
                identity = json.loads(file.read("config.json"))
                newer = identity.get("format", FORMAT) > FORMAT
        except FileNotFoundError:
            raise
        except Exception:  # whatever a damaged file leads to
            return "damaged", {}, ""
        return ("newer" if newer else "stored"), identity, ""
    if held:
        return "running", {}, ""
    if failure.exists():
        record = _read_json(failure)
        return "failed", record.get("config", {}), str(record.get("error", ""))
    return "interrupted", {}, ""


def _read_json(path: Path) -> dict:
    """Return the content of a file beside a result, {} where it is not there or not readable."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def is_held(lock: Path) -> bool:
    """Return whether a process holds a lock; True also for another user's unreadable one."""
    if not lock.exists():
        return False
    try:
        with FileLock(lock, timeout=0):
            return False
    except (Timeout, PermissionError):
        return True
    except OSError:  # the file system is read-only: no one trains in it
        return False


def table(entries: Sequence[Entry]) -> str:
    """Return an inventory as text, a run a line, and a line with the totals."""
    counts = pd.Series([entry.state for entry in entries], dtype=object).value_counts()
    total = ", ".join(f"{counts[state]} {state}" for state in STATES if state in counts)
    total = f"{total or 'no runs'}, {in_bytes(sum(entry.size for entry in entries))}"
    if not entries:
        return total
    rows = [
        {
            "hash": entry.hash,
            "state": entry.state,
            "size": in_bytes(entry.size),
            "changed": entry.changed.astimezone().strftime("%Y-%m-%d %H:%M"),
            "run": f"{entry.run}: {entry.error}" if entry.error else entry.run,
        }
        for entry in entries
    ]
    aligned = {"run": lambda text: text.ljust(max(len(row["run"]) for row in rows))}
    lines = pd.DataFrame(rows).to_string(index=False, formatters=aligned, max_colwidth=None)
    return "\n".join([*(line.rstrip() for line in lines.splitlines()), "", total])


def in_bytes(size: float) -> str:
    """Return a number of bytes for people, "534 MB"."""
    units = ["B", "kB", "MB", "GB"]
    while size >= 1000 and len(units) > 1:
        size /= 1000
        units.pop(0)
    return f"{size:.0f} {units[0]}"


def select(entries: Sequence[Entry], wanted: Sequence[str]) -> list[Entry]:
    """Return the runs that hashes, their beginnings, states and "all" name; refuse running ones."""
    chosen = {}
    for word in wanted:
        if word == "all":
            found = [entry for entry in entries if entry.state != "running"]
        elif word in STATES:
            found = [entry for entry in entries if entry.state == word]
        else:
            found = [entry for entry in entries if entry.hash.startswith(word)]
            if len(found) != 1:
                raise ValueError(
                    f"expected a hash, a state ({', '.join(STATES)}) or all, got {word!r}, with "
                    f"which {len(found) or 'no'} hashes begin; `python -m prslib runs` lists them"
                )
        chosen |= {entry.hash: entry for entry in found}
    if held := [entry.hash for entry in chosen.values() if entry.state == "running"]:
        raise ValueError(f"{', '.join(held)} running; stop the process first")
    return list(chosen.values())


def remove(store: Store, entries: Sequence[Entry]) -> list[Entry]:
    """Remove all files of runs, and return those that were still in the state given."""
    removed = []
    for entry in entries:
        lock = store.folder / f"{entry.hash}{LOCK}"
        existed = lock.exists()
        if not _files(store.folder, entry.hash):
            continue
        with FileLock(lock, timeout=0):
            if _state(store.folder, entry.hash, held=False)[0] == entry.state:
                for path in _files(store.folder, entry.hash)[entry.hash]:
                    path.unlink()
                removed.append(entry)
            elif not existed:
                lock.unlink()
    return removed
