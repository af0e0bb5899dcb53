"""The data sets: one line each in `DATASETS`, loaded by name; imports without torch."""

import hashlib
from functools import lru_cache

from prslib.datasets import coco as cocoseq
from prslib.datasets import digits, single_label
from prslib.datasets import nuswide as nuswideseq
from prslib.datasets.base import (
    GROUPS,
    Entry,
    Recipe,
    SequentialDataset,
    Split,
    draw_schedule,
    validate_schedule,
)

__all__ = [
    "DATASETS",
    "GROUPS",
    "Entry",
    "Recipe",
    "SequentialDataset",
    "Split",
    "draw_schedule",
    "fingerprint",
    "load_dataset",
    "validate_schedule",
]

DATASETS: dict[str, Entry] = {
    "digits70seq": digits.DIGITS70SEQ,
    "digits49seq": digits.DIGITS49SEQ,
    "digits70tiny": digits.DIGITS70TINY,
    "digits49tiny": digits.DIGITS49TINY,
    "cocoseq": cocoseq.COCOSEQ,
    "nuswideseq": nuswideseq.NUSWIDESEQ,
    "imbal-mnistseq": single_label.IMBAL_MNISTSEQ,
    "imbal-svhnseq": single_label.IMBAL_SVHNSEQ,
    "imbal-digits": single_label.IMBAL_DIGITS,
    "imbal-colour-digits": single_label.IMBAL_COLOUR_DIGITS,
    "imbal-digits-tiny": single_label.IMBAL_DIGITS_TINY,
    "imbal-colour-digits-tiny": single_label.IMBAL_COLOUR_DIGITS_TINY,
}


def load_dataset(name: str, images: bool = True) -> SequentialDataset:
    """Load a data set by its name; Sec. 5 and our own.

    Parameters
    ----------
    name : str
        A key of `DATASETS`.
    images : bool
        False for labels alone, which is enough to study what a memory holds.

    Returns
    -------
    SequentialDataset
        The data set.

    Raises
    ------
    ValueError
        If there is none of this name.

    Examples
    --------
    >>> load_dataset("digits70seq", images=False).num_classes
    70
    """
    if name not in DATASETS:
        raise ValueError(f"unknown dataset {name!r}; known datasets: {', '.join(sorted(DATASETS))}")
    return DATASETS[name].load(images)


@lru_cache
def fingerprint(name: str) -> str:
    """Return what tells one making of a data set from another under the same name; our own choice.

    Two splits of the same images, such as the released COCOseq and a derived one, differ here, and
    so do the runs trained on them.

    Parameters
    ----------
    name : str
        A key of `DATASETS`.

    Returns
    -------
    str
        Twelve hexadecimal digits over all labels and tasks; computed once a process.

    Examples
    --------
    >>> fingerprint("digits70seq") == fingerprint("digits70tiny")
    False
    """
    dataset = load_dataset(name, images=False)
    digest = hashlib.sha256(dataset.class_task.tobytes())
    for split in (dataset.train, *dataset.tests.values()):
        digest.update(split.labels.tobytes())
        digest.update(split.task.tobytes())
    return digest.hexdigest()[:12]
