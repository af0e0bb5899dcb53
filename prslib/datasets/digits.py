"""Make synthetic versions of the paper's two multi-label streams, from handwritten digits.

`studies/draw_streams.py` drew the stored labels, which have the statistics of the paper's
streams. The pictures are drawn when a data set is loaded.
"""

from functools import partial

import numpy as np

from prslib.datasets import coco, nuswide, scenes
from prslib.datasets.base import Entry, Recipe, SequentialDataset, keep_loaded
from prslib.datasets.prepared import (
    SPLITS,
    PreparedSet,
    Selection,
    load_clustering,
)
from prslib.paths import DATA


@keep_loaded
def load_digits_dataset(name: str, stands_for: str, images: bool) -> SequentialDataset:
    """Make a digits data set."""
    selection = Selection.load(DATA / f"{name}.npz")
    pictures = draw_pictures(selection) if images else None
    return selection.dataset(name, stands_for, pictures)


def draw_pictures(selection: Selection) -> np.ndarray:
    """Draw the scenes of every split; training and test use different original digits."""
    rng = scenes.generator(2)
    originals = scenes.read_originals(rng)
    digit, colour = scenes.glyphs(selection.class_names, scenes.COLOURS)
    pictures = []
    for split in SPLITS:
        labels = selection.labels[selection.rows(split)]
        source = originals["train" if split == "train" else "test"]
        pictures.append(scenes.render_scenes(labels, digit, colour, source, rng))
    return np.concatenate(pictures)


def _entry(name: str, original: PreparedSet, memory_size: int) -> Entry:
    recipe = Recipe(
        model="convnet",
        # pretrained, as the paper's network was on ImageNet
        weights="digits",
        memory_size=memory_size,
        schedule=original.schedule,
        # the best of 15000, 1500, ... 0.15 in figures/studies/ewc_strength.csv
        ewc_lambda=0.15,
    )
    load = partial(load_digits_dataset, name, original.stands_for)
    settings = original.num_tasks, original.beta, original.min_classes, "class_names"
    clustering = partial(load_clustering, DATA / f"{name}.npz", *settings)
    return Entry(load, recipe, clustering)


ENTRIES = {
    "digits70seq": _entry("digits70seq", coco.PREPARED, 500),
    "digits49seq": _entry("digits49seq", nuswide.PREPARED, 333),
    "digits70tiny": _entry("digits70tiny", coco.PREPARED, 50),
    "digits49tiny": _entry("digits49tiny", nuswide.PREPARED, 33),
}
