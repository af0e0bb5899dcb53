"""Scenes to learn from before a stream, of classes that no stream has.

The paper's networks begin with ImageNet, whose thousand classes hold most of COCO's. The stand-ins'
network begins with digits in colours that no stream has, upright, or turned for comparison.
"""

from __future__ import annotations

import numpy as np

from prslib.datasets import glyphs
from prslib.datasets.digits import digit_originals

COLOURS = {  # none of them in `glyphs.COLOURS`
    "orange": (255, 140, 20),
    "brown": (150, 90, 40),
    "teal": (20, 140, 130),
    "pink": (255, 170, 190),
    "lime": (170, 250, 90),
    "violet": (140, 60, 230),
    "grey": (140, 140, 140),
}
CLASS_NAMES = tuple(f"{colour} {digit}" for digit in range(10) for colour in COLOURS)
TURNS = {"digits": 0, "turned_digits": 1}  # quarters, counter-clockwise, by name of the scenes
LABELS_PER_IMAGE = (0.60, 0.25, 0.10, 0.05)  # share of the scenes with 1, 2, 3, 4 labels


def draw_scenes(
    name: str, images: int, rng: np.random.Generator, part: str = "train"
) -> tuple[np.ndarray, np.ndarray]:
    """Draw scenes to learn from before a stream, all classes equally frequent; our own choice.

    Parameters
    ----------
    name : str
        A key of `TURNS`.
    images : int
        How many.
    rng : numpy.random.Generator
        Source of chance.
    part : str
        "train" or "test": from which handwritten originals, as parted for the streams. Those of
        the streams' test scenes are not learned from.

    Returns
    -------
    scenes : numpy.ndarray of uint8, shape (images, 32, 32, 3)
        Scenes as in the streams, the digits turned and coloured in another way.
    labels : numpy.ndarray of bool, shape (images, 70)
        Which of `CLASS_NAMES` each holds.

    Examples
    --------
    >>> scenes, labels = draw_scenes("digits", 5, np.random.default_rng(0))
    >>> scenes.shape, labels.shape
    ((5, 32, 32, 3), (5, 70))
    """
    digit = np.repeat(np.arange(10), len(COLOURS))
    colour = np.tile(np.array(list(COLOURS.values()), dtype=np.uint8), (10, 1))
    count = 1 + rng.choice(len(LABELS_PER_IMAGE), size=images, p=LABELS_PER_IMAGE)
    rank = rng.random((images, len(digit))).argsort(axis=1).argsort(axis=1)
    labels = rank < count[:, None]
    pictures, of_digit = digit_originals(part)
    turned = np.rot90(pictures, TURNS[name], axes=(1, 2))
    return glyphs.render_scenes(labels, digit, colour, turned, of_digit, rng), labels
