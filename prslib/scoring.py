"""Score a network on a test set after a task, with resamples for intervals (Table 1)."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pandas as pd

from prslib.datasets import GROUPS, SequentialDataset, Split
from prslib.datasets.base import task_name
from prslib.metrics import (
    MAIN_METRICS,
    TOP,
    TUNED_METRICS,
    evaluate_draws,
    top_classes,
)
from prslib.resamples import draw_weights, weighted_mean


def score_test(
    probabilities_of: Callable[[np.ndarray], np.ndarray],
    test: Split,
    dataset: SequentialDataset,
    groups: Sequence[tuple[int, ...]],
    resamples: int = 0,
    thresholds: Iterable[tuple[str, float]] = (),
) -> list[tuple[str, str, str, np.ndarray]]:
    """Score the classes of the tasks seen so far, together and task by task (Table 1).

    ``probabilities_of`` returns the probabilities (K, C) of some rows of the test set.
    ``thresholds`` are pairs of a metric and a tuned threshold. A row contains a task, a
    group, a metric, and an array of the score, followed by its values on the resamples,
    (1 + draws,).
    """
    # A row's task is "seen" for all tasks so far, "1", or "1+2" for tasks trained
    # together. A task is scored on the images with a label among its classes, and on
    # these classes only: in an open test set, an image may count for several tasks.
    # With one label per sample, accuracy is also measured on the whole test set, "all",
    # which includes tasks yet to come (Appendix).
    seen = np.concatenate(groups)
    members = {"seen": seen} | {task_name(group): group for group in sorted(groups)}
    is_seen = test.labels[:, np.isin(dataset.class_task, seen)].any(axis=1)  # (N,)
    used = np.arange(len(test)) if test.single_label else np.flatnonzero(is_seen)
    probabilities = np.zeros(test.labels.shape, np.float32)  # (N, C)
    probabilities[used] = probabilities_of(used)
    right = probabilities.argmax(axis=1) == test.labels.argmax(axis=1)
    weights = draw_weights(test, resamples)
    rows = []
    for name, tasks in members.items():
        classes = np.isin(dataset.class_task, tasks)  # (C,)
        images = test.labels[:, classes].any(axis=1)  # (N,)
        outputs = probabilities[images]
        decisions = []  # predictions by other rules than the threshold of 0.5
        if name == "seen" and not test.single_label:
            top = top_classes(outputs, classes)
            decisions.append((TUNED_METRICS, f"top {TOP}", top))
            for metric, threshold in thresholds:
                decisions.append(((metric,), "tuned threshold", outputs > threshold))
        scored = evaluate_draws(
            outputs,
            test.labels[images] & classes,
            dataset.class_names,
            dataset.class_group,
            weights[:, images],
            decisions,
        )
        if test.single_label:
            accuracy = weighted_mean(right[images], weights[:, images])
            scored.append(("overall", "accuracy", accuracy))
        rows += [(name, *row) for row in scored]
    if test.single_label:
        rows.append(("all", "overall", "accuracy", weighted_mean(right, weights)))
    return rows


def score_batch(
    probabilities: np.ndarray, labels: np.ndarray, dataset: SequentialDataset
) -> list[tuple[str, float]]:
    """Score a batch over all classes before training on it (prequential evaluation)."""
    rows = evaluate_draws(
        probabilities, labels, dataset.class_names, dataset.class_group
    )
    scores = [(metric, draws[0]) for group, metric, draws in rows if group == "overall"]
    if dataset.train.single_label:
        right = probabilities.argmax(axis=1) == labels.argmax(axis=1)
        scores.append(("accuracy", right.mean()))
    return scores


def keeps_draws(scores: pd.DataFrame) -> pd.Series:
    """Mark rows whose resamples a run stores; resamples make up most of a run's file.

    These are the groups' scores on all tasks so far, their main metrics on single tasks,
    and F1 and AP of each class on the images of its task.
    """
    is_task = scores["task"] != "seen"
    is_group = scores["group"].isin(["overall", *GROUPS])
    is_main = scores["metric"].isin([*MAIN_METRICS, "accuracy"])
    of_group = is_group & (is_main | ~is_task)
    of_class = ~is_group & is_task & scores["metric"].isin(["F1", "AP"])
    return of_group | (of_class & scores["value"].notna())
