"""Choose the images of a prepared data set, and read its files."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from prslib.checks import readable
from prslib.datasets import curation
from prslib.datasets.arrays import check_made, open_rows, read_arrays, write_arrays
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
    names: np.ndarray  # str (C,)


@dataclass(frozen=True, eq=False)
class Selection:
    """Rows of a data set: its training and test samples."""

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
        """Return the selection without samples for which `rows`, bool (N,), is False."""
        before = np.concatenate([[0], rows.cumsum()])
        return replace(
            self,
            files=self.files[rows],
            labels=self.labels[rows],
            task=self.task[rows],
            bounds=before[self.bounds],
        )

    def save(self, file: Path, **more: np.ndarray) -> None:
        """Write the selection and further arrays to an npz file that `load` reads."""
        write_arrays(file, **vars(self), **more)

    @classmethod
    def load(cls, file: Path) -> Selection:
        """Read a file that `save` wrote."""
        return cls(**read_arrays(file, *cls.__dataclass_fields__))

    def dataset(
        self,
        name: str,
        stands_for: str | None,
        inputs: np.ndarray | None,
        unit: np.ndarray | None = None,
    ) -> SequentialDataset:
        """Return the data set, with `inputs` and `unit` in the order of the rows."""
        whole = Split(inputs, self.labels, self.task, unit)
        splits = {split: whole.take(self.rows(split)) for split in SPLITS}
        return SequentialDataset(
            name=name,
            train=splits.pop("train"),
            tests=splits,
            class_names=tuple(self.class_names.tolist()),
            class_task=self.class_task,
            class_group=tuple(self.class_group.tolist()),
            stands_for=stands_for,
        )


def order_splits(
    train: np.ndarray, balanced: np.ndarray, imbalanced: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Order rows of a corpus so that each split is contiguous and no row comes twice.

    The test sets share samples, so the order is: training samples; samples of
    "balanced" only; samples of both test sets; samples of "imbalanced" only. Return
    this order, int64 (N,), and the `bounds` of the splits, int64 (3, 2).
    """
    is_shared = np.isin(balanced, imbalanced)
    others = imbalanced[~np.isin(imbalanced, balanced)]
    blocks = [train, balanced[~is_shared], balanced[is_shared], others]
    ends = np.cumsum([0, *map(len, blocks)])
    # first and last block of each split
    return np.concatenate(blocks), ends[[[0, 1], [1, 3], [2, 4]]]


def load_clustering(
    file: Path,
    n_groups: int,
    beta: float,
    min_classes: int = 1,
    names: str = "corpus_names",
) -> Clustering:
    """Return the labels from which the classes of a file's data set are clustered."""
    labels, names_of_all = read_arrays(file, "corpus", names).values()
    class_names = tuple(names_of_all.tolist())
    return Clustering(labels, class_names, n_groups, beta, min_classes)


@dataclass(frozen=True)
class PreparedSet:
    """A data set that ``python -m prslib prepare`` makes, and how it is split."""

    name: str
    stands_for: str
    # reads the training or, if True, the test half from the folder of annotations
    read_half: Callable[[Path, bool], Corpus]
    num_tasks: int
    beta: float
    # the paper's order of the tasks
    schedule: tuple[int, ...]
    # the paper's power of allocation
    rho: float = 0.0
    min_classes: int = 1  # of a task
    # group of each class; if empty, class frequencies determine the groups
    group_of: dict[str, str] = field(default_factory=dict)
    # categories that are clustered into tasks, but are not in the data set
    dropped: tuple[str, ...] = ()

    @property
    def file(self) -> Path:
        """The file with the labels of the prepared set."""
        return data_dir() / self.name / "labels.npz"

    def load(
        self, images: bool, name: str = "", file: str = "images.npy"
    ) -> SequentialDataset:
        """Load the prepared set, with inputs that stay in a file of its folder."""
        check_made(self.file)
        selection = Selection.load(self.file)
        inputs = None
        if images:
            inputs = open_rows(self.file.with_name(file), len(selection))
            if inputs.ndim == 2:  # features, which are stored as float16
                inputs = inputs.astype(np.float32)
        return selection.dataset(name or self.name, self.stands_for, inputs)

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
        return str(read_arrays(self.file).get("pixels", ""))

    def load_clustering(self) -> Clustering:
        """Return the labels of the training half, from which classes are clustered."""
        return load_clustering(self.file, self.num_tasks, self.beta, self.min_classes)

    def read(self, annotations: Path) -> Corpus:
        """Read the labels of all images from a folder of annotations."""
        halves = [self.read_half(annotations, is_test) for is_test in (False, True)]
        *columns, (names, _) = zip(*halves, strict=True)
        return Corpus(*map(np.concatenate, columns), names)

    def select(self, corpus: Corpus, ids: Path) -> Selection:
        """Choose images by the released ids in a folder; Sec. 5."""
        stays = ~np.isin(corpus.names, self.dropped)
        labels = corpus.labels[:, stays]
        rows = {split: self._read_ids(corpus, labels, ids, split) for split in SPLITS}
        # a class belongs to the task with most of its images
        counts = [labels[of_task].sum(axis=0) for of_task in rows["train"]]
        class_task = np.argmax(counts, axis=0).astype(np.int64)
        train, balanced, imbalanced = map(np.concatenate, rows.values())
        order, bounds = order_splits(train, balanced, imbalanced)
        names = corpus.names[stays]
        groups = curation.class_groups(labels[train].sum(axis=0))
        if self.group_of:
            groups = [self.group_of[name] for name in names.tolist()]
        return Selection(
            files=corpus.files[order],
            labels=labels[order],
            task=class_task[labels[order].argmax(axis=1)],
            bounds=bounds,
            class_names=names,
            class_task=class_task,
            class_group=np.array(groups),
        )

    def _read_ids(
        self, corpus: Corpus, labels: np.ndarray, ids: Path, split: str
    ) -> list[np.ndarray]:
        """Return the rows of a published split, task by task."""
        pool = np.arange(len(labels))
        if split == "train":
            pool = pool[~corpus.is_test]
        # if two images have the same key, a test set contains the one of the test half,
        # which comes later
        row_of = dict(zip(corpus.key[pool].tolist(), pool, strict=True))
        rows = []
        for file in self.id_files(ids, split):
            with readable(f"ids of annotated images in {file}"):
                keys = json.loads(file.read_bytes())
                of_task = np.array([row_of[key] for key in keys], np.int64)
            rows.append(of_task[labels[of_task].any(axis=1)])
        return rows

    def id_files(self, folder: Path, split: str) -> list[Path]:
        """Return the id files of a split in a folder, task by task."""
        ending = f"id_{self.name.removesuffix('seq')}.json"
        tasks = range(self.num_tasks)
        return [folder / f"{SPLITS[split]}_task{task}_{ending}" for task in tasks]
