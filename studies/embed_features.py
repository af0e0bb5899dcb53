"""Compute the features of cocoseq-mini again, from the photographs of COCO 2014.

Run ``python studies/embed_features.py --images DIR --annotations DIR`` with the folder that
contains train2014/ and val2014/, and the folder that contains both instances files. It
takes ten minutes on one core. It counts the bytes that differ from the embedded file, and
writes the new file to cocoseq_mini.npz in the working directory. It needs
``pip install -e '.[laptop]'``.

With ``--open`` it makes cocoseq_open.npz, the features of COCO images that are in none
of COCOseq's lists, rounded by the column scales of cocoseq_mini.npz. In both cases, the
images are the ones of the embedded file.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from tqdm import tqdm

from prslib.datasets import coco, features
from prslib.datasets.arrays import read_arrays, read_image, write_arrays

TINY = np.float32(1e-30)  # instead of zero, for a column of zeros
SOURCE = (
    "images of COCO 2014 (cocodataset.org) {} COCOseq (github.com/cdjkim/PRS); "
    "annotations CC BY 4.0, COCO Consortium"
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


def read_labels(annotations: Path, files: list[str]) -> np.ndarray:
    """Return the labels of images, bool (N, C), as in COCO's files."""
    corpus = coco.PREPARED.read(annotations)
    names = corpus.names.tolist()
    (class_names,) = read_arrays(features.MINI, "class_names").values()
    columns = [names.index(name) for name in class_names.tolist()]
    by_file = dict(zip(corpus.files.tolist(), corpus.labels[:, columns], strict=True))
    return np.array([by_file[name] for name in files])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--images", type=Path, required=True)
    parser.add_argument("--annotations", type=Path, required=True)
    parser.add_argument("--open", action="store_true", help="make the open test set")
    options = parser.parse_args()
    embedded = features.OPEN if options.open else features.MINI
    before = read_arrays(embedded)
    files = before["files"].tolist()
    labels = read_labels(options.annotations, files)
    values = embed_all(options.images, files)
    (scale,) = read_arrays(features.MINI, "scale").values()
    apart = np.abs(to_bytes(values, scale).astype(int) - before["features"])
    print(
        f"{(apart > 0).sum()} of {apart.size} bytes differ from those embedded, by at "
        f"most {apart.max()}; {(labels != before['labels']).sum()} labels differ"
    )
    made = Path(embedded.name)
    new = {"labels": labels}
    if not options.open:
        new["scale"] = scale = find_scale(values)
    new["features"] = to_bytes(values, scale)
    which = "in none of the lists of" if options.open else "by the ids of"
    about = {
        "network": features.NETWORK,
        "layer": "pooled",
        "preprocessing": "bicubic to 256 x 256, then to 224 x 224, all of it; "
        "(x - 127) / 128",
        "source": SOURCE.format(which),
        "weights": features.frozen_network()[1],
    }
    new["about"] = np.array(json.dumps(about))
    write_arrays(made, **before | new)
    print(made)


if __name__ == "__main__":
    main()
