"""Load Material Design icons with their tags and clip art with its keywords.

Features of a frozen network, labels and names are embedded; `studies/embed_pictures.py`
makes the files and says how classes, tasks and tests are chosen. Siblings, such as an
icon and its outline, are all in the stream or all in the tests.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
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
from prslib.datasets.reuters import memory_size_of
from prslib.paths import DATA


def file_of(name: str) -> Path:
    """Return the embedded file of a stream."""
    return DATA / f"{name}.npz"


@keep_loaded
def load_pictures(images: bool, name: str) -> SequentialDataset:
    """Load a stream of pictures."""
    file = file_of(name)
    selection = Selection.load(file)
    kept = np.ones(len(selection), dtype=bool)
    features = inputs_of(file, kept, selection) if images else None
    return selection.dataset(name, None, features)


def load_clustering(name: str, n_groups: int, beta: float) -> Clustering:
    """Return what the classes are clustered from: labels of all pictures."""
    labels, names = read_arrays(file_of(name), "corpus", "corpus_names").values()
    return Clustering(labels, tuple(names.tolist()), n_groups, beta)


def _entry(name: str, length: int, n_tasks: int, n_groups: int, beta: float) -> Entry:
    # Those of cocoseq-mini, as its network made these features, too. The strength of EWC
    # is that of `studies/ewc_strength.py`, on a part of the stream.
    settings: dict[str, Any] = HEAD | {"ewc_lambda": 15000.0}
    recipe = Recipe(
        memory_size=memory_size_of(length), schedule=tuple(range(n_tasks)), **settings
    )
    load = partial(load_pictures, name=name)
    clustering = partial(load_clustering, name, n_groups, beta)
    return Entry(load, recipe, clustering, data_source="other")


# Name, pictures of the stream, tasks, and the groups and beta of Algorithm 2, whose
# smallest groups have no class with enough pictures.
STREAMS = (
    ("mdiseq", 3302, 6, 6, 1e-5),
    ("clipartseq", 2924, 4, 6, 1e-4),
)
ENTRIES = {row[0]: _entry(*row) for row in STREAMS}
