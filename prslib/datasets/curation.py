"""Split a multi-label data set into tasks that share no class, as the appendix does."""

from __future__ import annotations

import numpy as np

from prslib.datasets.clustering import check_labels
from prslib.datasets.sequential import GROUPS


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
