"""Score predictions by class group, and measure what a run has forgotten."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from prslib.datasets.base import GROUPS

GROUP_METRICS = ("C-P", "C-R", "C-F1", "O-P", "O-R", "O-F1", "mAP")
CLASS_METRICS = ("P", "R", "F1", "AP")
THRESHOLD = 0.5


def score(
    probabilities: ArrayLike, labels: ArrayLike, class_group: Sequence[str]
) -> list[tuple[str, str, float]]:
    """Score predictions over all classes and over each class group, as in the main table.

    A label is predicted where its probability is greater than 0.5. C-P and C-R are
    means over classes, C-F1 is the harmonic mean of those two; O-P, O-R and O-F1 pool
    the decisions of all classes; mAP is the mean average precision.

    Parameters
    ----------
    probabilities : array_like of float, (N, C)
        Sigmoid outputs in [0, 1].
    labels : array_like of bool, (N, C)
        Multi-hot truth.
    class_group : sequence of str, (C,)
        "majority", "moderate" or "minority" for every class.

    Returns
    -------
    list of (group, metric, value)
        "overall" and the three groups times the seven metrics, values in [0, 1]; NaN
        for a group with no class present.

    Raises
    ------
    ValueError
        If shapes disagree, nothing is to be evaluated, a probability is NaN or outside
        [0, 1], a label is neither 0 nor 1, a value is masked, or a group is unknown.

    Notes
    -----
    A class with no positive among the N images is left out of every metric, its false
    alarms included. A class's precision or recall is 0 where it is undefined. The paper
    states neither; both follow from its tables.

    Examples
    --------
    >>> score([[0.9, 0.2], [0.6, 0.7]], [[1, 0], [0, 1]], ["majority", "minority"])[0]
    ('overall', 'C-P', 0.75)
    """
    counts, area = _counts_and_areas(probabilities, labels)
    return group_scores(counts, area, members_of_groups(class_group, len(area)))


def class_scores(probabilities: ArrayLike, labels: ArrayLike) -> dict[str, np.ndarray]:
    """Score each class on its own, the terms of the means in the main table.

    Parameters and errors are those of `score`.

    Returns
    -------
    dict of str to ndarray of float, (C,)
        "P", "R", "F1" and "AP" in [0, 1]; NaN for a class with no positive.

    Examples
    --------
    >>> {key: value.tolist() for key, value in class_scores([[0.9], [0.6]], [[1], [0]]).items()}
    {'P': [0.5], 'R': [1.0], 'F1': [0.6666666666666666], 'AP': [1.0]}
    """
    return _class_scores(*_counts_and_areas(probabilities, labels))


def evaluate(
    probabilities: ArrayLike,
    labels: ArrayLike,
    class_names: Sequence[str],
    class_group: Sequence[str],
) -> pd.DataFrame:
    """Put the scores of the groups and of every class into one tidy frame, as in the main table.

    Parameters and errors are those of `score`; the names are distinct and none is a
    group's.

    Returns
    -------
    DataFrame
        Columns group, metric, value: the rows of `score`, then P, R, F1 and AP of every
        class with the class's name in the column `group`.

    Examples
    --------
    >>> evaluate([[0.9], [0.6]], [[1], [0]], ["cat"], ["majority"]).tail(1).values.tolist()
    [['cat', 'AP', 1.0]]
    """
    counts, area = _counts_and_areas(probabilities, labels)
    names = list(class_names)
    if len(names) != len(area) or len(set(names)) != len(area):
        raise ValueError(f"expected {len(area)} distinct class names, got {names}")
    if taken := {"overall", *GROUPS} & set(names):
        raise ValueError(
            f"class names {sorted(taken)} are names of groups; rename the classes"
        )
    rows = group_scores(counts, area, members_of_groups(class_group, len(area)))
    per_class = _class_scores(counts, area)
    rows += [
        (name, k, v[c]) for c, name in enumerate(names) for k, v in per_class.items()
    ]
    return pd.DataFrame(rows, columns=["group", "metric", "value"])


def accuracy(probabilities: ArrayLike, labels: ArrayLike) -> float:
    """Compute the share of single-label images whose most probable class is right.

    It is the "overall performance" in the tables of Imbal-MNISTseq and Imbal-SVHNseq.
    Parameters and errors are those of `score`; every image has one label, and the first
    class wins a tie.

    Examples
    --------
    >>> accuracy([[0.9, 0.1], [0.6, 0.4]], [[1, 0], [0, 1]])
    0.5
    """
    probabilities, labels = checked(probabilities, labels)
    label_counts = labels.sum(axis=1)
    if (label_counts != 1).any():
        image = (label_counts != 1).argmax()
        raise ValueError(
            f"expected one label an image, image {image} has {label_counts[image]}"
        )
    return float((probabilities.argmax(axis=1) == labels.argmax(axis=1)).mean())


def average_precision(probabilities: ArrayLike, labels: ArrayLike) -> np.ndarray:
    """Compute each class's average precision, equal to scikit-learn's `average_precision_score`.

    It is the mean over positives of this share: the positives among the images that
    score at least as high, ties included.

    Parameters
    ----------
    probabilities, labels
        As in `score`, but the probabilities may be scores of any range.

    Returns
    -------
    ndarray of float, (C,)
        In [0, 1]; NaN for a class with no positive.

    Raises
    ------
    ValueError
        If the shapes differ, a score is NaN or a label neither 0 nor 1.

    Examples
    --------
    >>> average_precision([[0.8], [0.6], [0.4]], [[1], [0], [1]]).round(3).tolist()
    [0.833]
    """
    scores, labels = checked(probabilities, labels, unit=False)
    columns, truth = np.ascontiguousarray(scores.T), labels.T  # (C, N)
    result = np.full(len(columns), np.nan)
    for index in np.flatnonzero(truth.any(axis=1)):
        ranked = np.sort(columns[index])
        positives = np.sort(columns[index][truth[index]])
        retrieved = len(ranked) - np.searchsorted(ranked, positives)
        hits = len(positives) - np.searchsorted(positives, positives)
        result[index] = (hits / retrieved).mean()
    return result


def checked(
    probabilities: ArrayLike, labels: ArrayLike, unit: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Return arrays, labels as bool, or raise ValueError; `unit` asks for [0, 1]."""
    if np.ma.is_masked(probabilities) or np.ma.is_masked(labels):
        raise ValueError(
            "expected values for all images and classes, some are masked; fill them"
        )
    probabilities, labels = np.asarray(probabilities), np.asarray(labels)
    if (
        probabilities.ndim != 2
        or probabilities.shape != labels.shape
        or not probabilities.size
    ):
        raise ValueError(
            "expected probabilities and labels of one shape (images, classes), neither zero, "
            f"got {probabilities.shape} and {labels.shape}"
        )
    if labels.dtype != bool and not np.isin(labels, (0, 1)).all():
        raise ValueError(
            "expected labels of 0 and 1, got other values; pass multi-hot rows"
        )
    if np.isnan(probabilities).any():
        raise ValueError(
            "expected scores that can be ranked, got NaN; has the network diverged?"
        )
    outside = probabilities[(probabilities < 0) | (probabilities > 1)]
    if unit and outside.size:
        raise ValueError(
            f"expected probabilities in [0, 1], got {outside[0]}; apply the sigmoid"
        )
    return probabilities, labels.astype(bool)


def members_of_groups(
    class_group: Sequence[str], num_classes: int
) -> dict[str, np.ndarray]:
    """Give each group's membership mask over the classes, "overall" first."""
    if len(class_group) != num_classes:
        raise ValueError(
            f"expected a group for {num_classes} classes, got {len(class_group)}"
        )
    if unknown := set(class_group) - set(GROUPS):
        raise ValueError(
            f"unknown groups {sorted(unknown)}; known groups: {', '.join(GROUPS)}"
        )
    groups = np.array(class_group)
    return {"overall": np.ones(num_classes, bool)} | {
        name: groups == name for name in GROUPS
    }


def _counts_and_areas(
    probabilities: ArrayLike, labels: ArrayLike
) -> tuple[np.ndarray, np.ndarray]:
    """Count true positives, predictions, positives, (3, C); add average precisions."""
    probabilities, labels = checked(probabilities, labels)
    predicted = probabilities > THRESHOLD
    counts = np.stack([(predicted & labels).sum(0), predicted.sum(0), labels.sum(0)])
    return counts, average_precision(probabilities, labels)


def ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """Return a ratio, 0 where the denominator is: there the numerator is 0, too."""
    return numerator / np.where(denominator > 0, denominator, 1)


def harmonic_mean(first: ArrayLike, second: ArrayLike) -> np.ndarray:
    """Return the harmonic mean of two numbers, 0 where both are."""
    total = np.add(first, second)
    return 2 * np.multiply(first, second) / np.where(total > 0, total, 1)


def _class_scores(
    counts: np.ndarray, precision_area: np.ndarray
) -> dict[str, np.ndarray]:
    hits, predicted, positive = counts
    precision, recall = ratio(hits, predicted), ratio(hits, positive)
    values = precision, recall, harmonic_mean(precision, recall), precision_area
    absent_as_nan = np.where(positive > 0, values, np.nan)  # (4, C)
    return dict(zip(CLASS_METRICS, absent_as_nan, strict=True))


def group_values(
    per_class: Sequence[ArrayLike], pooled: Sequence[ArrayLike], area: ArrayLike
) -> np.ndarray:
    """Stack `GROUP_METRICS` of two pairs of precision and recall, and the mAP."""
    f1 = harmonic_mean(*per_class)
    pooled_f1 = harmonic_mean(*pooled)
    return np.stack([*per_class, f1, *pooled, pooled_f1, area])


def group_scores(
    counts: np.ndarray, precision_area: np.ndarray, members: dict[str, np.ndarray]
) -> list[tuple[str, str, float]]:
    """Return rows of counts (3, ..., C) and areas (..., C); classes come last."""
    rows = []
    for group, mask in members.items():
        used = mask & ~np.isnan(precision_area).all(
            axis=tuple(range(precision_area.ndim - 1))
        )
        hits, predicted, positive = counts[..., used]
        classes = max(used.sum(), 1)
        per_class = [
            ratio(hits, total).sum(-1) / classes for total in (predicted, positive)
        ]
        pooled = [ratio(hits.sum(-1), total.sum(-1)) for total in (predicted, positive)]
        area = precision_area[..., used].sum(-1) / classes
        values = group_values(per_class, pooled, area)
        values[...] = values if used.any() else np.nan
        rows += [
            (group, *pair) for pair in zip(GROUP_METRICS, values.tolist(), strict=True)
        ]
    return rows


_KEEP_ALL = {"dropna": False, "observed": True, "sort": False}  # rho is NaN for most


def forgetting(scores: pd.DataFrame, normalised: bool = True) -> pd.DataFrame:
    """Measure how much each run has forgotten at its end, "Normalized Forgetting Measure".

    Parameters
    ----------
    scores : DataFrame
        Columns schedule (task ids, "0,3,1,2"), trained_tasks, task, group, metric,
        value in [0, 1]; every other column (dataset, method, rho, memory_size, seed,
        ...) tells runs apart. Rows whose task is "seen" or "all" do not enter. A column
        draws, arrays of one length or NaN, has the same scores under resamples.
    normalised : bool
        Whether to divide by the best value; without, it is the measure of Chaudhry et
        al. that the paper cites beside Figure 1, in the unit of the values.

    Returns
    -------
    DataFrame
        The columns that tell runs apart, group, metric, value as a fraction, unlearned,
        and draws where the scores have them: a row for every run, group and metric.
        `value` is NaN where no earlier task counts, and for a run that was evaluated
        only once, such as Multitask. `unlearned` is the share of the earlier tasks
        whose best value is 0.

    Raises
    ------
    ValueError
        If a column is missing, only "seen" rows are there, a row is there twice, a task
        is not in its schedule, or a task lacks a value at the end or before it.

    Notes
    -----
    A task's value is its best before the end less the end, divided by the best; the
    mean is over the earlier tasks. A task whose best is 0 was never learned: the
    normalised measure leaves it out. The paper counts it as 1 ("forget 100.0" beside a
    score of 0.0). Tasks where the group has no class (NaN) are skipped. "Before the
    end" starts when the task has been trained.

    Examples
    --------
    >>> scores = pd.DataFrame({"schedule": "1,0", "trained_tasks": [1, 2], "task": "1",
    ...     "group": "overall", "metric": "mAP", "value": [0.8, 0.6]})
    >>> forgetting(scores)["value"].round(3).tolist()
    [0.25]
    """
    cell = ["schedule", "trained_tasks", "task", "group", "metric", "value", "draws"]
    _require(scores, cell[:-1])
    run = [column for column in scores if column not in cell[1:]]
    trained = scores.groupby(run, **_KEEP_ALL)["trained_tasks"]
    last, first = trained.transform("max"), trained.transform("min")
    rows = scores.assign(last=last, single=first == last)
    rows = rows[~scores["task"].isin(["seen", "all"])]
    if rows.empty:
        raise ValueError(
            "expected rows for single tasks, got rows of 'seen' and 'all' alone"
        )
    key = [*run, "group", "metric"]
    if rows.duplicated([*key, "task", "trained_tasks"]).any():
        raise ValueError(
            "expected one row a run, evaluation, task, group and metric, got several; "
            "add a column that tells the runs apart, such as seed"
        )
    position = pd.Series(map(_position, rows["schedule"], rows["task"]), rows.index)
    earlier = position < rows["last"]
    seen = rows["task"].where(earlier).groupby([rows[k] for k in run], **_KEEP_ALL)
    short = (seen.transform("nunique") < rows["last"] - 1) & ~rows["single"]
    _refuse(short, rows[run], "rows for every task of the schedule before the last")
    end = earlier & (rows["trained_tasks"] == rows["last"])
    before = earlier & (rows["trained_tasks"] >= position) & ~end
    tasks = rows.groupby([*key, "task"], **_KEEP_ALL)
    number = tasks.ngroup().to_numpy()
    table = tasks["single"].first().reset_index()
    values = _with_draws(rows)  # (rows, 1 + draws)
    best, final = np.full((2, len(table), values.shape[1]), np.nan)
    np.fmax.at(best, number[before], values[before])
    final[number[end]] = values[end]
    gap = (np.isnan(best[:, 0]) != np.isnan(final[:, 0])) & ~table["single"]
    _refuse(gap, table, "a value of every earlier task at the end and before it")
    lost, unlearned = (
        best - final,
        np.where(np.isnan(best[:, 0]), np.nan, best[:, 0] == 0),
    )
    if normalised:
        lost = lost / np.where(best == 0, np.nan, np.abs(best))
    means = pd.DataFrame(lost).assign(unlearned=unlearned)
    means = means.groupby([table[k] for k in key], **_KEEP_ALL).mean()
    result = means[[0, "unlearned"]].rename(columns={0: "value"}).reset_index()
    if "draws" in scores:
        drawn = means.drop(columns=[0, "unlearned"]).to_numpy()
        result["draws"] = pd.Series(list(drawn)).where(~np.isnan(drawn).all(axis=1))
    return result


def _with_draws(rows: pd.DataFrame) -> np.ndarray:
    """Return value and draws as one array (rows, 1 + draws)."""
    values = rows["value"].to_numpy(float)[:, None]
    if "draws" not in rows or not rows["draws"].notna().any():
        return values
    length = len(rows["draws"].dropna().iloc[0])
    none = np.full(length, np.nan)
    drawn = [d if isinstance(d, (list, np.ndarray)) else none for d in rows["draws"]]
    return np.hstack([values, np.array(drawn, float)])


def _require(scores: pd.DataFrame, columns: list[str]) -> None:
    if missing := [column for column in columns if column not in scores]:
        raise ValueError(f"expected the columns {columns}, {missing} missing")


def _position(schedule: str, task: str) -> int:
    """Return the number of tasks after which a task has been trained."""
    order = str(schedule).split(",")
    if task not in order:
        raise ValueError(f"expected a task of the schedule {schedule!r}, got {task!r}")
    return order.index(task) + 1


def _refuse(missing: pd.Series, rows: pd.DataFrame, what: str) -> None:
    if missing.any():
        run = rows[missing].iloc[0].to_dict()
        raise ValueError(
            f"expected {what}, got none for {run}; evaluate all tasks seen so far"
        )
