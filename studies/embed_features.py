"""Compute the features of cocoseq-mini again, from the photographs of COCO 2014.

Run ``python studies/embed_features.py --images DIR --annotations DIR`` with the folder of
train2014/ and val2014/, and the folder of both instances files; ten minutes on one core.
It counts the bytes that differ from the embedded file, and writes the new file to
cocoseq_mini.npz in the working directory or, with ``--embed``, over the embedded one. It
needs ``pip install -e '.[laptop]'``.

With ``--open`` it makes cocoseq_open.npz, the features of COCO images that are in none
of COCOseq's lists, rounded by the column scales of cocoseq_mini.npz. The images are the
ones of the embedded file.
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
from tqdm import tqdm

from prslib.datasets import coco, features
from prslib.datasets.arrays import read_arrays, read_image, write_arrays
from prslib.datasets.prepared import Selection

TINY = np.float32(1e-30)  # instead of zero, for a column of zeros
ABOUT = {
    "network": features.NETWORK,
    "layer": "pooled",
    "preprocessing": "bicubic to 256 x 256, then to 224 x 224, all of it; "
    "(x - 127) / 128",
    "source": "images of COCO 2014 (cocodataset.org) by the ids of COCOseq "
    "(github.com/cdjkim/PRS); annotations CC BY 4.0, COCO Consortium",
}
OPEN_SOURCE = (
    "images of COCO 2014 (cocodataset.org) in none of the lists of COCOseq "
    "(github.com/cdjkim/PRS); annotations CC BY 4.0, COCO Consortium"
)


def find_scale(values: np.ndarray) -> np.ndarray:
    """Return the scale, float32 (D,), that maps each column's largest value to 255."""
    return np.maximum(values.max(axis=0), TINY) / np.float32(255)


def to_bytes(values: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Round features, float32 (N, D), to whole multiples of their columns' scale."""
    return np.rint(values / scale).clip(0, 255).astype(np.uint8)


def embed_all(root: Path, files: list[str]) -> np.ndarray:
    """Return the features of images, float32 (N, D)."""
    progress = tqdm(files, "features", unit="image")
    return np.array([features.embed(read_image(root / name)) for name in progress])


def labels_by_file(annotations: Path, class_names: np.ndarray) -> dict[str, np.ndarray]:
    """Read the labels of all images of COCO, bool (C,), by the images' file names."""
    corpus = coco.PREPARED.read(annotations)
    names = corpus.names.tolist()
    columns = [names.index(name) for name in class_names.tolist()]
    return dict(zip(corpus.files.tolist(), corpus.labels[:, columns], strict=True))


def remake_open(images: Path, annotations: Path, made: Path) -> str:
    """Write the open test set; return the number of its images as text."""
    selection = Selection.load(features.MINI)
    (scale,) = read_arrays(features.MINI, "scale").values()
    labels = labels_by_file(annotations, selection.class_names)
    files = read_arrays(features.OPEN, "files")["files"].tolist()
    _, weights = features.frozen_network()
    write_arrays(
        made,
        files=np.array(files),
        labels=np.array([labels[name] for name in files]),
        features=to_bytes(embed_all(images, files), scale),
        about=np.array(json.dumps(ABOUT | {"weights": weights, "source": OPEN_SOURCE})),
    )
    return f"{len(files)} images in {made}"


def remake(images: Path, annotations: Path, made: Path) -> str:
    """Write the features again; return their differences from the embedded ones as text."""
    selection = Selection.load(features.MINI)
    stored = read_arrays(features.MINI, "features", "scale")
    before, scale = stored.values()
    by_file = labels_by_file(annotations, selection.class_names)
    labels = np.array([by_file[name] for name in selection.files.tolist()])
    values = embed_all(images, selection.files.tolist())
    apart = np.abs(to_bytes(values, scale).astype(int) - before)
    _, weights = features.frozen_network()
    new_scale = find_scale(values)
    replace(selection, labels=labels).save(
        made,
        features=to_bytes(values, new_scale),
        scale=new_scale,
        about=np.array(json.dumps(ABOUT | {"weights": weights})),
    )
    return (
        f"{(apart > 0).sum()} of {apart.size} bytes differ from those embedded, by at "
        f"most {apart.max()}; {(labels != selection.labels).sum()} labels differ"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--images", type=Path, required=True)
    parser.add_argument("--annotations", type=Path, required=True)
    parser.add_argument("--open", action="store_true", help="make the open test set")
    parser.add_argument("--embed", action="store_true", help="replace prslib's file")
    options = parser.parse_args()
    embedded = features.OPEN if options.open else features.MINI
    made = embedded if options.embed else Path(embedded.name)
    make = remake_open if options.open else remake
    print(make(options.images, options.annotations, made))
    print(made)


if __name__ == "__main__":
    main()
