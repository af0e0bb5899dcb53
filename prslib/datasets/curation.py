"""Cluster classes into tasks, and draw balanced test sets."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from prslib.checks import expected
from prslib.datasets.base import GROUPS, Clustering, Split

# multiples of the mean class size: minority below SMALL, majority from LARGE on
SMALL, LARGE = 0.5, 2.0


class Merge(NamedTuple):
    """One step of the clustering; Appendix, Algorithm 2, line 22."""

    # classes of the two groups that are joined
    first: tuple[int, ...]
    second: tuple[int, ...]
    # co: images with labels of both groups, and of no other
    together: int
    # elem of both: images whose labels are all in one of the two groups
    apart: int
    score: float  # Eq. (7)


def cluster_classes(source: Clustering) -> np.ndarray:
    """Cluster classes into groups that few images span, int64 (C,); Algorithm 2."""
    group_of_class = np.arange(source.labels.shape[1])
    for merge in class_merges(source):
        # a group is named by its lowest class
        group_of_class[list(merge.second)] = merge.first[0]
    return np.unique(group_of_class, return_inverse=True)[1].astype(np.int64)


def class_merges(source: Clustering) -> list[Merge]:
    """List the merges that lead from single classes to the groups; Algorithm 2."""
    # The paper leaves three things open. Pairs without a common image (co = 0) are
    # never merged. Among equal scores, the first pair in the order of the groups'
    # lowest classes is merged. For the "minimum number of classes": as soon as the
    # number of remaining merges is not larger than the number of groups below the
    # minimum, every merge must include one of these groups. Because this rule looks only
    # one merge ahead, it can miss the minimum, which raises an error.
    labels = source.labels
    n_groups = source.n_groups
    min_classes = source.min_classes
    # distinct rows of labels, bool (rows, groups), and their numbers of images
    touched, images = np.unique(labels, axis=0, return_counts=True)
    # always sorted by lowest class
    groups: list[tuple[int, ...]] = [(c,) for c in range(labels.shape[1])]
    merges = []
    while len(groups) > n_groups:
        score, together, apart = _merge_scores(touched, images, source.beta)
        small = np.array([len(group) < min_classes for group in groups])
        if len(groups) - n_groups <= small.sum():
            score[~(small[:, None] | small)] = -np.inf
        first, second = np.unravel_index(score.argmax(), score.shape)
        counts = int(together[first, second]), int(apart[first, second])
        merge = Merge(groups[first], groups[second], *counts, score[first, second])
        if merge.score == -np.inf:
            break
        merges.append(merge)
        groups[first] += groups.pop(second)
        touched[:, first] |= touched[:, second]
        touched = np.delete(touched, second, axis=1)
    sizes = [len(group) for group in groups]
    if len(sizes) > n_groups or min(sizes) < min_classes:
        what = f"{n_groups} groups of {min_classes} or more classes"
        raise ValueError(expected(what, f"groups of {sizes}"))
    return merges


def _merge_scores(
    touched: np.ndarray, images: np.ndarray, beta: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return score, co and elem of each pair j < k of groups; Eq. (7)."""
    spread = touched.sum(axis=1)
    alone, pair = touched[spread == 1], touched[spread == 2]
    elem = images[spread == 1] @ alone  # (groups,)
    # An image that is within the union of two groups, but in neither of them, has labels
    # in exactly these two.
    co = np.triu((pair.T * images[spread == 2]) @ pair, 1)
    score = np.full(co.shape, -np.inf)
    met = co > 0
    both = elem[:, None] + elem[None, :]
    score[met] = np.log(co[met]) - beta * both[met].astype(np.float64) ** 2
    return score, co, both


def tasks_of_images(labels: np.ndarray, class_task: np.ndarray) -> np.ndarray:
    """Return the task of each image, -1 if its labels span tasks; Appendix."""
    # the task of each image's first label
    task = class_task[labels.argmax(axis=1)].astype(np.int64)
    foreign = labels & (class_task[None, :] != task[:, None])  # (N, C)
    task[foreign.any(axis=1)] = -1
    return task


def class_groups(
    class_freq: np.ndarray, minority_below: float = 200, majority_from: float = 900
) -> tuple[str, ...]:
    """Name the group of each class by its frequency in the stream; Sec. 5.1."""
    # The paper says "more than 900"; its released list has a class with exactly 900
    # among the majority, so the threshold itself belongs to the majority here.
    size = np.digitize(class_freq, (minority_below, majority_from))
    return tuple(np.array(GROUPS[::-1])[size].tolist())


def groups_by_mean(class_freq: np.ndarray) -> tuple[str, ...]:
    """Name the group of each class by its size relative to the mean class size."""
    mean = class_freq[class_freq > 0].mean()
    return class_groups(class_freq, SMALL * mean, LARGE * mean)


def draw_even(
    labels: np.ndarray,
    per_class: int,
    rng: np.random.Generator,
    reserve: np.ndarray,
) -> np.ndarray:
    """Draw `per_class` images of every class, and few further images of any class.

    A class is full if `per_class` of its images have been drawn. More images of a full
    class are drawn only if another class needs them, such as images of "fruit" for
    "lemon". Images with a low `reserve`, int (N,), are drawn first. Among images with
    the same `reserve`, the first are those with the fewest labels of full classes.
    """
    order = rng.permutation(len(labels))
    order = order[np.argsort(reserve[order], kind="stable")]
    counts = np.zeros(labels.shape[1], dtype=np.int64)
    drawn = np.zeros(len(labels), dtype=bool)
    for c in np.argsort(labels.sum(axis=0), kind="stable"):
        while counts[c] < per_class:
            images = order[labels[order, c] & ~drawn[order]]
            if not len(images):
                break
            full = (labels[images] & (counts >= per_class)).sum(axis=1)
            image = images[np.lexsort((full, reserve[images]))[0]]
            drawn[image] = True
            counts += labels[image]
    return np.flatnonzero(drawn)


def feature_rows(test: Split, per_class: int) -> np.ndarray:
    """Return the images whose features a run stores: per class, the first with no other label."""
    # The paper does not say how its figure colours images with several labels. They
    # are left out, because their features need not be near those of any single class.
    alone = np.flatnonzero(test.labels.sum(axis=1) == 1)
    if not len(alone):
        what = "test images with a single label for features_per_class"
        raise ValueError(expected(what, "none"))
    # (N, C), position of each image within its class
    number = test.labels[alone].cumsum(axis=0)
    return alone[(test.labels[alone] & (number <= per_class)).any(axis=1)]
