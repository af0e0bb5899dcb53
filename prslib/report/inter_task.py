"""Pick the scores of single tasks, and find the smallest task."""

import numpy as np
import pandas as pd

from prslib import METHODS, RunConfig
from prslib.report.main_results import every_method
from prslib.report.notebook import Parameters, check_labels
from prslib.report.tables import MAIN_METRICS, labels_of, run_columns


def runs(settings: Parameters) -> list[RunConfig]:
    """List a run of every method and seed."""
    check_labels(settings.dataset, one=False)
    rhos = [settings.rho]
    return every_method(settings, rhos, list(METHODS), settings.costly_seeds)


def task_scores(scores: pd.DataFrame) -> pd.DataFrame:
    """Pick overall scores on each task's own test images in percent, large tasks first."""
    run = run_columns(scores)
    trained = scores.groupby(run, dropna=False, sort=False)["trained_tasks"]
    rows = scores.assign(last=scores["trained_tasks"] == trained.transform("max"))
    rows = rows[(rows["task"] != "seen") & (rows["group"] == "overall")]
    rows = rows[rows["metric"].isin(MAIN_METRICS)]
    frames = []
    for name, of_set in rows.groupby("dataset", sort=False):
        dataset = labels_of(name)
        images = np.bincount(dataset.train.task)[of_set["task"].astype(int)]
        frames.append(of_set.assign(images=images, stands_for=dataset.stands_for))
    table = pd.concat(frames).sort_values("images", ascending=False, kind="stable")
    label = "task " + table["task"] + " (" + table["images"].astype(str) + ")"
    values = {"measure": "score", "value": 100 * table["value"], "published": np.nan}
    columns = [*run, "stands_for", "trained_tasks", "last", "task", "images", "label"]
    columns += ["measure", "group", "metric", "value", "published"]
    return table.assign(label=label, **values)[columns].reset_index(drop=True)
