"""Search for settings of Algorithm 2: the number of tasks and beta."""

from collections.abc import Callable
from contextlib import suppress
from itertools import product
from typing import NamedTuple

import numpy as np

from prslib.checks import expected
from prslib.datasets.base import Clustering
from prslib.datasets.curation import cluster_classes, tasks_of_images

# settings to try
FEWEST_TASKS, MOST_TASKS = 2, 6
BETAS = tuple(10.0**-power for power in range(9))
# a setting must leave out less than this share of the samples
MOST_LOST = 1 / 3


class Clusters(NamedTuple):
    """Classes clustered with one setting, and shares of the samples."""

    n_tasks: int
    beta: float
    # int64 (C,)
    group_of_class: np.ndarray
    # share of samples with labels of several groups
    lost: float
    # share of the largest group in the remaining samples
    largest: float


def search_clusters(
    labels: np.ndarray, class_names: tuple[str, ...], min_classes: int = 1
) -> list[Clusters]:
    """Cluster classes into two to six tasks, with each power of ten as beta; Algorithm 2.

    Settings for which Algorithm 2 does not reach the number of tasks are left out.
    """
    settings = []
    numbers = range(FEWEST_TASKS, min(MOST_TASKS, labels.shape[1]) + 1)
    for n_tasks, beta in product(numbers, BETAS):
        source = Clustering(labels, class_names, n_tasks, beta, min_classes)
        with suppress(ValueError):
            group = cluster_classes(source)
            task = tasks_of_images(labels, group)
            counts = np.bincount(task[task >= 0], minlength=n_tasks)
            largest = counts.max() / max(counts.sum(), 1)
            lost = float((task < 0).mean())
            settings.append(Clusters(n_tasks, beta, group, lost, float(largest)))
    return settings


def choose_clusters(settings: list[Clusters]) -> Clusters:
    """Choose the most even clusters among those that lose less than a third of the samples."""
    few_lost = [clusters for clusters in settings if clusters.lost < MOST_LOST]
    if not few_lost:
        least = min(clusters.lost for clusters in settings)
        what = "tasks that leave out less than a third"
        raise ValueError(expected(what, f"at least {least:.0%}"))
    return min(few_lost, key=lambda clusters: clusters.largest)


def keep_in_tasks(
    labels: np.ndarray,
    group_of_class: np.ndarray,
    is_large: Callable[[np.ndarray], np.ndarray],
) -> tuple[np.ndarray, np.ndarray]:
    """Return which samples, as rows, and which classes, bool (C,), remain in the tasks.

    Samples that span tasks are removed, then classes that have become too small (not
    `is_large` of the remaining rows), then samples that have no class left.
    """
    rows = np.flatnonzero(labels.any(axis=1))
    rows = rows[tasks_of_images(labels[rows], group_of_class) >= 0]
    stays = is_large(rows)
    return rows[labels[rows][:, stays].any(axis=1)], stays


def number_by_size(group_of_class: np.ndarray, counted: np.ndarray) -> np.ndarray:
    """Return the task of each class, (C,); the group with the most `counted` classes is first."""
    # For COCOseq this gives the published task ids 0 to 3 (24, 18, 14 and 14 classes).
    groups = np.arange(group_of_class.max() + 1)
    sizes = (group_of_class[counted] == groups[:, None]).sum(axis=1)
    task_of_group = np.argsort(-sizes, kind="stable").argsort()
    return task_of_group[group_of_class]
