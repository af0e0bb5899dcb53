"""Make COCOseq from the annotations of MS COCO 2014, or a table of its labels."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from prslib.checks import readable
from prslib.datasets.base import Entry, Recipe
from prslib.datasets.prepared import Corpus, PreparedSet

HALVES = ("train2014", "val2014")
DROPPED = (  # clustered with the others, but no classes of the data set
    *("cell phone", "hair drier", "mouse", "keyboard", "wine glass"),
    *("cup", "knife", "microwave", "toaster"),
)


def read_annotations(folder: Path) -> Corpus:
    """Read both instances files of COCO; Sec. 4.1."""
    key, is_test, files, labels = [], [], [], []
    for half in HALVES:
        file = folder / f"instances_{half}.json"
        with readable(f"COCO's instances in {file}", "download the annotations again"):
            content = json.loads(file.read_bytes())
            images = {entry["id"]: entry["file_name"] for entry in content["images"]}
            categories = {entry["id"]: entry["name"] for entry in content["categories"]}
            names = sorted(categories.values())
            row = {number: i for i, number in enumerate(images)}
            column = {number: names.index(name) for number, name in categories.items()}
            of_half = np.zeros((len(images), len(names)), dtype=bool)
            for entry in content["annotations"]:
                of_half[row[entry["image_id"]], column[entry["category_id"]]] = True
        key += images
        is_test += [half == "val2014"] * len(images)
        files += [f"{half}/{name}" for name in images.values()]
        labels.append(of_half)
    return Corpus(
        key=np.array(key, dtype=np.int64),
        is_test=np.array(is_test),
        files=np.array(files),
        labels=np.concatenate(labels),
        names=tuple(names),
    )


PREPARED = PreparedSet(
    name="cocoseq",
    stands_for="COCOseq",
    read=read_annotations,
    annotations="instances_train2014.json and instances_val2014.json",
    table="coco2014_labels.npz",
    ignored=("person",),
    dropped=DROPPED,
    num_tasks=4,
    beta=1.0,
    per_class=100,
    # The paper does not say where its test images come from; in the released files
    # half of each class's are of either half.
    balanced_halves=True,
    seed=20200824,
    # SHA-256 of the released id files, one after another
    id_digest="2e6aa6bc058f341c6a2d5972c826b6ec39040e2e50f247aefc7c1bfde02b3630",
)
COCOSEQ = Entry(
    PREPARED.load,
    Recipe(
        model="resnet101",
        memory_size=2000,
        schedule=(0, 3, 1, 2),
        learning_rate=1e-4,
        precision="bf16",  # the paper does not say what its runs computed in
    ),
    PREPARED.load_clustering,
    relation="paper's",
)
