"""Make the single-label streams: subsampled MNIST and SVHN, and synthetic versions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from prslib.checks import naming_extra, readable
from prslib.datasets import curation, scenes
from prslib.datasets.arrays import check_made, read_arrays
from prslib.datasets.base import Entry, Recipe, SequentialDataset, Split, keep_loaded
from prslib.paths import DATA, data_dir

CLASSES = 10
RELEASED = DATA / "imbal_ids.npz"
TEST_PER_CLASS = 200  # of the synthetic versions


@dataclass(frozen=True)
class Source:
    """A single-label data set that a user downloads."""

    name: str  # of the subsampled data set
    stands_for: str
    # its name in `torchvision.datasets`
    original: str
    # a file or folder that is in $PRSLIB_DATA if the data set was downloaded
    file: str
    # images of each class in the subsampled stream (Appendix, single-label data): of N_c
    # images, floor(N_c min(1, pi_c / (max pi - min pi))), with pi_c = 0.6 / (c+1)^1.6
    train_counts: tuple[int, ...]
    recipe: Recipe


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
    file="MNIST/raw",
    train_counts=(5923, 2281, 1053, 684, 456, 316, 269, 230, 178, 153),
    recipe=ON_MLP,
)
SVHN = Source(
    name="imbal-svhnseq",
    stands_for="Imbal-SVHNseq",
    original="SVHN",
    file="train_32x32.mat",
    train_counts=(4948, 4690, 1872, 948, 582, 401, 261, 206, 153, 120),
    recipe=replace(ON_CONVNET, model="resnet18", learning_rate=2e-4),
)
SOURCES = {source.name: source for source in (MNIST, SVHN)}


def split_of(pictures: np.ndarray | None, digits: np.ndarray) -> Split:
    """Return a split of pictures, uint8 (N, H, W, channels), whose tasks are their digits."""
    return Split(pictures, np.eye(CLASSES, dtype=bool)[digits], digits)


def read_original(source: Source, half: str, download: bool) -> Split:
    """Read the training or the test images with torchvision."""
    from torchvision import datasets

    if source == MNIST:
        original = datasets.MNIST(data_dir(), half == "train", download=download)
        return split_of(original.data.numpy()[..., None], original.targets.numpy())
    original = datasets.SVHN(data_dir(), half, download=download)
    pixels = np.ascontiguousarray(original.data.transpose(0, 2, 3, 1))
    return split_of(pixels, original.labels)


def load_source(
    source: Source, images: bool, download: bool = False
) -> SequentialDataset:
    """Read a downloaded data set; keep the training images that the authors kept."""
    if not download:
        check_made(data_dir() / source.file)
    name = source.original.lower()
    (rows,) = read_arrays(RELEASED, name).values()
    with (
        readable(f"the original {source.original} in {data_dir()}"),
        naming_extra("training"),
    ):
        train = read_original(source, "train", download).take(rows)
        test = read_original(source, "test", download)
        if np.bincount(train.task).tolist() != list(source.train_counts):
            raise ValueError("its images are others, or in another order")
    if not images:
        train, test = replace(train, inputs=None), replace(test, inputs=None)
    return one_class_a_task(source.name, source.stands_for, train, test)


@keep_loaded
def load_stand_in(
    name: str, source: Source, divisor: int, images: bool
) -> SequentialDataset:
    """Make a synthetic version, `divisor` times smaller, from handwritten digits."""
    counts = np.array(source.train_counts), TEST_PER_CLASS
    digits = [np.repeat(np.arange(CLASSES), count // divisor) for count in counts]
    pictures = scenes.draw_pictures(digits, source == SVHN) if images else [None] * 2
    train, test = map(split_of, pictures, digits)
    return one_class_a_task(name, source.stands_for, train, test)


def one_class_a_task(
    name: str, stands_for: str, train: Split, test: Split
) -> SequentialDataset:
    """Make a data set in which every class is a task, with the test set "full"."""
    freq = train.labels.sum(axis=0)
    return SequentialDataset(
        name=name,
        train=train,
        tests={"full": test},
        class_names=tuple(map(str, range(CLASSES))),
        class_task=np.arange(CLASSES),
        # groups as in the released code
        class_group=curation.class_groups(freq, 0.1 * freq[0], 0.7 * freq[0]),
        stands_for=stands_for,
    )


def _real(source: Source) -> Entry:
    load = partial(load_source, source)
    return Entry(load, source.recipe, data_source="paper's")


def _stand_in(name: str, source: Source, divisor: int, recipe: Recipe) -> Entry:
    load = partial(load_stand_in, name, source, divisor)
    recipe = replace(recipe, memory_size=recipe.memory_size // divisor)
    # the scenes for pretraining split the original digits differently
    return Entry(load, recipe, tests_on_pretrained=True)


STAND_INS = (
    ("imbal-digits", MNIST, 1, ON_MLP),
    ("imbal-colour-digits", SVHN, 1, ON_CONVNET),
    ("imbal-digits-tiny", MNIST, 10, ON_MLP),
    ("imbal-colour-digits-tiny", SVHN, 20, ON_CONVNET),
)
ENTRIES = {name: _real(source) for name, source in SOURCES.items()}
ENTRIES |= {row[0]: _stand_in(*row) for row in STAND_INS}
