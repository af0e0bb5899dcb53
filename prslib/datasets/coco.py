"""Make COCOseq from the annotations of MS COCO 2014, or a table of its labels."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from prslib.checks import readable
from prslib.datasets import curation
from prslib.datasets.base import Entry, Recipe
from prslib.datasets.prepared import Corpus, PreparedSet

HALVES = ("train2014", "val2014")
FILE = "instances_{}.json"
DROPPED = (  # clustered with the others, but no classes of the data set
    *("cell phone", "hair drier", "mouse", "keyboard", "wine glass"),
    *("cup", "knife", "microwave", "toaster"),
)
PER_CLASS = 100  # images of each class in the balanced test set


def read_annotations(folder: Path) -> Corpus:
    """Read the annotated images of both instances files of COCO; Sec. 4.1."""
    files = [folder / FILE.format(half) for half in HALVES]
    train, test = map(_read_half, files, HALVES)
    if np.isin(train.key, test.key).any() or train.names != test.names:
        raise ValueError(
            "expected no image twice and the same categories in "
            f"{' and '.join(map(str, files))}, got others; download the annotations "
            "again"
        )
    columns = {
        name: np.concatenate([getattr(train, name), getattr(test, name)])
        for name in ("key", "is_test", "files", "labels")
    }
    corpus = Corpus(**columns, names=train.names)
    return corpus.keep(corpus.labels.any(axis=1), "without annotation")


def _read_half(file: Path, half: str) -> Corpus:
    if not file.is_file():
        raise FileNotFoundError(
            f"expected COCO's annotations in {file}, got none; --annotations names the "
            "folder with both instances files (annotations_trainval2014.zip)"
        )
    what = f"COCO's instances in {file}, each of an image and a category listed there"
    with readable(what, "download the annotations again"):
        content = json.loads(file.read_bytes())
        images = {entry["id"]: entry["file_name"] for entry in content["images"]}
        categories = {entry["id"]: entry["name"] for entry in content["categories"]}
        names = tuple(sorted(categories.values()))
        row = {number: i for i, number in enumerate(images)}
        column = {number: names.index(name) for number, name in categories.items()}
        labels = np.zeros((len(images), len(names)), dtype=bool)
        for entry in content["annotations"]:
            labels[row[entry["image_id"]], column[entry["category_id"]]] = True
        if len(images) < len(content["images"]):
            raise ValueError("an image is listed twice")
        return Corpus(
            key=np.array(list(images), dtype=np.int64),
            is_test=np.full(len(images), half == HALVES[1]),
            files=np.array([f"{half}/{name}" for name in images.values()]),
            labels=labels,
            names=names,
        )


def draw_balanced(
    labels: np.ndarray, names: list[str], is_test: np.ndarray, per_class: int, rng
) -> np.ndarray:
    """Draw half of each class's test images from val2014 and half from train2014."""
    # The paper does not say where its test images come from; in the released files it
    # is so.
    drawn = []
    for half, share in ((True, (per_class + 1) // 2), (False, per_class // 2)):
        rows = np.flatnonzero(is_test == half)
        in_half = curation.balanced_test(labels[rows], share, rng, None, names)
        drawn.append(rows[in_half])
    return np.concatenate(drawn)


PREPARED = PreparedSet(
    name="cocoseq",
    stands_for="COCOseq",
    read=read_annotations,
    table="coco2014_labels.npz",
    ignored=("person",),
    dropped=DROPPED,
    num_tasks=4,
    beta=1.0,
    per_class=PER_CLASS,
    draw_balanced=draw_balanced,
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
