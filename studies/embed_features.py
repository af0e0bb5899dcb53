"""Compute the features of cocoseq-mini again, from the photographs of COCO 2014.

Run ``python studies/embed_features.py --images DIR --annotations DIR``: the folder with
train2014/ and val2014/, and the one with both instances files; ten minutes on one core.
It counts the bytes that differ from those that prslib brings, and writes the new ones
to cocoseq_mini.npz here or, with ``--embed``, in their place. It needs
``pip install '.[laptop]'``.
"""

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tqdm import tqdm

from prslib.datasets import coco, features
from prslib.datasets.arrays import read_arrays, read_image
from prslib.datasets.prepared import Selection

TINY = np.float32(1e-30)  # in place of zero where a column has one value
ABOUT = {
    "network": features.DEFAULT,
    "layer": "pooled",
    "preprocessing": "bicubic to 256 x 256, then to 224 x 224, all of it; "
    "(x - 127) / 128",
    "source": "images of COCO 2014 (cocodataset.org) by the ids of COCOseq "
    "(github.com/cdjkim/PRS); annotations CC BY 4.0, COCO Consortium",
}


def to_bytes(values: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Round features, float32 (N, D), to whole multiples of their columns' scale."""
    return np.rint(values / scale).clip(0, 255).astype(np.uint8)


def embed_all(root: Path, files: list[str]) -> np.ndarray:
    """Return the features of images, float32 (N, D)."""
    progress = tqdm(files, "features", unit="image")
    return np.array([features.embed(read_image(root, name)) for name in progress])


def labels_of(annotations: Path, selection: Selection) -> np.ndarray:
    """Read the labels of the embedded images, bool (N, C)."""
    corpus = coco.PREPARED.corpus(annotations)
    row_of = {name: row for row, name in enumerate(corpus.files.tolist())}
    rows = [row_of[name] for name in selection.files.tolist()]
    columns = [corpus.names.index(name) for name in selection.class_names.tolist()]
    return corpus.labels[np.ix_(rows, columns)]


def remake(images: Path, annotations: Path, made: Path) -> str:
    """Write the embedded file anew and say how far it is from the present one."""
    selection = Selection.load(features.MINI)
    stored = read_arrays(features.MINI, "features", "scale")
    before, scale = stored.values()
    labels = labels_of(annotations, selection)
    values = embed_all(images, selection.files.tolist())
    apart = np.abs(to_bytes(values, scale).astype(int) - before)
    _, weights = features.frozen_network(features.DEFAULT)
    new_scale = np.maximum(values.max(axis=0), TINY) / np.float32(255)
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
    parser.add_argument("--embed", action="store_true", help="replace those of prslib")
    options = parser.parse_args()
    made = features.MINI if options.embed else Path(features.MINI.name)
    print(remake(options.images, options.annotations, made))
    print(made)


if __name__ == "__main__":
    main()
