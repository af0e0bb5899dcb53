"""Draw small scenes of coloured handwritten digits."""

from __future__ import annotations

import sys

import numpy as np

from prslib.datasets.arrays import cached_arrays

SCENE_SEED = 20200823  # of the multi-label stand-ins, not of a run
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
    return originals()[0][part == "train"]


def originals() -> tuple[dict[bool, tuple[np.ndarray, np.ndarray]], np.random.Generator]:
    """Return pictures and digits, for training or not, and the generator that scenes go on with."""
    from sklearn.datasets import load_digits

    data, rng = load_digits(), np.random.default_rng(np.random.SeedSequence(SCENE_SEED).spawn(3)[2])
    train, test = split_originals(data.target, rng)
    return {
        part: (data.images[use] / 16, data.target[use])
        for part, use in ((True, train), (False, test))
    }, rng


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


SEED = 20200824  # of the pictures, not of a run
SHEAR = 0.25  # largest slant, pixels sideways a pixel of height
GREY = {"side": 28, "smallest": 18, "largest": 22, "shift": 2}  # pixels
COLOUR = {"side": 32, "smallest": 20, "largest": 26, "shift": 3}
CONTRAST = 60  # least difference of mean brightness between ink and ground, of 255
PICTURE_NOISE = 16  # largest change of a pixel in a coloured picture, of 255


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
    return cached_arrays(name, (sys.modules[__name__],), lambda: _draw_parts(digits, colour))


def _draw_parts(digits: dict[str, np.ndarray], colour: bool) -> dict[str, np.ndarray]:
    from sklearn.datasets import load_digits

    data, rng = load_digits(), np.random.default_rng(SEED)
    train, test = split_originals(data.target, rng)
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
    original = choose_originals(digits, original_digit, rng)
    sizes = rng.integers(layout["smallest"], layout["largest"] + 1, size=len(digits))
    shift = layout["shift"]
    shifts = rng.integers(-shift, shift + 1, size=(2, len(digits)))
    top, left = (side - sizes) // 2 + shifts
    for size in np.unique(sizes).tolist():
        now = np.flatnonzero(sizes == size)
        rows = top[now, None, None] + np.arange(size)[:, None]
        columns = left[now, None, None] + np.arange(size)
        ink[now[:, None, None], rows, columns] = resize(originals, size)[original[now]]
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
        pictures[part] = _to_bytes(mixed + rng.uniform(-PICTURE_NOISE, PICTURE_NOISE, mixed.shape))
    return pictures


def _to_bytes(values: np.ndarray) -> np.ndarray:
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)


OTHER_COLOURS = {  # none of them in `COLOURS`
    "orange": (255, 140, 20),
    "brown": (150, 90, 40),
    "teal": (20, 140, 130),
    "pink": (255, 170, 190),
    "lime": (170, 250, 90),
    "violet": (140, 60, 230),
    "grey": (140, 140, 140),
}
CLASS_NAMES = tuple(f"{colour} {digit}" for digit in range(10) for colour in OTHER_COLOURS)
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
    digit = np.repeat(np.arange(10), len(OTHER_COLOURS))
    colour = np.tile(np.array(list(OTHER_COLOURS.values()), dtype=np.uint8), (10, 1))
    count = 1 + rng.choice(len(LABELS_PER_IMAGE), size=images, p=LABELS_PER_IMAGE)
    rank = rng.random((images, len(digit))).argsort(axis=1).argsort(axis=1)
    labels = rank < count[:, None]
    pictures, of_digit = digit_originals(part)
    turned = np.rot90(pictures, TURNS[name], axes=(1, 2))
    return render_scenes(labels, digit, colour, turned, of_digit, rng), labels
