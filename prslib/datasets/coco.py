"""MS COCO 2014's labels, from its annotation files or from one small table."""

from __future__ import annotations

import contextlib
import io
import json
from collections import Counter
from pathlib import Path

import numpy as np

from prslib.datasets.selection import Corpus, read_table

HALVES = ("train2014", "val2014")


def read_annotations(folder: Path) -> Corpus:
    """Read ``instances_train2014.json`` and ``instances_val2014.json``; Sec. 4.1.

    Parameters
    ----------
    folder : Path
        The folder ``annotations`` of COCO's download.

    Returns
    -------
    Corpus
        All images with at least one annotation, in the order of the files. An image that is listed
        twice counts once.

    Raises
    ------
    FileNotFoundError
        If a file is missing.
    ValueError
        If a file is cut off or is no annotation file, an annotation is of an unknown image or
        category, or one id stands for two images.
    """
    halves = [_read_half(folder / f"instances_{half}.json", half) for half in HALVES]
    shared = np.intersect1d(halves[0].key, halves[1].key)
    if len(shared):
        raise ValueError(
            f"expected no image in both {' and '.join(HALVES)}, got {len(shared)}, the first with "
            f"id {shared[0]}; download the annotations again"
        )
    if halves[0].names != halves[1].names:
        raise ValueError(
            f"expected the same categories in both files of {folder}, got {len(halves[0].names)} "
            f"and {len(halves[1].names)} that differ; download the annotations again"
        )
    left_out = Counter(halves[0].left_out) + Counter(halves[1].left_out)
    return Corpus(
        key=np.concatenate([half.key for half in halves]),
        is_test=np.concatenate([half.is_test for half in halves]),
        files=np.concatenate([half.files for half in halves]),
        labels=np.concatenate([half.labels for half in halves]),
        names=halves[0].names,
        left_out=dict(left_out),
    )


def _read_half(file: Path, half: str) -> Corpus:
    content = _read_instances(file)
    categories = {entry["id"]: entry["name"] for entry in content["categories"]}
    names = tuple(sorted(categories.values()))
    column = {number: names.index(name) for number, name in categories.items()}
    images: dict[int, str] = {}
    for entry in content["images"]:
        if images.setdefault(entry["id"], entry["file_name"]) != entry["file_name"]:
            raise ValueError(
                f"expected one image for each id in {file}, got {images[entry['id']]} and "
                f"{entry['file_name']} for {entry['id']}; download the annotations again"
            )
    row = {number: i for i, number in enumerate(images)}
    labels = np.zeros((len(images), len(names)), dtype=bool)
    for entry in content["annotations"]:
        if entry["image_id"] not in row or entry["category_id"] not in column:
            what = "image" if entry["image_id"] not in row else "category"
            raise ValueError(
                f"expected every annotation of {file} to be of an image and a category that it "
                f"lists, got annotation {entry.get('id')} of the unknown {what} "
                f"{entry[what + '_id']}; download the annotations again"
            )
        labels[row[entry["image_id"]], column[entry["category_id"]]] = True
    has_any = labels.any(axis=1)
    return Corpus(
        key=np.fromiter(images, dtype=np.int64, count=len(images))[has_any],
        is_test=np.full(int(has_any.sum()), half == HALVES[1]),
        files=np.array([f"{half}/{name}" for name in images.values()], dtype=np.str_)[has_any],
        labels=labels[has_any],
        names=names,
        left_out={
            "without annotation": int((~has_any).sum()),
            "listed twice": len(content["images"]) - len(images),
        },
    )


def _read_instances(file: Path) -> dict:
    from pycocotools.coco import COCO

    if not file.is_file():
        raise FileNotFoundError(
            f"expected COCO's annotations in {file}, got none; --annotations names the folder with "
            f"instances_train2014.json and instances_val2014.json (annotations_trainval2014.zip)"
        )
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # it prints its progress
            content = COCO(str(file)).dataset
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(
            f"expected whole JSON in {file}, got {error}; the file is cut off or spoilt, download "
            "it again"
        ) from error
    except (AssertionError, KeyError, TypeError) as error:
        raise ValueError(f"expected annotations in {file}, got other JSON ({error!r})") from error
    missing = [key for key in ("images", "annotations", "categories") if key not in content]
    if missing:
        raise ValueError(
            f"expected images, annotations and categories in {file}, got no {', '.join(missing)}; "
            "take the instances files, not those of captions or key points"
        )
    return content


def read_label_table(file: Path) -> Corpus:
    """Read COCO's labels from one small npz file in place of the annotations; our own.

    Parameters
    ----------
    file : Path
        With image_id (N,), split (N,) with 0 for train2014, labels (N, 80) and names (80,).

    Returns
    -------
    Corpus
        Without image files.

    Raises
    ------
    ValueError
        If the file cannot be read.
    """
    stored = read_table(file, ("image_id", "split", "labels", "names"))
    return Corpus(
        key=stored["image_id"].astype(np.int64),
        is_test=stored["split"] == 1,
        files=np.full(len(stored["split"]), ""),
        labels=stored["labels"].astype(bool),
        names=tuple(stored["names"].tolist()),
        left_out={},
    )
