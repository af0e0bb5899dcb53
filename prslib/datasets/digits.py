"""How often the classes occur in the paper's two multi-label streams, task by task."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from prslib.datasets import curation
from prslib.datasets import curation as clustering
from prslib.datasets import scenes as glyphs
from prslib.datasets.arrays import cached_arrays
from prslib.datasets.base import Clustering, Entry, Recipe, SequentialDataset, Split


@dataclass(frozen=True)
class TaskProfile:
    """Hold the class frequencies and labels per image of one task's stream; Sec. 5.

    Parameters
    ----------
    class_freq : tuple of int, length C
        Images of each class, in descending order.
    labels_per_image : tuple of int
        Images with 1, 2, 3, ... labels.

    Examples
    --------
    >>> TaskProfile((5, 4, 3), (4, 4)).scaled(1)[1]
    array([4, 4])
    """

    class_freq: tuple[int, ...]
    labels_per_image: tuple[int, ...]

    @property
    def num_classes(self) -> int:
        """Number of classes of the task."""
        return len(self.class_freq)

    def scaled(self, divisor: int, connected: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Return the profile of a smaller stream of the same shape; Sec. 5, divided.

        Parameters
        ----------
        divisor : int
            How many times smaller.
        connected : bool
            Leave room for a tree of two-label images that joins all classes of the task, as the
            clustering of the classes needs it.

        Returns
        -------
        class_freq : numpy.ndarray of int64, shape (C,)
            The frequencies divided and rounded down, at least 1.
        labels_per_image : numpy.ndarray of int64
            Images with 1, 2, ... labels. From two labels on the counts divided and rounded;
            images with one label make up what is left of the frequencies.

        Raises
        ------
        ValueError
            If the images with several labels need more labels than the frequencies hold.

        Notes
        -----
        Where a small stream has fewer than C - 1 two-label images and `connected` is True, just
        enough pairs of single-label images become two-label ones; the frequencies stay.

        Examples
        --------
        >>> TaskProfile((50, 41, 30), (90, 11, 3)).scaled(10, connected=True)
        (array([5, 4, 3]), array([8, 2, 0]))
        """
        class_freq = np.maximum(1, np.array(self.class_freq, dtype=np.int64) // divisor)
        counts = np.array(self.labels_per_image, dtype=np.int64)
        if connected and len(counts) == 1:
            counts = np.append(counts, 0)
        counts = (2 * counts + divisor) // (2 * divisor)  # rounded, halves upwards
        if connected and self.num_classes > 1:
            counts[1] = max(counts[1], self.num_classes - 1)
        return class_freq, fill_with_singles(class_freq, counts)

    def balanced(self, per_class: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the profile of a test set with equally many images of every class; Sec. 5.1.

        Parameters
        ----------
        per_class : int
            Images of each class.

        Returns
        -------
        class_freq : numpy.ndarray of int64, shape (C,)
            `per_class` in every entry.
        labels_per_image : numpy.ndarray of int64
            Images with 1, 2, ... labels, in the proportions of the stream.

        Examples
        --------
        >>> TaskProfile((5, 4, 3), (4, 4)).balanced(3)
        (array([3, 3, 3]), array([3, 3]))
        """
        class_freq = np.full(self.num_classes, per_class, dtype=np.int64)
        share = class_freq.sum() / sum(self.class_freq)
        counts = np.floor(np.array(self.labels_per_image) * share + 0.5).astype(np.int64)
        return class_freq, fill_with_singles(class_freq, counts)


def fill_with_singles(class_freq: np.ndarray, labels_per_image: np.ndarray) -> np.ndarray:
    """Return the counts with as many single-label images as the frequencies leave; Sec. 5.

    Parameters
    ----------
    class_freq : numpy.ndarray of int64, shape (C,)
        Images of each class.
    labels_per_image : numpy.ndarray of int64
        Images with 1, 2, ... labels; the first entry is replaced.

    Returns
    -------
    numpy.ndarray of int64
        The counts whose labels add up to the frequencies.

    Raises
    ------
    ValueError
        If the other images alone need more labels than there are.

    Examples
    --------
    >>> fill_with_singles(np.array([5, 4]), np.array([0, 3]))
    array([3, 3])
    """
    counts = labels_per_image.copy()
    total = int(class_freq.sum())
    needed = int((counts[1:] * np.arange(2, len(counts) + 1)).sum())
    if needed > total:
        raise ValueError(
            f"expected class frequencies that add up to {needed} or more, as many labels as the "
            f"images with several labels carry, got {total}; take a smaller divisor"
        )
    counts[0] = total - needed
    return counts


# Counted from the released splits of the paper's two data sets, training images only.
COCOSEQ = (
    TaskProfile(
        (
            *(1357, 1180, 1121, 898, 874, 584, 541, 416, 413, 399, 388, 382),
            *(307, 300, 272, 253, 230, 194, 145, 128, 126, 72, 59, 49),
        ),
        (6660, 1251, 323, 102, 25, 4),
    ),
    TaskProfile(
        (
            *(1827, 1319, 1228, 1045, 863, 808, 674, 658, 629, 575, 437, 408),
            *(333, 273, 241, 198, 146, 107),
        ),
        (4839, 2139, 701, 126, 9),
    ),
    TaskProfile(
        (1575, 1420, 1390, 1361, 925, 901, 900, 811, 794, 733, 660, 396, 342, 333),
        (10673, 922, 8),
    ),
    TaskProfile(
        (1743, 1158, 1050, 979, 482, 452, 395, 285, 284, 224, 189, 186, 185, 131),
        (6856, 418, 13, 3),
    ),
)

NUSWIDESEQ = (
    TaskProfile((14453, 2512, 1335, 857, 331), (16198, 1172, 266, 32, 4)),
    TaskProfile((8525, 7983, 6273, 2995, 2009, 1368), (9953, 6406, 1785, 257, 1)),
    TaskProfile(
        (2283, 438, 422, 402, 260, 215, 175, 150, 136, 128, 127, 118, 102, 101, 87, 83),
        (2478, 764, 304, 71, 5),
    ),
    TaskProfile((410, 317, 247, 196, 150, 146, 142, 135, 107, 75, 70, 45), (1815, 108, 3)),
    TaskProfile((1120, 868, 232, 199), (2325, 47)),
    TaskProfile((2724, 2547, 440, 438, 423, 184), (2830, 1780, 114, 6)),
)


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


BRIDGE_SHARE = 0.15  # images of the corpus across tasks, as a share of the stream
NUM_COLOURS = len(glyphs.COLOURS)


@dataclass(frozen=True)
class Plan:
    """Hold what makes one digits data set; after Sec. 5.

    Parameters
    ----------
    name : str
        Name of the data set.
    stands_for : str
        The paper's data set whose profile it takes.
    profile : tuple of TaskProfile
        That profile.
    divisor : int
        How many times smaller the stream is.
    beta : float
        Balance of the clustering, in 1 / images squared.
    min_classes : int
        Least number of classes a task.
    test_per_class : int
        Images of every class in the balanced test set.

    Examples
    --------
    >>> DIGITS70.num_classes
    70
    """

    name: str
    stands_for: str
    profile: tuple[TaskProfile, ...]
    divisor: int
    beta: float
    min_classes: int
    test_per_class: int

    @property
    def num_classes(self) -> int:
        """Number of classes: digits times colours."""
        return sum(task.num_classes for task in self.profile)

    @property
    def planted_task(self) -> np.ndarray:
        """Task of each class in the corpus, int64 (C,)."""
        return np.repeat(np.arange(len(self.profile)), [t.num_classes for t in self.profile])


def draw_corpus(plan: Plan, rng: np.random.Generator) -> np.ndarray:
    """Draw the labels of all images before any split, those across tasks included; Sec. 5.

    Parameters
    ----------
    plan : Plan
        The data set.
    rng : numpy.random.Generator
        Source of chance.

    Returns
    -------
    numpy.ndarray of bool, shape (N, C)
        Labels; the classes of the first task come first, the most frequent of a task first.

    Examples
    --------
    >>> draw_corpus(DIGITS70_TINY, np.random.default_rng(0)).shape[1]
    70
    """
    scaled = [task.scaled(plan.divisor, connected=True) for task in plan.profile]
    blocks = [draw_labels(*counts, rng, connected=True) for counts in scaled]
    stream = join_tasks(blocks, plan.planted_task, rng)
    bridges = draw_bridges(
        stream.sum(axis=0), plan.planted_task, round(BRIDGE_SHARE * len(stream)), rng
    )
    return rng.permutation(np.concatenate([stream, bridges]))


def load_digits_dataset(plan: Plan, images: bool) -> SequentialDataset:
    """Make a digits data set, or load its images from the cache; Appendix, "Dataset Curation".

    Parameters
    ----------
    plan : Plan
        The data set.
    images : bool
        False for labels alone, which need no scikit-learn and no cache.

    Returns
    -------
    SequentialDataset
        The same for every run.

    Examples
    --------
    >>> load_digits_dataset(DIGITS70_TINY, images=False).num_tasks
    4
    """
    class_task, drawn = _draw_labels(plan)
    labels = {part: rows.copy() for part, rows in drawn.items()}  # the caller's own
    class_freq = labels["train"].sum(axis=0)
    identity = _identity(plan)
    scenes = dict.fromkeys(labels)
    if images:
        scenes = cached_arrays(
            plan.name,
            (curation, glyphs, sys.modules[__name__]),
            lambda: _render(labels, identity),
        )
    splits = {
        part: Split(scenes[part], rows, curation.tasks_of_images(rows, class_task))
        for part, rows in labels.items()
    }
    return SequentialDataset(
        name=plan.name,
        train=splits.pop("train"),
        tests=splits,
        class_names=_names(identity),
        class_task=class_task.copy(),
        class_group=curation.class_groups(class_freq, 200 / plan.divisor, 900 / plan.divisor),
        stands_for=plan.stands_for,
    )


@lru_cache
def _draw_labels(plan: Plan) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return the task of each class, int64 (C,), and the labels of each part, bool (N, C)."""
    rng = np.random.default_rng(np.random.SeedSequence(glyphs.SCENE_SEED).spawn(1)[0])
    corpus = draw_corpus(plan, rng)
    class_task = clustering.cluster_classes(corpus, len(plan.profile), plan.beta, plan.min_classes)
    task = curation.tasks_of_images(corpus, class_task)
    return class_task, {"train": corpus[task >= 0], **_draw_tests(plan, rng)}


def load_clustering(plan: Plan) -> Clustering:
    """Draw the corpus that a digits data set was clustered from; Appendix, Algorithm 2.

    Parameters
    ----------
    plan : Plan
        The data set.

    Returns
    -------
    Clustering
        The same corpus as `load_digits_dataset` splits.

    Examples
    --------
    >>> load_clustering(DIGITS70_TINY).n_groups
    4
    """
    label_seed = np.random.SeedSequence(glyphs.SCENE_SEED).spawn(1)[0]
    corpus = draw_corpus(plan, np.random.default_rng(label_seed))
    names = _names(_identity(plan))
    return Clustering(corpus, names, len(plan.profile), plan.beta, plan.min_classes)


def _identity(plan: Plan) -> np.ndarray:
    """Return which digit in which colour each class is, as one number."""
    name_seed = np.random.SeedSequence(glyphs.SCENE_SEED).spawn(2)[1]
    return np.random.default_rng(name_seed).permutation(plan.num_classes)


def _names(identity: np.ndarray) -> tuple[str, ...]:
    colours = list(glyphs.COLOURS)
    return tuple(f"{colours[i % NUM_COLOURS]} {i // NUM_COLOURS}" for i in identity)


def _draw_tests(plan: Plan, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Draw labels with equal class frequencies, and with half of the stream's."""
    counts = {
        "balanced": [task.balanced(plan.test_per_class) for task in plan.profile],
        "imbalanced": [task.scaled(2 * plan.divisor) for task in plan.profile],
    }
    return {
        part: join_tasks([draw_labels(*both, rng) for both in tasks], plan.planted_task, rng)
        for part, tasks in counts.items()
    }


def _render(labels: dict[str, np.ndarray], identity: np.ndarray) -> dict[str, np.ndarray]:
    """Draw the scenes of every part, training and test from different originals."""
    originals, rng = glyphs.originals()
    palette = np.array(list(glyphs.COLOURS.values()), dtype=np.uint8)
    return {
        part: glyphs.render_scenes(
            rows,
            identity // NUM_COLOURS,
            palette[identity % NUM_COLOURS],
            *originals[part == "train"],
            rng,
        )
        for part, rows in labels.items()
    }


DIGITS70 = Plan("digits70seq", "COCOseq", COCOSEQ, 4, 1.0, 1, 50)
DIGITS49 = Plan("digits49seq", "NUS-WIDEseq", NUSWIDESEQ, 6, 1e-4, 4, 50)
DIGITS70_TINY = Plan("digits70tiny", "COCOseq", COCOSEQ, 40, 1.0, 1, 4)
DIGITS49_TINY = Plan("digits49tiny", "NUS-WIDEseq", NUSWIDESEQ, 60, 1e-4, 4, 4)

COCO_SCHEDULE = (0, 3, 1, 2)
NUS_SCHEDULE = (3, 1, 0, 5, 4, 2)
EWC_LAMBDA = 1.5  # the best of 15000, 1500, ... 1.5, tried in `main_results`


def _entry(plan: Plan, memory_size: int, schedule: tuple[int, ...]) -> Entry:
    learned = {"model": "convnet", "weights": "digits"}  # where the paper's has learned ImageNet
    recipe = Recipe(memory_size=memory_size, schedule=schedule, ewc_lambda=EWC_LAMBDA, **learned)
    return Entry(partial(load_digits_dataset, plan), recipe, partial(load_clustering, plan))


DIGITS70SEQ = _entry(DIGITS70, 500, COCO_SCHEDULE)
DIGITS49SEQ = _entry(DIGITS49, 333, NUS_SCHEDULE)
DIGITS70TINY = _entry(DIGITS70_TINY, 50, COCO_SCHEDULE)
DIGITS49TINY = _entry(DIGITS49_TINY, 33, NUS_SCHEDULE)
