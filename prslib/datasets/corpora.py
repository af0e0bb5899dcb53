"""Draw label matrices that follow a profile exactly."""

from __future__ import annotations

import numpy as np


def draw_labels(
    class_freq: np.ndarray,
    labels_per_image: np.ndarray,
    rng: np.random.Generator,
    connected: bool = False,
) -> np.ndarray:
    """Draw labels with given class frequencies and labels per image; after the streams of Sec. 5.

    Parameters
    ----------
    class_freq : numpy.ndarray of int64, shape (C,)
        Images of each class.
    labels_per_image : numpy.ndarray of int64
        Images with 1, 2, 3, ... labels; their labels add up to the frequencies.
    rng : numpy.random.Generator
        Source of chance.
    connected : bool
        Let the first C - 1 two-label images be a random tree over the classes, so that every
        class occurs with another one and clustering can join them all.

    Returns
    -------
    numpy.ndarray of bool, shape (N, C)
        Labels, in random order of the images; row and column sums are as asked for.

    Raises
    ------
    ValueError
        If the two sums differ, a tree is asked for and does not fit, or too few classes have
        images left for an image with many labels (more single-label images help).

    Notes
    -----
    Images with many labels are drawn first. An image's classes are drawn without replacement,
    weighted by the images that each class still lacks; those with one label take what is left.

    Examples
    --------
    >>> labels = draw_labels(np.array([3, 2]), np.array([3, 1]), np.random.default_rng(0))
    >>> labels.sum(axis=0), np.bincount(labels.sum(axis=1))
    (array([3, 2]), array([0, 3, 1]))
    """
    sizes = np.arange(1, len(labels_per_image) + 1)
    if class_freq.sum() != (sizes * labels_per_image).sum():
        raise ValueError(
            f"expected class frequencies and labels per image with equal sums, got "
            f"{class_freq.sum()} and {(sizes * labels_per_image).sum()}"
        )
    left = class_freq.copy()  # (C,) images that each class still lacks
    counts = labels_per_image.copy()
    rows = []
    if connected and len(class_freq) > 1:
        rows = _draw_tree(left, rng)
        counts[1] -= len(rows)
        if counts[1] < 0:
            raise ValueError(
                f"expected {len(rows)} or more two-label images to join {len(left)} classes, "
                f"got {labels_per_image[1]}"
            )
        left -= np.bincount(np.concatenate(rows), minlength=len(left))
    for size in sizes[:0:-1].tolist():
        for _ in range(counts[size - 1]):
            row = _draw_classes(left, size, rng)
            left[row] -= 1
            rows.append(row)
    rows += [np.array([c]) for c in np.repeat(np.arange(len(left)), left)]
    labels = np.zeros((len(rows), len(left)), dtype=bool)
    labels[np.repeat(np.arange(len(rows)), [len(row) for row in rows]), np.concatenate(rows)] = True
    return rng.permutation(labels)


def _draw_classes(left: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Draw distinct classes, weighted by the images that each still lacks."""
    if (left > 0).sum() < size:
        raise ValueError(
            f"expected {size} classes with images left for an image of {size} labels, got "
            f"{(left > 0).sum()}; allow more images with one label"
        )
    # The smallest of exponential times with rates `left` are a weighted draw without replacement.
    times = np.full(len(left), np.inf)
    np.divide(rng.standard_exponential(len(left)), left, out=times, where=left > 0)
    return np.argpartition(times, size - 1)[:size]


def _draw_tree(class_freq: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """Return the edges of a random tree in which no class is used more often than it occurs."""
    if class_freq.sum() < 2 * (len(class_freq) - 1):
        raise ValueError(
            f"expected {2 * (len(class_freq) - 1)} or more labels to join {len(class_freq)} "
            f"classes by two-label images, got {class_freq.sum()}"
        )
    order = rng.permutation(len(class_freq))
    order = np.concatenate([order[class_freq[order] > 1], order[class_freq[order] == 1]])
    open_ends = np.zeros_like(class_freq)
    open_ends[order[0]] = class_freq[order[0]]
    edges = []
    for new in order[1:]:
        parent = _draw_classes(open_ends, 1, rng)[0]
        open_ends[parent] -= 1
        open_ends[new] = class_freq[new] - 1
        edges.append(np.array([parent, new]))
    return edges


def join_tasks(
    blocks: list[np.ndarray], class_task: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Set the tasks' labels beside each other in one matrix, images shuffled; after Sec. 5.

    Parameters
    ----------
    blocks : list of numpy.ndarray of bool, shape (N_t, C_t)
        Labels of each task over its own classes.
    class_task : numpy.ndarray of int64, shape (C,)
        Task of each class.
    rng : numpy.random.Generator
        Source of chance.

    Returns
    -------
    numpy.ndarray of bool, shape (sum of N_t, C)
        Labels over all classes.

    Examples
    --------
    >>> one = np.ones((2, 1), dtype=bool)
    >>> join_tasks([one, one], np.array([0, 1]), np.random.default_rng(0)).sum(axis=0)
    array([2, 2])
    """
    joined = []
    for task, block in enumerate(blocks):
        rows = np.zeros((len(block), len(class_task)), dtype=bool)
        rows[:, class_task == task] = block
        joined.append(rows)
    return rng.permutation(np.concatenate(joined))


def draw_bridges(
    class_freq: np.ndarray, class_task: np.ndarray, count: int, rng: np.random.Generator
) -> np.ndarray:
    """Draw labels of images that span three tasks or more, which no split keeps; after Sec. 5.1.

    Parameters
    ----------
    class_freq : numpy.ndarray of int64, shape (C,)
        Weight of each class within its task.
    class_task : numpy.ndarray of int64, shape (C,)
        Task of each class; three tasks or more.
    count : int
        Number of images.
    rng : numpy.random.Generator
        Source of chance.

    Returns
    -------
    numpy.ndarray of bool, shape (count, C)
        Labels, one class from each of three or four tasks.

    Examples
    --------
    >>> draw_bridges(np.ones(3), np.arange(3), 1, np.random.default_rng(0))
    array([[ True,  True,  True]])
    """
    num_tasks = int(class_task.max()) + 1
    members = [np.flatnonzero(class_task == task) for task in range(num_tasks)]
    picks = np.stack(
        [rng.choice(m, size=count, p=class_freq[m] / class_freq[m].sum()) for m in members], axis=1
    )  # (count, tasks)
    spans = rng.integers(3, min(num_tasks, 4) + 1, size=count)
    ranks = rng.random((count, num_tasks)).argsort(axis=1).argsort(axis=1)
    rows, tasks = np.nonzero(ranks < spans[:, None])
    labels = np.zeros((count, len(class_task)), dtype=bool)
    labels[rows, picks[rows, tasks]] = True
    return labels
