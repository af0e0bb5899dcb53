"""Imbal-MNISTseq and Imbal-SVHNseq, from a user's files, and stand-ins that need no download.

Every class is a task of its own and two of them are trained at once, so that a schedule is the
order of the classes: (1, 2, 3, 4, ...) trains 1 and 2, then 3 and 4. The paper does not publish its
order; a run that names none draws one from its seed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from prslib.datasets import curation, digit_pictures
from prslib.datasets.recipe import Entry, Recipe
from prslib.datasets.sequential import SequentialDataset, Split
from prslib.datasets.single_label_files import MNIST_FILES, SVHN_FILES, read_mnist, read_svhn
from prslib.paths import data_dir

CLASSES = 10


@dataclass(frozen=True)
class Source:
    """Hold what is known of a data set that a user downloads; Appendix, "Single-Label ...".

    Parameters
    ----------
    name : str
        Name of the thinned data set.
    stands_for : str
        Its name in the paper.
    torchvision : str
        Name of the original in `torchvision.datasets`.
    parts : tuple of dict
        Arguments there that bring all files.
    files : str
        What a user puts where, for errors.
    read : callable
        Takes a folder and whether images are wanted.
    train_freq, test_freq : tuple of int, length C
        Images of each class in the original.

    Examples
    --------
    >>> int(MNIST.train_counts.sum()), int(SVHN.train_counts.sum())
    (11543, 14181)
    """

    name: str
    stands_for: str
    torchvision: str
    parts: tuple[dict, ...]
    files: str
    read: Callable[[Path, bool], dict]
    train_freq: tuple[int, ...]
    test_freq: tuple[int, ...]

    @property
    def train_counts(self) -> np.ndarray:
        """Images of each class in the thinned stream, int64 (C,)."""
        return curation.pareto_counts(np.array(self.train_freq))


MNIST = Source(
    name="imbal-mnistseq",
    stands_for="Imbal-MNISTseq",
    torchvision="MNIST",
    parts=({"train": True},),
    files=MNIST_FILES,
    read=read_mnist,
    train_freq=(5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949),
    test_freq=(980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009),
)
SVHN = Source(
    name="imbal-svhnseq",
    stands_for="Imbal-SVHNseq",
    torchvision="SVHN",
    parts=({"split": "train"}, {"split": "test"}),
    files=SVHN_FILES,
    read=read_svhn,
    train_freq=(4948, 13861, 10585, 8497, 7458, 6882, 5727, 5595, 5045, 4659),
    test_freq=(1744, 5099, 4149, 2882, 2523, 2384, 1977, 2019, 1660, 1595),
)
SOURCES = {source.name: source for source in (MNIST, SVHN)}


def load_source(source: Source, images: bool) -> SequentialDataset:
    """Read a downloaded data set and thin its training images; Appendix, "Single-Label ...".

    Parameters
    ----------
    source : Source
        Which one.
    images : bool
        False for labels alone.

    Returns
    -------
    SequentialDataset
        The thinned stream, and the whole test set as "full".

    Raises
    ------
    FileNotFoundError
        If ``PRSLIB_DATA`` is not set or its folder lacks the files.
    ValueError
        If a file is damaged, or holds other counts than the original.
    """
    parts = source.read(data_dir(f"{source.name}: {source.files}"), images)
    for part, expected in (("train", source.train_freq), ("test", source.test_freq)):
        found = np.bincount(parts[part][1], minlength=CLASSES).tolist()
        if found != list(expected):
            raise ValueError(
                f"expected the original {part} set of {source.torchvision} with {list(expected)} "
                f"images of the digits 0 to 9, got {found}; download it again"
            )
    pixels, digits = parts["train"]
    kept = curation.first_of_each_class(digits, source.train_counts)
    train = None if pixels is None else pixels[kept], digits[kept]
    return one_class_a_task(source.name, train, parts["test"], source.stands_for, divisor=1)


def at_hand(names: Iterable[str]) -> list[str]:
    """Leave out the data sets of this module whose files a user has not got; our own choice.

    Parameters
    ----------
    names : iterable of str
        Keys of `DATASETS`.

    Returns
    -------
    list of str
        Those that can be loaded as far as their files are there.

    Raises
    ------
    FileNotFoundError
        If none is left.
    """
    found, missing = [], None
    for name in names:
        try:
            if name in SOURCES:
                source = SOURCES[name]
                source.read(data_dir(f"{name}: {source.files}"), False)
            found.append(name)
        except FileNotFoundError as error:
            missing = missing or error
    if not found and missing:
        raise missing
    return found


def one_class_a_task(name: str, train, test, stands_for: str, divisor: int) -> SequentialDataset:
    """Make a data set of single-label images in which every class is a task; our own choice.

    Parameters
    ----------
    name : str
        Name of the data set.
    train, test : tuple of (ndarray of uint8 or None, ndarray of int64)
        Images (N, H, W, channels) and their classes, all of 0 to C-1 present in training.
    stands_for : str
        The paper's data set.
    divisor : int
        How many times smaller the stream is than the paper's, for the class groups.

    Returns
    -------
    SequentialDataset
        With the one test set "full".
    """
    num_classes = int(train[1].max()) + 1
    splits = [
        Split(pixels, classes[:, None] == np.arange(num_classes), classes)
        for pixels, classes in (train, test)
    ]
    freq = np.bincount(train[1], minlength=num_classes)
    return SequentialDataset(
        name=name,
        train=splits[0],
        tests={"full": splits[1]},
        class_names=tuple(map(str, range(num_classes))),
        class_task=np.arange(num_classes),
        class_group=curation.class_groups(freq, 200 / divisor, 900 / divisor),
        stands_for=stands_for,
    )


def load_stand_in(source: Source, colour: bool, divisor: int, name: str, images: bool):
    """Make the stand-in for a downloaded data set from scikit-learn's digits; our own choice.

    Parameters
    ----------
    source : Source
        Whose class counts it takes.
    colour : bool
        Whether the pictures are 32x32 in colour, else 28x28 in grey.
    divisor : int
        How many times smaller stream and test set are.
    name : str
        Name of the data set.
    images : bool
        False for labels alone.

    Returns
    -------
    SequentialDataset
        Stream and a test set "full" with equally many images of every digit, the two drawn from
        different handwritten originals.
    """
    counts = {
        "train": source.train_counts // divisor,
        "test": np.full(CLASSES, TEST_PER_CLASS // divisor),
    }
    digits = {part: np.repeat(np.arange(CLASSES), count) for part, count in counts.items()}
    pixels = dict.fromkeys(digits)
    if images:
        pixels = digit_pictures.cached_pictures(name, digits, colour)
    train, test = ((pixels[part], digits[part]) for part in ("train", "test"))
    return one_class_a_task(name, train, test, source.stands_for, divisor)


TEST_PER_CLASS = 200  # of the stand-ins

PAIRS = {
    "schedule": tuple(range(CLASSES)),
    "schedule_drawn": True,
    "tasks_at_once": 2,
    "loss": "cross_entropy",
    "clip_value": 0.5,
    "norm_penalty": 1e-5,
    "test_set": "full",
}
SGD = {"optimizer": "sgd", "learning_rate": 0.01}


def _stand_in(source: Source, colour: bool, divisor: int, name: str, **recipe) -> Entry:
    return Entry(
        partial(load_stand_in, source, colour, divisor, name),
        Recipe(**PAIRS, **recipe),
    )


IMBAL_MNISTSEQ = Entry(
    partial(load_source, MNIST), Recipe(model="mlp", memory_size=300, **SGD, **PAIRS)
)
IMBAL_SVHNSEQ = Entry(
    partial(load_source, SVHN),
    Recipe(model="resnet18", memory_size=500, learning_rate=2e-4, **PAIRS),
)
IMBAL_DIGITS = _stand_in(MNIST, False, 1, "imbal-digits", model="mlp", memory_size=300, **SGD)
IMBAL_DIGITS_TINY = _stand_in(
    MNIST, False, 10, "imbal-digits-tiny", model="mlp", memory_size=30, **SGD
)
IMBAL_COLOUR_DIGITS = _stand_in(
    SVHN, True, 1, "imbal-colour-digits", model="convnet", memory_size=500
)
IMBAL_COLOUR_DIGITS_TINY = _stand_in(
    SVHN, True, 20, "imbal-colour-digits-tiny", model="convnet", memory_size=25
)
