"""Data sets without content: the published sizes of those that a machine may not have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from prslib.datasets import (
    DATASETS,
    cocoseq,
    fingerprint,
    load_dataset,
    nuswideseq,
    profiles,
    single_label,
)
from prslib.datasets.images import RESOLUTION
from prslib.datasets.sequential import SequentialDataset, Split

NOTHING = "labels and images"
PROFILES = {
    "cocoseq": (profiles.COCOSEQ, cocoseq.PER_CLASS),
    "nuswideseq": (profiles.NUSWIDESEQ, nuswideseq.PER_CLASS),
}
IMAGE_SHAPES = {  # height, width, channels
    "cocoseq": (RESOLUTION, RESOLUTION, 3),
    "nuswideseq": (RESOLUTION, RESOLUTION, 3),
    "imbal-mnistseq": (28, 28, 1),
    "imbal-svhnseq": (32, 32, 3),
}


def blank_dataset(name: str) -> SequentialDataset:
    """Make a data set of the published size whose images and labels mean nothing; our own.

    Parameters
    ----------
    name : str
        A key of `IMAGE_SHAPES`.

    Returns
    -------
    SequentialDataset
        As many tasks, classes and training images as the real one, each with one label, and
        without pixels. Test sets of several labels have the balanced one's number of images at
        most, as an image stands for several classes.

    Examples
    --------
    >>> len(blank_dataset("cocoseq").train)
    35072
    """
    if name in single_label.SOURCES:
        source, digits = single_label.SOURCES[name], np.arange(single_label.CLASSES)
        parts = (source.train_counts, source.test_freq)
        train, test = ((None, np.repeat(digits, counts)) for counts in parts)
        return single_label.one_class_a_task(name, train, test, source.stands_for, divisor=1)
    tasks, per_class = PROFILES[name]
    class_task = np.repeat(np.arange(len(tasks)), [task.num_classes for task in tasks])
    train = _blank(class_task, [sum(task.labels_per_image) for task in tasks])
    test = _blank(class_task, [per_class * task.num_classes for task in tasks])
    return SequentialDataset(
        name=name,
        train=train,
        tests={"balanced": test, "imbalanced": test},
        class_names=tuple(map(str, range(len(class_task)))),
        class_task=class_task,
        class_group=("majority",) * len(class_task),
    )


def _blank(class_task: np.ndarray, images: list[int]) -> Split:
    """Return as many images of each task, its classes in turn."""
    task = np.repeat(np.arange(len(images)), images)
    classes = np.concatenate(
        [np.resize(np.flatnonzero(class_task == t), count) for t, count in enumerate(images)]
    )
    return Split(None, classes[:, None] == np.arange(len(class_task)), task)


@contextmanager
def blanks_for_missing() -> Iterator[dict[str, str]]:
    """Let blank data sets stand in, within the context, for those whose labels are not here.

    Yields
    ------
    dict of str to str
        What is missing of a data set by name, "labels and images" or "images"; of those that are
        whole there is no entry.
    """
    entries, sources = dict(DATASETS), dict(single_label.SOURCES)
    missing = {}
    for name in IMAGE_SHAPES:
        for images, what in ((True, "images"), (False, NOTHING)):
            try:
                load_dataset(name, images)
                break
            except FileNotFoundError:
                missing[name] = what
    blanks = {name: blank_dataset(name) for name, what in missing.items() if what == NOTHING}
    try:
        for name, dataset in blanks.items():
            DATASETS[name] = replace(entries[name], load=lambda _images, made=dataset: made)
            single_label.SOURCES.pop(name, None)  # so that no one looks for its files
        fingerprint.cache_clear()
        yield missing
    finally:
        DATASETS.update(entries)
        single_label.SOURCES.update(sources)
        fingerprint.cache_clear()
