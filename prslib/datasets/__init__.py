"""List the data sets and load them by name, without torch."""

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache

import numpy as np

from prslib.checks import naming_extra, one_of
from prslib.datasets import (
    coco,
    digits,
    features,
    nuswide,
    reuters,
    single_label,
)
from prslib.datasets.base import GROUPS as GROUPS
from prslib.datasets.base import Entry, SequentialDataset
from prslib.datasets.base import Recipe as Recipe
from prslib.datasets.base import Split as Split

DATASETS: dict[str, Entry] = {
    **digits.ENTRIES,
    "cocoseq": coco.PREPARED.entry(),
    "nuswideseq": nuswide.PREPARED.entry(),
    **features.ENTRIES,
    **reuters.ENTRIES,
    **single_label.ENTRIES,
}


def load_dataset(name: str, images: bool = True) -> SequentialDataset:
    """Load a data set by its name (Sec. 5).

    Parameters
    ----------
    name : str
        Key of `DATASETS`.
    images : bool
        Whether to load the inputs, which are images or features. To study the content
        of a memory, the labels are sufficient.

    Returns
    -------
    SequentialDataset
        Training stream and test sets.

    Raises
    ------
    ValueError
        If the name is unknown.
    FileNotFoundError
        If the data set has to be downloaded and is not in ``PRSLIB_DATA``.
    ModuleNotFoundError
        If a package of ``pip install '.[data]'`` is missing.

    Examples
    --------
    >>> load_dataset("digits70seq", images=False).num_classes
    70
    """
    one_of("dataset", name, DATASETS)
    with naming_extra("data"):
        return DATASETS[name].load(images)


@lru_cache
def fingerprint(name: str) -> str:
    """Hash a data set: inputs, labels, tasks, units, class names and groups.

    If the entry of the data set has an ``identity``, this digest is hashed instead of
    the inputs.
    """
    identity = DATASETS[name].identity
    dataset = load_dataset(name, images=identity is None)
    digest = hashlib.sha256(dataset.class_task.tobytes())
    digest.update(repr((dataset.class_names, dataset.class_group)).encode())
    if identity is not None:
        digest.update(identity().encode())
    for split_name, split in dataset.splits.items():
        digest.update(split_name.encode())
        arrays = [split.labels, split.task]
        if split.unit is not None:
            arrays.append(split.unit)
        if identity is None:
            arrays.append(split.loaded_inputs)
        for array in arrays:
            digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()[:12]


def available(names: Sequence[str]) -> list[str]:
    """Return the data sets whose files exist; raise FileNotFoundError if there are none."""
    present = []
    for name in names:
        with suppress(FileNotFoundError):
            fingerprint(name)
            present.append(name)
    if names and not present:
        fingerprint(names[0])  # raises the error
    return present
