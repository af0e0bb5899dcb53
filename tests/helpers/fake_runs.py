"""Runs with made-up scores, so that tables and claims can be tested without training."""

import dataclasses
from functools import cache
from itertools import product

import numpy as np
import pandas as pd

from prslib.datasets import load_dataset
from prslib.datasets.base import tasks_together
from prslib.training.config import Run, RunConfig
from prslib.training.learner import task_name
from prslib.training.methods import METHODS
from prslib.training.validation import CELL, evaluations, run_columns, score_cells

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


@cache
def all_cells(config):
    """Return the rows of a real run, without values."""
    test_set = config.resolved["test_set"]
    own = config.own_threshold
    rows = [score_cells(config, each, test_set, own) for each in evaluations(config)]
    return pd.DataFrame(sorted(set().union(*rows)), columns=CELL)


def fake_run(config: RunConfig, value, whole=False) -> Run:
    """Return a run whose scores are one number or ``value(rows)``, in [0, 1].

    The whole of it, which can be stored, has the scores of all classes, too.
    """
    settings, identity = config.resolved, config.identity
    groups = tuple(tasks_together(settings["schedule"], settings["tasks_at_once"]))
    offline = METHODS[config.method].offline
    dataset = labels_of(config.dataset)
    cells = cells_of(groups, offline, settings["tasks_at_once"] > 1)
    if whole:
        cells = all_cells(config)
    elif config.class_draws:  # forgetting of every class
        classes = pd.DataFrame({"group": dataset.class_names})
        of_class = cells[["trained_tasks", "task"]].drop_duplicates()
        of_class = of_class.merge(classes, how="cross").assign(metric="AP")
        cells = pd.concat([cells[cells["metric"] != "AP"], of_class], ignore_index=True)
    scores = cells.assign(
        schedule="" if offline else ",".join(map(task_name, groups)),
        value=value(cells) if callable(value) else value,
        seed=config.seed,
        dataset=config.dataset,
        method=config.method,
        rho=identity.get("rho", np.nan),
        memory_size=identity.get("memory_size", 0),
    )
    size = identity.get("memory_size", 0)
    memory = np.zeros((size, dataset.num_classes), bool)
    memory[np.arange(size), np.arange(size) % dataset.num_classes] = True
    resampled = None
    if whole and (draws := settings["test_resamples"]):
        values = np.linspace(0, 1, 2 * draws).reshape(2, draws)
        resampled = pd.DataFrame(values.astype(np.float16), [2, 5])  # of the scores
    return Run(config, scores, memory, resampled=resampled)


def with_variance(run: Run, values) -> Run:
    """Return the run with a gradient variance at some points of the stream."""
    frame = pd.DataFrame({"images": range(len(values)), "samples": 1, "value": values})
    frame = frame.assign(**run_columns(run.config))
    return dataclasses.replace(run, gradient_variance=frame)
