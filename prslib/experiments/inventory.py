"""List what a store holds, finished or not, and remove runs: ``prslib runs``."""

import json
import zipfile
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pandas as pd
from filelock import FileLock, Timeout

from prslib.checks import expected
from prslib.experiments.store import FAILURE, LOCK, RESULT, UNFINISHED, Store, describe

# an interrupted run goes on at its checkpoint when it is asked for again
STATES = ("stored", "running", "interrupted", "failed")


def list_runs(store: Store) -> pd.DataFrame:
    """Return a row for every run of a store, finished or not."""
    files = defaultdict(dict)
    for path in sorted(store.folder.glob("*")):
        if path.suffix in {RESULT, *UNFINISHED}:
            files[path.name.split(".")[0]][path.suffix] = path
    rows = []
    for name, paths in files.items():
        with suppress(FileNotFoundError):  # another process has just removed it
            stats = [path.stat() for path in paths.values()]
            size = sum(stat.st_size for stat in stats) / 1e6
            changed = pd.Timestamp.fromtimestamp(max(stat.st_mtime for stat in stats))
            state, what = _state(paths)
            rows.append((name, state, size, changed.round("s"), what))
    return pd.DataFrame(rows, columns=["run", "state", "MB", "changed", "what"])


def _state(paths: dict[str, Path]) -> tuple[str, str]:
    """Return the state of a run, and which it is."""
    if RESULT in paths:
        try:
            with zipfile.ZipFile(paths[RESULT]) as file:
                return "stored", describe(json.loads(file.read("config.json")))
        except (zipfile.BadZipFile, KeyError):
            return "stored", "damaged: will be trained again"
    what = ""
    if LOCK in paths:
        what = paths[LOCK].read_text()
        try:
            with FileLock(paths[LOCK], timeout=0):
                pass
        except Timeout:
            return "running", what
    if FAILURE in paths:
        lines = paths[FAILURE].read_text().strip().splitlines()
        return "failed", f"{lines[0]}: {lines[-1]}"
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
