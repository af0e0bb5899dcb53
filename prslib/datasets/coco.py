"""Make COCOseq from the annotations of MS COCO 2014, or a table of its labels."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from prslib.checks import readable
from prslib.datasets.prepared import Corpus, PreparedSet

# clustered with the others, but no classes of the data set
DROPPED = (
    *("cell phone", "hair drier", "mouse", "keyboard", "wine glass"),
    *("cup", "knife", "microwave", "toaster"),
)


def read_half(folder: Path, is_test: bool) -> Corpus:
    """Read one of COCO's two instances files; Sec. 4.1."""
    half = "val2014" if is_test else "train2014"
    file = folder / f"instances_{half}.json"
    with readable(f"COCO's instances in {file}", "download the annotations again"):
        content = json.loads(file.read_bytes())
        images = {entry["id"]: entry["file_name"] for entry in content["images"]}
        categories = {entry["id"]: entry["name"] for entry in content["categories"]}
        names = sorted(categories.values())
        row = {number: i for i, number in enumerate(images)}
        column = {number: names.index(name) for number, name in categories.items()}
        labels = np.zeros((len(images), len(names)), dtype=bool)
        for entry in content["annotations"]:
            labels[row[entry["image_id"]], column[entry["category_id"]]] = True
    keys = np.array(list(images))
    halves = np.full(len(images), is_test)
    files = np.array([f"{half}/{name}" for name in images.values()])
    return Corpus(keys, halves, files, labels, tuple(names))


PREPARED = PreparedSet(
    name="cocoseq",
    stands_for="COCOseq",
    read_half=read_half,
    annotations="instances_train2014.json and instances_val2014.json",
    images="train2014/ and val2014/",
    table="coco2014_labels.npz",
    ignored=("person",),
    dropped=DROPPED,
    num_tasks=4,
    beta=1.0,
    per_class=100,
    schedule=(0, 3, 1, 2),
    # The paper does not say where its test images come from; in the released files
    # half of each class's are of either half.
    balanced_halves=True,
    seed=20200824,
    rho=-0.03,
    # SHA-256 of the released id files, one after another
    id_digest="2e6aa6bc058f341c6a2d5972c826b6ec39040e2e50f247aefc7c1bfde02b3630",
)
