"""Split a multi-label data set into tasks that share no class, as the appendix does."""

from __future__ import annotations

import numpy as np

from prslib.datasets.sequential import GROUPS


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
    _check_labels(labels)
    num_classes = labels.shape[1]
    _check_request(num_classes, n_groups, beta, min_classes)
    touched, images = _unique_rows(labels)  # (rows, groups), (rows,)
    groups = [[c] for c in range(num_classes)]  # stays sorted by lowest class index
    while len(groups) > n_groups:
        score = _merge_scores(touched, images, beta)
        sizes = np.array([len(group) for group in groups])
        small = sizes < min_classes
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
        groups[first] += groups.pop(second)
        touched[:, first] |= touched[:, second]
        touched = np.delete(touched, second, axis=1)
    if min(len(group) for group in groups) < min_classes:
        raise ValueError(
            f"expected {min_classes} or more classes in each group, got groups of "
            f"{[len(group) for group in groups]}; lower min_classes or ask for fewer groups"
        )
    group_of_class = np.empty(num_classes, dtype=np.int64)
    for number, group in enumerate(groups):
        group_of_class[group] = number
    return group_of_class


def _merge_scores(touched: np.ndarray, images: np.ndarray, beta: float) -> np.ndarray:
    """Return the score of each pair j < k of groups, minus infinity elsewhere; Eq. (9)."""
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
    both = (elem[:, None] + elem[None, :]).astype(np.float64)
    score[met] = np.log(co[met]) - beta * both[met] ** 2
    return score


def _unique_rows(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct rows and how often each occurs."""
    packed = np.ascontiguousarray(np.packbits(labels, axis=1))
    keys = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, first, images = np.unique(keys, return_index=True, return_counts=True)
    return labels[first], images


def _check_labels(labels: np.ndarray) -> None:
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


def tasks_of_images(labels: np.ndarray, class_task: np.ndarray) -> np.ndarray:
    """Find the task that holds all labels of an image; Appendix, "Dataset Curation".

    Parameters
    ----------
    labels : numpy.ndarray of bool, shape (N, C)
        Multi-hot labels; every image has at least one.
    class_task : numpy.ndarray of int64, shape (C,)
        Task of each class.

    Returns
    -------
    numpy.ndarray of int64, shape (N,)
        Task of each image, -1 where the labels span tasks and the split drops the image.

    Raises
    ------
    TypeError
        If the labels are not bool.
    ValueError
        If an image has no label, or there is not one task a class.

    Examples
    --------
    >>> tasks_of_images(np.array([[1, 1, 0], [0, 1, 1]], dtype=bool), np.array([0, 0, 1]))
    array([ 0, -1])
    """
    _check_labels(labels)
    if class_task.shape != (labels.shape[1],):
        raise ValueError(
            f"expected class_task of shape ({labels.shape[1]},), one task a class, got "
            f"{class_task.shape}"
        )
    task = class_task[labels.argmax(axis=1)].astype(np.int64)  # of the first label
    foreign = labels & (class_task[None, :] != task[:, None])  # (N, C)
    task[foreign.any(axis=1)] = -1
    return task


def class_groups(
    class_freq: np.ndarray, minority_below: float = 200, majority_from: float = 900
) -> tuple[str, ...]:
    """Name the group of each class by its frequency in the stream; Sec. 6.1.

    Parameters
    ----------
    class_freq : numpy.ndarray of int64, shape (C,)
        Images of each class in the training stream.
    minority_below : float
        Classes with fewer images are "minority".
    majority_from : float
        Classes with this many images or more are "majority", all others "moderate".

    Returns
    -------
    tuple of str, length C
        One of `prslib.datasets.sequential.GROUPS` for each class.

    Raises
    ------
    ValueError
        If the thresholds are in the wrong order.

    Notes
    -----
    The paper says "more than 900"; its released list has a class with exactly 900 among the
    majority, so the threshold itself belongs to it here.

    Examples
    --------
    >>> class_groups(np.array([900, 200, 199]))
    ('majority', 'moderate', 'minority')
    """
    if minority_below > majority_from:
        raise ValueError(
            f"expected minority_below at or under majority_from, got {minority_below} and "
            f"{majority_from}"
        )
    majority, moderate, minority = GROUPS
    return tuple(
        minority if freq < minority_below else majority if freq >= majority_from else moderate
        for freq in class_freq.tolist()
    )


def pareto_counts(class_freq: np.ndarray, alpha: float = 0.6) -> np.ndarray:
    """Count what a Pareto distribution leaves of each class; Appendix, "Single-Label ... Curation".

    Parameters
    ----------
    class_freq : numpy.ndarray of int64, shape (C,)
        Images of each class, in the order in which the tail grows.
    alpha : float
        Power value of the distribution.

    Returns
    -------
    numpy.ndarray of int64, shape (C,)
        floor(N_c f_c) with f_c = min(1, pi_c / (max pi - min pi)), pi_c = alpha/(c+1)^(alpha+1).

    Raises
    ------
    ValueError
        If there are fewer than two classes or `alpha` is not above 0.

    Notes
    -----
    The paper prints alpha and the sums, 11543 and 14181 images; these fractions give both exactly.

    Examples
    --------
    >>> pareto_counts(np.array([100, 100, 100]))
    array([100,  39,  20])
    """
    if len(class_freq) < 2 or not alpha > 0:
        raise ValueError(
            f"expected two classes or more and an alpha above 0, got {len(class_freq)} classes "
            f"and alpha {alpha}"
        )
    density = alpha / np.arange(1, len(class_freq) + 1) ** (alpha + 1.0)
    kept = np.minimum(1.0, density / (density.max() - density.min()))
    return np.floor(class_freq * kept).astype(np.int64)


def first_of_each_class(labels: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Find the first images of each class; our own choice.

    Parameters
    ----------
    labels : numpy.ndarray of int64, shape (N,)
        Class of each image.
    counts : numpy.ndarray of int64, shape (C,)
        How many of each class are wanted.

    Returns
    -------
    numpy.ndarray of int64, shape (sum of counts,)
        Their indices, ascending.

    Raises
    ------
    ValueError
        If a class has fewer images than are wanted.

    Notes
    -----
    The paper does not say which images of a class are kept. The first ones need no seed, so that
    everybody has the same set; a run shuffles them anyway.

    Examples
    --------
    >>> first_of_each_class(np.array([1, 0, 1, 1]), np.array([1, 2]))
    array([0, 1, 2])
    """
    kept = []
    for label, count in enumerate(counts.tolist()):
        members = np.flatnonzero(labels == label)
        if len(members) < count:
            raise ValueError(f"expected {count} images of class {label}, got {len(members)}")
        kept.append(members[:count])
    return np.sort(np.concatenate(kept))
