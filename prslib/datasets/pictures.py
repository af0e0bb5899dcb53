"""Load Material Design icons with their tags and clip art with its keywords.

The checkout contains features from a frozen network, labels and names.
`studies/embed_pictures.py` makes these files and documents how classes, tasks and tests
are chosen. Siblings, such as an icon and its outline, are never split between the stream
and the tests.
"""

from functools import partial
from typing import Any

from prslib.datasets.base import Entry, Recipe
from prslib.datasets.features import HEAD, load_embedded
from prslib.datasets.prepared import load_clustering
from prslib.datasets.reuters import memory_size_of
from prslib.paths import DATA


def _entry(name: str, length: int, n_tasks: int, n_groups: int, beta: float) -> Entry:
    # The settings of cocoseq-mini, because the same network computed the features.
    # `studies/ewc_strength.py` chose the strength of EWC on a part of the stream.
    settings: dict[str, Any] = HEAD | {"ewc_lambda": 15000.0}
    recipe = Recipe(
        memory_size=memory_size_of(length), schedule=tuple(range(n_tasks)), **settings
    )
    file = DATA / f"{name}.npz"
    load = partial(load_embedded, name=name, file=file)
    clustering = partial(load_clustering, file, n_groups, beta)
    return Entry(load, recipe, clustering, data_source="other")


# Name, number of pictures in the stream, number of tasks, and number of groups and beta of
# Algorithm 2. Groups in which no class has enough pictures are not tasks.
STREAMS = (
    ("mdiseq", 3302, 6, 6, 1e-5),
    ("clipartseq", 2924, 4, 6, 1e-4),
)
ENTRIES = {row[0]: _entry(*row) for row in STREAMS}
