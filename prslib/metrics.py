"""Score predictions by class group, and measure what a run has forgotten."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from prslib.checks import check_order, expected, one_of
from prslib.datasets.base import GROUPS

GROUP_METRICS = ("C-P", "C-R", "C-F1", "O-P", "O-R", "O-F1", "mAP")
MAIN_METRICS = ("C-F1", "O-F1", "mAP")  # of Table 1
THRESHOLD = 0.5
# candidates for "C-F1 (tuned threshold)" and "O-F1 (tuned threshold)"
THRESHOLDS = tuple(round(0.01 * step, 2) for step in range(1, 100))
TUNED_METRICS = ("C-F1", "O-F1")
# metrics, another rule for predicting labels, and the predictions, bool (N, C)
Decision = tuple[tuple[str, ...], str, np.ndarray]
# a group or class, a metric, and its scores (draws,)
Row = tuple[str, str, np.ndarray]
CLASSES_AT_ONCE = 16  # classes that are ranked together, to use little memory
TOP = 3  # classes that "C-F1 (top 3)" and "O-F1 (top 3)" predict for every image


def evaluate(
    probabilities: ArrayLike,
    labels: ArrayLike,
    class_names: Sequence[str],
    class_group: Sequence[str],
) -> pd.DataFrame:
    """Score predictions over all classes, class groups and single classes (Table 1).

    A label is predicted if its probability is above 0.5. For class i with TP_i true
    positives, P_i predictions and N_i positives, precision is TP_i / P_i and recall is
    TP_i / N_i. C-P and C-R are the means of precision and recall over classes. C-F1 is
    the harmonic mean of C-P and C-R and differs from scikit-learn's macro F1. O-P, O-R
    and O-F1 are computed in the same way from the sums of TP_i, P_i and N_i over
    classes (micro averages). mAP is the mean over classes of the average precision.

    Parameters
    ----------
    probabilities : array_like of float, (N, C)
        Sigmoid outputs in [0, 1].
    labels : array_like of bool or float, (N, C)
        Multi-hot labels of 0 and 1. NaN marks an unknown label. A prediction for an
        unknown label counts neither as a true nor as a false positive.
    class_names : sequence of str, (C,)
        Distinct names of the classes, none of which is the name of a group.
    class_group : sequence of str, (C,)
        "majority", "moderate" or "minority" for each class.

    Returns
    -------
    DataFrame
        Columns ``group``, ``metric`` and ``value``, which is in [0, 1]. The first rows
        contain the seven metrics of "overall" and of the three groups. The other rows
        contain P, R, F1 and AP of each class, whose name is in the column ``group``.
        The values of a group or class without a positive are NaN.

    Raises
    ------
    ValueError
        If the shapes or the number of names do not agree, or an array is empty; if a
        probability is outside [0, 1] or a label is not 0, 1 or NaN; if a group is
        unknown; if a class name is repeated or is the name of a group; or if data
        frames have the same rows or columns in different orders.

    See Also
    --------
    forgetting : How much earlier scores have decreased by the end of a run.

    Notes
    -----
    A class without a known positive among the N samples is left out of every metric,
    together with its false positives. The precision of a class that is never predicted
    is 0. The paper does not state these two rules, but they follow from its tables.

    Examples
    --------
    >>> frame = evaluate([[0.9], [0.6]], [[1], [0]], ["cat"], ["majority"])
    >>> frame[frame["group"] == "cat"]["value"].round(2).tolist()
    [0.5, 1.0, 0.67, 1.0]
    """
    rows = evaluate_draws(probabilities, labels, class_names, class_group)
    rows = [(group, metric, values[0]) for group, metric, values in rows]
    return pd.DataFrame(rows, columns=["group", "metric", "value"])


def evaluate_draws(
    probabilities: ArrayLike,
    labels: ArrayLike,
    class_names: Sequence[str],
    class_group: Sequence[str],
    weights: np.ndarray | None = None,
    decisions: Sequence[Decision] = (),
) -> list[Row]:
    """Return the rows of `evaluate`, with scores under integer weights of the images.

    `weights` (draws, N) state how often each image counts in each draw. By default
    there is a single draw, in which each image counts once. `decisions` add metrics
    such as "C-F1 (top 3)".
    """
    probabilities, labels, is_known = check(probabilities, labels)
    count = labels.shape[1]
    names = {*class_names} - {*GROUPS, "overall"}
    if {len(names), len(class_names), len(class_group)} != {count}:
        what = f"{count} distinct class names, none of them a group's, and their groups"
        raise ValueError(expected(what, f"{list(class_names)}, {list(class_group)}"))
    weights = np.ones((1, len(labels))) if weights is None else weights
    weights = weights.astype(np.float32)  # sums of whole numbers stay exact
    counts = _counts((probabilities > THRESHOLD) & is_known, labels, weights)
    areas = _areas(probabilities, labels, is_known, weights)
    further = [
        (metrics, how, _counts(predicted & is_known, labels, weights))
        for metrics, how, predicted in decisions
    ]
    groups = np.array([one_of("group", group, GROUPS) for group in class_group])
    rows = []
    for group in ("overall", *GROUPS):
        mask = (groups == group) | (group == "overall")
        values = _decision_scores(counts, mask)
        values["mAP"] = _mean_known(np.where(mask, areas, np.nan))
        for metrics, how, others in further:
            scores = _decision_scores(others, mask)
            values |= {f"{metric} ({how})": scores[metric] for metric in metrics}
        rows += [(group, metric, drawn) for metric, drawn in values.items()]
    per_class = _class_scores(counts, areas)
    for number, name in enumerate(class_names):
        rows += [
            (name, metric, drawn[:, number]) for metric, drawn in per_class.items()
        ]
    return rows


def _areas(
    scores: np.ndarray, labels: np.ndarray, is_known: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Return average precisions (draws, C) under weights of images (draws, N).

    For each positive, the precision among the images that score at least as high is
    computed. Average precision is the mean over positives, or NaN if no positive has a
    weight.
    """
    of_images = np.ascontiguousarray(weights.T)  # (N, draws)
    areas = np.full((len(weights), labels.shape[1]), np.nan)
    present = np.flatnonzero(labels.any(axis=0))
    for first in range(0, len(present), CLASSES_AT_ONCE):
        classes = present[first : first + CLASSES_AT_ONCE]  # (K,)
        rows = scores.T[classes], labels.T[classes], is_known.T[classes]
        areas[:, classes] = np.stack(_areas_of_some(*rows, of_images), axis=1)
    return areas


def _areas_of_some(
    scores: np.ndarray, labels: np.ndarray, is_known: np.ndarray, of_images: np.ndarray
) -> list[np.ndarray]:
    """Return average precisions (draws,), one array for each of some classes (K, N).

    Every class has a positive.
    """
    # unknown labels come after all others
    ranked = np.where(is_known, np.negative(scores, dtype=float), np.inf)  # (K, N)
    order = np.argsort(ranked, axis=1)
    ranked = np.take_along_axis(ranked, order, axis=1)
    truth = np.take_along_axis(labels, order, axis=1)
    # images with equal scores are retrieved together; a part ends when one is positive
    is_last = np.ones(ranked.shape, bool)
    is_last[:, :-1] = ranked[:, 1:] > ranked[:, :-1]
    tie = is_last.cumsum() - is_last.ravel()  # (K * N,)
    has_positive = np.bincount(tie, truth.ravel()) > 0
    is_end = is_last & has_positive[tie].reshape(ranked.shape)
    # nothing is retrieved after the last positive
    is_retrieved = np.logical_or.accumulate(is_end[:, ::-1], axis=1)[:, ::-1]
    images = order[is_retrieved]
    ends = np.flatnonzero(is_end[is_retrieved]) + 1
    positives = np.flatnonzero(truth[is_retrieved])
    hit_ends = np.searchsorted(positives, ends)
    new_images = _sum_parts(of_images, images, ends)  # (parts, draws)
    new_hits = _sum_parts(of_images, images[positives], hit_ends)
    stops = is_end.sum(axis=1).cumsum()
    areas = []
    for start, stop in pairwise([0, *stops]):
        new = new_hits[start:stop]
        hits = new.cumsum(axis=0)
        retrieved = new_images[start:stop].cumsum(axis=0)
        precision = hits.astype(float) / np.maximum(retrieved, 0.5)
        area = (new * precision).sum(axis=0)
        areas.append(np.where(hits[-1] > 0, ratio(area, hits[-1]), np.nan))
    return areas


def _sum_parts(values: np.ndarray, rows: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Sum rows of values (N, draws) up to the first end, then up to the next, ..."""
    parts = np.ones(len(rows), values.dtype), rows, np.append(0, ends)
    return csr_array(parts, (len(ends), len(values))) @ values


def check(
    probabilities: ArrayLike, labels: ArrayLike
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Check probabilities and labels; return them, and which labels are known."""
    check_order(probabilities, labels)
    probabilities = np.asarray(probabilities)
    labels = np.asarray(labels)
    shape = probabilities.shape
    if len(shape) != 2 or shape != labels.shape or 0 in shape:
        what = "probabilities and labels of one shape (images, classes), neither zero"
        raise ValueError(expected(what, f"{shape} and {labels.shape}"))
    is_known = ~np.isnan(labels)
    is_positive = labels == 1
    others = labels[is_known & ~is_positive & (labels != 0)]
    if others.size:
        what = "labels of 0 and 1, and NaN for unknown labels"
        raise ValueError(expected(what, others[0]))
    # also finds NaN
    outside = probabilities[~((probabilities >= 0) & (probabilities <= 1))]
    if outside.size:
        raise ValueError(expected("probabilities in [0, 1]", outside[0]))
    return probabilities, is_positive, is_known


def _counts(
    predicted: np.ndarray, labels: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Return true positives, predictions and positives, (3, draws, C)."""
    kinds = np.stack([predicted & labels, predicted, labels])
    return (weights @ kinds.astype(weights.dtype)).astype(float)


def ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """Return a ratio, or 0 if the denominator (and therefore the numerator) is 0."""
    return numerator / np.where(denominator > 0, denominator, 1)


def harmonic_mean(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the harmonic mean of two numbers, or 0 if both are 0."""
    return ratio(2 * first * second, first + second)


def _class_scores(counts: np.ndarray, areas: np.ndarray) -> dict[str, np.ndarray]:
    """Return the scores of each class (draws, C), or NaN if a class has no positive."""
    hits, predicted, positive = counts  # (draws, C)
    precision = ratio(hits, predicted)
    recall = ratio(hits, positive)
    f1 = harmonic_mean(precision, recall)
    scores = {"P": precision, "R": recall, "F1": f1, "AP": areas}
    is_present = positive > 0
    return {name: np.where(is_present, scores[name], np.nan) for name in scores}


def _decision_scores(counts: np.ndarray, members: np.ndarray) -> dict[str, np.ndarray]:
    """Return a group's scores in all `GROUP_METRICS` except mAP, (draws,) each."""
    # a class without a positive in a draw is left out of that draw
    used = members & (counts[2] > 0)  # (draws, C)
    hits, predicted, positive = np.where(used, counts, 0)
    class_precision = _mean_known(np.where(used, ratio(hits, predicted), np.nan))
    class_recall = _mean_known(np.where(used, ratio(hits, positive), np.nan))
    total = np.where(used.any(axis=1), hits.sum(axis=1), np.nan)  # (draws,)
    precision = ratio(total, predicted.sum(axis=1))
    recall = ratio(total, positive.sum(axis=1))
    return {
        "C-P": class_precision,
        "C-R": class_recall,
        "C-F1": harmonic_mean(class_precision, class_recall),
        "O-P": precision,
        "O-R": recall,
        "O-F1": harmonic_mean(precision, recall),
    }


def top_classes(
    probabilities: np.ndarray, classes: np.ndarray, count: int = TOP
) -> np.ndarray:
    """Predict the most probable classes of each sample ("top 3" scores).

    Parameters
    ----------
    probabilities : ndarray of float of shape (n_samples, n_classes)
        Probabilities of the classes.
    classes : ndarray of bool of shape (n_classes,)
        Classes that may be predicted.
    count : int
        Number of classes to predict. If fewer classes may be predicted, all of them are
        predicted.

    Returns
    -------
    ndarray of bool of shape (n_samples, n_classes)
        Predicted labels. If classes have equal probabilities, those with lower numbers
        are predicted first.

    Examples
    --------
    >>> top_classes(np.array([[0.1, 0.3, 0.2]]), np.array([True, True, False]), count=1)
    array([[False,  True, False]])
    """
    ranked = np.where(classes, probabilities, -1.0)
    count = min(count, int(classes.sum()))
    best = np.argsort(-ranked, axis=1, kind="stable")[:, :count]
    predicted = np.zeros(ranked.shape, bool)
    np.put_along_axis(predicted, best, True, axis=1)
    return predicted


def best_thresholds(probabilities: ArrayLike, labels: ArrayLike) -> dict[str, float]:
    """Choose the thresholds with the highest overall C-F1 and the highest overall O-F1.

    Each threshold applies to all classes and is one of 0.01, 0.02, ..., 0.99. If
    several thresholds give the same score, the lowest is chosen.

    Parameters
    ----------
    probabilities, labels : array_like, (N, C)
        As in `evaluate`, for samples that are used neither for training nor for
        testing.

    Returns
    -------
    dict of str to float
        The threshold for "C-F1" and the threshold for "O-F1".

    Raises
    ------
    ValueError
        If no sample has a label, or as in `evaluate`.

    Examples
    --------
    >>> best_thresholds([[0.305], [0.1]], [[1], [0]])
    {'C-F1': 0.1, 'O-F1': 0.1}
    """
    probabilities, labels, is_known = check(probabilities, labels)
    if not labels.any():
        raise ValueError(expected("an image with a label", "none"))
    everything = np.ones(labels.shape[1], bool)
    weights = np.ones((1, len(labels)))
    counts = [
        _counts((probabilities > threshold) & is_known, labels, weights)
        for threshold in THRESHOLDS
    ]
    # as if each threshold were a draw
    scores = _decision_scores(np.concatenate(counts, axis=1), everything)
    return {name: THRESHOLDS[np.nanargmax(scores[name])] for name in TUNED_METRICS}


def forgetting(scores: pd.DataFrame, normalised: bool = True) -> pd.DataFrame:
    """Measure how much each run has forgotten at its end (Table 1, "forget").

    For each task except the last, the score at the end of the run is subtracted from
    the best earlier score since the task was trained, and the difference is divided by
    this best score. The measure is the mean over these tasks.

    Parameters
    ----------
    scores : DataFrame
        Columns ``schedule`` (task ids, "0,3,1,2"), ``trained_tasks``, ``task``,
        ``group``, ``metric`` and ``value``, which is in [0, 1]. All other columns, such
        as ``method`` and ``seed``, distinguish runs. Rows with the task "seen" or "all"
        are ignored. An optional column ``draws`` contains the same scores on resamples
        of the test set, as arrays of equal length, or NaN.
    normalised : bool
        Whether to divide by the best score. If False, the result is the measure of
        Chaudhry et al., which the paper cites with Figure 1.

    Returns
    -------
    DataFrame
        One row for each run, group and metric. The columns are the ones that
        distinguish runs, then ``group``, ``metric``, ``value`` (a fraction),
        ``unlearned``, and ``draws`` if ``scores`` has this column. ``value`` is NaN if
        all earlier tasks are left out (see Notes), for example because the run was
        scored only once. ``unlearned`` is the share of the earlier tasks whose best
        score is 0.

    Raises
    ------
    ValueError
        If a row occurs twice, or a task is not in its schedule.

    See Also
    --------
    evaluate : Scores of predictions.

    Notes
    -----
    A task whose best score is 0 was never learned, and the normalised measure leaves it
    out, whereas the paper counts it as 1 ("forget 100.0" next to a score of 0.0). A
    task is also left out if the group has no class in it (NaN), or if there is no score
    for the task at the end or before the end.

    Examples
    --------
    >>> scores = pd.DataFrame({"schedule": "1,0", "trained_tasks": [1, 2], "task": "1",
    ...     "group": "overall", "metric": "mAP", "value": [0.8, 0.6]})
    >>> forgetting(scores)["value"].round(3).tolist()
    [0.25]
    """
    cell = ["trained_tasks", "task", "group", "metric", "value", "draws"]
    run = [column for column in scores if column not in cell]
    results = []
    # rho is NaN for most methods
    for _, rows in scores.groupby(run, dropna=False, observed=True, sort=False):
        names = {name: rows[name].iat[0] for name in run}
        results.append(_forget_run(rows, normalised).assign(**names))
    if not results:
        return scores.drop(columns=["trained_tasks", "task"]).assign(unlearned=np.nan)
    table = pd.concat(results, ignore_index=True)
    return table[[*run, *table.columns.drop(run)]]


def _forget_run(scores: pd.DataFrame, normalised: bool) -> pd.DataFrame:
    """Return the forgetting of one run: group, metric, value, unlearned and draws."""
    schedule = scores["schedule"].iat[0].split(",")
    end = int(scores["trained_tasks"].max())
    rows = scores[~scores["task"].isin(["seen", "all"])]
    if rows.duplicated(["trained_tasks", "task", "group", "metric"]).any():
        what = "one row per run, evaluation, task, group and metric"
        advice = "add a column that distinguishes the runs, such as seed"
        raise ValueError(expected(what, "several", advice))
    rows = rows[rows["trained_tasks"] > 0]  # others are scores before the training
    cells = rows.groupby(["group", "metric"], sort=False, dropna=False, observed=True)
    result = cells.size().index.to_frame(index=False)
    task = np.array(list(map(schedule.index, rows["task"])), int)
    drawn = values_and_draws(rows).to_numpy()
    # (cells, tasks, evaluations, 1 + draws); tasks in the order of training
    values = np.full((len(result), len(schedule), end, drawn.shape[1]), np.nan)
    values[cells.ngroup(), task, rows["trained_tasks"].to_numpy(int) - 1] = drawn
    since_trained = np.tri(end - 1, len(schedule), dtype=bool).T  # (tasks, evaluations)
    earlier = np.where(since_trained[..., None], values[:, :, :-1], np.nan)
    best = np.fmax.reduce(earlier, axis=2, initial=np.nan)
    lost = best - values[:, :, -1]
    if normalised:
        lost /= np.where(best == 0, np.nan, abs(best))
    means = _mean_known(lost)  # (cells, 1 + draws)
    result["value"] = means[:, 0]
    is_zero = np.where(np.isnan(best[..., 0]), np.nan, best[..., 0] == 0)
    result["unlearned"] = _mean_known(is_zero)
    if "draws" in scores:
        is_known = ~np.isnan(means[:, 1:]).all(axis=1)
        result["draws"] = pd.Series(list(means[:, 1:])).where(is_known)
    return result


def _mean_known(values: np.ndarray) -> np.ndarray:
    """Return the mean over the second axis, ignoring NaN, or NaN if all are NaN."""
    count = (~np.isnan(values)).sum(axis=1)
    return np.nansum(values, axis=1) / np.where(count, count, np.nan)


def values_and_draws(rows: pd.DataFrame) -> pd.DataFrame:
    """Return each row's value and draws in columns, (rows, 1 + draws), numbered from 0.

    Rows without draws contain NaN. If no row has draws, the value is the only column.
    """
    rows = rows.reset_index(drop=True)
    values = rows[["value"]].astype(float)
    if "draws" not in rows or not rows["draws"].notna().any():
        return values
    drawn = rows["draws"].dropna()
    table = pd.DataFrame(np.stack(drawn), drawn.index, dtype=float)
    return pd.concat([values, table], axis=1)
