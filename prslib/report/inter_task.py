"""Pick the scores of single tasks, and find the smallest task."""

import numpy as np
import pandas as pd

from prslib import METHODS, RunConfig
from prslib.report.main_results import Comparison
from prslib.report.notebook import several
from prslib.report.tables import MAIN_METRICS, labels_of, run_columns


class Settings(Comparison):
    """Parameters of the notebook, which explains them."""

    dataset: list[str] = several("digits49seq")
    rho: float = 0.0
    seeds: list[int] = several(0)


def runs(settings: Settings) -> list[RunConfig]:
    """List a run of every method and seed."""
    return settings.configs(list(METHODS), [settings.rho])


def task_scores(scores: pd.DataFrame) -> pd.DataFrame:
    """Pick overall scores on each task's own test images in percent, large tasks first."""
    rows = scores[(scores["task"] != "seen") & (scores["group"] == "overall")]
    rows = rows[rows["metric"].isin(MAIN_METRICS)]
    run = run_columns(scores)
    at_end = rows.groupby(run, dropna=False)["trained_tasks"].transform("max")
    tasks = zip(rows["dataset"], rows["task"].astype(int), strict=True)
    table = rows.assign(
        stands_for=[labels_of(name).stands_for for name in rows["dataset"]],
        last=rows["trained_tasks"] == at_end,
        images=[(labels_of(name).train.task == task).sum() for name, task in tasks],
        value=100 * rows["value"],
        measure="score",
        published=np.nan,
    )
    table["label"] = "task " + table["task"] + " (" + table["images"].astype(str) + ")"
    columns = ["stands_for", "trained_tasks", "last", "task", "images", "label"]
    columns += ["measure", "group", "metric", "value", "published"]
    table = table.sort_values("images", ascending=False, kind="stable")
    return table[[*run, *columns]].reset_index(drop=True)
