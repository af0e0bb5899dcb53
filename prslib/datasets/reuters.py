"""Load Reuters-21578 as a stream of documents, whole or subsampled.

Features, labels and ids are embedded; `studies/embed_reuters.py` makes the file. Two
kinds of subsampled streams tell imbalance from length. "cap" streams lose documents of
their largest classes. "part" streams are as long and keep the imbalance. All are
scored on the same test sets.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from prslib.datasets.arrays import read_arrays
from prslib.datasets.base import (
    Clustering,
    Entry,
    Recipe,
    SequentialDataset,
    keep_loaded,
)
from prslib.datasets.features import HEAD, inputs_of
from prslib.datasets.prepared import Selection
from prslib.paths import DATA

FILE = DATA / "reutersseq.npz"
# Algorithm 2. Four tasks, as COCOseq has. Of the powers of ten from 1 to 1e-8 this beta
# gives the largest "minimum number of classes" that Algorithm 2 can reach, five.
NUM_TASKS = 4
BETA = 1e-5
MIN_CLASSES = 5
# the paper's 200 and 900 in proportion to the stream
MINORITY_BELOW = 45
MAJORITY_FROM = 200
# most documents of the largest classes; the last is that of the tiny stream
CAPS = (1000, 300, 100, 30, 8)
# of the subsampled streams, not of a run
SEED = 20201126
# The step size is that of `studies/reuters_settings.py`, where all methods vote, and the
# strength of EWC that of `studies/ewc_strength.py`, both on a part of the stream.
SETTINGS: dict[str, Any] = HEAD | {"learning_rate": 0.002, "ewc_lambda": 15000.0}
# tells, from the labels of the stream, bool (N, C), which documents stay, bool (N,)
Thin = Callable[[np.ndarray], np.ndarray]


def thin_largest(labels: np.ndarray, cap: int) -> np.ndarray:
    """Thin the largest classes to one of `CAPS`, bool (N,).

    A document leaves while all of its classes have more documents than the cap. So no
    class falls below the cap, and a class stays above it only with documents that a
    smaller class needs. Each cap keeps a subset of what the next larger one keeps.
    """
    order = np.random.default_rng(SEED).permutation(len(labels))
    counts = labels.sum(axis=0)  # (C,)
    kept = np.ones(len(labels), dtype=bool)
    for step in CAPS:
        if step < cap:
            break
        for row in order[kept[order]]:
            if (counts[labels[row]] > step).all():
                kept[row] = False
                counts -= labels[row]
    return kept


def thin_evenly(labels: np.ndarray, length: int) -> np.ndarray:
    """Keep `length` documents and the proportions of all classes, bool (N,).

    Each document counts for its smallest class. The documents of a class are spread
    evenly from 0 to 1, in random order, and the lowest are kept. So a longer stream
    has all documents of a shorter one.
    """
    rng = np.random.default_rng(SEED)
    counts = labels.sum(axis=0)  # (C,)
    smallest = np.where(labels, counts, len(labels) + 1).argmin(axis=1)  # (N,)
    height = np.empty(len(labels))
    for c in np.unique(smallest):
        rows = rng.permutation(np.flatnonzero(smallest == c))
        height[rows] = (np.arange(len(rows)) + rng.random()) / len(rows)
    kept = np.zeros(len(labels), dtype=bool)
    kept[np.argsort(height, kind="stable")[:length]] = True
    return kept


@keep_loaded
def load_reuters(
    images: bool, name: str, thin: Thin | None = None
) -> SequentialDataset:
    """Load the stream, or those of its documents that `thin` keeps of its labels."""
    selection = Selection.load(FILE)
    kept = np.ones(len(selection), dtype=bool)
    if thin is not None:
        train = selection.rows("train")
        kept[train] = thin(selection.labels[train])
    selection = selection.keep(kept)
    features = inputs_of(FILE, kept, selection) if images else None
    return selection.dataset(name, None, features)


def load_clustering() -> Clustering:
    """Return what the classes are clustered from: labels of all training documents."""
    labels, names = read_arrays(FILE, "corpus", "corpus_names").values()
    return clustering_of(labels, tuple(names.tolist()))


def clustering_of(labels: np.ndarray, names: tuple[str, ...]) -> Clustering:
    """Return labels (N, C), which classes are clustered from by these settings."""
    return Clustering(labels, names, NUM_TASKS, BETA, MIN_CLASSES)


def memory_size_of(length: int) -> int:
    """Return the memory of a stream: the paper's proportion, 2,000 of 35,072."""
    return round(length * 2000 / 35072)


def _entry(name: str, length: int, thin: Thin | None, **others: Any) -> Entry:
    settings: dict[str, Any] = SETTINGS | {"test_set": "imbalanced"} | others
    recipe = Recipe(
        memory_size=memory_size_of(length),
        schedule=tuple(range(NUM_TASKS)),
        **settings,
    )
    load = partial(load_reuters, name=name, thin=thin)
    return Entry(load, recipe, load_clustering, data_source="other")


def _cap(cap: int) -> Thin:
    return partial(thin_largest, cap=cap)


def _part(length: int) -> Thin:
    return partial(thin_evenly, length=length)


# Name, documents of the stream, and which are kept. Each part is as long as the cap
# beside it: the two differ in imbalance alone, the parts among themselves in length.
STREAMS = (
    ("reutersseq", 7471, None),
    ("reutersseq-cap1000", 5010, _cap(1000)),
    ("reutersseq-cap300", 3292, _cap(300)),
    ("reutersseq-cap100", 1981, _cap(100)),
    ("reutersseq-cap30", 893, _cap(30)),
    ("reutersseq-part5010", 5010, _part(5010)),
    ("reutersseq-part3292", 3292, _part(3292)),
    ("reutersseq-part1981", 1981, _part(1981)),
    ("reutersseq-part893", 893, _part(893)),
)
ENTRIES = {row[0]: _entry(*row) for row in STREAMS}
# for tests: every class and few documents, and the small test set
TINY: dict[str, Any] = {"test_set": "balanced", "test_resamples": 0}
ENTRIES["reutersseq-tiny"] = _entry("reutersseq-tiny", 247, _cap(8), **TINY)
