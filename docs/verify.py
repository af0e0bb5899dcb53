"""Compare the committed tables of a profile with runs that are trained anew.

`make verify` calls ``python docs/verify.py``. It trains a few runs in a temporary folder,
for a minute or two, and compares their scores with their rows. `make verify LONG=1` also
draws every table of the profile again, into a temporary folder, from the stored runs and
those that it trains because they miss, and compares all bytes.
"""

import argparse
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, cpu_count, delayed
from tqdm import tqdm

from prslib.checks import expected
from prslib.paths import cache_dir, known_profiles, project_root
from prslib.report.asked import Asked
from prslib.report.tables import final, scores_of
from prslib.report.topics import runs_of
from prslib.rounding import versions
from prslib.train import Run, run

TOPIC = "main_results"  # its tables have a row for every method and seed
EVERYWHERE = "PRS"  # the method that is trained on every data set
CELL = ["dataset", "method", "seed", "group", "metric"]
LIMIT = 2.0  # points, root mean square: as far as another torch may move a run
CLOSE = 1e-3  # of a number, or of 1: as far as another numpy or pandas may move it
ROUNDED = 0.1  # a number in a sentence, which has one decimal
NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?")
VERSIONS = "ledger_versions.csv"


def verify(profile: str, long: bool = False) -> tuple[list[str], bool]:
    """Check runs, and in the long form all tables; the last line sums up."""
    folder = f"figures/{profile}"
    now = versions().agg(" ".join, axis=1)
    then = committed(f"{folder}/{VERSIONS}").agg(" ".join, axis=1)
    other = then[~then.isin(now)].tolist()
    lines = [f"{', '.join(now)}; {platform.machine()}"]
    lines.append(f"committed with other versions: {', '.join(other) or 'none'}")
    tables = git("ls-files", f"{folder}/*.csv").splitlines()
    runs = train_anew(chosen(profile))
    faults = []
    for each in runs:
        table = committed(f"{folder}/{TOPIC}_groups_{each.config.dataset}.csv")
        faults += run_faults(each, table, LIMIT if other else 0.0)
    checked = f"{len(runs)} runs trained anew"
    if long:
        with tempfile.TemporaryDirectory() as drawn:
            faults += draw_again(profile, Path(drawn))
            faults += tables_faults(tables, Path(drawn) / "figures" / profile, other)
        checked += f" and {len(tables)} tables drawn again"
    else:
        lines.append(
            f"The {len(tables)} tables were NOT drawn again: only the rows of these runs "
            "were compared; `make verify LONG=1` draws all."
        )
    lines += [f"- {fault}" for fault in faults]
    verdict = f"{len(faults)} faults" if faults else "all as committed"
    return [*lines, f"Of {checked}: {verdict}."], not faults


def git(*arguments: str) -> str:
    """Return what git prints about the checkout."""
    command = ["git", "-C", project_root(), *arguments]
    done = subprocess.run(command, capture_output=True)
    if done.returncode:
        what = "a checkout with committed figures of the profile"
        raise RuntimeError(expected(what, done.stderr.decode().strip()))
    return done.stdout.decode()


def committed(file: str) -> pd.DataFrame:
    """Read a table as it is in the last commit."""
    return read(git("show", f"HEAD:{file}"))


def read(text: str) -> pd.DataFrame:
    """Read a table, with versions as text."""
    return pd.read_csv(StringIO(text), dtype={"version": str})


def chosen(profile: str) -> list[Asked]:
    """Return the runs to train: each method once, and one method on each data set."""
    first = {}
    for config in runs_of(profile, TOPIC):
        first.setdefault((config.dataset, config.method), config)
    runs = list(first.values())
    home = runs[0].dataset
    return [run for run in runs if run.dataset == home or run.method == EVERYWHERE]


def train_anew(configs: Sequence[Asked]) -> list[Run]:
    """Train runs, stored or not, in new processes: this one has loaded numpy before."""
    pool = Parallel(max(cpu_count(), 2), return_as="generator")
    trained = pool(map(delayed(run), configs))
    return list(tqdm(trained, total=len(configs), desc="training", unit="run"))


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


def draw_again(profile: str, folder: Path) -> list[str]:
    """Draw a profile into ``figures`` of a folder, and say if a notebook failed.

    The executed notebooks stay apart from those of `make figures`; all else of the cache,
    such as the runs, is the usual one.
    """
    cache = folder / "cache"
    cache.mkdir()
    (cache_dir() / "runs").mkdir(parents=True, exist_ok=True)
    for entry in cache_dir().iterdir():
        if entry.name != "executed":
            (cache / entry.name).symlink_to(entry)
    own = {"PRSLIB_CACHE": str(cache), "PRSLIB_FIGURES": str(folder / "figures")}
    command = [sys.executable, "-m", "prslib", "figures", "--profile", profile]
    done = subprocess.run(command, cwd=project_root(), env=os.environ | own)
    return ["a notebook failed, see above"] if done.returncode else []


def tables_faults(tables: list[str], drawn: Path, other: list[str]) -> list[str]:
    """Say which committed tables differ from those that were drawn again.

    With the committed versions all bytes are compared; with others, numbers: of each cell
    within `CLOSE`, or with another torch of each column within `LIMIT`.
    """
    names = {Path(file).name for file in tables}
    faults = [
        f"{file.name}: drawn again, but not committed"
        for file in sorted(drawn.glob("*.csv"))
        if file.name not in names
    ]
    for file in tables:
        again = drawn / Path(file).name
        if other and again.name == VERSIONS:
            continue
        if not again.is_file():
            faults.append(f"{file}: not drawn again")
            continue
        then = git("show", f"HEAD:{file}")
        now = again.read_bytes().decode()
        if now == then:
            continue
        if not other:
            faults.append(
                f"{file}: other bytes{differing(read(then), read(now), 0, 0)}"
            )
            continue
        trained_alike = not any(name.startswith("torch ") for name in other)
        compare = differing if trained_alike else moved
        if fault := compare(read(then), read(now)):
            faults.append(f"{file}{fault}")
    return faults


def differing(
    then: pd.DataFrame,
    now: pd.DataFrame,
    close: float = CLOSE,
    rounded: float = ROUNDED,
) -> str:
    """Say which cell is the first to differ, "" where none does."""
    if list(then) != list(now) or len(then) != len(now):
        return ": other columns or another number of rows"
    for column in then:
        before, after = then[column], now[column]
        if is_number(before) and is_number(after):
            limit = close * np.maximum(1, before.abs())
            equal = (before - after).abs().le(limit) | (before.isna() & after.isna())
        else:
            texts = (column.fillna("").astype(str) for column in (before, after))
            pairs = zip(*texts, strict=True)
            equal = pd.Series([same_text(*pair, rounded) for pair in pairs], then.index)
        if not equal.all():
            row = int(np.argmin(equal))
            cell = f"{before.iloc[row]} is {after.iloc[row]} now"
            return (
                f": {column} in row {row + 1}, {cell}; {(~equal).sum()} in this column"
            )
    return ""


def is_number(column: pd.Series) -> bool:
    """Tell whether a column has numbers alone."""
    return pd.api.types.is_numeric_dtype(column) and column.dtype != bool


def same_text(then: str, now: str, rounded: float) -> bool:
    """Compare words, and the numbers among them within a limit."""
    if NUMBER.split(then) != NUMBER.split(now):
        return False
    pairs = zip(NUMBER.findall(then), NUMBER.findall(now), strict=True)
    return all(abs(float(a) - float(b)) <= rounded * 1.001 for a, b in pairs)


def moved(then: pd.DataFrame, now: pd.DataFrame) -> str:
    """Say which column of numbers is the first to move far, "" where none does."""
    if list(then) != list(now) or len(then) != len(now):
        return ": other columns or another number of rows"
    for column in then:
        if is_number(then[column]) and is_number(now[column]):
            gap = float(((then[column] - now[column]) ** 2).mean() ** 0.5)
            if gap > LIMIT:
                return f": {column} moved by {gap:.3g}, root mean square"
    return ""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--profile", default="quick", choices=known_profiles())
    parser.add_argument("--long", action="store_true", help="draw every table again")
    chosen_options = parser.parse_args()
    try:
        lines, all_well = verify(chosen_options.profile, chosen_options.long)
    except (OSError, RuntimeError, ValueError) as error:  # it says what to do
        sys.exit(str(error))
    print("\n".join(lines))
    sys.exit(not all_well)
