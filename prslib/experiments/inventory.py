"""List what a store holds, check it, and remove runs: ``prslib runs``."""

import json
import os
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import fields
from pathlib import Path

import pandas as pd
from filelock import FileLock, Timeout
from pandas.api.typing import NaTType
from tqdm import tqdm

from prslib.checks import expected, one_line
from prslib.experiments.store import (
    CHECKPOINT,
    FAILURE,
    FORMAT,
    LOCK,
    RECORD,
    RESULT,
    RUNNING,
    Store,
    conditions_of,
    describe,
    different,
    different_members,
    read_record,
)
from prslib.models.weights import EMBEDDED, identity_of
from prslib.training.config import RunConfig

# an interrupted run goes on at its checkpoint when it is asked for again
STATES = ("stored", "running", "interrupted", "failed")
DAMAGED = "damaged: will be trained again"


def list_runs(store: Store) -> pd.DataFrame:
    """Return a row for every run of a store, finished or not."""
    folder = store.folder
    rows = []
    for path in sorted([*folder.glob(f"*{RESULT}"), *folder.glob(f"*{LOCK}")]):
        with suppress(FileNotFoundError):  # another process has just removed it
            state, what = _state(path)
            others = [path.with_suffix(kind) for kind in (CHECKPOINT, RECORD)]
            stats = [file.stat() for file in (path, *others) if file.exists()]
            row = {
                "run": path.stem,
                "state": state,
                "MB": sum(stat.st_size for stat in stats) / 1e6,
                "changed": _time(max(stat.st_mtime for stat in stats)),
                "seconds": float("nan"),
                "on": "",
                "what": what,
            }
            if state == "stored" and what != DAMAGED:
                record = read_record(path.with_suffix(RECORD))
                row["on"] = conditions_of(record)
                row["seconds"] = record["seconds"] if record else float("nan")
            rows.append(row)
    columns = ["run", "state", "MB", "changed", "seconds", "on", "what"]
    return pd.DataFrame(rows, columns=columns)


def _time(seconds: float) -> pd.Timestamp | NaTType:
    """Return when a file was changed; NaT for a time that no calendar has."""
    with suppress(ValueError, OverflowError, OSError):
        return pd.Timestamp.fromtimestamp(seconds).round("s")
    return pd.NaT


def _state(path: Path) -> tuple[str, str]:
    """Return the state of a run, and which it is, by its result or lock."""
    if path.suffix == RESULT:
        try:
            return "stored", one_line(describe(read_settings(path)))
        except FileNotFoundError:
            raise
        except Exception:  # whatever a damaged file leads to
            return "stored", DAMAGED
    what = one_line(_text(path.with_suffix(RUNNING)))
    try:
        with FileLock(path, timeout=0):
            pass
    except Timeout:
        return "running", what
    except OSError as error:  # such as a folder with this name
        return "interrupted", f"its lock cannot be read ({error})"
    failure = path.with_suffix(FAILURE)
    if failure.exists():
        lines = _text(failure).splitlines() or ["no error recorded"]
        return "failed", f"{what}: {one_line(lines[-1])}"
    return "interrupted", what


def _text(path: Path) -> str:
    """Return what a file says, as far as it can be read."""
    with suppress(OSError):
        return path.read_text("utf-8", errors="replace").strip()
    return "unknown run"


def read_settings(path: Path) -> dict:
    """Return the identity of the configuration that a result says it is of."""
    with zipfile.ZipFile(path) as file:
        return json.loads(file.read("config.json"))


def config_of(settings: dict) -> RunConfig:
    """Return the configuration with these settings, or raise ValueError."""
    named = {field.name for field in fields(RunConfig)}
    values = {name: value for name, value in settings.items() if name in named}
    for weights in EMBEDDED:  # are stored by their digest
        if identity_of(weights) == values.get("weights"):
            values["weights"] = weights
    config = RunConfig(**values)
    ours = json.loads(json.dumps(config.identity | FORMAT))
    if ours != settings:
        raise ValueError(different(ours, settings))
    return config


def check_folder(folder: str | os.PathLike, ours: Store) -> pd.DataFrame:
    """Check every result of a folder, such as a stranger's; return a row for each.

    A result is right if it is what its configuration says, this prslib makes the same
    configuration of it, and, where this store has the run, too, all of it is equal.
    """
    if not os.path.isdir(folder):  # Path("") is the working directory
        raise FileNotFoundError(expected("a folder of stored runs", str(folder)))
    theirs = Store(folder)
    rows = []
    paths = sorted(theirs.folder.glob(f"*{RESULT}"))
    for path in tqdm(paths, "checking", unit="run", disable=None):
        record = read_record(path.with_suffix(RECORD))
        row = {"run": path.stem, "on": conditions_of(record)}
        try:
            settings = read_settings(path)
            row["what"] = one_line(describe(settings))
            config = config_of(settings)
            if config.hash != path.stem:
                raise ValueError(expected(f"the name {config.hash}", path.stem))
            theirs.read(config)
            row["verdict"] = "right"
            if ours.load(config):
                names = different_members(ours.path(config), path)
                other = f"other {' and '.join(names)} than ours"
                row["verdict"] = other if names else "right, as ours"
        except Exception as error:  # whatever a file of others leads to
            row["verdict"] = f"refused: {type(error).__name__}: {one_line(error)}"
        rows.append(row)
    return pd.DataFrame(rows, columns=["run", "on", "what", "verdict"]).fillna("")


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
            if not path.is_dir():
                path.unlink(missing_ok=True)
    return chosen
