"""Draw single handwritten digits for the single-label stand-ins, in grey and in colour."""

from __future__ import annotations

import sys

import numpy as np

from prslib.datasets import glyphs
from prslib.datasets.cache import cached_arrays

SEED = 20200824  # of the pictures, not of a run
SHEAR = 0.25  # largest slant, pixels sideways a pixel of height
GREY = {"side": 28, "smallest": 18, "largest": 22, "shift": 2}  # pixels
COLOUR = {"side": 32, "smallest": 20, "largest": 26, "shift": 3}
CONTRAST = 60  # least difference of mean brightness between ink and ground, of 255
NOISE = 16  # largest change of a pixel in a coloured picture, of 255


def cached_pictures(
    name: str, digits: dict[str, np.ndarray], colour: bool
) -> dict[str, np.ndarray]:
    """Draw training and test pictures from different originals, once; our own choice.

    Parameters
    ----------
    name : str
        Name of the data set, for its file in the cache.
    digits : dict of str to numpy.ndarray of int64
        "train" and "test": the digit of each picture.
    colour : bool
        Whether the pictures are in colour.

    Returns
    -------
    dict of str to numpy.ndarray of uint8, (N, side, side, 1 or 3)
        The pictures.
    """
    return cached_arrays(name, (glyphs, sys.modules[__name__]), lambda: _draw_parts(digits, colour))


def _draw_parts(digits: dict[str, np.ndarray], colour: bool) -> dict[str, np.ndarray]:
    from sklearn.datasets import load_digits

    data, rng = load_digits(), np.random.default_rng(SEED)
    train, test = glyphs.split_originals(data.target, rng)
    pictures = {}
    for part, use in (("train", train), ("test", test)):
        ink = draw_ink(
            digits[part], data.images[use] / 16, data.target[use], COLOUR if colour else GREY, rng
        )
        pictures[part] = colour_ink(ink, rng) if colour else _to_bytes(255 * ink[..., None])
    return pictures


def draw_ink(digits, originals, original_digit, layout: dict[str, int], rng) -> np.ndarray:
    """Draw each digit from a random original, of random size, slant and place; our own choice.

    Parameters
    ----------
    digits : numpy.ndarray of int64, shape (N,)
        What to draw.
    originals : numpy.ndarray of float64, shape (M, S, S)
        Handwritten digits, 0 to 1.
    original_digit : numpy.ndarray of int64, shape (M,)
        Digit of each original.
    layout : dict of str to int
        "side" of a picture, "smallest" and "largest" size of a digit, and its largest "shift" from
        the middle, in pixels.
    rng : numpy.random.Generator
        Source of chance.

    Returns
    -------
    numpy.ndarray of float64, shape (N, side, side)
        How much ink a pixel has, 0 to 1.

    Examples
    --------
    >>> draw_ink(np.array([3]), np.ones((1, 8, 8)), np.array([3]), GREY,
    ...          np.random.default_rng(0)).shape
    (1, 28, 28)
    """
    side = layout["side"]
    ink = np.zeros((len(digits), side, side))
    original = glyphs.choose_originals(digits, original_digit, rng)
    sizes = rng.integers(layout["smallest"], layout["largest"] + 1, size=len(digits))
    shift = layout["shift"]
    shifts = rng.integers(-shift, shift + 1, size=(2, len(digits)))
    top, left = (side - sizes) // 2 + shifts
    for size in np.unique(sizes).tolist():
        now = np.flatnonzero(sizes == size)
        rows = top[now, None, None] + np.arange(size)[:, None]
        columns = left[now, None, None] + np.arange(size)
        ink[now[:, None, None], rows, columns] = glyphs.resize(originals, size)[original[now]]
    slant = rng.uniform(-SHEAR, SHEAR, len(digits))
    sideways = np.rint(slant[:, None] * (np.arange(side) - side / 2)).astype(np.int64)  # (N, side)
    source = np.clip(np.arange(side) - sideways[..., None], 0, side - 1)  # (N, side, side)
    return np.take_along_axis(ink, source, axis=2)


def colour_ink(ink: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Paint ink and ground in two random colours, with noise; our own choice.

    Parameters
    ----------
    ink : numpy.ndarray of float64, shape (N, side, side)
        How much ink a pixel has, 0 to 1.
    rng : numpy.random.Generator
        Source of chance.

    Returns
    -------
    numpy.ndarray of uint8, shape (N, side, side, 3)
        Pictures; which of the two colours is the brighter is chance, as on house fronts.

    Examples
    --------
    >>> colour_ink(np.ones((1, 2, 2)), np.random.default_rng(0)).shape
    (1, 2, 2, 3)
    """
    pair = rng.uniform(0, 255, (2, len(ink), 3))  # ground, ink
    while (close := np.abs(np.diff(pair.mean(axis=2), axis=0)[0]) < CONTRAST).any():
        pair[:, close] = rng.uniform(0, 255, (2, int(close.sum()), 3))
    pictures = np.empty((*ink.shape, 3), np.uint8)
    for start in range(0, len(ink), 1000):  # a thousand at a time, to spare memory
        part = slice(start, start + 1000)
        ground, top = pair[:, part, None, None, :]
        mixed = ground + ink[part, ..., None] * (top - ground)
        pictures[part] = _to_bytes(mixed + rng.uniform(-NOISE, NOISE, mixed.shape))
    return pictures


def _to_bytes(values: np.ndarray) -> np.ndarray:
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)
