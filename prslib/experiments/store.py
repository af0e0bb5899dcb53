"""Finished runs on disk, each under the hash of its configuration."""

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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from filelock import FileLock, Timeout

from prslib.paths import PART, cache_dir, replacing
from prslib.training.config import Run, RunConfig

EPOCH = (1980, 1, 1, 0, 0, 0)  # the date of every member, so that equal runs are equal bytes
WHOLE = {"memory_size", "seed", "trained_tasks", "images", "samples"}  # columns of integers
FORMAT = 1  # of the files; raised when an older version could misread them
LEAST_FREE = 16 * 2**20  # bytes on the disk without which no run begins
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


def in_words(identity: dict) -> str:
    """Return what `RunConfig.identity` names in a few words."""
    rho = f" rho={identity['rho']:g}" if "rho" in identity else ""
    return f"{identity['method']}{rho} on {identity['dataset']}, seed {identity['seed']}"


STATES = {
    "stored": "finished",
    "running": "a process is training it",
    "interrupted": "its process ended; asked for again, it goes on at its checkpoint",
    "failed": "it ended with an error; asked for again, it is tried again",
    "damaged": "its file cannot be read; asked for again, it is trained again",
    "newer": "a newer version of prslib wrote its file",
}
KINDS = "|".join(map(re.escape, (RESULT, CHECKPOINT, FAILURE, LOCK)))
# a run's file, or what an interrupted writing of it left
NAME = re.compile(rf"([0-9a-f]{{12}})({KINDS})(\.[0-9a-f]{{8}}{re.escape(PART)})?")


class Kept(NamedTuple):
    """What a store holds of one run.

    Parameters
    ----------
    hash : str
        The run's.
    state : str
        A key of `STATES`.
    run : str
        The run in a few words, "" where no file says.
    size : int
        Bytes of all its files.
    changed : datetime
        When the last of them was written.
    error : str
        What ended a failed run, else "".
    """

    hash: str
    state: str
    run: str
    size: int
    changed: datetime
    error: str


def inventory(store: Store) -> list[Kept]:
    """Return what a store holds; our own.

    Parameters
    ----------
    store : Store
        The store; it is not changed.

    Returns
    -------
    list of Kept
        In the order of `STATES`, in each the oldest first. Files that no store has written do not
        count.

    Examples
    --------
    >>> inventory(Store("nowhere"))
    []
    """
    kept = []
    for name, paths in _files(store.folder, "*").items():
        try:
            kept.append(_look(store.folder, name, paths))
        except FileNotFoundError:  # it has just been finished or removed
            continue
    order = list(STATES)
    return sorted(kept, key=lambda one: (order.index(one.state), one.changed))


def _files(folder: Path, name: str) -> dict[str, list[Path]]:
    """Return the files of runs by hash; name is a run's hash, or "*" for those of all."""
    files = {}
    for path in folder.glob(f"{name}.*"):
        if (found := NAME.fullmatch(path.name)) and path.is_file():
            files.setdefault(found[1], []).append(path)
    return files


def _look(folder: Path, name: str, paths: list[Path]) -> Kept:
    found = [path.stat() for path in paths]
    changed = datetime.fromtimestamp(max(one.st_mtime for one in found), UTC)
    state, identity, error = _state(folder, name, is_held)
    identity = identity or _content(folder / f"{name}{LOCK}")
    return Kept(name, state, _words(identity), sum(one.st_size for one in found), changed, error)


def _state(folder: Path, name: str, held: Callable[[Path], bool]) -> tuple[str, dict, str]:
    result, failure, lock = (folder / f"{name}{kind}" for kind in (RESULT, FAILURE, LOCK))
    if result.exists():
        return *_read_result(result), ""
    if held(lock):
        return "running", {}, ""
    if failure.exists():
        record = _content(failure)
        return "failed", record.get("config", {}), str(record.get("error", ""))
    return "interrupted", {}, ""


def _read_result(path: Path) -> tuple[str, dict]:
    try:
        with zipfile.ZipFile(path) as file:
            identity = json.loads(file.read("config.json"))
            newer = identity.get("format", FORMAT) > FORMAT
    except FileNotFoundError:
        raise
    except Exception:  # whatever a damaged file leads to
        return "damaged", {}
    return ("newer" if newer else "stored"), identity


def _content(path: Path) -> dict:
    """Return what a file beside a result says; nothing where it is not there or not readable."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _words(identity: dict) -> str:
    try:
        return in_words(identity)
    except (KeyError, TypeError, ValueError):  # none, or that of another version
        return ""


def is_held(lock: Path) -> bool:
    """Return whether a process holds a run's lock.

    Parameters
    ----------
    lock : Path
        Its file, or where it would be.

    Returns
    -------
    bool
        True as well where another user's lock may not be looked at.
    """
    if not lock.exists():
        return False
    try:
        with FileLock(lock, timeout=0):
            return False
    except (Timeout, PermissionError):
        return True
    except OSError:  # the file system is read-only: no one trains in it
        return False


def table(kept: Sequence[Kept]) -> str:
    """Return an inventory as text, a run a line, and a line with the totals."""
    counts = pd.Series([one.state for one in kept], dtype=object).value_counts()
    total = ", ".join(f"{counts[state]} {state}" for state in STATES if state in counts)
    total = f"{total or 'no runs'}, {in_bytes(sum(one.size for one in kept))}"
    if not kept:
        return total
    rows = [
        {
            "hash": one.hash,
            "state": one.state,
            "size": in_bytes(one.size),
            "changed": one.changed.astimezone().strftime("%Y-%m-%d %H:%M"),
            "run": f"{one.run}: {one.error}" if one.error else one.run,
        }
        for one in kept
    ]
    aligned = {"run": lambda text: text.ljust(max(len(row["run"]) for row in rows))}
    lines = pd.DataFrame(rows).to_string(index=False, formatters=aligned, max_colwidth=None)
    return "\n".join([*(line.rstrip() for line in lines.splitlines()), "", total])


def in_bytes(size: float) -> str:
    """Return a number of bytes for people.

    Examples
    --------
    >>> in_bytes(512), in_bytes(10_000), in_bytes(534_000_000)
    ('512 B', '10 kB', '534 MB')
    """
    units = ["B", "kB", "MB", "GB"]
    while size >= 1000 and len(units) > 1:
        size /= 1000
        units.pop(0)
    return f"{size:.0f} {units[0]}"


def select(kept: Sequence[Kept], wanted: Sequence[str]) -> list[Kept]:
    """Return the runs that hashes, the beginnings of hashes, and states name.

    Parameters
    ----------
    kept : sequence of Kept
        What there is.
    wanted : sequence of str
        Each a hash or its beginning, a state, or "all" for every run that is not running.

    Returns
    -------
    list of Kept
        Each once.

    Raises
    ------
    ValueError
        If a word names no run, or the beginning of a hash several, or a run that is running.
    """
    chosen = {}
    for word in wanted:
        if word == "all":
            found = [one for one in kept if one.state != "running"]
        elif word in STATES:
            found = [one for one in kept if one.state == word]
        else:
            found = [one for one in kept if one.hash.startswith(word)]
            if len(found) != 1:
                raise ValueError(
                    f"expected a hash, a state ({', '.join(STATES)}) or all, got {word!r}, with "
                    f"which {len(found) or 'no'} hashes begin; `python -m prslib runs` lists them"
                )
        chosen |= {one.hash: one for one in found}
    held = [one.hash for one in chosen.values() if one.state == "running"]
    if held:
        raise ValueError(f"{', '.join(held)} running; stop the process first")
    return list(chosen.values())


def remove(store: Store, kept: Sequence[Kept]) -> list[Kept]:
    """Remove all files of runs that are still in the state in which they were seen.

    Parameters
    ----------
    store : Store
        Where they are.
    kept : sequence of Kept
        Which ones.

    Returns
    -------
    list of Kept
        Those that were removed. One that another process has finished, or removed, meanwhile is
        left as it is.

    Raises
    ------
    TimeoutError
        If a process has begun with one of them meanwhile.
    OSError
        If the folder cannot be written.
    """
    removed = []
    for one in kept:
        lock = store.folder / f"{one.hash}{LOCK}"
        begun = lock.exists()
        if not _files(store.folder, one.hash):
            continue
        with FileLock(lock, timeout=0):
            if _state(store.folder, one.hash, held=lambda _: False)[0] == one.state:
                for path in _files(store.folder, one.hash)[one.hash]:
                    path.unlink()
                removed.append(one)
            elif not begun:
                lock.unlink()
    return removed
