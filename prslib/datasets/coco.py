"""MS COCO 2014's labels, from its annotation files or from one small table."""

from __future__ import annotations

import contextlib
import io
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np

from prslib.datasets import curation
from prslib.datasets.base import Clustering, Entry, Recipe, SequentialDataset
from prslib.datasets.curation import cluster_classes, number_by_size
from prslib.datasets.prepared import (
    Corpus,
    Selection,
    find_table,
    lay_out,
    load_prepared_or_select,
    read_ids,
    read_table,
    select_released,
)

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


NAME, STANDS_FOR = "cocoseq", "COCOseq"
IGNORED = "person"  # left out before the clustering
DROPPED = (  # clustered with the others, but no classes of the data set
    *("cell phone", "hair drier", "mouse", "keyboard", "wine glass"),
    *("cup", "knife", "microwave", "toaster"),
)
TABLE = "coco2014_labels.npz"  # labels of all images, in place of the annotations
NUM_TASKS, BETA = 4, 1.0
PER_CLASS = 100  # images of each class in the balanced test set
SEED = 20200824  # of the derived split, not of a run


def select(
    corpus: Corpus, ids: Path | None, per_class: int = PER_CLASS
) -> tuple[Selection, dict[str, int]]:
    """Choose the images of COCOseq by the released id files or by our own derivation; Sec. 4.1.

    Parameters
    ----------
    corpus : Corpus
        COCO's labels.
    ids : Path or None
        Folder of the released id files; None for the derivation.
    per_class : int
        Images of each class in the balanced test set of the derivation.

    Returns
    -------
    selection : Selection
        Training, balanced and imbalanced test images, the classes in alphabetical order.
    left_out : dict of str to int
        Images that are in no part although they could have been, by reason.

    Raises
    ------
    FileNotFoundError
        If an id file is missing.
    ValueError
        If the id files do not match the labels, or the labels do not suffice for the derivation.
    """
    if ids is None:
        return derive(corpus, per_class)
    halves = {"train": (False,), "balanced": (True, False), "imbalanced": (True,)}
    kept = [name for name in corpus.names if name not in (IGNORED, *DROPPED)]
    selection, empty = select_released(corpus, read_ids(ids, "coco"), halves, kept)
    if empty:
        raise ValueError(
            f"expected a class of COCOseq in every image of the id files, got {empty} without any; "
            "the id files do not match these annotations, get both anew"
        )
    return _with_groups(selection), {}


def find_tasks(corpus: Corpus) -> tuple[tuple[str, ...], np.ndarray]:
    """Cluster the classes of train2014 into the four tasks; Appendix, Algorithm 2, beta 1.

    Parameters
    ----------
    corpus : Corpus
        COCO's labels.

    Returns
    -------
    names : tuple of str, length C
        All classes but "person", those that are dropped later included.
    class_task : numpy.ndarray of int64, shape (C,)
        Their tasks, in the published numbering (`number_by_size`).
    """
    labels, names = _labels_to_cluster(corpus)
    group = cluster_classes(labels, NUM_TASKS, BETA)
    return names, number_by_size(group, ~np.isin(names, DROPPED))


def _labels_to_cluster(corpus: Corpus) -> tuple[np.ndarray, tuple[str, ...]]:
    names = tuple(name for name in corpus.names if name != IGNORED)
    labels = corpus.columns(names)
    return labels[labels.any(axis=1) & ~corpus.is_test], names


def find_pools(corpus: Corpus, names: tuple[str, ...], class_task: np.ndarray) -> np.ndarray:
    """Find the task of every image, -1 for those of none; Appendix, "Dataset Curation".

    Parameters
    ----------
    corpus : Corpus
        COCO's labels.
    names, class_task
        As `find_tasks` gives them.

    Returns
    -------
    numpy.ndarray of int64, shape (N,)
        An image belongs to a task when all its labels but "person" are the task's, dropped classes
        included, and one of them is kept.
    """
    labels = corpus.columns(names)
    task = np.full(len(labels), -1, dtype=np.int64)
    usable = labels[:, ~np.isin(names, DROPPED)].any(axis=1)
    task[usable] = curation.tasks_of_images(labels[usable], class_task)
    return task


def derive(corpus: Corpus, per_class: int = PER_CLASS) -> tuple[Selection, dict[str, int]]:
    """Derive a split like the published one from the labels alone; Sec. 4.1 and Appendix.

    Parameters
    ----------
    corpus : Corpus
        COCO's labels.
    per_class : int
        Images of each class in the balanced test set.

    Returns
    -------
    selection : Selection
        The same for the same images in the same order.
    left_out : dict of str to int
        Images whose labels are of no task alone.

    Notes
    -----
    The paper does not say where its test images come from. In the released files half of each
    class's 100 are of val2014 and half of train2014, so that is how they are drawn here: val2014
    first, then train2014. What is left of train2014 is the training set.
    """
    names, class_task = find_tasks(corpus)
    task = find_pools(corpus, names, class_task)
    kept = ~np.isin(names, DROPPED)
    labels = corpus.columns(names)[:, kept]
    rng = np.random.default_rng(SEED)
    pools = [np.flatnonzero((task >= 0) & (corpus.is_test == half)) for half in (True, False)]
    shares = ((per_class + 1) // 2, per_class // 2)
    drawn = [
        pool[curation.balanced_test(labels[pool], share, rng)]
        for pool, share in zip(pools, shares, strict=True)
        if share
    ]
    balanced = np.concatenate(drawn)
    order, bounds = lay_out(np.setdiff1d(pools[1], balanced), balanced, pools[0])
    selection = Selection(
        "derived",
        corpus.files[order],
        labels[order],
        task[order],
        bounds,
        np.array(names)[kept],
        class_task[kept],
        np.full(int(kept.sum()), "", dtype="U8"),
    )
    return _with_groups(selection), {"with labels of no task alone": int((task < 0).sum())}


def _with_groups(selection: Selection) -> Selection:
    class_freq = selection.labels[selection.part("train")].sum(axis=0)
    return replace(selection, class_group=np.array(curation.class_groups(class_freq)))


def load_cocoseq(images: bool) -> SequentialDataset:
    """Load COCOseq from ``$PRSLIB_DATA``; Sec. 4.1.

    Parameters
    ----------
    images : bool
        False for labels alone.

    Returns
    -------
    SequentialDataset
        What ``python -m prslib prepare cocoseq`` has made in ``cocoseq/``. Where there is no such
        folder and no images are wanted, the split of ``cocoseq_ids/`` (our derivation if there are
        none) on the labels of ``coco2014_labels.npz``.

    Raises
    ------
    FileNotFoundError
        If there is neither.

    Warns
    -----
    UserWarning
        If the split is our derivation.
    """
    return load_prepared_or_select(
        NAME,
        STANDS_FOR,
        images,
        TABLE,
        lambda table, ids: select(read_label_table(table), ids)[0],
    )


def load_clustering() -> Clustering:
    """Load what COCOseq's classes are clustered from: train2014 without "person"; Appendix.

    Returns
    -------
    Clustering
        From the labels of the prepared set, else of ``coco2014_labels.npz``.

    Raises
    ------
    FileNotFoundError
        If there is neither.
    """
    table = find_table(NAME, TABLE)
    labels, names = _labels_to_cluster(read_label_table(table))
    return Clustering(labels, names, NUM_TASKS, BETA)


COCOSEQ = Entry(
    load_cocoseq,
    Recipe(
        model="resnet101",
        memory_size=2000,
        schedule=(0, 3, 1, 2),
        learning_rate=1e-4,
        precision="bf16",  # our own choice: the paper does not say what its runs computed in
    ),
    load_clustering,
)
