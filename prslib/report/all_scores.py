"""Write the final scores of a profile's stored runs into one file, ``scores.csv.xz``.

The repository contains this file instead of the runs.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from prslib.checks import expected
from prslib.paths import figures_dir, replacing
from prslib.report import tables
from prslib.report.build import list_runs, write_sums
from prslib.runs import load, path_of
from prslib.statistics import MEASURED, TEST_WORDS
from prslib.train import RunConfig, unread_fields

METRICS = (*tables.MAIN_METRICS, *tables.F1_OTHERWISE[:2], *tables.PRECISION_RECALL)
METRICS += ("accuracy",)
# fields of a run that become columns
SETTINGS = ["dataset", "test_set", "method", "rho", "memory_size", "schedule"]


def write_scores(profile: str, names: Sequence[str]) -> str:
    """Write all scores of the notebooks' runs as a table; return a summary as text."""
    configs = {
        path_of(config): config
        for name in names
        for _, config in list_runs(profile, name).values()
    }
    stored = [path for path in configs if path.is_file()]
    if not stored:
        what = f"stored runs of profile {profile}"
        raise FileNotFoundError(expected(what, "none", "run `prslib train`"))
    rows = pd.concat(final_scores(configs[path], path) for path in stored)
    columns = [*SETTINGS, "others", "seed", "group", "measure", "metric"]
    # runs with further measurements repeat the scores of other runs
    rows = rows[[*columns, "value"]].drop_duplicates().sort_values(columns)
    file = figures_dir(profile) / "scores.csv.xz"
    with replacing(file) as opened:
        rows.to_csv(opened, index=False, compression="xz")
    write_sums(file.parent, [file])
    missing = len(configs) - len(stored)
    return f"{len(rows)} scores in {file}; {missing} of {len(configs)} runs are missing"


def final_scores(config: RunConfig, path: Path) -> pd.DataFrame:
    """Return the scores and the forgetting at the end of a run, in percent."""
    run = replace(load(config, path), resampled=None)
    rows = tables.final(tables.scores_of([run], tests=TEST_WORDS), METRICS)
    rows = rows.dropna(subset="value")
    values = rows["value"].map("{:.4g}".format)
    return rows.assign(value=values, others=say_others(config))


def say_others(config: RunConfig) -> str:
    """Return as text the other fields in which a run differs from its data set's recipe."""
    usual = RunConfig(config.dataset, config.method, config.seed).resolved
    left_out = MEASURED | {*SETTINGS, "seed"} | unread_fields(config.method)
    varied = [
        f"{name}={value}"
        for name, value in config.resolved.items()
        if name not in left_out and value != usual[name]
    ]
    return "; ".join(varied)
