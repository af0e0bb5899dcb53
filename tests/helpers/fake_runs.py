"""Runs with made-up scores, so that tables and claims can be tested without training."""

import dataclasses
from functools import cache
from itertools import product

import numpy as np
import pandas as pd

from prslib.datasets import load_dataset
from prslib.datasets.base import task_name, tasks_together
from prslib.train import METHODS, Run, RunConfig, name_rows

GROUPS = ("overall", "majority", "moderate", "minority")
METRICS = ("C-F1", "O-F1", "mAP", "C-P", "C-R", "O-P", "O-R")


@cache
def labels_of(name):
    return load_dataset(name, images=False)


@cache
def cells_of(groups, offline, single):
    """Return the rows of a run that trains these groups of tasks, without values."""
    rows = []
    for trained in [len(groups)] if offline else range(1, len(groups) + 1):
        tasks = ["seen", *map(task_name, groups[:trained])]
        rows += product([trained], tasks, GROUPS, METRICS)
        rows += [(trained, task, "red 6", "AP") for task in tasks]
        if single:
            rows += [(trained, task, "overall", "accuracy") for task in [*tasks, "all"]]
    return pd.DataFrame(rows, columns=["trained_tasks", "task", "group", "metric"])


def fake_run(config: RunConfig, value, tests=("balanced",), with_classes=False) -> Run:
    """Return a run whose scores are one number or ``value(rows)``, in [0, 1]."""
    settings = config.resolved
    groups = tuple(tasks_together(settings["schedule"], settings["tasks_at_once"]))
    offline = METHODS[config.method].offline
    dataset = labels_of(config.dataset)
    cells = cells_of(groups, offline, settings["tasks_at_once"] > 1)
    if with_classes:
        classes = pd.DataFrame({"group": dataset.class_names})
        of_class = cells[["trained_tasks", "task"]].drop_duplicates()
        of_class = of_class.merge(classes, how="cross").assign(metric="AP")
        cells = pd.concat([cells[cells["metric"] != "AP"], of_class], ignore_index=True)
    scores = cells.assign(value=value(cells) if callable(value) else value)
    scores = pd.concat([scores.assign(test_set=name) for name in tests])
    scores = scores.reset_index(drop=True)
    size = config.columns["memory_size"]
    memory = np.zeros((size, dataset.num_classes), bool)
    memory[np.arange(size), np.arange(size) % dataset.num_classes] = True
    return Run(config, name_rows(config, scores), memory)


def with_variance(run: Run, values) -> Run:
    """Return the run with a gradient variance at some points of the stream."""
    frame = pd.DataFrame({"images": range(len(values)), "samples": 1, "value": values})
    frame = name_rows(run.config, frame)
    return dataclasses.replace(run, gradient_variance=frame)
