"""Choose the images of a prepared data set, and read and write its files."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

import numpy as np

from prslib.checks import readable
from prslib.datasets import curation
from prslib.datasets.arrays import PIXELS, open_rows, read_arrays
from prslib.datasets.base import Clustering, SequentialDataset, Split
from prslib.paths import data_dir, replacing

PARTS = ("train", "balanced", "imbalanced")
ID_FILES = {"train": "train", "balanced": "test", "imbalanced": "teorg"}  # name begins
# by split: the official halves, test or not, in which an id is looked for
ID_HALVES = {"train": (False,), "balanced": (True, False), "imbalanced": (True,)}
ID_ADDRESS = (  # a fixed state of the authors' repository, github.com/cdjkim/PRS
    "https://raw.githubusercontent.com/cdjkim/PRS/"
    "a29a99567663365116d5dd58ae7414b6cfe9d94a/dataset/data_source"
)


@dataclass(frozen=True, eq=False)
class Corpus:
    """Labels of all images of a multi-label data set, before any split."""

    key: np.ndarray  # int64 (N,), what id files call an image; unique within its half
    is_test: np.ndarray  # bool (N,), of the official test or validation half
    files: np.ndarray  # str (N,), relative to the folder of images
    labels: np.ndarray  # bool (N, C)
    names: tuple[str, ...]  # of the C classes
    left_out: dict[str, int] = field(default_factory=dict)  # images, by reason

    def columns(self, names: Iterable[str]) -> np.ndarray:
        """Return the labels of some classes, bool (N, len(names))."""
        return self.labels[:, [self.names.index(name) for name in names]]

    def keep(self, rows: np.ndarray, reason: str) -> Corpus:
        """Return the corpus without the images where `rows`, bool (N,), is False."""
        return replace(
            self,
            key=self.key[rows],
            is_test=self.is_test[rows],
            files=self.files[rows],
            labels=self.labels[rows],
            left_out=self.left_out | {reason: int((~rows).sum())},
        )

    def save(self, file: Path) -> None:
        """Write the labels as one table, which `read_table` reads."""
        columns = {"image_id": self.key, "split": self.is_test, "labels": self.labels}
        write_arrays(file, **columns, names=np.array(self.names))


def read_table(file: Path, has_ids: bool) -> Corpus:
    """Read a table of labels; without ids an image's key is its row in its half."""
    names = ["split", "labels", "names"] + ["image_id"] * has_ids
    kind = f"a table of labels with {', '.join(names)}"
    advice = "delete it, and download it or prepare the set again"
    stored = read_arrays(file, names, kind, advice)
    is_test = stored["split"] == 1
    rows = np.where(is_test, is_test.cumsum(), (~is_test).cumsum()) - 1
    return Corpus(
        key=stored.get("image_id", rows).astype(np.int64),
        is_test=is_test,
        files=np.full(len(is_test), ""),
        labels=stored["labels"].astype(bool),
        names=tuple(stored["names"].tolist()),
    )


def write_arrays(file: Path, **arrays: np.ndarray) -> None:
    """Write arrays as a compressed npz file, which `read_arrays` reads."""
    with replacing(file) as stream:
        np.savez_compressed(stream, **arrays)


@dataclass(frozen=True, eq=False)
class Selection:
    """Rows of a prepared set: its training and test images."""

    # The test sets share images. Rows are ordered: training, balanced only, both,
    # imbalanced only. So each split is one stretch of rows, and no image is stored
    # twice.
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

    def keep(self, rows: np.ndarray) -> Selection:
        """Return the selection without the images where `rows`, bool (N,), is False."""
        before = np.concatenate([[0], rows.cumsum()])
        columns = {
            name: getattr(self, name)[rows] for name in ("files", "labels", "task")
        }
        return replace(self, **columns, bounds=before[self.bounds])

    def save(self, file: Path, **more: np.ndarray) -> None:
        """Write an npz file, which `load` reads, with more arrays in it."""
        columns = {
            field.name: np.array(getattr(self, field.name)) for field in fields(self)
        }
        write_arrays(file, **columns, **more)

    @classmethod
    def load(
        cls, file: Path, advice: str = "delete it, and prepare the set again"
    ) -> Selection:
        """Read a file that `save` wrote; ValueError where it cannot be read."""
        names = [field.name for field in fields(cls)]
        values = read_arrays(file, names, "a choice of images", advice)
        return cls(**values | {"origin": str(values["origin"])})

    def dataset(
        self, name: str, stands_for: str, inputs: np.ndarray | None
    ) -> SequentialDataset:
        """Return the data set, with a row of inputs for each image or without any."""
        splits = {}
        for split in PARTS:
            rows = self.part(split)
            split_inputs = None if inputs is None else inputs[rows]
            splits[split] = Split(split_inputs, self.labels[rows], self.task[rows])
        return SequentialDataset(
            name=name,
            train=splits.pop("train"),
            tests=splits,
            class_names=tuple(self.class_names.tolist()),
            class_task=self.class_task,
            class_group=tuple(self.class_group.tolist()),
            stands_for=stands_for,
        )


def open_images(folder: Path, count: int) -> np.ndarray:
    """Map a prepared set's images into memory, uint8 (N, 256, 256, 3)."""
    try:
        return open_rows(folder / "images.bin", count, PIXELS)
    except FileNotFoundError as error:
        raise not_prepared(folder) from error


def not_prepared(folder: Path) -> FileNotFoundError:
    """Return the error that says how to prepare a set."""
    lacking = "nothing"
    if (folder / "labels.npz").is_file():
        lacking = "labels alone (load it with images=False) or unfinished work"
    return FileNotFoundError(
        f"expected {folder.name} in {folder}, got {lacking}; run `python -m prslib "
        f"prepare {folder.name} --images DIR --annotations DIR [--ids DIR]` (without "
        "--images for labels alone, without --ids for a derived split)"
    )


@dataclass(frozen=True)
class PreparedSet:
    """A data set that ``python -m prslib prepare`` makes, and how it is split."""

    name: str
    stands_for: str
    read: Callable[[Path], Corpus]  # takes the folder of annotations
    table: str  # file in $PRSLIB_DATA with all labels, in place of the annotations
    num_tasks: int
    beta: float
    per_class: int  # images of each class in the balanced test set
    # Draws a derived balanced test set: of labels, names, is_test, per_class and a
    # generator.
    draw_balanced: Callable[..., np.ndarray]
    seed: int  # of the derived split, not of a run
    min_classes: int = 1  # of a task
    group_of: dict[str, str] = field(default_factory=dict)  # else by class frequency
    ignored: tuple[str, ...] = ()  # no classes at all, where `group_of` names none
    dropped: tuple[str, ...] = ()  # clustered with the others, but not in the data set
    ids_are_rows: bool = False  # ids number the rows of the official lists
    id_digest: str = ""  # SHA-256 of the released id files, one after another
    # a derived split is made of the images that are there
    some_images_lost: bool = False

    def load(
        self, images: bool, open_inputs: Callable = open_images, suffix: str = ""
    ) -> SequentialDataset:
        """Load the prepared set or, for labels alone, split the table of labels now."""
        folder, inputs = data_dir() / self.name, None
        ids = data_dir() / f"{self.name}_ids"
        if (folder / "labels.npz").is_file():
            selection = Selection.load(folder / "labels.npz")
            if images:
                inputs = open_inputs(folder, len(selection))
        elif images:
            raise not_prepared(folder)
        else:
            selection, _ = self.select(self.corpus(), ids if ids.is_dir() else None)
        if selection.origin == "derived":
            warnings.warn(
                f"{self.stands_for} is our own derivation of the split, not the "
                f"released one: neither --ids nor {ids} brought the released id files",
                stacklevel=3,
            )
        return selection.dataset(self.name + suffix, self.stands_for, inputs)

    def corpus(self) -> Corpus:
        """Read the table of all labels, one that was prepared or one as it is."""
        folder = data_dir() / self.name
        for table in (folder / "corpus.npz", data_dir() / self.table):
            if table.is_file():
                return read_table(table, not self.ids_are_rows)
        raise not_prepared(folder)

    def load_clustering(self) -> Clustering:
        """Load what the classes are clustered from: the training half's labels."""
        labels, names = self._labels_to_cluster(self.corpus())
        return Clustering(labels, names, self.num_tasks, self.beta, self.min_classes)

    def classes(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the classes to cluster among all names."""
        kept = tuple(name for name in names if name not in self.ignored)
        return tuple(self.group_of) or kept

    def _labels_to_cluster(self, corpus: Corpus) -> tuple[np.ndarray, tuple[str, ...]]:
        names = self.classes(corpus.names)
        labels = corpus.columns(names)
        return labels[labels.any(axis=1) & ~corpus.is_test], names

    def select(
        self, corpus: Corpus, ids: Path | None, per_class: int | None = None
    ) -> tuple[Selection, dict[str, int]]:
        """Choose images by released ids, or derive a split; count the rest; Sec. 4."""
        if ids is None:
            return self._derive(corpus, per_class or self.per_class)
        return self._select_released(corpus, self.read_ids(ids))

    def cluster(self, corpus: Corpus) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
        """Return classes, which of them stay, and their tasks; Algorithm 2."""
        labels, names = self._labels_to_cluster(corpus)
        group = curation.cluster_classes(
            labels, self.num_tasks, self.beta, self.min_classes
        )
        stays = ~np.isin(names, self.dropped)
        return names, stays, curation.number_by_size(group, stays)

    def _derive(
        self, corpus: Corpus, per_class: int
    ) -> tuple[Selection, dict[str, int]]:
        """Derive a split like the published one from labels alone; Sec. 4."""
        names, stays, class_task = self.cluster(corpus)
        with_dropped = corpus.columns(names)
        labels = with_dropped[:, stays]
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
        names = np.array(names)[stays]
        drawn = self.draw_balanced(
            labels[pool], names.tolist(), is_test, per_class, rng
        )
        rows = {"balanced": pool[drawn], "imbalanced": pool[is_test]}
        rows["train"] = np.setdiff1d(pool[~is_test], pool[drawn])
        chosen = "derived", corpus, rows, labels, task, names, class_task[stays]
        return self._selection(*chosen), left_out

    def _select_released(
        self, corpus: Corpus, ids: dict[str, list[np.ndarray]]
    ) -> tuple[Selection, dict[str, int]]:
        """Pick the published split's images and check that their labels agree."""
        task = np.full(len(corpus.key), -1, dtype=np.int64)
        rows = {}
        for split, lists in ids.items():
            of_tasks = [look_up(corpus, keys, ID_HALVES[split]) for keys in lists]
            for number, images in enumerate(of_tasks):
                task[images] = number
            rows[split] = np.concatenate(of_tasks)
        # the imbalanced test set is of the other half than the training images
        for apart in (["train", "balanced"], ["imbalanced"]):
            images = np.concatenate([rows[split] for split in apart])
            image, times = np.unique(images, return_counts=True)
            if (times > 1).any():
                raise ValueError(
                    f"expected each image once in the {' and '.join(apart)} id files, "
                    f"got {corpus.key[image[times > 1][0]]} {times.max()} times; "
                    "download the id files again"
                )
        names = np.setdiff1d(self.classes(corpus.names), self.dropped)
        labels = corpus.columns(names.tolist())
        # classes without an image are left out, and images without a class
        used = labels[rows["train"]].any(axis=0)
        labels, names = labels[:, used], names[used]
        chosen = np.unique(np.concatenate(list(rows.values())))
        some, left_out = labels.any(axis=1), {}
        if empty := int((~some[chosen]).sum()):
            left_out[f"of the id files without any class of {self.stands_for}"] = empty
        rows = {split: images[some[images]] for split, images in rows.items()}
        # the task of a class is the one that most of its images are in
        counts = [
            labels[chosen[task[chosen] == t]].sum(axis=0) for t in range(task.max() + 1)
        ]
        class_task = np.argmax(counts, axis=0).astype(np.int64)
        made = self._selection(
            "released", corpus, rows, labels, task, names, class_task
        )
        try:
            made.dataset(self.name, self.stands_for, None)
        except ValueError as error:
            raise ValueError(
                f"the id files do not match these annotations, get both anew: {error}"
            ) from error
        return made, left_out

    def _selection(
        self,
        origin: str,
        corpus: Corpus,
        rows: dict[str, np.ndarray],  # of each of `PARTS`
        labels: np.ndarray,  # of all images
        task: np.ndarray,
        names: np.ndarray,
        class_task: np.ndarray,
    ) -> Selection:
        """Order the images so that each split is one stretch of rows."""
        train, balanced, imbalanced = (rows[split] for split in PARTS)
        shared = np.isin(balanced, imbalanced)
        others = imbalanced[~np.isin(imbalanced, balanced)]
        order = np.concatenate([train, balanced[~shared], balanced[shared], others])
        end = len(train) + len(balanced)
        bounds = [[0, len(train)], [len(train), end], [end - shared.sum(), len(order)]]
        groups = [self.group_of.get(name) for name in names.tolist()]
        if not self.group_of:
            groups = curation.class_groups(labels[train].sum(axis=0))
        return Selection(
            origin=origin,
            files=corpus.files[order],
            labels=labels[order],
            task=task[order],
            bounds=np.array(bounds, dtype=np.int64),
            class_names=names,
            class_task=class_task,
            class_group=np.array(groups),
        )

    @property
    def id_address(self) -> str:
        """Where the released id files can be fetched."""
        return f"{ID_ADDRESS}/{self.stands_for.replace('-', '')}/ids"

    def id_files(self, folder: Path) -> dict[str, list[Path]]:
        """Return the id files in a folder, for each split and task."""
        ending = f"id_{self.name.removesuffix('seq')}.json"
        tasks = range(self.num_tasks)
        return {
            split: [folder / f"{begin}_task{task}_{ending}" for task in tasks]
            for split, begin in ID_FILES.items()
        }

    def read_ids(self, folder: Path) -> dict[str, list[np.ndarray]]:
        """Read the ids of each split's images, int64, task by task."""
        return {
            split: [_read_list(file, self.id_address) for file in files]
            for split, files in self.id_files(folder).items()
        }


def _read_list(file: Path, address: str) -> np.ndarray:
    if not file.is_file():
        raise FileNotFoundError(
            f"expected the id file {file}, got none; put the released files there "
            f"({address}), or leave --ids out to derive a split"
        )
    with readable(f"whole numbers in {file}", "download it again"):
        ids = json.loads(file.read_bytes())
        if any(type(number) is not int for number in ids):
            raise TypeError("a value is none")
        return np.array(ids, dtype=np.int64)


def look_up(corpus: Corpus, keys: np.ndarray, halves: tuple[bool, ...]) -> np.ndarray:
    """Return the rows of ids; the halves are searched in their order."""
    row = {}
    for is_test in reversed(halves):  # what the first one has counts
        half = np.flatnonzero(corpus.is_test == is_test)
        row |= zip(corpus.key[half].tolist(), half.tolist(), strict=True)
    if missing := [key for key in keys.tolist() if key not in row]:
        raise ValueError(
            f"expected every id among the labelled images, but {len(missing)} of "
            f"{len(keys)} in one file are not, the first is {missing[0]}; the id files "
            "do not match these annotations, get both anew"
        )
    return np.array([row[key] for key in keys.tolist()], dtype=np.int64)
