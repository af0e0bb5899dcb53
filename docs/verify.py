"""Train a few runs anew; compare them, and what was drawn, with the commit.

`make verify` calls ``python docs/verify.py``. The runs are trained in a temporary
folder, for a minute or two. What is compared: their scores, the profile's CSV files and
its articles.
"""

import argparse
import subprocess
import sys
import tempfile
from io import StringIO

import pandas as pd
from llvmlite.binding import get_host_cpu_name

from prslib.checks import expected
from prslib.experiments.store import Store
from prslib.experiments.sweep import run_all
from prslib.paths import known_profiles, project_root
from prslib.report.tables import final, scores_of
from prslib.report.topics import runs_of
from prslib.training import versions
from prslib.training.config import Run, RunConfig

TOPIC = "main_results"  # its tables have a row for every method and seed
EVERYWHERE = "PRS"  # the method that is trained on every data set
CELL = ["dataset", "method", "seed", "group", "metric"]
LIMIT = 2.0  # points, root mean square: as far as other versions may move a run


def verify(profile: str) -> tuple[list[str], bool]:
    """Check tables, articles and runs; the last line sums up."""
    folder = f"figures/{profile}"
    now = versions().agg(" ".join, axis=1)
    then = committed(f"{folder}/ledger_versions.csv").agg(" ".join, axis=1)
    other = ", ".join(then[~then.isin(now)])
    lines = [f"{', '.join(now)}; processor {get_host_cpu_name()}"]
    lines.append(f"committed with other versions: {other or 'none'}")
    tables = git("ls-files", f"{folder}/*.csv").splitlines()
    faults = []
    if not other:
        changed = git("diff", "--name-only", "HEAD", "--", *tables, "docs/report")
        faults += [f"{file}: other bytes" for file in changed.splitlines()]
    with tempfile.TemporaryDirectory() as store:
        runs = run_all(chosen(profile), Store(store))
    for run in runs:
        table = committed(f"{folder}/{TOPIC}_groups_{run.config.dataset}.csv")
        faults += run_faults(run, table, LIMIT if other else 0.0)
    lines += [f"- {fault}" for fault in faults]
    checked = f"{len(runs)} runs trained anew and {len(tables)} tables"
    verdict = f"{len(faults)} faults" if faults else "all as committed"
    return [*lines, f"Of {checked}: {verdict}."], not faults


def git(*arguments: str) -> str:
    """Return what git prints about the checkout."""
    command = ["git", "-C", project_root(), *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        what = "a checkout with committed figures of the profile"
        raise RuntimeError(expected(what, done.stderr.strip()))
    return done.stdout


def committed(file: str) -> pd.DataFrame:
    """Read a table as it is in the last commit."""
    text = git("show", f"HEAD:{file}")
    return pd.read_csv(StringIO(text), dtype={"version": str})


def chosen(profile: str) -> list[RunConfig]:
    """Return the runs to train: each method once, and one method on each data set."""
    first = {}
    for config in runs_of(profile, TOPIC):
        first.setdefault((config.dataset, config.method), config)
    runs = list(first.values())
    home = runs[0].dataset
    return [run for run in runs if run.dataset == home or run.method == EVERYWHERE]


def run_faults(run: Run, table: pd.DataFrame, allowed: float) -> list[str]:
    """Say if a run trained anew has other scores than its rows in a table."""
    rows = final(scores_of([run]))
    rows = rows[rows["measure"] == "score"].astype({"seed": int})
    both = rows.merge(table, "left", on=CELL, suffixes=("", "_then"))
    values = both["value"].map("{:.6g}".format).astype(float)  # as saved
    gaps = values - both["value_then"]
    if (gaps**2).mean(skipna=False) ** 0.5 <= allowed:
        return []
    label = f"{run.config.method} on {run.config.dataset}, trained anew"
    return [f"{label}: up to {gaps.abs().max():.3g} points from its rows"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--profile", default="quick", choices=known_profiles())
    try:
        lines, all_well = verify(parser.parse_args().profile)
    except (OSError, RuntimeError, ValueError) as error:  # it says what to do
        sys.exit(str(error))
    print("\n".join(lines))
    sys.exit(not all_well)
