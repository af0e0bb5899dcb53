"""Load Material Design icons with their tags and clip art with its keywords.

Features of a frozen network, labels and names are embedded; `studies/embed_pictures.py`
makes the files and says how classes, tasks and tests are chosen. Siblings, such as an
icon and its outline, are all in the stream or all in the tests.
"""

from functools import partial
from typing import Any

from prslib.datasets.base import Entry, Recipe
from prslib.datasets.features import HEAD, load_clustering, load_embedded
from prslib.datasets.reuters import memory_size_of
from prslib.paths import DATA


def _entry(name: str, length: int, n_tasks: int, n_groups: int, beta: float) -> Entry:
    # Those of cocoseq-mini, as its network made these features, too. The strength of EWC
    # is that of `studies/ewc_strength.py`, on a part of the stream.
    settings: dict[str, Any] = HEAD | {"ewc_lambda": 15000.0}
    recipe = Recipe(
        memory_size=memory_size_of(length), schedule=tuple(range(n_tasks)), **settings
    )
    file = DATA / f"{name}.npz"
    load = partial(load_embedded, name=name, file=file)
    clustering = partial(load_clustering, file, n_groups, beta)
    return Entry(load, recipe, clustering, data_source="other")


# Name, pictures of the stream, tasks, and the groups and beta of Algorithm 2, whose
# smallest groups have no class with enough pictures.
STREAMS = (
    ("mdiseq", 3302, 6, 6, 1e-5),
    ("clipartseq", 2924, 4, 6, 1e-4),
)
ENTRIES = {row[0]: _entry(*row) for row in STREAMS}
