"""NUS-WIDE's labels, from its image lists and label files or from one small table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from prslib.datasets import curation
from prslib.datasets.arrays import require_an_image
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

HALVES = ("Train", "Test")


def read_annotations(folder: Path, concepts: tuple[str, ...]) -> Corpus:
    """Read the image lists and the label files of some concepts; Sec. 4.2.

    Parameters
    ----------
    folder : Path
        With ``ImageList/{Train,Test}Imagelist.txt`` and, there or in ``Groundtruth/``,
        ``TrainTestLabels/Labels_<concept>_{Train,Test}.txt``, as NUS-WIDE is distributed.
    concepts : tuple of str
        Concepts to read.

    Returns
    -------
    Corpus
        All images of the lists; `key` is an image's row in its list, from 0.

    Raises
    ------
    FileNotFoundError
        If a file is missing.
    ValueError
        If a label file has another length than the list or holds anything but 0 and 1.
    """
    places = [folder / "Groundtruth" / "TrainTestLabels", folder / "TrainTestLabels"]
    labels_folder = next((place for place in places if place.is_dir()), None)
    if labels_folder is None:
        raise FileNotFoundError(
            f"expected NUS-WIDE's label files in {places[0]} or {places[1]}, got neither; "
            "--annotations names the folder with Groundtruth and ImageList"
        )
    files, columns, is_test = [], [], []
    for half in HALVES:
        listed = _read_list(folder / "ImageList" / f"{half}Imagelist.txt")
        files += listed
        is_test += [np.full(len(listed), half == "Test")]
        names = [labels_folder / f"Labels_{concept}_{half}.txt" for concept in concepts]
        columns.append(np.stack([_read_labels(name, len(listed)) for name in names], axis=1))
    return Corpus(
        key=np.concatenate([np.arange(len(half)) for half in is_test]),
        is_test=np.concatenate(is_test),
        files=np.array(files),
        labels=np.concatenate(columns),
        names=concepts,
        left_out={},
    )


def _read_list(file: Path) -> list[str]:
    if not file.is_file():
        raise FileNotFoundError(
            f"expected NUS-WIDE's image list {file}, got none; --annotations names the folder with "
            "Groundtruth and ImageList"
        )
    lines = file.read_text(encoding="utf-8").splitlines()
    return [line.strip().replace("\\", "/") for line in lines if line.strip()]


def _read_labels(file: Path, length: int) -> np.ndarray:
    if not file.is_file():
        raise FileNotFoundError(
            f"expected the label file {file}, got none; unpack Groundtruth.zip again"
        )
    digits = np.frombuffer(b"".join(file.read_bytes().split()), dtype=np.uint8) - ord("0")
    if len(digits) != length or (digits > 1).any():
        what = "others" if (digits > 1).any() else f"{len(digits)} of them"
        raise ValueError(
            f"expected {length} lines of 0 or 1 in {file}, one an image of the list, got {what}; "
            "the file is cut off or of another version, unpack Groundtruth.zip again"
        )
    return digits.astype(bool)


def at_hand(corpus: Corpus, root: Path) -> Corpus:
    """Return the part of a corpus whose image files are there; our own.

    Parameters
    ----------
    corpus : Corpus
        All images.
    root : Path
        Folder of the images.

    Returns
    -------
    Corpus
        Without the others, which `left_out` counts.

    Raises
    ------
    FileNotFoundError
        If none is there.
    """
    require_an_image(root, corpus.files)
    there = np.array([(root / name).is_file() for name in corpus.files], dtype=bool)
    return replace(
        corpus,
        key=corpus.key[there],
        is_test=corpus.is_test[there],
        files=corpus.files[there],
        labels=corpus.labels[there],
        left_out=corpus.left_out | {"without an image file": int((~there).sum())},
    )


def read_label_table(file: Path) -> Corpus:
    """Read NUS-WIDE's labels from one small npz file in place of the lists; our own.

    Parameters
    ----------
    file : Path
        With split (N,) with 0 for the training list, labels (N, 81) and names (81,), the rows of
        each split in the order of its official list.

    Returns
    -------
    Corpus
        Without image files.

    Raises
    ------
    ValueError
        If the file cannot be read.
    """
    stored = read_table(file, ("split", "labels", "names"))
    is_test = stored["split"] == 1
    return Corpus(
        key=np.where(is_test, is_test.cumsum(), (~is_test).cumsum()).astype(np.int64) - 1,
        is_test=is_test,
        files=np.full(len(is_test), ""),
        labels=stored["labels"].astype(bool),
        names=tuple(stored["names"].tolist()),
        left_out={},
    )


NAME, STANDS_FOR = "nuswideseq", "NUS-WIDEseq"
# The released groups; they are not those of one pair of thresholds.
MAJORITY = (
    *("flowers", "animal", "person", "grass", "buildings", "plants"),
    *("sky", "window", "water", "clouds"),
)
MODERATE = (
    *("ocean", "rocks", "boats", "toy", "tree", "snow", "food", "vehicle", "leaf"),
    *("reflection", "birds", "coral", "lake", "cars", "road", "nighttime", "sign", "statue"),
)
MINORITY = (
    *("beach", "book", "bridge", "computer", "fire", "fish", "flags", "frost", "garden", "house"),
    *("military", "plane", "police", "railroad", "sand", "sports", "street", "temple", "tower"),
    *("train", "wedding"),
)
GROUP = {
    name: group
    for group, names in (("majority", MAJORITY), ("moderate", MODERATE), ("minority", MINORITY))
    for name in names
}
CLASSES = tuple(sorted(GROUP))
TABLE = "nuswide_labels.npz"  # labels of all images, in place of the annotations
NUM_TASKS, BETA, MIN_CLASSES = 6, 1e-4, 4
PER_CLASS = 50  # images of each class in the balanced test set
SEED = 20200825  # of the derived split, not of a run


def select(
    corpus: Corpus, ids: Path | None, per_class: int = PER_CLASS
) -> tuple[Selection, dict[str, int]]:
    """Choose the images of NUS-WIDEseq by the released id files or by our derivation; Sec. 4.2.

    Parameters
    ----------
    corpus : Corpus
        NUS-WIDE's labels.
    ids : Path or None
        Folder of the released id files, whose numbers count the rows of the official lists (of
        the test list for both test sets); None for the derivation.
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
    halves = {"train": (False,), "balanced": (True,), "imbalanced": (True,)}
    selection, empty = select_released(corpus, read_ids(ids, "nuswide"), halves, CLASSES)
    return _with_groups(selection), {"of the id files without any of the 49 concepts": empty}


def find_tasks(corpus: Corpus) -> np.ndarray:
    """Cluster the 49 classes into six tasks; Appendix, Algorithm 2, beta 1e-4, 4 classes or more.

    Parameters
    ----------
    corpus : Corpus
        NUS-WIDE's labels.

    Returns
    -------
    numpy.ndarray of int64, shape (49,)
        Task of each of `CLASSES`, numbered by size (`number_by_size`).
    """
    group = cluster_classes(_labels_to_cluster(corpus), NUM_TASKS, BETA, MIN_CLASSES)
    return number_by_size(group, np.ones(len(CLASSES), dtype=bool))


def _labels_to_cluster(corpus: Corpus) -> np.ndarray:
    labels = corpus.columns(CLASSES)
    return labels[labels.any(axis=1) & ~corpus.is_test]


def derive(corpus: Corpus, per_class: int = PER_CLASS) -> tuple[Selection, dict[str, int]]:
    """Derive a split of whatever images are left, from the labels alone; Sec. 4.2 and Appendix.

    Parameters
    ----------
    corpus : Corpus
        NUS-WIDE's labels, of the images at hand.
    per_class : int
        Images of each class in the balanced test set.

    Returns
    -------
    selection : Selection
        The same for the same images in the same order.
    left_out : dict of str to int
        Images without any of the 49 concepts, and with concepts of several tasks.

    Notes
    -----
    The published tasks do not come out: they rest on the images whose links were alive, and which
    those were is not published. The balanced test set is drawn from the official test list, and
    from the training list where a class finds too few there.
    """
    labels = corpus.columns(CLASSES)
    usable = labels.any(axis=1)
    class_task = find_tasks(corpus)
    task = np.full(len(labels), -1, dtype=np.int64)
    task[usable] = curation.tasks_of_images(labels[usable], class_task)
    left_out = {
        "without any of the 49 concepts": int((~usable).sum()),
        "with concepts of several tasks": int((usable & (task < 0)).sum()),
    }
    pool = np.flatnonzero(task >= 0)
    is_test = corpus.is_test[pool]
    rng = np.random.default_rng(SEED)
    balanced = pool[curation.balanced_test(labels[pool], per_class, rng, reserve=~is_test)]
    order, bounds = lay_out(np.setdiff1d(pool[~is_test], balanced), balanced, pool[is_test])
    selection = Selection(
        "derived",
        corpus.files[order],
        labels[order],
        task[order],
        bounds,
        np.array(CLASSES),
        class_task,
        np.full(len(CLASSES), "", dtype="U8"),
    )
    return _with_groups(selection), left_out


def _with_groups(selection: Selection) -> Selection:
    groups = np.array([GROUP[name] for name in selection.class_names])
    return replace(selection, class_group=groups)


def load_nuswideseq(images: bool) -> SequentialDataset:
    """Load NUS-WIDEseq from ``$PRSLIB_DATA``; Sec. 4.2.

    Parameters
    ----------
    images : bool
        False for labels alone.

    Returns
    -------
    SequentialDataset
        What ``python -m prslib prepare nuswideseq`` has made in ``nuswideseq/``. Where there is no
        such folder and no images are wanted, the split of ``nuswideseq_ids/`` (our derivation if
        there are none) on the labels of ``nuswide_labels.npz``.

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
    """Load what our derivation clusters: the 49 concepts of the training list; Appendix.

    Returns
    -------
    Clustering
        From the labels of the prepared set, else of ``nuswide_labels.npz``.

    Raises
    ------
    FileNotFoundError
        If there is neither.
    """
    table = find_table(NAME, TABLE)
    labels = _labels_to_cluster(read_label_table(table))
    return Clustering(labels, CLASSES, NUM_TASKS, BETA, MIN_CLASSES)


NUSWIDESEQ = Entry(
    load_nuswideseq,
    Recipe(
        model="resnet101",
        memory_size=2000,
        schedule=(3, 1, 0, 5, 4, 2),
        learning_rate=1e-4,
        precision="bf16",  # our own choice: the paper does not say what its runs computed in
    ),
    load_clustering,
)
