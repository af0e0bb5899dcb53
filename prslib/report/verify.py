"""Check that this machine repeats the committed results."""

import subprocess
import tarfile
import tempfile
from collections.abc import Sequence
from io import BytesIO, StringIO
from pathlib import Path

import numpy as np
import pandas as pd
from llvmlite.binding import get_host_cpu_name

from prslib.experiments.store import Store
from prslib.experiments.sweep import run_all
from prslib.paths import figures_dir, known_notebooks, project_root
from prslib.report import articles, readme
from prslib.report.claims import CLAIMS, Scores
from prslib.report.ledger import corrected
from prslib.report.tables import METRICS, final, scores_of
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
    """Check tables, runs, claims and README; the last line sums up."""
    here = {file.stem: file.read_text() for file in figures_dir(profile).glob("*.csv")}
    committed = _committed_tables(profile)
    other = _other_versions(committed.get("ledger_versions", ""))
    names = ", ".join(" ".join(row) for row in versions().itertuples(index=False))
    lines = [f"{names}; processor {get_host_cpu_name()}"]
    lines.append(f"committed with other versions: {', '.join(other) or 'none'}")
    faults = [] if committed else [f"no committed tables of profile {profile!r}"]
    faults += [f"{name}: not drawn here" for name in sorted(set(committed) - set(here))]
    if not other:
        both = sorted(set(committed) & set(here))
        faults += [f"{n}: other bytes" for n in both if here[n] != committed[n]]
        faults += article_faults(profile)
    configs = chosen(profile)
    with tempfile.TemporaryDirectory() as folder:
        runs = run_all(configs, Store(folder))
    tables = {name: _table(text) for name, text in (committed or here).items()}
    allowed = LIMIT if other else 0.0
    faults += [fault for run in runs for fault in run_faults(run, tables, allowed)]
    if "ledger_claims" in tables:
        faults += claim_faults(tables)
    if profile == readme.REPORTED:
        faults += [f"{name}: `prslib readme` changes it" for name in readme.stale()]
    lines += [f"- {fault}" for fault in faults]
    checked = f"{len(runs)} runs trained anew and {len(committed)} tables"
    verdict = f"{len(faults)} faults" if faults else "all as committed"
    return [*lines, f"Of {checked}: {verdict}."], not faults


def chosen(profile: str) -> list[RunConfig]:
    """Return the runs to train: each method once, and one method on each data set."""
    first, methods = {}, set()
    for name in [name for name in TRAINED if name in known_notebooks(profile)]:
        for config in runs_of(profile, name):
            new = config.method not in methods or config.method == EVERYWHERE
            if new and (config.dataset, config.method) not in first:
                first[config.dataset, config.method] = config
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
        gaps = _as_saved(both["value"]) - both["value_then"]
        compared += len(both)
        if len(both) and np.sqrt((gaps**2).mean()) > allowed:
            faults.append(f"{label}: up to {gaps.abs().max():.3g} points from {name}")
    return faults if compared else [f"{label}: no table has its scores"]


def claim_faults(tables: dict[str, pd.DataFrame]) -> list[str]:
    """Decide the claims again from the tables, and say which come out otherwise."""
    decided = tables["ledger_claims"]
    again = corrected(decided, decided["level"].iloc[0])
    faults = [
        f"claim {row.claim} on {row.dataset}: {row.verdict}, decided again {new}"
        for row, new in zip(decided.itertuples(), again, strict=True)
        if row.verdict != new
    ]
    for name in decided["dataset"].dropna().unique():
        if (table := tables.get(f"main_results_groups_{name}")) is None:
            continue
        scores = Scores(_observed(table))
        for row in decided[decided["dataset"] == name].itertuples():
            claim = CLAIMS[row.claim]
            try:
                cells, _ = scores.evaluate(
                    lambda s, claim=claim: claim.cells(s, METRICS)
                )
            except LookupError:  # about other runs than those of Table 1
                continue
            if not cells:  # about classes or orders, which Table 1 does not have
                continue
            means = [values[:, 0].mean() for values in cells.values()]
            effect = np.mean(means) if claim.over == "mean" else min(means)
            if abs(effect - row.effect) > 0.001:
                head = f"claim {row.claim} on {name}: {row.effect:.3f}"
                faults.append(f"{head}, from its scores {effect:.3f}")
    return faults


def _observed(table: pd.DataFrame) -> pd.DataFrame:
    """Return scores of Table 1's setting in the shape of observations."""
    usual = {
        "varied": "",
        "memory": 1.0,
        "power": "own",
        "architecture": "",
        "last": True,
    }
    usual |= {"trained_tasks": 0, "task": "seen"}
    return table[table["metric"].isin(METRICS)].assign(**usual)


def _rows(run: Run) -> pd.DataFrame:
    """Return a run's scores as the tables have them: at the end, or after each task."""
    scores = scores_of([run], *FIELDS)
    rows = final(scores).assign(trained_tasks=scores["trained_tasks"].max())
    whole = scores[(scores["task"] == "all") & (scores["metric"] == "accuracy")]
    whole = whole.assign(measure="score", value=100 * whole["value"])
    rows = pd.concat([rows, whole], ignore_index=True)
    return rows.assign(seed=rows["seed"].astype(int))


def _as_saved(values: Sequence[float]) -> np.ndarray:
    return np.array([float(f"{value:.6g}") for value in values])


def _table(text: str) -> pd.DataFrame:
    table = pd.read_csv(StringIO(text))
    if "schedule" in table:  # a column without one is read as numbers
        table["schedule"] = table["schedule"].astype(object).fillna("")
    return table


def _other_versions(text: str) -> list[str]:
    """Return the packages that a committed table names with other versions."""
    if not text:
        return []
    then = pd.read_csv(StringIO(text), index_col=0)["version"]
    now = dict(versions().itertuples(index=False))
    return [
        f"{name} {version}"
        for name, version in then.items()
        if now.get(name) != version
    ]


def article_faults(profile: str) -> list[str]:
    """Say which articles of a profile differ from the committed ones."""
    faults = []
    for name, text in _committed("docs/report", ".md").items():
        if name not in known_notebooks(profile) or articles.profile_of(name) != profile:
            continue
        file = articles.article_file(name)
        if not file.is_file():
            faults.append(f"article {name}: not written here")
        elif file.read_text(encoding="utf-8") != text:
            faults.append(f"article {name}: other bytes")
    return faults


def _committed_tables(profile: str) -> dict[str, str]:
    return _committed(f"figures/{profile}", ".csv")


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
