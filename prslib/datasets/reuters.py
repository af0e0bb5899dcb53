"""Load Reuters-21578 as a stream of documents, whole or subsampled.

Features, labels and ids are embedded; `studies/embed_reuters.py` makes the file. Two
kinds of subsampled streams separate imbalance from length. "cap" streams lose documents
of their largest classes, whereas "part" streams of the same lengths keep the imbalance.
Each of these streams is drawn three times, and their memory is as large as the memory
of the whole stream. The imbalanced test set of a "cap" stream is subsampled in the same
way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from prslib.datasets.base import Entry, Recipe, SequentialDataset
from prslib.datasets.features import HEAD, load_embedded, memory_size_of
from prslib.datasets.prepared import load_clustering
from prslib.paths import DATA

FILE = DATA / "reutersseq.npz"
# Settings of Algorithm 2: four tasks, as in COCOseq. Of the powers of ten from 1 to 1e-8,
# this beta reaches the largest "minimum number of classes", five.
NUM_TASKS = 4
BETA = 1e-5
MIN_CLASSES = 5
# the paper's 200 and 900, scaled to the length of the stream
MINORITY_BELOW = 45
MAJORITY_FROM = 200
LENGTH = 7471  # documents in the stream
# maximum numbers of documents per class; the last one is for the tiny stream
CAPS = (1000, 300, 100, 30, 8)
# Each part is as long as the first draw of the corresponding cap, so that these two differ
# only in imbalance, and the parts differ from each other only in length.
PARTS = (5010, 3292, 1981, 893)
# seed of the subsampling, not of a run; each stream is drawn three times
SEED = 20201126
DRAWS = 3
# `studies/reuters_settings.py` chose the step size by a vote of all methods, and
# `studies/ewc_strength.py` the strength of EWC, both on a part of the stream.
SETTINGS: dict[str, Any] = HEAD | {"learning_rate": 0.002, "ewc_lambda": 150.0}


def thin_largest(labels: np.ndarray, cap: int, draw: int, whole: int = 0) -> np.ndarray:
    """Subsample the largest classes to one of `CAPS`, bool (N,).

    A document is removed if all of its classes still have more documents than the cap.
    Therefore no class falls below the cap, and if a class remains above the cap, each
    of its documents also belongs to a class that is not above the cap. The documents
    that a cap keeps are a subset of the documents that the next larger cap keeps. The
    caps refer to a stream of `whole` documents, by default the number of rows in
    `labels`. If there are more or fewer rows, the caps are scaled in proportion.
    """
    order = np.random.default_rng(SEED + draw).permutation(len(labels))
    counts = labels.sum(axis=0)  # (C,)
    kept = np.ones(len(labels), dtype=bool)
    scale = len(labels) / (whole or len(labels))
    for step in CAPS:
        if step < cap:
            break
        for row in order[kept[order]]:
            if (counts[labels[row]] > step * scale).all():
                kept[row] = False
                counts -= labels[row]
    return kept


def thin_evenly(labels: np.ndarray, length: int, draw: int) -> np.ndarray:
    """Keep `length` documents and the proportions of all classes, bool (N,).

    Each document counts for its smallest class. In random order, the documents of a
    class receive evenly spaced numbers from 0 to 1, and the `length` documents with the
    lowest numbers are kept. A longer stream therefore contains all documents of a
    shorter stream.
    """
    rng = np.random.default_rng(SEED + draw)
    counts = labels.sum(axis=0)  # (C,)
    smallest = np.where(labels, counts, len(labels) + 1).argmin(axis=1)  # (N,)
    height = np.empty(len(labels))
    for c in np.unique(smallest):
        rows = rng.permutation(np.flatnonzero(smallest == c))
        height[rows] = (np.arange(len(rows)) + rng.random()) / len(rows)
    kept = np.zeros(len(labels), dtype=bool)
    kept[np.argsort(height, kind="stable")[:length]] = True
    return kept


def choose_capped(dataset: SequentialDataset, cap: int, draw: int) -> SequentialDataset:
    """Subsample the largest classes of the stream and of its imbalanced test set."""
    train, test = dataset.train, dataset.tests["imbalanced"]
    kept = thin_largest(train.labels, cap, draw)
    in_test = thin_largest(test.labels, cap, draw, whole=len(train))
    tests = dataset.tests | {"imbalanced": test.take(in_test)}
    return replace(dataset, train=train.take(kept), tests=tests)


def choose_part(
    dataset: SequentialDataset, length: int, draw: int
) -> SequentialDataset:
    """Subsample all classes of the stream in proportion."""
    kept = thin_evenly(dataset.train.labels, length, draw)
    return replace(dataset, train=dataset.train.take(kept))


def _entry(
    name: str, choose: Callable | None = None, length: int = LENGTH, **others: Any
) -> Entry:
    schedule = tuple(range(NUM_TASKS))
    settings: dict[str, Any] = SETTINGS | others
    recipe = Recipe(memory_size=memory_size_of(length), schedule=schedule, **settings)
    load = partial(load_embedded, name=name, file=FILE, choose=choose)
    clustering = partial(load_clustering, FILE, NUM_TASKS, BETA, MIN_CLASSES)
    return Entry(load, recipe, clustering, data_source="other")


# for tests: all classes, but few documents
TINY = partial(choose_capped, cap=CAPS[-1], draw=0)
ENTRIES = {
    "reutersseq": _entry("reutersseq"),
    "reutersseq-tiny": _entry("reutersseq-tiny", TINY, 247, test_resamples=0),
}
for draw in range(DRAWS):
    ending = f"-{draw + 1}" if draw else ""
    for cap in CAPS[:-1]:
        name = f"reutersseq-cap{cap}{ending}"
        ENTRIES[name] = _entry(name, partial(choose_capped, cap=cap, draw=draw))
    for length in PARTS:
        name = f"reutersseq-part{length}{ending}"
        ENTRIES[name] = _entry(name, partial(choose_part, length=length, draw=draw))
