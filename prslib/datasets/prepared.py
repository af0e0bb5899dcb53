"""Which images make up a prepared data set, and where its two files lie."""

from __future__ import annotations

import json
import os
import re
import warnings
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np

from prslib.datasets.arrays import check_resolution
from prslib.datasets.base import SequentialDataset, Split
from prslib.paths import data_dir

PARTS = ("train", "balanced", "imbalanced")
BROKEN = (KeyError, TypeError, ValueError, EOFError, zipfile.BadZipFile, zlib.error)


@dataclass(frozen=True, eq=False)
class Corpus:
    """Hold the labels of a whole multi-label data set, before any split; Sec. 4.

    Parameters
    ----------
    key : numpy.ndarray of int64, shape (N,)
        What id files call an image; unique within its half.
    is_test : numpy.ndarray of bool, shape (N,)
        Whether it is of the official test or validation half.
    files : numpy.ndarray of str, shape (N,)
        Its file, relative to the folder of images.
    labels : numpy.ndarray of bool, shape (N, C)
        Multi-hot labels.
    names : tuple of str, length C
        Class names.
    left_out : dict of str to int
        How many images were not taken in, by reason.
    """

    key: np.ndarray
    is_test: np.ndarray
    files: np.ndarray
    labels: np.ndarray
    names: tuple[str, ...]
    left_out: dict[str, int]

    def columns(self, names: tuple[str, ...]) -> np.ndarray:
        """Return the labels of some classes, bool (N, len(names))."""
        return self.labels[:, [self.names.index(name) for name in names]]

    def save(self, file: Path) -> None:
        """Write the labels as one npz table, whole or not at all."""
        columns = {"image_id": self.key, "split": self.is_test, "labels": self.labels}
        _write_whole(file, columns | {"names": np.array(self.names)})


@dataclass(frozen=True, eq=False)
class Selection:
    """Hold the rows of a prepared set: training, balanced and imbalanced test images; Sec. 4.

    Parameters
    ----------
    origin : str
        "released" for the published split, "derived" for our own.
    files : numpy.ndarray of str, shape (N,)
        Image of each row, relative to the folder of images.
    labels : numpy.ndarray of bool, shape (N, C)
        Multi-hot labels of each row.
    task : numpy.ndarray of int64, shape (N,)
        Task of each row.
    bounds : numpy.ndarray of int64, shape (3, 2)
        First row and end of each of `PARTS`.
    class_names, class_group : numpy.ndarray of str, shape (C,)
        As in `SequentialDataset`.
    class_task : numpy.ndarray of int64, shape (C,)
        As in `SequentialDataset`.

    Notes
    -----
    The test sets share images. Rows come in the order: training, balanced only, both, imbalanced
    only, so that each part is one stretch of the array and no image is stored twice.
    """

    origin: str
    files: np.ndarray
    labels: np.ndarray
    task: np.ndarray
    bounds: np.ndarray
    class_names: np.ndarray
    class_task: np.ndarray
    class_group: np.ndarray

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.labels)

    def part(self, name: str) -> slice:
        """Return the rows of "train", "balanced" or "imbalanced"."""
        return slice(*self.bounds[PARTS.index(name)].tolist())

    def keep(self, kept: np.ndarray) -> Selection:
        """Return the selection without the rows where `kept`, bool (N,), is False."""
        before = np.concatenate([[0], kept.cumsum()])
        return replace(
            self,
            files=self.files[kept],
            labels=self.labels[kept],
            task=self.task[kept],
            bounds=before[self.bounds],
        )

    def save(self, file: Path) -> None:
        """Write an npz file, whole or not at all."""
        _write_whole(file, {field.name: getattr(self, field.name) for field in fields(self)})

    @classmethod
    def load(cls, file: Path) -> Selection:
        """Read a file that `save` wrote; ValueError where it cannot be read."""
        try:
            values = _read_arrays(file, [field.name for field in fields(cls)])
        except BROKEN as error:
            raise ValueError(
                f"expected {file} as `python -m prslib prepare` writes it, but it cannot be read "
                f"({error}); delete it and prepare the set again"
            ) from error
        return cls(**values | {"origin": str(values["origin"])})

    def dataset(self, name: str, stands_for: str, images: np.ndarray | None) -> SequentialDataset:
        """Return the data set, with the rows' images or without any."""
        splits = {
            part: Split(
                None if images is None else images[self.part(part)],
                self.labels[self.part(part)],
                self.task[self.part(part)],
            )
            for part in PARTS
        }
        return SequentialDataset(
            name=name,
            train=splits.pop("train"),
            tests=splits,
            class_names=tuple(self.class_names.tolist()),
            class_task=self.class_task,
            class_group=tuple(self.class_group.tolist()),
            stands_for=stands_for,
        )


def _read_arrays(file: Path, names: Sequence[str]) -> dict[str, np.ndarray]:
    with open(file, "rb") as stream, np.load(stream) as stored:
        return {name: stored[name] for name in names}


def _write_whole(file: Path, arrays: dict[str, np.ndarray]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_suffix(".writing")
    with open(beside, "wb") as stream:
        np.savez_compressed(stream, **arrays)
    os.replace(beside, file)


def read_table(file: Path, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Read some arrays of a table of labels; our own.

    Parameters
    ----------
    file : Path
        The npz file.
    names : sequence of str
        Which arrays.

    Returns
    -------
    dict of str to numpy.ndarray
        The arrays by name.

    Raises
    ------
    ValueError
        If the file is cut off or no such table.
    """
    try:
        return _read_arrays(file, names)
    except BROKEN as error:
        raise ValueError(
            f"expected {file} as a table of labels with {', '.join(names)}, but it cannot be read "
            f"({error}); delete it, and download it or prepare the set again"
        ) from error


def find_table(name: str, download: str) -> Path:
    """Return the table of a corpus's labels: that of the prepared set, else a downloaded one.

    Parameters
    ----------
    name : str
        Name of the data set.
    download : str
        File name of the table in ``$PRSLIB_DATA``.

    Returns
    -------
    Path
        An existing file.

    Raises
    ------
    FileNotFoundError
        If there is neither.
    """
    for place in (data_dir() / name / "corpus.npz", data_dir() / download):
        if place.is_file():
            return place
    raise _nothing_of(name)


def _nothing_of(name: str) -> FileNotFoundError:
    return FileNotFoundError(
        f"expected {name} in {data_dir() / name}, got nothing; run `python -m prslib prepare "
        f"{name} --annotations DIR --images DIR [--ids DIR]` (without --images for labels alone, "
        "without --ids for a derived split)"
    )


def load_prepared_or_select(
    name: str,
    stands_for: str,
    images: bool,
    download: str,
    select: Callable[[Path, Path | None], Selection],
) -> SequentialDataset:
    """Load a prepared data set or, for labels alone, split a table of labels now; Sec. 4.

    Parameters
    ----------
    name, stands_for : str
        Of the data set.
    images : bool
        False for labels alone.
    download : str
        File name of the table in ``$PRSLIB_DATA``.
    select : callable
        Takes the table and the folder of released id files, None where there is none, in which
        case it derives a split; returns the `Selection`.

    Returns
    -------
    SequentialDataset
        What ``python -m prslib prepare`` has made; where there is no such folder and no images are
        wanted, the split of ``<name>_ids/`` or a derived one.

    Raises
    ------
    FileNotFoundError
        If there is neither.

    Warns
    -----
    UserWarning
        If the split is derived.
    """
    prepared = load_prepared(name, stands_for, images)
    if prepared is not None:
        return prepared
    table, ids = data_dir() / download, data_dir() / f"{name}_ids"
    if images or not table.is_file():
        raise _nothing_of(name)
    if not ids.is_dir():
        _warn_of_derivation(f"no released id files in {ids}", stands_for)
    return select(table, ids if ids.is_dir() else None).dataset(name, stands_for, None)


def _warn_of_derivation(why: str, stands_for: str) -> None:
    warnings.warn(
        f"{why}: {stands_for} is our own derivation of the split, which `prslib.datasets` "
        "describes",
        stacklevel=3,
    )


def lay_out(train: np.ndarray, balanced: np.ndarray, imbalanced: np.ndarray):
    """Order the images so that each part is one stretch of rows; our own choice.

    Parameters
    ----------
    train, balanced, imbalanced : numpy.ndarray of int64
        Images of each part, each once; the two test sets may share some.

    Returns
    -------
    rows : numpy.ndarray of int64
        All images, each once.
    bounds : numpy.ndarray of int64, shape (3, 2)
        First row and end of the three parts.

    Examples
    --------
    >>> rows, bounds = lay_out(np.array([7]), np.array([1, 2]), np.array([2, 3]))
    >>> rows.tolist(), bounds.tolist()
    ([7, 1, 2, 3], [[0, 1], [1, 3], [2, 4]])
    """
    shared = np.isin(balanced, imbalanced)
    others = imbalanced[~np.isin(imbalanced, balanced)]
    rows = np.concatenate([train, balanced[~shared], balanced[shared], others])
    end, first_shared = len(train) + len(balanced), len(train) + int((~shared).sum())
    bounds = [[0, len(train)], [len(train), end], [first_shared, len(rows)]]
    return rows.astype(np.int64), np.array(bounds, dtype=np.int64)


def load_prepared(name: str, stands_for: str, images: bool) -> SequentialDataset | None:
    """Load what ``python -m prslib prepare`` has made in ``$PRSLIB_DATA/<name>``; our own.

    Parameters
    ----------
    name : str
        Name of the data set.
    stands_for : str
        The paper's name of it.
    images : bool
        False for labels alone.

    Returns
    -------
    SequentialDataset or None
        The images are read from disk as they are used. None where no labels were prepared.

    Raises
    ------
    FileNotFoundError
        If images are wanted and not ready.
    ValueError
        If a file cannot be read, or the array has another resolution or length.

    Warns
    -----
    UserWarning
        If the split is derived.
    """
    folder = data_dir() / name
    if not (folder / "labels.npz").is_file():
        return None
    selection = Selection.load(folder / "labels.npz")
    array = _open_images(name, folder, selection) if images else None
    if selection.origin == "derived":
        _warn_of_derivation(f"{folder} was prepared without released id files", stands_for)
    return selection.dataset(name, stands_for, array)


def _open_images(name: str, folder: Path, selection: Selection) -> np.ndarray:
    file = folder / "images.npy"
    if not file.is_file():
        begun = (folder / "images.part.npy").is_file()
        ids = " --ids DIR" if selection.origin == "released" else ""
        raise FileNotFoundError(
            f"expected the images of {name} in {file}, got "
            + ("an unfinished array; go on with" if begun else "labels alone; run")
            + f" `python -m prslib prepare {name} --images DIR --annotations DIR{ids}` (what is "
            "decoded stays), or load the set with images=False"
        )
    try:
        array = np.load(file, mmap_mode="r")
    except (ValueError, EOFError) as error:
        raise ValueError(
            f"expected {file} as a whole array, but it cannot be read ({error}); delete it and "
            f"run `python -m prslib prepare {name}` again"
        ) from error
    check_resolution(array, file)
    if len(array) != len(selection):
        raise ValueError(
            f"expected {len(selection)} images in {file}, one a row of labels.npz, got "
            f"{len(array)}; delete {folder} and prepare the set again"
        )
    return array


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
