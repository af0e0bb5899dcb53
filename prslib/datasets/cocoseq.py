"""COCOseq: 70 classes of MS COCO 2014 in four tasks, the published split or our own derivation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from prslib.datasets import curation
from prslib.datasets.clustering import cluster_classes, number_by_size
from prslib.datasets.coco import read_label_table
from prslib.datasets.recipe import Clustering, Entry, Recipe
from prslib.datasets.released import read_ids, select_released
from prslib.datasets.selection import (
    Corpus,
    Selection,
    find_table,
    lay_out,
    load_prepared_or_select,
)
from prslib.datasets.sequential import SequentialDataset

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
