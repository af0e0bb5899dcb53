"""Draw scenes of coloured handwritten digits, and single digits, using only integers."""

import json
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from prslib.paths import PACKAGE

# colours of the streams, and of the scenes for pretraining
COLOURS_FILE = PACKAGE / "datasets" / "colours.json"
COLOURS, OTHER_COLOURS = json.loads(COLOURS_FILE.read_text()).values()

# seed of the synthetic multi-label data, not of a run
SCENE_SEED = 20200823
SIDE = 32  # pixels
# background pixels are below this, of 255
NOISE = 32
# for 2 and for 3 cells per side, in pixels: offset and width of the cells, smallest and
# largest digit
GRIDS = np.array([(16, 16, 9, 14), (11, 10, 8, 10)])

# seed of the pictures of single digits, not of a run
PICTURE_SEED = 20200824
# largest slant, in pixels sideways per thousand pixels of height
SHEAR = 250
# by the side of a picture: smallest and largest digit, and largest shift from the middle,
# all in pixels
DIGITS_IN = {28: (18, 22, 2), 32: (20, 26, 3)}
# minimum difference of mean brightness between ink and background, of 255
CONTRAST = 60
# largest change of a pixel in a coloured picture, of 255
PICTURE_NOISE = 16

# the brightest pixel of an original
FULL = 16
# int64 pictures (M, 8, 8), 0 to 16, and digits (M,)
Originals = tuple[np.ndarray, np.ndarray]


def read_originals(rng: np.random.Generator) -> dict[str, Originals]:
    """Split scikit-learn's digits at random, with two thirds of each digit in "train"."""
    from sklearn.datasets import load_digits

    data = load_digits()
    train = np.zeros(len(data.target), bool)
    for digit in range(10):
        members = rng.permutation(np.flatnonzero(data.target == digit))
        train[members[: 2 * len(members) // 3]] = True
    pictures = data.images.astype(np.int64)
    return {
        "train": (pictures[train], data.target[train]),
        "test": (pictures[~train], data.target[~train]),
    }


def generator(use: int) -> np.random.Generator:
    """Return a random generator for labels (0), names of classes (1) or scenes (2)."""
    seed = np.random.SeedSequence(SCENE_SEED, spawn_key=(use,))
    return np.random.default_rng(seed)


def glyphs(names: Iterable[str], colours: dict) -> tuple[np.ndarray, np.ndarray]:
    """Return the digit (C,) and the colour (C, 3) of classes such as "red 3"."""
    words = [name.split() for name in names]
    palette = [colours[colour] for colour, _ in words]
    digits = [int(digit) for _, digit in words]
    return np.array(digits), np.array(palette, dtype=np.uint8)


def render_scenes(
    # bool (N, C), at most nine per image
    labels: np.ndarray,
    class_digit: np.ndarray,  # (C,)
    class_colour: np.ndarray,  # uint8 (C, 3)
    originals: Originals,
    rng: np.random.Generator,
) -> np.ndarray:
    """Draw every label once, in a separate cell; return uint8 (N, 32, 32, 3)."""
    scenes = rng.integers(0, NOISE, size=(len(labels), SIDE, SIDE, 3), dtype=np.uint8)
    image, label = np.nonzero(labels)  # (L,) one entry per drawn digit
    size, top, left = _place(labels, rng)
    chosen = _choose_originals(class_digit[label], originals, rng)
    for now, square, ink, full in _scale_digits(chosen, size, top, left):
        colour = class_colour[label[now], None, None, :]
        drawn = (ink[..., None] * colour // full).astype(np.uint8)
        where = image[now, None, None], *square
        scenes[where] = np.maximum(scenes[where], drawn)
    return scenes


def _place(
    labels: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return size, top and left of each digit; digits of an image do not overlap."""
    per_image = labels.sum(axis=1)
    grid = np.where(per_image <= 4, 2, 3)  # (N,)
    keys = rng.random((len(labels), 9))
    keys[np.arange(9) >= grid[:, None] ** 2] = np.inf
    # (N, 9) random order of the scene's cells
    cells = keys.argsort(axis=1)
    # (L,) the first cells of each scene
    cell = cells[np.arange(9) < per_image[:, None]]
    grid = np.repeat(grid, per_image)
    step, width, smallest, largest = GRIDS[grid - 2].T
    size = rng.integers(smallest, largest + 1)
    top = step * (cell // grid) + rng.integers(0, width - size + 1)
    left = step * (cell % grid) + rng.integers(0, width - size + 1)
    return size, top, left


def _choose_originals(
    digit: np.ndarray, originals: Originals, rng: np.random.Generator
) -> np.ndarray:
    """Choose a random original for each digit (L,); return (L, 8, 8)."""
    pictures, original_digit = originals
    order = np.argsort(original_digit, kind="stable")
    first = np.searchsorted(original_digit[order], np.arange(11))
    return pictures[order[rng.integers(first[digit], first[digit + 1])]]


def _scale_digits(
    pictures: np.ndarray, size: np.ndarray, top: np.ndarray, left: np.ndarray
) -> Iterator[tuple]:
    """Scale the digits (L,) size by size; yield indices, pixels, ink and its maximum."""
    for side in np.unique(size).tolist():
        now = np.flatnonzero(size == side)
        pixel = np.arange(side)
        rows = top[now, None, None] + pixel[:, None]
        columns = left[now, None, None] + pixel
        # Bilinear: an original pixel contributes if its centre is less than its width
        # away. Positions are multiples of an original pixel / unit, so all are integers.
        unit = 2 * side
        centre = np.clip(8 * (2 * pixel + 1) - side, 0, 7 * unit)
        away = abs(centre[:, None] - unit * np.arange(8))  # (side, 8)
        weight = np.maximum(unit - away, 0)
        ink = weight @ pictures[now] @ weight.T  # (M, side, side)
        yield now, (rows, columns), ink, FULL * unit**2


def draw_pictures(halves: Sequence[np.ndarray], colour: bool) -> list[np.ndarray]:
    """Draw digits (N,) of a training and a test set, uint8 (N, side, side, channels)."""
    rng = np.random.default_rng(PICTURE_SEED)
    pictures = []
    originals = read_originals(rng).values()
    for digits, source in zip(halves, originals, strict=True):
        ink = _draw_ink(digits, source, 32 if colour else 28, rng)
        pictures.append(_colour_ink(ink, rng) if colour else ink[..., None])
    return pictures


def _draw_ink(
    digits: np.ndarray, originals: Originals, side: int, rng: np.random.Generator
) -> np.ndarray:
    """Draw digits (N,) with random size, slant and position, uint8 (N, side, side)."""
    smallest, largest, shift = DIGITS_IN[side]
    ink = np.zeros((len(digits), side, side), np.uint8)
    chosen = _choose_originals(digits, originals, rng)
    sizes = rng.integers(smallest, largest + 1, size=len(digits))
    shifts = rng.integers(-shift, shift + 1, size=(2, len(digits)))
    top, left = (side - sizes) // 2 + shifts
    for now, square, large, full in _scale_digits(chosen, sizes, top, left):
        # rounded
        ink[now[:, None, None], *square] = (510 * large + full) // (2 * full)
    slant = rng.integers(-SHEAR, SHEAR + 1, size=(len(digits), 1))
    # (N, side), rounded
    sideways = (slant * (2 * np.arange(side) - side) + 1000) // 2000
    # (N, side, side)
    source = np.clip(np.arange(side) - sideways[..., None], 0, side - 1)
    return np.take_along_axis(ink, source, axis=2)


def _colour_ink(ink: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Paint ink and background in two random colours, uint8 (N, side, side, 3)."""
    # background, ink; either may be brighter
    pair = rng.integers(0, 256, (2, len(ink), 3))
    while (close := abs(np.diff(pair.sum(axis=2), axis=0)[0]) < 3 * CONTRAST).any():
        pair[:, close] = rng.integers(0, 256, (2, int(close.sum()), 3))
    pictures = np.empty((*ink.shape, 3), np.uint8)
    # a thousand at a time, to save memory
    for start in range(0, len(ink), 1000):
        rows = slice(start, start + 1000)
        ground, top = pair[:, rows, None, None, :]
        share = ink[rows, ..., None].astype(np.int64)
        mixed = (share * top + (255 - share) * ground + 127) // 255
        mixed += rng.integers(-PICTURE_NOISE, PICTURE_NOISE + 1, mixed.shape)
        pictures[rows] = np.clip(mixed, 0, 255)
    return pictures
