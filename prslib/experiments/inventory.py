"""List what a store holds, finished or not, and remove runs: ``prslib runs``."""

import os
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock, Timeout

from prslib.checks import expected
from prslib.experiments.store import BESIDE, LOCK, RESULT, Store, describe

STATES = (
    "stored",
    "running",  # a process is training it
    "interrupted",  # its process ended; asked for again, it goes on at its checkpoint
    "failed",  # it ended with an error; asked for again, it is tried again
    "damaged",  # its file cannot be read; asked for again, it is trained again
    "newer",  # a newer version of prslib wrote its file
)


class Entry(NamedTuple):
    """A run in a store, finished or not."""

    hash: str
    state: str  # one of `STATES`
    run: str  # in a few words, "" where no file tells
    size: int  # bytes of all its files
    changed: datetime  # when the last of them was written
    error: str  # what ended a failed run, else ""


def list_runs(store: Store) -> list[Entry]:
    """List a store's runs in the order of `STATES`, the oldest first."""
    store.settle()
    entries = []
    for name, paths in store.files().items():
        with suppress(FileNotFoundError):  # another process has just removed it
            entries.append(_entry(store, name, [path.stat() for path in paths]))
    return sorted(entries, key=lambda one: (STATES.index(one.state), one.changed))


def _entry(store: Store, name: str, files: Sequence[os.stat_result]) -> Entry:
    changed = datetime.fromtimestamp(max(file.st_mtime for file in files), UTC)
    state, identity, error = store.state(name, is_locked(store.path(name, LOCK)))
    try:
        run = describe(identity)
    except (KeyError, TypeError, ValueError):  # no identity, or another version's
        run = ""
    return Entry(name, state, run, sum(f.st_size for f in files), changed, error)


def is_locked(lock: Path) -> bool:
    """Return whether a process trains a run; True also for another user's lock."""
    if not lock.exists():  # a look would make it
        return False
    try:
        with FileLock(lock, timeout=0):
            return False
    except (Timeout, PermissionError):
        return True
    except OSError:  # the file system is read-only: no one trains in it
        return False


def as_text(entries: Sequence[Entry]) -> str:
    """Return entries as text, a run a line, and a line with the totals."""
    counts = Counter(entry.state for entry in entries)
    total = ", ".join(f"{counts[state]} {state}" for state in STATES if counts[state])
    total = f"{total or 'no runs'}, {in_bytes(sum(entry.size for entry in entries))}"
    lines = [
        f"{entry.hash}  {entry.state:11}  {in_bytes(entry.size):>6}  "
        f"{entry.changed.astimezone():%Y-%m-%d %H:%M}  "
        f"{entry.run}{entry.error and ': '}{entry.error}".rstrip()
        for entry in entries
    ]
    return "\n".join([*lines, "", total] if lines else [total])


def in_bytes(size: float) -> str:
    """Return a number of bytes for people, "534 MB"."""
    units = ["B", "kB", "MB", "GB"]
    while size >= 1000 and len(units) > 1:
        size /= 1000
        units.pop(0)
    return f"{size:.0f} {units[0]}"


def select(entries: Sequence[Entry], names: Sequence[str]) -> list[Entry]:
    """Return the runs that hashes, their beginnings, states and "all" name."""
    chosen = {}
    for name in names:
        if name == "all":
            some = [entry for entry in entries if entry.state != "running"]
        elif name in STATES:
            some = [entry for entry in entries if entry.state == name]
        else:
            some = [entry for entry in entries if entry.hash.startswith(name)]
            if len(some) != 1:
                what = f"a hash, a state ({', '.join(STATES)}) or all"
                got = f"{name!r}, with which {len(some) or 'no'} hashes begin"
                advice = "`python -m prslib runs` lists them"
                raise ValueError(expected(what, got, advice))
        chosen |= {entry.hash: entry for entry in some}
    if running := [name for name, entry in chosen.items() if entry.state == "running"]:
        raise ValueError(f"{', '.join(running)} running; stop the process first")
    return list(chosen.values())


def remove(store: Store, entries: Sequence[Entry]) -> list[Entry]:
    """Remove all files of runs; return those that were still in the state listed."""
    removed = []
    for entry in entries:
        lock = store.path(entry.hash, LOCK)
        had_lock = lock.exists()
        if not store.files(entry.hash):
            continue
        with FileLock(lock, timeout=0):
            if store.state(entry.hash)[0] == entry.state:
                store.remove_files(entry.hash, RESULT, *BESIDE)
                removed.append(entry)
            elif not had_lock:
                lock.unlink()
    return removed
