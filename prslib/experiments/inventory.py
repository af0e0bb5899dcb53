"""List what a store holds, finished or not, and remove runs: ``prslib runs``."""

import json
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pandas as pd
from filelock import FileLock, Timeout

from prslib.checks import expected
from prslib.experiments.store import CHECKPOINT, FAILURE, LOCK, RESULT, Store, describe

# an interrupted run goes on at its checkpoint when it is asked for again
STATES = ("stored", "running", "interrupted", "failed")


def list_runs(store: Store) -> pd.DataFrame:
    """Return a row for every run of a store, finished or not."""
    folder = store.folder
    rows = []
    for path in sorted([*folder.glob(f"*{RESULT}"), *folder.glob(f"*{LOCK}")]):
        with suppress(FileNotFoundError):  # another process has just removed it
            state, what = _state(path)
            checkpoint = path.with_suffix(CHECKPOINT)
            stats = [file.stat() for file in (path, checkpoint) if file.exists()]
            size = sum(stat.st_size for stat in stats) / 1e6
            changed = pd.Timestamp.fromtimestamp(max(stat.st_mtime for stat in stats))
            rows.append((path.stem, state, size, changed.round("s"), what))
    return pd.DataFrame(rows, columns=["run", "state", "MB", "changed", "what"])


def _state(path: Path) -> tuple[str, str]:
    """Return the state of a run, and which it is, by its result or lock."""
    if path.suffix == RESULT:
        try:
            with zipfile.ZipFile(path) as file:
                return "stored", describe(json.loads(file.read("config.json")))
        except (zipfile.BadZipFile, KeyError):
            return "stored", "damaged: will be trained again"
    what = path.read_text()
    failure = path.with_suffix(FAILURE)
    try:
        with FileLock(path, timeout=0):
            pass
    except Timeout:
        return "running", what
    if failure.exists():
        return "failed", f"{what}: {failure.read_text().strip().splitlines()[-1]}"
    return "interrupted", what


def remove(store: Store, names: Sequence[str]) -> pd.DataFrame:
    """Remove runs by name, state or "all", but running ones; return their rows."""
    runs = list_runs(store)
    for name in names:
        if name not in {*runs["run"], *STATES, "all"}:
            what = f"a run, a state ({', '.join(STATES)}) or all"
            raise ValueError(expected(what, name, "`prslib runs` lists them"))
    chosen = runs["run"].isin(names) | runs["state"].isin(names) | ("all" in names)
    chosen = runs[chosen & (runs["state"] != "running")]
    for name in chosen["run"]:
        for path in store.folder.glob(f"{name}.*"):
            path.unlink()
    return chosen
