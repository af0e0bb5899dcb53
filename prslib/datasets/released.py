"""The published splits: id files, read and checked against the labels at hand."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np

from prslib.datasets.selection import Corpus, Selection, lay_out

FILES = {"train": "train", "balanced": "test", "imbalanced": "teorg"}  # part -> name in the files
PLACES = {"coco": "COCOseq/ids", "nuswide": "NUSWIDEseq/ids"}  # in the authors' repository


def read_ids(folder: Path, ending: str) -> dict[str, list[np.ndarray]]:
    """Read the released id files, ``{train,test,teorg}_task<t>_id_<ending>.json``; Sec. 4.

    Parameters
    ----------
    folder : Path
        Where the files are.
    ending : str
        "coco" or "nuswide".

    Returns
    -------
    dict of str to list of numpy.ndarray of int64
        Part to the ids of each task.

    Raises
    ------
    FileNotFoundError
        If a file is missing.
    ValueError
        If a file is not a list of integers, or names one twice.
    """
    pattern = re.compile(rf"(?:{'|'.join(FILES.values())})_task(\d+)_id_{ending}\.json")
    matches = [pattern.fullmatch(file.name) for file in folder.glob("*.json")]
    last = max((int(match[1]) for match in matches if match), default=0)
    return {
        part: [
            _read_list(folder / f"{begin}_task{task}_id_{ending}.json", ending)
            for task in range(last + 1)
        ]
        for part, begin in FILES.items()
    }


def _read_list(file: Path, ending: str) -> np.ndarray:
    if not file.is_file():
        raise FileNotFoundError(
            f"expected the id file {file}, got none; put the released files there (folder "
            f"dataset/data_source/{PLACES[ending]} of github.com/cdjkim/PRS), or leave --ids out "
            "to derive a split"
        )
    try:
        ids = json.loads(file.read_text())
    except json.JSONDecodeError as error:
        raise ValueError(f"expected JSON in {file}, got {error}; download it again") from error
    if not isinstance(ids, list) or not all(type(number) is int for number in ids):
        raise ValueError(f"expected a list of whole numbers in {file}; download it again")
    array = np.array(ids, dtype=np.int64)
    values, times = np.unique(array, return_counts=True)
    if len(values) < len(array):
        raise ValueError(
            f"expected each id once in {file}, got {values[times > 1][0]} "
            f"{times.max()} times; download it again"
        )
    return array


def select_released(
    corpus: Corpus, ids: dict[str, list[np.ndarray]], halves: dict[str, tuple[bool, ...]], kept
) -> tuple[Selection, int]:
    """Pick the published split's images and check that their labels agree; Sec. 4.

    Parameters
    ----------
    corpus : Corpus
        All images and labels.
    ids : dict of str to list of numpy.ndarray
        As `read_ids` gives them.
    halves : dict of str to tuple of bool
        Part to the halves, test (True) or not, in which its ids are looked up, in order.
    kept : sequence of str
        Classes of the data set; those in no training image are left out.

    Returns
    -------
    selection : Selection
        Without groups of classes (all "").
    empty : int
        Images that were left out as none of their labels is kept.

    Raises
    ------
    ValueError
        If an id is unknown, an image's labels are not of its task, or a training image is in a
        test set as well.
    """
    rows, task = {}, np.full(len(corpus.key), -1, dtype=np.int64)
    for part, lists in ids.items():
        found = [_look_up(corpus, wanted, halves[part], part, t) for t, wanted in enumerate(lists)]
        rows[part] = np.concatenate(found)
        for t, of_task in enumerate(found):
            _set_task(task, of_task, t, part, corpus)
    both = np.intersect1d(rows["train"], np.concatenate([rows["balanced"], rows["imbalanced"]]))
    if len(both):
        raise ValueError(
            f"expected no training image in a test set, got {len(both)}, the first with id "
            f"{corpus.key[both[0]]}; the id files are not of one split"
        )
    labels = corpus.columns(tuple(kept))
    used = labels[rows["train"]].any(axis=0)
    labels, names = labels[:, used], np.array(kept)[used]
    chosen = np.unique(np.concatenate(list(rows.values())))
    empty = chosen[~labels[chosen].any(axis=1)]
    rows = {part: found[labels[found].any(axis=1)] for part, found in rows.items()}
    chosen = np.setdiff1d(chosen, empty)
    class_task = _tasks_of_classes(labels[chosen], task[chosen], len(ids["train"]))
    _check_labels_in_task(corpus, labels, task, chosen, class_task, names)
    order, bounds = lay_out(rows["train"], rows["balanced"], rows["imbalanced"])
    nameless = np.full(len(names), "", dtype="U8")
    selection = Selection(
        "released",
        corpus.files[order],
        labels[order],
        task[order],
        bounds,
        names,
        class_task,
        nameless,
    )
    return selection, len(empty)


def _look_up(corpus: Corpus, wanted: np.ndarray, halves, part: str, task: int) -> np.ndarray:
    """Return the rows of ids; the halves are searched in their order."""
    rows = np.full(len(wanted), -1, dtype=np.int64)
    for is_test in halves:
        half = np.flatnonzero(corpus.is_test == is_test)
        order = half[np.argsort(corpus.key[half])]
        if not len(order):
            continue
        place = np.searchsorted(corpus.key[order], wanted).clip(max=len(order) - 1)
        hit = (corpus.key[order[place]] == wanted) & (rows < 0)
        rows[hit] = order[place[hit]]
    missing = wanted[rows < 0]
    if len(missing):
        raise ValueError(
            f"expected every id of {FILES[part]}_task{task} among the labelled images, but "
            f"{len(missing)} of {len(wanted)} are not, the first is {missing[0]}; the id files do "
            "not match these annotations, get both anew"
        )
    return rows


def _set_task(task: np.ndarray, rows: np.ndarray, t: int, part: str, corpus: Corpus) -> None:
    other = rows[(task[rows] >= 0) & (task[rows] != t)]
    if len(other):
        raise ValueError(
            f"expected each image in one task, got {len(other)} of {FILES[part]}_task{t} in "
            f"another as well, the first with id {corpus.key[other[0]]}; download the id files "
            "again"
        )
    task[rows] = t


def _tasks_of_classes(labels: np.ndarray, task: np.ndarray, num_tasks: int) -> np.ndarray:
    """Return the task in which most images of each class are, int64 (C,)."""
    counts = np.stack([labels[task == t].sum(axis=0) for t in range(num_tasks)])  # (T, C)
    return counts.argmax(axis=0).astype(np.int64)


def _check_labels_in_task(corpus, labels, task, rows, class_task, names) -> None:
    foreign = labels[rows] & (class_task[None, :] != task[rows][:, None])  # (rows, C)
    wrong = np.flatnonzero(foreign.any(axis=1))
    if len(wrong):
        first = rows[wrong[0]]
        label = int(foreign[wrong[0]].argmax())
        raise ValueError(
            f"expected only labels of its own task for every image, but {len(wrong)} of "
            f"{len(rows)} have others, the first with id {corpus.key[first]}: task {task[first]} "
            f"with {str(names[label])!r} of task {class_task[label]}; the id files do not match "
            "these annotations, get both anew"
        )
