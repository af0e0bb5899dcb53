"""Scores of a run on the tasks that it has seen so far, as tidy rows."""

import numpy as np
import pandas as pd

from prslib import metrics
from prslib.config import RunConfig
from prslib.datasets import SequentialDataset, Split
from prslib.learner import Learner
from prslib.residence import Images
from prslib.stream import task_name, tasks_together


def score_tasks(
    learner: Learner, images: Images, test: Split, dataset: SequentialDataset, groups
) -> pd.DataFrame:
    """Score the test sets of the tasks seen so far, joined and one by one (Table 1).

    Single-label data have their accuracy beside these scores, and on the whole test set too, tasks
    yet to come included (Appendix, Tables of Imbal-MNISTseq and Imbal-SVHNseq).

    Parameters
    ----------
    learner : Learner
        The trained network.
    images : Images or Tensor
        The test images, uint8 (N, H, W, channels); a tensor on the learner's device.
    test : Split
        The test set.
    dataset : SequentialDataset
        Gives classes and groups their names.
    groups : sequence of tuple of int
        The tasks trained so far, in order, those that are trained together in one tuple.

    Returns
    -------
    DataFrame
        Columns trained_tasks, task ("seen" for the joined sets, "all" for the whole test set, "1"
        or "1+2" for one task or a pair), group, metric, value.
    """
    parts = {task_name(group): np.isin(test.task, group) for group in sorted(groups)}
    parts = {"seen": np.isin(test.task, [task for group in groups for task in group])} | parts
    wanted = np.flatnonzero(parts["seen"] | test.single_label)
    probabilities = learner.probabilities(images, wanted)
    frames = []
    for name, part in parts.items():
        scored = probabilities[part[wanted]], test.labels[part]
        frame = metrics.evaluate(*scored, dataset.class_names, dataset.class_group)
        frames.append(frame.assign(task=name))
    if test.single_label:
        parts["all"] = np.ones(len(test), bool)
        rows = [
            ("overall", "accuracy", metrics.accuracy(probabilities[part], test.labels[part]), name)
            for name, part in parts.items()
        ]
        frames.append(pd.DataFrame(rows, columns=["group", "metric", "value", "task"]))
    frame = pd.concat(frames, ignore_index=True).assign(trained_tasks=len(groups))
    return frame[["trained_tasks", "task", "group", "metric", "value"]]


def with_run_columns(config: RunConfig, scores: pd.DataFrame) -> pd.DataFrame:
    """Return rows with the columns that say which run they are of, as `Run.scores` has them."""
    identity = config.identity
    groups = tasks_together(identity.get("schedule", ()), config.resolved["tasks_at_once"])
    columns = {
        "dataset": config.dataset,
        "method": config.method,
        "rho": identity.get("rho", np.nan),
        "memory_size": identity.get("memory_size", 0),
        "schedule": ",".join(map(task_name, groups)),
        "seed": config.seed,
    }
    return pd.concat([pd.DataFrame(columns, index=scores.index), scores], axis=1)
