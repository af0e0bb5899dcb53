"""Check that this machine repeats the committed results: a few runs anew, and what was drawn."""

import subprocess
import tempfile
from collections.abc import Iterator
from io import StringIO

import numpy as np
import pandas as pd
from llvmlite.binding import get_host_cpu_name

from prslib.experiments.store import Store
from prslib.experiments.sweep import run_all
from prslib.paths import figures_dir, project_root
from prslib.report.notebook import wanted
from prslib.report.tables import final, scores_of
from prslib.training import versions
from prslib.training.config import RunConfig

NOTEBOOK, TABLE = "main_results", "main_results_groups_{}"  # a row a seed, method and score
METHODS = ("EWC", "CRS", "ExStream", "PRS")  # one of each kind that trains fast
CELLS = ["method", "group", "metric"]
LIMIT = 1.0  # s.d. over seeds, root mean square over a table's cells
MEASURED = ("value", "mean", "difference")  # columns that an s.d. over seeds belongs to


def verify(profile: str) -> tuple[list[str], bool]:
    """Train a few runs of a profile anew and compare them, and its CSV files, with HEAD's.

    Returns the lines to print, and whether all is within `LIMIT`. Nothing is drawn or stored.
    FileNotFoundError where the figures of the runs are not there.
    """
    here = {file.stem: file.read_text() for file in figures_dir(profile).glob("*.csv")}
    committed = dict(_committed(profile))
    named = dict(versions().itertuples(index=False))
    lines = [f"{', '.join(map(' '.join, named.items()))}; processor {get_host_cpu_name()}"]
    if "ledger_versions" in committed:
        then = pd.read_csv(StringIO(committed["ledger_versions"]), index_col=0)["version"]
        other = [f"{name} {was}" for name, was in then.items() if named.get(name) != was]
        lines.append(f"committed with other versions: {', '.join(other) or 'none'}")
    found = _runs_anew(profile, committed or here)
    if committed:
        found |= {name: _apart(committed[name], here[name]) for name in committed if name in here}
        missing = sorted(set(committed) - set(here))
        lines += [f"not drawn here: {', '.join(missing)}"] if missing else []
    else:
        lines.append("no commit to ask (git): the runs are compared with the tables drawn here")
    other = {name: apart for name, apart in found.items() if apart != 0}
    lines.append(f"same bytes: {len(found) - len(other)} of {len(found)}")
    for name, apart in other.items():
        far = f"{apart:.2f} s.d. over seeds apart" if apart >= 0 else "differs, without an s.d."
        lines.append(f"{name}: {far}")
    lines.append(f"limit: {LIMIT:g} s.d. (root mean square over a table's cells)")
    return lines, not any(apart > LIMIT for apart in found.values())


def chosen(profile: str) -> list[RunConfig]:
    """Return the runs that are trained anew: the first of each method on each data set."""
    first = {}
    for config in wanted(NOTEBOOK, profile):
        if config.method in METHODS:
            first.setdefault((config.dataset, config.method), config)
    return list(first.values())


def _runs_anew(profile: str, tables: dict[str, str]) -> dict[str, float]:
    """Return how far each data set's new runs are from the table of its scores."""
    configs = chosen(profile)
    if absent := [c.dataset for c in configs if TABLE.format(c.dataset) not in tables]:
        raise FileNotFoundError(
            f"expected {TABLE.format(absent[0])}.csv in {figures_dir(profile)}, it is not there; "
            f"run `make figures PROFILE={profile}` first"
        )
    with tempfile.TemporaryDirectory() as folder:
        rows = final(scores_of(run_all(configs, Store(folder))))
    found = {}
    for name, part in rows[rows["measure"] == "score"].groupby("dataset", sort=False):
        then = pd.read_csv(StringIO(tables[TABLE.format(name)]))
        then = then.assign(sd=then.groupby(CELLS)["value"].transform("std"))
        both = part.merge(then, on=[*CELLS, "seed"], suffixes=("", "_then"))
        anew = pd.read_csv(StringIO(both.to_csv(float_format="%.6g")))["value"]  # as it was saved
        label = f"{', '.join(part['method'].unique())} on {name}, trained anew"
        found[label] = _distance(anew - both["value_then"], both["sd"])
    return found


def _committed(profile: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of a profile's CSV files in the last commit; none without git."""
    folder = f"figures/{profile}/"
    for path in _git("ls-tree", "--name-only", "HEAD", folder).splitlines():
        if path.endswith(".csv"):
            yield path.removeprefix(folder).removesuffix(".csv"), _git("show", f"HEAD:{path}")


def _git(*arguments: str) -> str:
    command = ["git", "-C", project_root(), *arguments]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""


def _apart(then: str, now: str) -> float:
    """Return how far two texts of a table are apart; inf for other rows, -1 without an s.d."""
    if then == now:
        return 0.0
    then, now = (pd.read_csv(StringIO(text)) for text in (then, now))
    if list(then) != list(now) or len(then) != len(now):
        return np.inf
    column = next((name for name in MEASURED if name in then), None)
    if "sd" not in then and {"seed", "value"} <= set(then):
        keys = [name for name in then if name not in ("seed", "value")]
        then = then.assign(sd=then.groupby(keys, dropna=False)["value"].transform("std"))
    if column is None or "sd" not in then:
        return -1.0
    return _distance(now[column] - then[column], then["sd"])


def _distance(gaps: pd.Series, sd: pd.Series) -> float:
    """Return the root mean square of gaps in units of s.d.; a cell without one takes the mean."""
    known = sd.where(sd > 0)
    in_sd = (gaps / known.fillna(known.mean())).where(gaps != 0, 0.0)
    return float(np.sqrt((in_sd**2).mean())) if in_sd.notna().any() else -1.0
