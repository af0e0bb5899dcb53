"""Check that this machine repeats the committed results."""

import subprocess
import tarfile
import tempfile
from io import BytesIO, StringIO
from pathlib import Path

import numpy as np
import pandas as pd
from llvmlite.binding import get_host_cpu_name

from prslib.experiments.store import Store
from prslib.experiments.sweep import run_all
from prslib.paths import figures_dir, known_notebooks, project_root
from prslib.report import articles, readme
from prslib.report.tables import final, scores_of
from prslib.report.topics import runs_of
from prslib.training import versions
from prslib.training.config import Run, RunConfig

# notebooks whose tables have a row a seed: every method, and every family of data sets
TRAINED = ("main_results", "architectures", "single_label")
EVERYWHERE = "PRS"  # the method that is trained on every data set
FIELDS = ("model", "epochs", "test_set", "frozen_stages")
KEYS = ("dataset", "method", "rho", "memory_size", "schedule", "seed", *FIELDS)
CELL = ("trained_tasks", "measure", "group", "metric")
SCORES = {"dataset", "method", "seed", "measure", "group", "metric", "value"}
LIMIT = 2.0  # points, root mean square: as far as other versions may move a run


def verify(profile: str) -> tuple[list[str], bool]:
    """Check tables, articles, runs and README; the last line sums up."""
    drawn = figures_dir(profile)
    committed = _committed(f"figures/{profile}", ".csv")
    texts = committed or {file.stem: file.read_text() for file in drawn.glob("*.csv")}
    tables = {name: _table(text) for name, text in texts.items()}
    other = _other_versions(committed.get("ledger_versions", ""))
    names = ", ".join(" ".join(row) for row in versions().itertuples(index=False))
    lines = [f"{names}; processor {get_host_cpu_name()}"]
    lines.append(f"committed with other versions: {', '.join(other) or 'none'}")
    faults = [] if committed else [f"no committed tables of profile {profile!r}"]
    for name, text in sorted(committed.items()):
        faults += file_faults(name, drawn / f"{name}.csv", text, "drawn", not other)
    if not other:
        faults += article_faults(profile)
    configs = chosen(profile)
    with tempfile.TemporaryDirectory() as folder:
        runs = run_all(configs, Store(folder))
    for run in runs:
        faults += run_faults(run, tables, LIMIT if other else 0.0)
    if profile == readme.REPORTED:
        names = [file.relative_to(project_root()) for file in readme.stale()]
        faults += [f"{name}: `prslib readme` changes it" for name in names]
    lines += [f"- {fault}" for fault in faults]
    checked = f"{len(runs)} runs trained anew and {len(committed)} tables"
    verdict = f"{len(faults)} faults" if faults else "all as committed"
    return [*lines, f"Of {checked}: {verdict}."], not faults


def file_faults(
    name: str, file: Path, text: str, made: str, same_bytes: bool = True
) -> list[str]:
    """Say if a committed file is not there, or has other bytes."""
    if not file.is_file():
        return [f"{name}: not {made} here"]
    if same_bytes and file.read_text(encoding="utf-8") != text:
        return [f"{name}: other bytes"]
    return []


def article_faults(profile: str) -> list[str]:
    """Say which articles of a profile differ from the committed ones."""
    faults = []
    for name, text in _committed("docs/report", ".md").items():
        if name in known_notebooks(profile) and articles.profile_of(name) == profile:
            file = articles.article_file(name)
            faults += file_faults(f"article {name}", file, text, "written")
    return faults


def chosen(profile: str) -> list[RunConfig]:
    """Return the runs to train: each method once, and one method on each data set."""
    first, methods = {}, set()
    for name in [name for name in TRAINED if name in known_notebooks(profile)]:
        for config in runs_of(profile, name):
            if config.method not in methods or config.method == EVERYWHERE:
                first.setdefault((config.dataset, config.method), config)
                methods.add(config.method)
    return list(first.values())


def run_faults(run: Run, tables: dict[str, pd.DataFrame], allowed: float) -> list[str]:
    """Say in which tables a run trained anew has other scores."""
    rows = _rows(run)
    label = f"{run.config.method} on {run.config.dataset}, trained anew"
    compared, faults = 0, []
    for name, table in tables.items():
        if not name.startswith(TRAINED) or not set(table) >= SCORES:
            continue
        keys = [key for key in (*KEYS, *CELL) if key in table and key in rows]
        both = rows.merge(table, on=keys, suffixes=("", "_then"))
        values = both["value"].map("{:.6g}".format).astype(float)  # as saved
        gaps = values - both["value_then"]
        compared += len(both)
        if len(both) and np.sqrt((gaps**2).mean()) > allowed:
            faults.append(f"{label}: up to {gaps.abs().max():.3g} points from {name}")
    return faults if compared else [f"{label}: no table has its scores"]


def _rows(run: Run) -> pd.DataFrame:
    """Return a run's scores as the tables have them: at the end, or after each task."""
    scores = scores_of([run], *FIELDS)
    rows = final(scores).assign(trained_tasks=scores["trained_tasks"].max())
    whole = scores[(scores["task"] == "all") & (scores["metric"] == "accuracy")]
    whole = whole.assign(measure="score", value=100 * whole["value"])
    rows = pd.concat([rows, whole], ignore_index=True)
    return rows.assign(seed=rows["seed"].astype(int))


def _table(text: str) -> pd.DataFrame:
    table = pd.read_csv(StringIO(text))
    if "schedule" in table:  # a column without one is read as numbers
        table["schedule"] = table["schedule"].astype(object).fillna("")
    return table


def _other_versions(text: str) -> list[str]:
    """Return the packages that a committed table names with other versions."""
    now = versions().to_csv(index=False).splitlines()
    return [row.replace(",", " ") for row in text.splitlines() if row not in now]


def _committed(folder: str, ending: str) -> dict[str, str]:
    """Return the text of a folder's files in the last commit; none without git."""
    command = ["git", "-C", project_root(), "archive", "HEAD", folder]
    try:
        packed = subprocess.run(command, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return {}
    with tarfile.open(fileobj=BytesIO(packed)) as files:
        texts = [file for file in files if file.name.endswith(ending)]
        return {Path(f.name).stem: files.extractfile(f).read().decode() for f in texts}
