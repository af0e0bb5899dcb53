"""Choose the images of a prepared data set, and read its files."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from prslib.checks import expected, readable
from prslib.datasets import curation
from prslib.datasets.arrays import open_rows, read_arrays, write_arrays
from prslib.datasets.base import Clustering, Entry, Recipe, SequentialDataset, Split
from prslib.paths import data_dir

# prefix of the id files of each split
SPLITS = {"train": "train", "balanced": "test", "imbalanced": "teorg"}


class Corpus(NamedTuple):
    """Labels of all images of a multi-label data set, before any split."""

    # int64 (N,), ids of the images in the id files; unique within a half
    key: np.ndarray
    # bool (N,), whether an image is in the official test or validation half
    is_test: np.ndarray
    # str (N,), relative to the folder of images
    files: np.ndarray
    labels: np.ndarray  # bool (N, C)
    names: tuple[str, ...]  # of the C classes

    def save(self, file: Path) -> None:
        """Write the labels as one table, which `read_table` reads."""
        columns = {"image_id": self.key, "split": self.is_test, "labels": self.labels}
        write_arrays(file, **columns, names=np.array(self.names))


def read_table(file: Path) -> Corpus:
    """Read a table of labels; without ids an image's key is its row in its half."""
    stored = read_arrays(file)
    is_test = stored["split"] == 1
    rows = np.where(is_test, is_test.cumsum(), (~is_test).cumsum()) - 1
    return Corpus(
        key=stored.get("image_id", rows).astype(np.int64),
        is_test=is_test,
        files=np.full(len(rows), ""),
        labels=stored["labels"].astype(bool),
        names=tuple(stored["names"].tolist()),
    )


@dataclass(frozen=True, eq=False)
class Selection:
    """Rows of a data set: its training and test samples."""

    # The test sets share samples. Rows are ordered: training, balanced only, both,
    # imbalanced only. Therefore each split is contiguous, and no sample is stored twice.

    # "released" for the published split, "derived" or "drawn" for an embedded one
    origin: str
    # str (N,), relative to the folder of images, or ids of documents
    files: np.ndarray
    labels: np.ndarray  # bool (N, C)
    task: np.ndarray  # int64 (N,)
    # int64 (3, 2), start and stop of each of `SPLITS`
    bounds: np.ndarray
    class_names: np.ndarray  # str (C,)
    class_task: np.ndarray  # int64 (C,)
    class_group: np.ndarray  # str (C,)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.labels)

    def rows(self, split: str) -> slice:
        """Return the rows of "train", "balanced" or "imbalanced"."""
        return slice(*self.bounds[list(SPLITS).index(split)].tolist())

    def keep(self, rows: np.ndarray) -> Selection:
        """Return the selection without samples where `rows`, bool (N,), is False."""
        before = np.concatenate([[0], rows.cumsum()])
        return replace(
            self,
            files=self.files[rows],
            labels=self.labels[rows],
            task=self.task[rows],
            bounds=before[self.bounds],
        )

    def save(self, file: Path, **more: np.ndarray) -> None:
        """Write an npz file that `load` reads, with further arrays."""
        write_arrays(file, **vars(self), **more)

    @classmethod
    def load(cls, file: Path) -> Selection:
        """Read a file that `save` wrote."""
        columns = read_arrays(file, *cls.__dataclass_fields__)
        return cls(origin=str(columns.pop("origin")), **columns)

    def dataset(
        self, name: str, stands_for: str | None, inputs: np.ndarray | None
    ) -> SequentialDataset:
        """Return the data set, with `inputs` in the order of the rows or without inputs."""
        splits = {}
        for split in SPLITS:
            rows = self.rows(split)
            chosen = None if inputs is None else inputs[rows]
            splits[split] = Split(chosen, self.labels[rows], self.task[rows])
        return SequentialDataset(
            name=name,
            train=splits.pop("train"),
            tests=splits,
            class_names=tuple(self.class_names.tolist()),
            class_task=self.class_task,
            class_group=tuple(self.class_group.tolist()),
            stands_for=stands_for,
        )


def open_images(folder: Path, selection: Selection) -> np.ndarray:
    """Map a prepared set's images into memory, uint8 (N, 256, 256, 3)."""
    command = f"prepare {folder.name} --images"
    return open_rows(folder / "images.npy", len(selection), command)


@dataclass(frozen=True)
class PreparedSet:
    """A data set that ``python -m prslib prepare`` makes, and how it is split."""

    name: str
    stands_for: str
    # reads the training and the test half from the folder of annotations
    read_halves: Callable[[Path], list[Corpus]]
    # names the files in that folder, for the help text
    annotations: str
    # names the content of the folder of images, for the help text
    images: str
    # file in $PRSLIB_DATA with all labels, used if there are no annotations
    table: str
    num_tasks: int
    beta: float
    # the paper's order of the tasks
    schedule: tuple[int, ...]
    # SHA-256 of the released id files, one after another
    id_digest: str
    # the paper's power of allocation
    rho: float = 0.0
    min_classes: int = 1  # of a task
    # group of each class; if empty, class frequencies determine the groups
    group_of: dict[str, str] = field(default_factory=dict)
    # if `group_of` is empty: categories that are not classes
    ignored: tuple[str, ...] = ()
    # categories that are clustered into tasks, but not in the data set
    dropped: tuple[str, ...] = ()

    def load(
        self, images: bool, open_inputs: Callable = open_images, suffix: str = ""
    ) -> SequentialDataset:
        """Load the prepared set or, if it is not prepared, select its labels now."""
        folder = data_dir() / self.name
        if (folder / "labels.npz").is_file():
            selection = Selection.load(folder / "labels.npz")
        else:
            selection = self.select(self.corpus(), data_dir() / f"{self.name}_ids")
        if selection.origin != "released":
            advice = f"run `python -m prslib prepare {self.name}` again"
            raise ValueError(expected(f"released ids in {folder}", "others", advice))
        inputs = open_inputs(folder, selection) if images else None
        return selection.dataset(self.name + suffix, self.stands_for, inputs)

    def corpus(self, annotations: Path | None = None) -> Corpus:
        """Read the labels of all images from the annotations, or else from a table."""
        if annotations:
            *columns, names = zip(*self.read_halves(annotations), strict=True)
            corpus = Corpus(*map(np.concatenate, columns), names[0])
        else:
            folder = data_dir() / self.name
            tables = folder / "corpus.npz", data_dir() / self.table
            stored = [table for table in tables if table.is_file()]
            if not stored:
                advice = f"run `python -m prslib prepare {self.name} --help`"
                raise FileNotFoundError(expected(folder, "none", advice))
            corpus = read_table(stored[0])
        names = sorted(self.group_of or set(corpus.names) - {*self.ignored})
        columns = [corpus.names.index(name) for name in names]
        return corpus._replace(labels=corpus.labels[:, columns], names=tuple(names))

    @property
    def recipe(self) -> Recipe:
        """The paper's defaults; Sec. 6.1."""
        return Recipe(
            model="resnet101",
            memory_size=2000,
            schedule=self.schedule,
            learning_rate=1e-4,
            # the paper does not state its precision
            precision="bf16",
            rho=self.rho,
        )

    def entry(self) -> Entry:
        """Return the data set's row of `DATASETS`."""
        return Entry(
            self.load,
            self.recipe,
            self.load_clustering,
            self.identity,
            data_source="paper's",
        )

    def identity(self) -> str:
        """Return the digest that was stored with the images, "" without images."""
        file = data_dir() / self.name / "labels.npz"
        stored = read_arrays(file) if file.is_file() else {}
        return str(stored.get("pixels", ""))

    def load_clustering(self, corpus: Corpus | None = None) -> Clustering:
        """Return the labels of the training half, from which classes are clustered."""
        corpus = corpus or self.corpus()
        labels = corpus.labels[corpus.labels.any(axis=1) & ~corpus.is_test]
        return self.clustering_of(labels, corpus.names)

    def clustering_of(self, labels: np.ndarray, names: tuple[str, ...]) -> Clustering:
        """Return labels (N, C) with the set's settings for clustering classes."""
        return Clustering(labels, names, self.num_tasks, self.beta, self.min_classes)

    def select(self, corpus: Corpus, ids: Path) -> Selection:
        """Choose images by the released ids in a folder; Sec. 5."""
        stays = ~np.isin(corpus.names, self.dropped)
        labels = corpus.labels[:, stays]
        class_task, rows = self._read_split(corpus, labels, ids)
        train, balanced, imbalanced = rows
        is_shared = np.isin(balanced, imbalanced)
        balanced = np.concatenate([balanced[~is_shared], balanced[is_shared]])
        others = imbalanced[~np.isin(imbalanced, balanced)]
        order = np.concatenate([train, balanced, others])
        end = len(train) + len(balanced)
        bounds = [
            [0, len(train)],
            [len(train), end],
            [end - is_shared.sum(), len(order)],
        ]
        names = np.array(corpus.names)[stays]
        groups = curation.class_groups(labels[train].sum(axis=0))
        if self.group_of:
            groups = [self.group_of[name] for name in names.tolist()]
        return Selection(
            origin="released",
            files=corpus.files[order],
            labels=labels[order],
            task=class_task[labels[order].argmax(axis=1)],
            bounds=np.array(bounds, dtype=np.int64),
            class_names=names,
            class_task=class_task,
            class_group=np.array(groups),
        )

    def _read_split(
        self, corpus: Corpus, labels: np.ndarray, ids: Path
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """Return the task of each class, and the rows of each published split."""
        train, test = np.flatnonzero(~corpus.is_test), np.flatnonzero(corpus.is_test)
        # rows of each task, by split
        rows: dict[str, list[np.ndarray]] = {split: [] for split in SPLITS}
        for split in SPLITS:
            # if two images have one key, a test set contains the one of the test half
            pool = train if split == "train" else np.concatenate([train, test])
            row_of = dict(zip(corpus.key[pool].tolist(), pool, strict=True))
            for file in self.id_files(ids, split):
                with readable(f"ids of annotated images in {file}"):
                    keys = json.loads(file.read_bytes())
                    of_task = np.array([row_of[key] for key in keys], np.int64)
                rows[split].append(of_task[labels[of_task].any(axis=1)])
        # a class belongs to the task with most of its images
        counts = [labels[of_task].sum(axis=0) for of_task in rows["train"]]
        class_task = np.argmax(counts, axis=0).astype(np.int64)
        return class_task, [np.concatenate(rows[split]) for split in SPLITS]

    def id_files(self, folder: Path, split: str) -> list[Path]:
        """Return the id files of a split in a folder, task by task."""
        ending = f"id_{self.name.removesuffix('seq')}.json"
        tasks = range(self.num_tasks)
        return [folder / f"{SPLITS[split]}_task{task}_{ending}" for task in tasks]
