"""The data sets: one line each in `DATASETS`, loaded by name; imports without torch."""

from prslib.datasets import cocoseq, digits, nuswideseq, single_label
from prslib.datasets.recipe import Entry, Recipe
from prslib.datasets.sequential import GROUPS, SequentialDataset, Split, validate_schedule

__all__ = [
    "DATASETS",
    "GROUPS",
    "Entry",
    "Recipe",
    "SequentialDataset",
    "Split",
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
