"""Make the single-label streams: thinned MNIST and SVHN, and their stand-ins."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from prslib.checks import expected, naming_extra, readable
from prslib.datasets import curation, scenes
from prslib.datasets.arrays import read_arrays
from prslib.datasets.base import Entry, Recipe, SequentialDataset, Split
from prslib.paths import PACKAGE, data_dir

# by split: uint8 (N, H, W, channels), or digits int64 (N,)
BySplit = dict[str, np.ndarray]

CLASSES = 10
SPLITS = ("train", "test")
RELEASED = PACKAGE / "datasets" / "embedded" / "imbal_ids.npz"
TEST_PER_CLASS = 200  # of the stand-ins
# of pixels and digits, a byte each: torchvision checks archives alone
MNIST_SHA256 = {
    "train": "edc0d1098aa497be14ace79ddd5171e5a3dcf9c4d196c015389203eb3ba1f59b",
    "test": "c3f9adf9c66efb572b1f9326c3a511b45910c7173b97be66ceceeeeaef6b802b",
}


def read_mnist(folder: Path, download: bool) -> tuple[BySplit, BySplit]:
    """Read Keras's ``mnist.npz`` or, with torchvision, ``MNIST/raw/``."""
    keras, pictures, labels = folder / "mnist.npz", {}, {}
    for split in SPLITS:
        if keras.is_file():
            names = f"x_{split}", f"y_{split}"
            pixels, digits = read_arrays(keras, names).values()
        else:
            from torchvision.datasets import MNIST

            original = MNIST(folder, train=split == "train", download=download)
            pixels, digits = original.data.numpy(), original.targets.numpy()
        content = pixels.tobytes() + digits.astype(np.uint8).tobytes()
        if hashlib.sha256(content).hexdigest() != MNIST_SHA256[split]:
            raise ValueError(f"its {split} set has other bytes")
        pictures[split] = pixels.reshape(-1, 28, 28, 1)
        labels[split] = digits.astype(np.int64)
    return pictures, labels


def read_svhn(folder: Path, download: bool) -> tuple[BySplit, BySplit]:
    """Read SVHN with torchvision, which compares the files with their checksums."""
    from torchvision.datasets import SVHN

    if (folder / "SVHN" / "train_32x32.mat").is_file():
        folder = folder / "SVHN"
    pictures, labels = {}, {}
    for split in SPLITS:
        original = SVHN(folder, split, download=download)
        pictures[split] = np.ascontiguousarray(original.data.transpose(0, 2, 3, 1))
        labels[split] = original.labels.astype(np.int64)
    return pictures, labels


@dataclass(frozen=True)
class Source:
    """A single-label data set that a user downloads."""

    name: str  # of the thinned data set
    stands_for: str
    original: str  # its name in `torchvision.datasets`
    # one of them is in $PRSLIB_DATA where the data set is
    files: tuple[str, ...]
    read: Callable[[Path, bool], tuple[BySplit, BySplit]]
    # images of each class in the original
    train_freq: tuple[int, ...]
    recipe: Recipe

    @property
    def train_counts(self) -> np.ndarray:
        """Images of each class in the thinned stream, int64 (C,)."""
        return curation.pareto_counts(np.array(self.train_freq))


ON_CONVNET = Recipe(
    model="convnet",
    memory_size=500,
    schedule=tuple(range(CLASSES)),
    schedule_drawn=True,
    tasks_at_once=2,
    loss="cross_entropy",
    clip_value=0.5,
    norm_penalty=1e-5,
    test_set="full",
)
ON_MLP = replace(
    ON_CONVNET, model="mlp", memory_size=300, optimizer="sgd", learning_rate=0.01
)
MNIST = Source(
    name="imbal-mnistseq",
    stands_for="Imbal-MNISTseq",
    original="MNIST",
    files=("mnist.npz", "MNIST/raw"),
    read=read_mnist,
    train_freq=(5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949),
    recipe=ON_MLP,
)
SVHN = Source(
    name="imbal-svhnseq",
    stands_for="Imbal-SVHNseq",
    original="SVHN",
    files=("train_32x32.mat", "SVHN/train_32x32.mat"),
    read=read_svhn,
    train_freq=(4948, 13861, 10585, 8497, 7458, 6882, 5727, 5595, 5045, 4659),
    recipe=replace(ON_CONVNET, model="resnet18", learning_rate=2e-4),
)
SOURCES = {source.name: source for source in (MNIST, SVHN)}


def load_source(
    source: Source, images: bool, download: bool = False
) -> SequentialDataset:
    """Read a downloaded data set; keep the training images that the authors kept."""
    pictures, digits = read_source(source, download)
    rows = released_images(source)
    for arrays in (pictures, digits):
        arrays["train"] = arrays["train"][rows]
    return one_class_a_task(
        source.name, digits, pictures if images else {}, source.stands_for
    )


def read_source(source: Source, download: bool = False) -> tuple[BySplit, BySplit]:
    """Read pictures and digits; ValueError unless they are the original ones."""
    folder = data_dir()
    if not download and not any((folder / file).exists() for file in source.files):
        advice = f"run `python -m prslib prepare {source.name} --download`"
        what = f"{source.original} in {folder}: {' or '.join(source.files)}"
        raise FileNotFoundError(expected(what, "none", advice))
    what = f"the original {source.original} in {folder}"
    advice = "delete its files and download them again"
    with readable(what, advice), naming_extra("training"):
        return source.read(folder, download)


def released_images(source: Source) -> np.ndarray:
    """Return which training images the authors kept, int64 (N,), rising."""
    name = source.original.lower()
    return read_arrays(RELEASED, [name])[name].astype(np.int64)


def one_class_a_task(
    name: str, digits: BySplit, pictures: BySplit, stands_for: str
) -> SequentialDataset:
    """Make a data set in which every class is a task, with the test set "full"."""
    one_hot = np.eye(CLASSES, dtype=bool)
    train, test = (
        Split(pictures.get(split), one_hot[digits[split]], digits[split])
        for split in SPLITS
    )
    freq = train.labels.sum(axis=0)
    return SequentialDataset(
        name=name,
        train=train,
        tests={"full": test},
        class_names=tuple(map(str, range(CLASSES))),
        class_task=np.arange(CLASSES),
        # the released code's groups
        class_group=curation.class_groups(freq, 0.1 * freq[0], 0.7 * freq[0]),
        stands_for=stands_for,
    )


STAND_INS = {  # source, how many times smaller, defaults of a run
    "imbal-digits": (MNIST, 1, ON_MLP),
    "imbal-colour-digits": (SVHN, 1, ON_CONVNET),
    "imbal-digits-tiny": (MNIST, 10, ON_MLP),
    "imbal-colour-digits-tiny": (SVHN, 20, ON_CONVNET),
}


def load_stand_in(name: str, images: bool) -> SequentialDataset:
    """Make a stand-in of drawn digits."""
    pictures = deepcopy(_draw_pictures(name)) if images else {}
    stands_for = STAND_INS[name][0].stands_for
    return one_class_a_task(name, _digits(name), pictures, stands_for)


def _digits(name: str) -> BySplit:
    source, divisor, _ = STAND_INS[name]
    train = np.repeat(np.arange(CLASSES), source.train_counts // divisor)
    test = np.repeat(np.arange(CLASSES), TEST_PER_CLASS // divisor)
    return {"train": train, "test": test}


@lru_cache(maxsize=2)
def _draw_pictures(name: str) -> BySplit:
    return scenes.draw_pictures(_digits(name), colour=STAND_INS[name][0] is SVHN)


def _drawn(name: str) -> Entry:
    _, divisor, recipe = STAND_INS[name]
    recipe = replace(recipe, memory_size=recipe.memory_size // divisor)
    # its split of the originals into training and test is not the scenes'
    return Entry(partial(load_stand_in, name), recipe, tests_on_pretrained=True)


ENTRIES = {
    name: Entry(partial(load_source, source), source.recipe, relation="paper's")
    for name, source in SOURCES.items()
}
ENTRIES |= {name: _drawn(name) for name in STAND_INS}
