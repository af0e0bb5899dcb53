"""Choose the images of a prepared data set, and read and write its files."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

import numpy as np

from prslib.datasets import curation
from prslib.datasets.arrays import open_images, require_an_image
from prslib.datasets.base import Clustering, SequentialDataset, Split
from prslib.paths import data_dir, replacing

PARTS = ("train", "balanced", "imbalanced")
ID_FILES = {"train": "train", "balanced": "test", "imbalanced": "teorg"}  # begin of their names
PLACES = {"coco": "COCOseq/ids", "nuswide": "NUSWIDEseq/ids"}  # in the authors' repository


@dataclass(frozen=True, eq=False)
class Corpus:
    """Hold the labels of all images of a multi-label data set, before any split."""

    key: np.ndarray  # int64 (N,), what id files call an image; unique within its half
    is_test: np.ndarray  # bool (N,), of the official test or validation half
    files: np.ndarray  # str (N,), relative to the folder of images
    labels: np.ndarray  # bool (N, C)
    names: tuple[str, ...]  # of the C classes
    left_out: dict[str, int] = field(default_factory=dict)  # images not taken in, by reason

    def columns(self, names: Iterable[str]) -> np.ndarray:
        """Return the labels of some classes, bool (N, len(names))."""
        return self.labels[:, [self.names.index(name) for name in names]]

    def with_files_in(self, root: Path) -> Corpus:
        """Return the corpus without the images that are not in a folder."""
        require_an_image(root, self.files)
        there = np.array([(root / name).is_file() for name in self.files], dtype=bool)
        return replace(
            self,
            key=self.key[there],
            is_test=self.is_test[there],
            files=self.files[there],
            labels=self.labels[there],
            left_out=self.left_out | {"without an image file": int((~there).sum())},
        )

    def save(self, file: Path) -> None:
        """Write the labels as one table, which `read_table` reads."""
        columns = {"image_id": self.key, "split": self.is_test, "labels": self.labels}
        _write_arrays(file, columns | {"names": np.array(self.names)})


def read_table(file: Path, has_ids: bool) -> Corpus:
    """Read a corpus from a table of labels; without ids the key is an image's row in its half."""
    names = ("split", "labels", "names", *(("image_id",) if has_ids else ()))
    what = f"a table of labels with {', '.join(names)}"
    stored = read_arrays(file, names, what, "download it or prepare the set again")
    is_test = stored["split"] == 1
    rows = np.where(is_test, is_test.cumsum(), (~is_test).cumsum()) - 1
    return Corpus(
        key=stored.get("image_id", rows).astype(np.int64),
        is_test=is_test,
        files=np.full(len(is_test), ""),
        labels=stored["labels"].astype(bool),
        names=tuple(stored["names"].tolist()),
    )


def read_arrays(
    file: Path, names: Sequence[str], what: str, then: str = ""
) -> dict[str, np.ndarray]:
    """Read some arrays of an npz file; errors say what it is, and what to do then."""
    try:
        with open(file, "rb") as stream, np.load(stream) as stored:
            return {name: stored[name] for name in names}
    except (FileNotFoundError, PermissionError):
        raise
    except Exception as error:  # whatever a damaged file leads to
        raise ValueError(
            f"expected {file} as {what}, but it cannot be read ({error}); delete it, and {then}"
        ) from error


def check_inside(file: Path, names: Iterable[str]) -> None:
    """Raise ValueError unless the images that a file lists are inside a folder."""
    for name in names:
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise ValueError(
                f"expected the images of {file} inside the folder of images, got {name!r}; "
                "download the annotations again"
            )


def _write_arrays(file: Path, arrays: dict[str, np.ndarray]) -> None:
    with replacing(file) as stream:
        np.savez_compressed(stream, **arrays)


@dataclass(frozen=True, eq=False)
class Selection:
    """Hold the rows of a prepared set: its training and test images."""

    # The test sets share images. Rows are ordered: training, balanced only, both, imbalanced only.
    # So each part is one stretch of the array, and no image is stored twice.
    origin: str  # "released" for the published split, "derived" for our own
    files: np.ndarray  # str (N,), relative to the folder of images
    labels: np.ndarray  # bool (N, C)
    task: np.ndarray  # int64 (N,)
    bounds: np.ndarray  # int64 (3, 2), first row and end of each of `PARTS`
    class_names: np.ndarray  # str (C,)
    class_task: np.ndarray  # int64 (C,)
    class_group: np.ndarray  # str (C,)

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

    def save(self, file: Path, **more: np.ndarray) -> None:
        """Write an npz file, which `load` reads, with more arrays in it."""
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        _write_arrays(file, own | more)

    @classmethod
    def load(cls, file: Path) -> Selection:
        """Read a file that `save` wrote; ValueError where it cannot be read."""
        names = [field.name for field in fields(cls)]
        values = read_arrays(file, names, "a choice of images", "prepare the set again")
        return cls(**values | {"origin": str(values["origin"])})

    def dataset(self, name: str, stands_for: str, images: np.ndarray | None) -> SequentialDataset:
        """Return the data set, with the rows' images or without any."""
        splits = {}
        for part in PARTS:
            rows = self.part(part)
            pixels = None if images is None else images[rows]
            splits[part] = Split(pixels, self.labels[rows], self.task[rows])
        return SequentialDataset(
            name=name,
            train=splits.pop("train"),
            tests=splits,
            class_names=tuple(self.class_names.tolist()),
            class_task=self.class_task,
            class_group=tuple(self.class_group.tolist()),
            stands_for=stands_for,
        )


@dataclass(frozen=True)
class PreparedSet:
    """Describe a data set that ``python -m prslib prepare`` makes, and load it."""

    name: str
    stands_for: str
    read: Callable[[Path], Corpus]  # takes the folder of annotations
    table: str  # file in $PRSLIB_DATA with the labels of all images, in place of the annotations
    classes: Callable[[tuple[str, ...]], tuple[str, ...]]  # the classes to cluster, of all names
    num_tasks: int
    beta: float
    per_class: int  # images of each class in the balanced test set
    # Draws the derived balanced test set from labels, names, is_test, per_class and a generator.
    draw_balanced: Callable[..., np.ndarray]
    groups: Callable[[np.ndarray, np.ndarray], Sequence[str]]  # of class names and class_freq
    seed: int  # of the derived split, not of a run
    id_ending: str  # of the released id files
    id_halves: dict[str, tuple[bool, ...]]  # part -> halves, test or not, that its ids are of
    ids_are_rows: bool = False  # ids number the rows of the official lists
    ids_without_class: bool = False  # the id files hold images without any of the classes
    id_address: str = ""  # where the id files can be fetched
    id_checksums: dict[str, str] = field(default_factory=dict)  # SHA-256 by file name
    min_classes: int = 1  # of a task
    dropped: tuple[str, ...] = ()  # clustered with the others, but no classes of the data set
    folders: tuple[str, ...] = ()  # must be among the images
    some_images_lost: bool = False  # a derived split is made of the images that are there

    def load(
        self, images: bool, open_rows: Callable = open_images, suffix: str = ""
    ) -> SequentialDataset:
        """Load the prepared set or, for labels alone, split the table of labels now."""
        folder, array = data_dir() / self.name, None
        if (folder / "labels.npz").is_file():
            selection = Selection.load(folder / "labels.npz")
            if images:
                array = open_rows(folder, len(selection), selection.origin == "released")
            why = f"{folder} was prepared without released id files"
        else:
            table, ids = data_dir() / self.table, data_dir() / f"{self.name}_ids"
            if images or not table.is_file():
                raise self.not_prepared()
            corpus = read_table(table, not self.ids_are_rows)
            selection, _ = self.select(corpus, ids if ids.is_dir() else None)
            why = f"no released id files in {ids}"
        if selection.origin == "derived":
            warnings.warn(
                f"{why}: {self.stands_for} is our own derivation of the split, not the released "
                "one",
                stacklevel=3,
            )
        return selection.dataset(self.name + suffix, self.stands_for, array)

    def load_clustering(self) -> Clustering:
        """Load what the classes are clustered from: the training half's labels."""
        for table in (data_dir() / self.name / "corpus.npz", data_dir() / self.table):
            if table.is_file():
                labels, names = self._labels_to_cluster(read_table(table, not self.ids_are_rows))
                return Clustering(labels, names, self.num_tasks, self.beta, self.min_classes)
        raise self.not_prepared()

    def not_prepared(self) -> FileNotFoundError:
        """Return the error that says how to prepare the set."""
        return FileNotFoundError(
            f"expected {self.name} in {data_dir() / self.name}, got nothing; run `python -m "
            f"prslib prepare {self.name} --annotations DIR --images DIR [--ids DIR]` (without "
            "--images for labels alone, without --ids for a derived split)"
        )

    def _labels_to_cluster(self, corpus: Corpus) -> tuple[np.ndarray, tuple[str, ...]]:
        names = self.classes(corpus.names)
        labels = corpus.columns(names)
        return labels[labels.any(axis=1) & ~corpus.is_test], names

    def select(
        self, corpus: Corpus, ids: Path | None, per_class: int | None = None
    ) -> tuple[Selection, dict[str, int]]:
        """Choose images by the released ids, or derive a split; count those in no part; Sec. 4."""
        if ids is None:
            return self._derive(corpus, self.per_class if per_class is None else per_class)
        return self._select_released(corpus, read_ids(ids, self.id_ending))

    def _derive(self, corpus: Corpus, per_class: int) -> tuple[Selection, dict[str, int]]:
        """Derive a split like the published one from the labels alone; Sec. 4 and Appendix."""
        to_cluster, names = self._labels_to_cluster(corpus)
        group = curation.cluster_classes(to_cluster, self.num_tasks, self.beta, self.min_classes)
        kept = ~np.isin(names, self.dropped)
        class_task = curation.number_by_size(group, kept)
        with_dropped = corpus.columns(names)
        labels = with_dropped[:, kept]
        usable = labels.any(axis=1)
        task = np.full(len(labels), -1, dtype=np.int64)
        task[usable] = curation.tasks_of_images(with_dropped[usable], class_task)
        left_out = {
            f"without any class of {self.stands_for}": int((~usable).sum()),
            "with classes of several tasks": int((usable & (task < 0)).sum()),
        }
        pool = np.flatnonzero(task >= 0)
        is_test = corpus.is_test[pool]
        rng = np.random.default_rng(self.seed)
        names = np.array(names)[kept]
        balanced = pool[self.draw_balanced(labels[pool], names.tolist(), is_test, per_class, rng)]
        rows = {
            "train": np.setdiff1d(pool[~is_test], balanced),
            "balanced": balanced,
            "imbalanced": pool[is_test],
        }
        made = self._selection("derived", corpus, rows, labels, task, names, class_task[kept])
        return made, left_out

    def _released_rows(
        self, corpus: Corpus, ids: dict[str, list[np.ndarray]]
    ) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Find the images of the id files; return the rows of each part, and every row's task."""
        rows, task = {part: [] for part in ids}, np.full(len(corpus.key), -1, dtype=np.int64)
        for part, lists in ids.items():
            for t, wanted in enumerate(lists):
                file = f"{ID_FILES[part]}_task{t}"
                found = _look_up(corpus, wanted, self.id_halves[part], file)
                if len(other := found[(task[found] >= 0) & (task[found] != t)]):
                    raise ValueError(
                        f"expected each image in one task, got {len(other)} of {file} in another "
                        f"as well, the first with id {corpus.key[other[0]]}; download the id files "
                        "again"
                    )
                task[found] = t
                rows[part].append(found)
        rows = {part: np.concatenate(found) for part, found in rows.items()}
        both = np.intersect1d(rows["train"], np.concatenate([rows["balanced"], rows["imbalanced"]]))
        if len(both):
            raise ValueError(
                f"expected no training image in a test set, got {len(both)}, the first with id "
                f"{corpus.key[both[0]]}; the id files are not of one split"
            )
        return rows, task

    def _select_released(
        self, corpus: Corpus, ids: dict[str, list[np.ndarray]]
    ) -> tuple[Selection, dict[str, int]]:
        """Pick the published split's images and check that their labels agree."""
        rows, task = self._released_rows(corpus, ids)
        names = [name for name in self.classes(corpus.names) if name not in self.dropped]
        labels = corpus.columns(names)
        used = labels[rows["train"]].any(axis=0)  # a class without a training image is left out
        labels, names = labels[:, used], np.array(names)[used]
        chosen = np.unique(np.concatenate(list(rows.values())))
        empty = int((~labels[chosen].any(axis=1)).sum())
        if empty and not self.ids_without_class:
            raise ValueError(
                f"expected a class of {self.stands_for} in every image of the id files, got "
                f"{empty} without any; the id files do not match these annotations, get both anew"
            )
        left_out = {f"of the id files without any class of {self.stands_for}": empty}
        rows = {part: found[labels[found].any(axis=1)] for part, found in rows.items()}
        chosen = chosen[labels[chosen].any(axis=1)]
        # the task of a class is the one that most of its images are in
        counts = [labels[chosen[task[chosen] == t]].sum(axis=0) for t in range(len(ids["train"]))]
        class_task = np.argmax(counts, axis=0).astype(np.int64)
        foreign = labels[chosen] & (class_task[None, :] != task[chosen][:, None])  # (chosen, C)
        if len(wrong := np.flatnonzero(foreign.any(axis=1))):
            first, label = chosen[wrong[0]], int(foreign[wrong[0]].argmax())
            raise ValueError(
                f"expected only labels of its own task for every image, but {len(wrong)} of "
                f"{len(chosen)} have others, the first with id {corpus.key[first]}: task "
                f"{task[first]} with {str(names[label])!r} of task {class_task[label]}; the id "
                "files do not match these annotations, get both anew"
            )
        selection = self._selection("released", corpus, rows, labels, task, names, class_task)
        return selection, left_out if empty else {}

    def _selection(
        self,
        origin: str,
        corpus: Corpus,
        rows: dict[str, np.ndarray],  # of each part
        labels: np.ndarray,  # of all images
        task: np.ndarray,
        names: np.ndarray,
        class_task: np.ndarray,
    ) -> Selection:
        """Order the images so that each part is one stretch of rows."""
        train, balanced, imbalanced = (rows[part] for part in PARTS)
        shared = np.isin(balanced, imbalanced)
        others = imbalanced[~np.isin(imbalanced, balanced)]
        order = np.concatenate([train, balanced[~shared], balanced[shared], others])
        end, first_shared = len(train) + len(balanced), len(train) + int((~shared).sum())
        bounds = [[0, len(train)], [len(train), end], [first_shared, len(order)]]
        return Selection(
            origin=origin,
            files=corpus.files[order],
            labels=labels[order],
            task=task[order],
            bounds=np.array(bounds, dtype=np.int64),
            class_names=names,
            class_task=class_task,
            class_group=np.array(self.groups(names, labels[train].sum(axis=0))),
        )


def _look_up(corpus: Corpus, wanted: np.ndarray, halves: tuple[bool, ...], file: str) -> np.ndarray:
    """Return the rows of ids; the halves are searched in their order."""
    row = {}
    for is_test in reversed(halves):  # what the first one has counts
        half = np.flatnonzero(corpus.is_test == is_test)
        row |= zip(corpus.key[half].tolist(), half.tolist(), strict=True)
    if missing := [key for key in wanted.tolist() if key not in row]:
        raise ValueError(
            f"expected every id of {file} among the labelled images, but "
            f"{len(missing)} of {len(wanted)} are not, the first is {missing[0]}; the id files do "
            "not match these annotations, get both anew"
        )
    return np.array([row[key] for key in wanted.tolist()], dtype=np.int64)


def read_ids(folder: Path, ending: str) -> dict[str, list[np.ndarray]]:
    """Read the released id files, by part and task: ``{train,test,teorg}_task<t>_id_<ending>``."""
    pattern = re.compile(rf"(?:{'|'.join(ID_FILES.values())})_task(\d+)_id_{ending}\.json")
    matches = [pattern.fullmatch(file.name) for file in folder.glob("*.json")]
    last = max((int(match[1]) for match in matches if match), default=0)
    return {
        part: [
            _read_list(folder / f"{begin}_task{task}_id_{ending}.json", ending)
            for task in range(last + 1)
        ]
        for part, begin in ID_FILES.items()
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
    except (ValueError, RecursionError) as error:
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
