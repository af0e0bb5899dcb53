"""Draw small scenes of coloured handwritten digits."""

from __future__ import annotations

import numpy as np

COLOURS = {
    "red": (255, 48, 48),
    "green": (40, 210, 60),
    "blue": (64, 96, 255),
    "yellow": (255, 225, 30),
    "magenta": (255, 60, 225),
    "cyan": (30, 225, 235),
    "white": (255, 255, 255),
}
SIDE = 32  # pixels
NOISE = 32  # background pixels are below this, of 255
# Cells to a side -> (offset and width of the cells, smallest and largest digit), in pixels.
GRIDS = {2: (16, 16, 9, 14), 3: (11, 10, 8, 10)}


def split_originals(digits: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Part the handwritten originals of each digit, two thirds to one third; our own choice.

    Parameters
    ----------
    digits : numpy.ndarray of int64, shape (M,)
        Digit of each original.
    rng : numpy.random.Generator
        Source of chance.

    Returns
    -------
    train, test : numpy.ndarray of int64
        Indices of the originals for training and for test scenes, sorted.

    Examples
    --------
    >>> train, test = split_originals(np.repeat([0, 1], 3), np.random.default_rng(0))
    >>> len(train), len(test), len(np.intersect1d(train, test))
    (4, 2, 0)
    """
    train, test = [], []
    for digit in np.unique(digits):
        members = rng.permutation(np.flatnonzero(digits == digit))
        cut = 2 * len(members) // 3
        train.append(members[:cut])
        test.append(members[cut:])
    return np.sort(np.concatenate(train)), np.sort(np.concatenate(test))


def resize(originals: np.ndarray, size: int) -> np.ndarray:
    """Resize square pictures by bilinear interpolation, pixel centres aligned; textbook.

    Parameters
    ----------
    originals : numpy.ndarray of float64, shape (M, S, S)
        Pictures.
    size : int
        New side in pixels.

    Returns
    -------
    numpy.ndarray of float64, shape (M, size, size)
        Pictures within the range of the old ones.

    Examples
    --------
    >>> resize(np.array([[[0.0, 1.0], [0.0, 1.0]]]), 4)[0, 0]
    array([0.  , 0.25, 0.75, 1.  ])
    """
    side = originals.shape[1]
    centre = np.clip((np.arange(size) + 0.5) * side / size - 0.5, 0, side - 1)
    low = np.minimum(centre.astype(np.int64), side - 2)
    weights = np.zeros((size, side))
    weights[np.arange(size), low] = 1 - (centre - low)
    weights[np.arange(size), low + 1] = centre - low
    return weights @ originals @ weights.T


def render_scenes(
    labels: np.ndarray,
    class_digit: np.ndarray,
    class_colour: np.ndarray,
    originals: np.ndarray,
    original_digit: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """Draw every label of an image once, in its own cell of the scene; our own choice.

    Parameters
    ----------
    labels : numpy.ndarray of bool, shape (N, C)
        Multi-hot labels, at most nine an image.
    class_digit : numpy.ndarray of int64, shape (C,)
        Digit of each class.
    class_colour : numpy.ndarray of uint8, shape (C, 3)
        Colour of each class, red, green and blue from 0 to 255.
    originals : numpy.ndarray of float64, shape (M, S, S)
        Handwritten digits, 0 to 1.
    original_digit : numpy.ndarray of int64, shape (M,)
        Digit of each original.
    rng : numpy.random.Generator
        Source of chance: original, size, place and noise.

    Returns
    -------
    numpy.ndarray of uint8, shape (N, 32, 32, 3)
        Scenes. Up to four labels: digits of 9 to 14 pixels in 2 x 2 cells; up to nine: 8 to 10
        pixels in 3 x 3 cells.

    Raises
    ------
    ValueError
        If an image has more than nine labels, or a digit has no original.

    Examples
    --------
    >>> one = np.ones((1, 1), dtype=bool)
    >>> render_scenes(one, np.array([7]), np.array([[255, 0, 0]], dtype=np.uint8),
    ...               np.ones((1, 8, 8)), np.array([7]), np.random.default_rng(0)).shape
    (1, 32, 32, 3)
    """
    per_image = labels.sum(axis=1)
    if per_image.max(initial=0) > 9:
        raise ValueError(f"expected at most 9 labels an image, got {per_image.max()}")
    scenes = rng.integers(0, NOISE, size=(len(labels), SIDE, SIDE, 3), dtype=np.uint8)
    image, label = np.nonzero(labels)  # (L,) one entry a digit drawn
    size, top, left = _place(per_image, image, rng)
    original = choose_originals(class_digit[label], original_digit, rng)
    for side in np.unique(size).tolist():
        now = np.flatnonzero(size == side)
        ink = resize(originals, side)[original[now]]  # (L', side, side)
        drawn = (ink[..., None] * class_colour[label[now], None, None, :]).astype(np.uint8)
        rows = top[now, None, None] + np.arange(side)[:, None]
        columns = left[now, None, None] + np.arange(side)
        where = (image[now, None, None], rows, columns)
        scenes[where] = np.maximum(scenes[where], drawn)
    return scenes


def _place(
    per_image: np.ndarray, image: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return size, top and left in pixels of each digit; digits of an image have own cells."""
    grid = np.where(per_image <= 4, 2, 3)  # (N,)
    keys = rng.random((len(per_image), 9))
    keys[np.arange(9) >= grid[:, None] ** 2] = np.inf
    cells = keys.argsort(axis=1)  # (N, 9) random order of the scene's cells
    turn = np.arange(len(image)) - np.repeat(np.cumsum(per_image) - per_image, per_image)
    cell, grid = cells[image, turn], grid[image]  # (L,)
    table = np.zeros((4, 4), dtype=np.int64)
    for key, values in GRIDS.items():
        table[key] = values
    step, width, smallest, largest = table[grid].T
    size = rng.integers(smallest, largest + 1)
    top = step * (cell // grid) + rng.integers(0, width - size + 1)
    left = step * (cell % grid) + rng.integers(0, width - size + 1)
    return size, top, left


def choose_originals(
    digit: np.ndarray, original_digit: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Return the index of a random original of each digit asked for."""
    order = np.argsort(original_digit, kind="stable")
    start = np.searchsorted(original_digit[order], digit, side="left")
    stop = np.searchsorted(original_digit[order], digit, side="right")
    if (start == stop).any():
        raise ValueError(f"expected an original of digit {digit[start == stop][0]}, got none")
    return order[rng.integers(start, stop)]
