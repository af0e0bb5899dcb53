"""What a store holds: every run that is stored, under way, interrupted or failed."""

import json
import re
import zipfile
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from filelock import FileLock, Timeout

from prslib.runs.attempt import in_words
from prslib.runs.files import PART
from prslib.store import CHECKPOINT, FAILURE, FORMAT, LOCK, RESULT, Store

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
