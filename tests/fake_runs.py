"""Runs with made-up scores, so that tables and claims can be tested without training."""

import dataclasses

import numpy as np
import pandas as pd

from prslib.config import METHODS, RunConfig
from prslib.datasets import load_dataset
from prslib.experiment import Run, task_name
from prslib.stream import tasks_together

GROUPS = ("overall", "majority", "moderate", "minority")
METRICS = ("C-F1", "O-F1", "mAP", "C-P", "C-R", "O-P", "O-R")


def fake_run(config: RunConfig, value) -> Run:
    """Return a run whose scores are ``value(trained_tasks, task, group, metric)`` in [0, 1]."""
    settings, identity = config.resolved, config.identity
    groups = tasks_together(settings["schedule"], settings["tasks_at_once"])
    offline = METHODS[config.method].offline
    single = settings["tasks_at_once"] > 1
    rows = []
    for trained in [len(groups)] if offline else range(1, len(groups) + 1):
        for task in ["seen", *map(task_name, groups[:trained])]:
            rows += [(trained, task, group, metric) for group in GROUPS for metric in METRICS]
            rows.append((trained, task, "red 6", "AP"))
        if single:
            names = ["seen", "all", *map(task_name, groups[:trained])]
            rows += [(trained, task, "overall", "accuracy") for task in names]
    scores = pd.DataFrame(rows, columns=["trained_tasks", "task", "group", "metric"])
    scores = scores.assign(
        schedule="" if offline else ",".join(map(task_name, groups)),
        value=[value(*row) for row in rows],
        seed=config.seed,
        dataset=config.dataset,
        method=config.method,
    )
    dataset = load_dataset(config.dataset, images=False)
    size = identity.get("memory_size", 0)
    held = np.zeros((size, dataset.num_classes), bool)
    held[np.arange(size), np.arange(size) % dataset.num_classes] = True
    return Run(config, scores, held)


def with_variance(run: Run, values) -> Run:
    """Return the run with a gradient variance at some points of the stream."""
    frame = pd.DataFrame({"images": range(len(values)), "samples": 1, "value": values})
    return dataclasses.replace(run, gradient_variance=frame)
