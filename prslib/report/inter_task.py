"""Scores of single tasks: what becomes of the smallest one among larger ones."""

import numpy as np
import pandas as pd

from prslib import report
from prslib.datasets import SequentialDataset, load_dataset


def task_sizes(dataset: SequentialDataset) -> pd.Series:
    """Count the training images of every task (Figure "NUSWIDEseq").

    Parameters
    ----------
    dataset : SequentialDataset
        Labels suffice.

    Returns
    -------
    Series
        Images by task id.

    Examples
    --------
    >>> task_sizes(load_dataset("digits49seq", images=False)).idxmin()
    3
    """
    counts = np.bincount(dataset.train.task, minlength=dataset.num_tasks)
    return pd.Series(counts, name="images").rename_axis("task")


def task_scores(scores: pd.DataFrame) -> pd.DataFrame:
    """Score each task's own test images after every task (Figure "Inter-task imbalance").

    Parameters
    ----------
    scores : DataFrame
        Tidy scores of one or more runs, values in [0, 1].

    Returns
    -------
    DataFrame
        The columns that tell runs apart, stands_for, trained_tasks, last (whether that is the
        run's end), task, images (of the task in the stream), label ("task 3 (314)"), measure, group
        ("overall"), metric, value in percent and published, which is NaN: the paper draws its
        numbers and does not print them. Large tasks come first.
    """
    run = report.run_columns(scores)
    end = scores.groupby(run, dropna=False, sort=False)["trained_tasks"].transform("max")
    rows = scores.assign(last=scores["trained_tasks"] == end)
    rows = rows[(rows["task"] != "seen") & (rows["group"] == "overall")]
    rows = rows[rows["metric"].isin(report.METRICS)]
    frames = []
    for name, part in rows.groupby("dataset", sort=False):
        dataset = load_dataset(name, images=False)
        sizes = task_sizes(dataset)
        images = part["task"].astype(int).map(sizes)
        labels = "task " + part["task"] + " (" + images.astype(str) + ")"
        frames.append(part.assign(images=images, label=labels, stands_for=dataset.stands_for))
    found = pd.concat(frames).sort_values("images", ascending=False, kind="stable")
    columns = [*run, "stands_for", "trained_tasks", "last", "task", "images", "label"]
    found = found.assign(measure="score", value=100 * found["value"], published=np.nan)
    found = found[[*columns, "measure", "group", "metric", "value", "published"]]
    return found.reset_index(drop=True)


def smallest(rows: pd.DataFrame) -> pd.DataFrame:
    """Pick the smallest task of every data set (Figure "Inter-task imbalance").

    Parameters
    ----------
    rows : DataFrame
        As `task_scores` gives them.

    Returns
    -------
    DataFrame
        Those of its rows that are of the task with the fewest training images.
    """
    least = rows.groupby("dataset", sort=False)["images"].transform("min")
    return rows[rows["images"] == least].reset_index(drop=True)
