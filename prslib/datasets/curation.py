"""Join classes that occur together into groups: the appendix's hierarchical clustering."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from prslib.datasets.base import GROUPS, Split


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
    check_labels(labels)
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
        One of `prslib.datasets.base.GROUPS` for each class.

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


def balanced_test(
    labels: np.ndarray, per_class: int, rng: np.random.Generator, reserve: np.ndarray | None = None
) -> np.ndarray:
    """Draw a test set with equally many images of every class; Sec. 4.1.

    Parameters
    ----------
    labels : numpy.ndarray of bool, shape (N, C)
        Labels of the images to draw from, each with at least one.
    per_class : int
        Images of each class.
    rng : numpy.random.Generator
        Source of chance.
    reserve : numpy.ndarray of bool, shape (N,), optional
        Images that are drawn only when a class finds none among the others.

    Returns
    -------
    numpy.ndarray of int64
        Indices of the drawn images, ascending.

    Raises
    ------
    TypeError
        If the labels are not bool.
    ValueError
        If some class does not come to `per_class` images.

    Notes
    -----
    The paper does not say how it draws. Here the classes are filled one after another, the rarest
    first, with random images that hold no class that is full already.

    Examples
    --------
    >>> labels = np.array([[1, 0], [1, 1], [0, 1], [1, 0]], dtype=bool)
    >>> labels[balanced_test(labels, 1, np.random.default_rng(0))].sum(axis=0)
    array([1, 1])
    """
    check_labels(labels)
    if per_class < 1:
        raise ValueError(f"expected per_class of 1 or more, got {per_class}")
    reserve = np.zeros(len(labels), dtype=bool) if reserve is None else reserve
    order = rng.permutation(len(labels))
    order = order[np.argsort(reserve[order], kind="stable")]  # the reserve last
    counts = np.zeros(labels.shape[1], dtype=np.int64)
    drawn = []
    for c in np.argsort(labels.sum(axis=0), kind="stable"):
        for image in order[labels[order, c]]:
            if counts[c] == per_class:
                break
            if (counts[labels[image]] < per_class).all():
                counts += labels[image]
                drawn.append(image)
    short = np.flatnonzero(counts < per_class)
    if len(short):
        raise ValueError(
            f"expected {per_class} test images of every class, but {len(short)} classes have "
            f"fewer, class {short[0]} only {counts[short[0]]}; ask for fewer images a class or "
            "leave these classes out"
        )
    return np.sort(np.array(drawn, dtype=np.int64))


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


def feature_rows(test: Split, per_class: int) -> np.ndarray:
    """Return the test images whose features a run leaves; our own choice.

    Parameters
    ----------
    test : Split
        The test set.
    per_class : int
        Images of a class at most, 1 or more.

    Returns
    -------
    ndarray of int64, (N,)
        Rising indices: of every class the first images that carry this one label and no other.

    Raises
    ------
    ValueError
        If no image has a single label.

    Notes
    -----
    The paper does not say how an image with several labels is coloured in its figure. Such an image
    has no one class that its features could be near to, so it is left out.

    Examples
    --------
    >>> labels = np.array([[1, 0], [1, 1], [0, 1], [1, 0], [1, 0]], bool)
    >>> feature_rows(Split(None, labels, np.zeros(5, np.int64)), 2)
    array([0, 2, 3])
    """
    alone = np.flatnonzero(test.labels.sum(axis=1) == 1)
    if not len(alone):
        raise ValueError(
            "features_per_class: expected test images with a single label, got none; set it to 0"
        )
    number = test.labels[alone].cumsum(axis=0)  # (N, C), counted within each class
    return alone[(test.labels[alone] & (number <= per_class)).any(axis=1)]
