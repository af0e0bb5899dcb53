"""Data sets that need no download: scenes of scikit-learn's handwritten digits, in colour.

Two stand in for the paper's streams, with the streams' class frequencies divided; each has a tiny
twin for tests. They come about as COCOseq did: a corpus of labels, some across tasks; classes
clustered into tasks; images that span tasks dropped.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from prslib.datasets import clustering, corpora, curation, glyphs, profiles
from prslib.datasets.cache import cached_arrays
from prslib.datasets.recipe import Clustering, Entry, Recipe
from prslib.datasets.sequential import SequentialDataset, Split

SEED = 20200823  # of the data, not of a run
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
    profile: tuple[profiles.TaskProfile, ...]
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
    blocks = [corpora.draw_labels(*counts, rng, connected=True) for counts in scaled]
    stream = corpora.join_tasks(blocks, plan.planted_task, rng)
    bridges = corpora.draw_bridges(
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
            (profiles, corpora, clustering, curation, glyphs, sys.modules[__name__]),
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
    rng = np.random.default_rng(np.random.SeedSequence(SEED).spawn(1)[0])
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
    label_seed = np.random.SeedSequence(SEED).spawn(1)[0]
    corpus = draw_corpus(plan, np.random.default_rng(label_seed))
    names = _names(_identity(plan))
    return Clustering(corpus, names, len(plan.profile), plan.beta, plan.min_classes)


def _identity(plan: Plan) -> np.ndarray:
    """Return which digit in which colour each class is, as one number."""
    name_seed = np.random.SeedSequence(SEED).spawn(2)[1]
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
        part: corpora.join_tasks(
            [corpora.draw_labels(*both, rng) for both in tasks], plan.planted_task, rng
        )
        for part, tasks in counts.items()
    }


def digit_originals(part: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the handwritten digits that scenes of one part are drawn from; our own choice.

    Parameters
    ----------
    part : str
        "train", or the name of a test set: those come from the other originals.

    Returns
    -------
    pictures : numpy.ndarray of float64, shape (M, 8, 8)
        From 0 to 1.
    digits : numpy.ndarray of int64, shape (M,)
        What each shows.

    Examples
    --------
    >>> [digit_originals(part)[0].shape for part in ("train", "test")]
    [(1195, 8, 8), (602, 8, 8)]
    """
    return _originals()[0][part == "train"]


def _originals() -> tuple[dict[bool, tuple[np.ndarray, np.ndarray]], np.random.Generator]:
    """Return pictures and digits, for training or not, and the generator that scenes go on with."""
    from sklearn.datasets import load_digits

    data, rng = load_digits(), np.random.default_rng(np.random.SeedSequence(SEED).spawn(3)[2])
    train, test = glyphs.split_originals(data.target, rng)
    return {
        part: (data.images[use] / 16, data.target[use])
        for part, use in ((True, train), (False, test))
    }, rng


def _render(labels: dict[str, np.ndarray], identity: np.ndarray) -> dict[str, np.ndarray]:
    """Draw the scenes of every part, training and test from different originals."""
    originals, rng = _originals()
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


DIGITS70 = Plan("digits70seq", "COCOseq", profiles.COCOSEQ, 4, 1.0, 1, 50)
DIGITS49 = Plan("digits49seq", "NUS-WIDEseq", profiles.NUSWIDESEQ, 6, 1e-4, 4, 50)
DIGITS70_TINY = Plan("digits70tiny", "COCOseq", profiles.COCOSEQ, 40, 1.0, 1, 4)
DIGITS49_TINY = Plan("digits49tiny", "NUS-WIDEseq", profiles.NUSWIDESEQ, 60, 1e-4, 4, 4)

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
