"""Join classes that occur together into groups: the appendix's hierarchical clustering."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


def cluster_classes(
    labels: np.ndarray, n_groups: int, beta: float, min_classes: int = 1
) -> np.ndarray:
    """Join classes into groups that cut few images apart; Appendix, Algorithm 2.

    Parameters
    ----------
    labels : numpy.ndarray of bool, shape (N, C)
        Multi-hot labels; every image has at least one.
    n_groups : int
        Groups to end with, 1 to C.
    beta : float
        Weight of the balance between the groups, in 1 / images squared; not negative.
    min_classes : int
        Least number of classes of a group at the end.

    Returns
    -------
    numpy.ndarray of int64, shape (C,)
        Group of each class; groups are numbered by their lowest class index.

    Raises
    ------
    TypeError
        If the labels are not bool.
    ValueError
        If an argument is out of range, an image has no label, no two groups left have an image
        in common, or `min_classes` cannot be met.

    Notes
    -----
    The paper leaves three things open. Pairs of groups without a common image (co = 0) are never
    merged. Equal scores: the first pair in the order of (lowest class index of one group, lowest
    class index of the other) is merged. For the "minimum number of classes": once the merges
    left are no more than the groups below the minimum, every merge must take in one of those.
    This looks one merge ahead only and so can end short of the minimum, which is an error.

    Examples
    --------
    >>> labels = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 0]], dtype=bool)
    >>> cluster_classes(labels, n_groups=2, beta=1.0)
    array([0, 0, 1, 1])
    """
    merges = class_merges(labels, n_groups, beta, min_classes)
    num_classes = labels.shape[1]
    groups = [(c,) for c in range(num_classes)]
    for merge in merges:
        groups[groups.index(merge.first)] += merge.second
        groups.remove(merge.second)
    group_of_class = np.empty(num_classes, dtype=np.int64)
    for number, group in enumerate(groups):
        group_of_class[list(group)] = number
    return group_of_class


class Merge(NamedTuple):
    """Hold one step of the clustering; Appendix, Algorithm 2, line 26.

    Parameters
    ----------
    first, second : tuple of int
        Classes of the two groups that are joined.
    together : int
        Images that only the joined group holds (co).
    apart : int
        Images that one of the two holds alone (elem of both).
    score : float
        Merge score, Eq. (9).

    Examples
    --------
    >>> Merge((0,), (2,), together=3, apart=4, score=1.1).second
    (2,)
    """

    first: tuple[int, ...]
    second: tuple[int, ...]
    together: int
    apart: int
    score: float


def class_merges(
    labels: np.ndarray, n_groups: int, beta: float, min_classes: int = 1
) -> list[Merge]:
    """List the merges that join classes into groups, in their order; Appendix, Algorithm 2.

    Parameters
    ----------
    labels, n_groups, beta, min_classes
        As in `cluster_classes`.

    Returns
    -------
    list of Merge, length C - n_groups
        From single classes to the groups that `cluster_classes` numbers.

    Raises
    ------
    TypeError, ValueError
        As in `cluster_classes`.

    Examples
    --------
    >>> labels = np.array([[1, 1, 0], [1, 1, 0], [0, 1, 1]], dtype=bool)
    >>> [(m.first, m.second, m.together) for m in class_merges(labels, 2, beta=1.0)]
    [((0,), (1,), 2)]
    """
    check_labels(labels)
    num_classes = labels.shape[1]
    _check_request(num_classes, n_groups, beta, min_classes)
    touched, images = _unique_rows(labels)  # (rows, groups), (rows,)
    groups = [(c,) for c in range(num_classes)]  # stays sorted by lowest class index
    merges = []
    while len(groups) > n_groups:
        score, together, apart = _merge_scores(touched, images, beta)
        small = np.array([len(group) for group in groups]) < min_classes
        if len(groups) - n_groups <= small.sum():
            score[~(small[:, None] | small[None, :])] = -np.inf
        first, second = np.unravel_index(score.argmax(), score.shape)
        if score[first, second] == -np.inf:
            raise ValueError(
                f"expected {n_groups} groups, but no two of the {len(groups)} groups left that "
                f"may be merged share an image ({small.sum()} have fewer than {min_classes} "
                "classes); ask for more groups, lower min_classes, or leave out classes that "
                "never occur with others"
            )
        found = (int(together[first, second]), int(apart[first, second]), score[first, second])
        merges.append(Merge(groups[first], groups[second], *found))
        groups[first] += groups.pop(second)
        touched[:, first] |= touched[:, second]
        touched = np.delete(touched, second, axis=1)
    if min(len(group) for group in groups) < min_classes:
        raise ValueError(
            f"expected {min_classes} or more classes in each group, got groups of "
            f"{[len(group) for group in groups]}; lower min_classes or ask for fewer groups"
        )
    return merges


def _merge_scores(
    touched: np.ndarray, images: np.ndarray, beta: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return score, co and elem of each pair j < k of groups, no score elsewhere; Eq. (9)."""
    num_groups = touched.shape[1]
    spread = touched.sum(axis=1)
    alone, pair = touched[spread == 1], touched[spread == 2]
    elem = images[spread == 1] @ alone  # (groups,)
    # An image within the union of two groups and in neither has labels in exactly these two.
    low = pair.argmax(axis=1)
    high = num_groups - 1 - pair[:, ::-1].argmax(axis=1)
    co = np.zeros((num_groups, num_groups), dtype=np.int64)  # upper triangle
    np.add.at(co, (low, high), images[spread == 2])
    score = np.full(co.shape, -np.inf)
    met = co > 0
    both = elem[:, None] + elem[None, :]
    score[met] = np.log(co[met]) - beta * both[met].astype(np.float64) ** 2
    return score, co, both


def _unique_rows(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct rows and how often each occurs."""
    packed = np.ascontiguousarray(np.packbits(labels, axis=1))
    keys = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, first, images = np.unique(keys, return_index=True, return_counts=True)
    return labels[first], images


def check_labels(labels: np.ndarray) -> None:
    """Raise unless the labels are a bool matrix with at least one label in every row."""
    if not isinstance(labels, np.ndarray) or labels.dtype != np.bool_:
        came = labels.dtype if isinstance(labels, np.ndarray) else type(labels).__name__
        raise TypeError(f"expected labels as a numpy array of bool, got {came}")
    if labels.ndim != 2 or 0 in labels.shape:
        raise ValueError(f"expected labels of shape (images, classes), got {labels.shape}")
    empty = np.flatnonzero(~labels.any(axis=1))
    if len(empty):
        raise ValueError(
            f"expected at least one label for every image, got {len(empty)} without any, the "
            f"first at index {empty[0]}; leave them out: labels[labels.any(axis=1)]"
        )


def _check_request(num_classes: int, n_groups: int, beta: float, min_classes: int) -> None:
    if not 1 <= n_groups <= num_classes:
        raise ValueError(f"expected n_groups from 1 to {num_classes} classes, got {n_groups}")
    if not 0 <= beta < np.inf:
        raise ValueError(f"expected a finite beta of 0 or more, got {beta}")
    if min_classes < 1 or min_classes * n_groups > num_classes:
        raise ValueError(
            f"expected min_classes from 1 to {num_classes // n_groups}, as {num_classes} classes "
            f"make {n_groups} groups, got {min_classes}"
        )


def number_by_size(group_of_class: np.ndarray, counted: np.ndarray) -> np.ndarray:
    """Turn groups into tasks numbered by size, the largest first; our own rule.

    Parameters
    ----------
    group_of_class : numpy.ndarray of int64, shape (C,)
        Group of each class, as `cluster_classes` gives it.
    counted : numpy.ndarray of bool, shape (C,)
        Classes that count towards a group's size: those that are kept.

    Returns
    -------
    numpy.ndarray of int64, shape (C,)
        Task of each class. Groups of one size come in the order of their lowest class index.

    Notes
    -----
    For COCOseq the rule gives the published numbers 0 to 3 (24, 18, 14 and 14 kept classes).

    Examples
    --------
    >>> number_by_size(np.array([0, 1, 1, 2]), np.array([True, True, True, True]))
    array([1, 0, 0, 2])
    """
    sizes = np.bincount(group_of_class[counted], minlength=group_of_class.max() + 1)
    task_of_group = np.empty(len(sizes), dtype=np.int64)
    task_of_group[np.argsort(-sizes, kind="stable")] = np.arange(len(sizes))
    return task_of_group[group_of_class]
