"""Pick the scores of single tasks, and find the smallest task."""

import numpy as np
import pandas as pd

from prslib.datasets import load_dataset
from prslib.report.tables import METRICS, run_columns


def task_scores(scores: pd.DataFrame) -> pd.DataFrame:
    """Pick overall scores on each task's own test images in percent, large tasks first."""
    run = run_columns(scores)
    end = scores.groupby(run, dropna=False, sort=False)["trained_tasks"].transform("max")
    rows = scores.assign(last=scores["trained_tasks"] == end)
    rows = rows[(rows["task"] != "seen") & (rows["group"] == "overall")]
    rows = rows[rows["metric"].isin(METRICS)]
    frames = []
    for name, part in rows.groupby("dataset", sort=False):
        dataset = load_dataset(name, images=False)
        images = np.bincount(dataset.train.task)[part["task"].astype(int)]
        frames.append(part.assign(images=images, stands_for=dataset.stands_for))
    table = pd.concat(frames).sort_values("images", ascending=False, kind="stable")
    label = "task " + table["task"] + " (" + table["images"].astype(str) + ")"
    values = {"measure": "score", "value": 100 * table["value"], "published": np.nan}
    columns = [*run, "stands_for", "trained_tasks", "last", "task", "images", "label"]
    columns += ["measure", "group", "metric", "value", "published"]
    return table.assign(label=label, **values)[columns].reset_index(drop=True)


def smallest_task(rows: pd.DataFrame) -> pd.DataFrame:
    """Pick the rows of each data set's task with the fewest training images."""
    least = rows.groupby("dataset", sort=False)["images"].transform("min")
    return rows[rows["images"] == least].reset_index(drop=True)
