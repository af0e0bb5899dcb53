"""Convert labels, which are rows of 0 and 1 or class numbers, to boolean rows."""

from contextlib import suppress
from typing import Any

import numpy as np

from prslib.checks import as_array, expected

MOST_CLASSES = 1_000_000  # a larger class number is probably a mistake
OF_NAMES = "scikit-learn's MultiLabelBinarizer makes rows of lists and sets"


def multi_hot(labels: Any, num_classes: int | None = None) -> np.ndarray:
    """Return labels as rows with an entry per class, bool (B, C).

    Parameters
    ----------
    labels : array, tensor, data frame or sparse matrix
        Either class numbers (B,), which may be in a list, or rows (B, C) of bool or of
        0 and 1 of any type. In rows, NaN marks an unknown label and counts as negative.
    num_classes : int, optional
        Number of classes C; by default, it is inferred from the labels.

    Returns
    -------
    bool (B, C)
        Labels as rows. An input that is already an array of bool is itself returned.

    Raises
    ------
    ValueError
        If the labels have another shape or other values.

    Examples
    --------
    >>> multi_hot([2, 0], 3)
    array([[False, False,  True],
           [ True, False, False]])
    >>> multi_hot(np.array([[1, np.nan, 0]]))
    array([[ True, False, False]])
    """
    values = read_array(labels)
    if values.ndim == 1 and (values.dtype.kind in "iu" or not values.size):
        return one_hot(values, num_classes)
    if values.ndim != 2 or num_classes not in (None, values.shape[1]):
        what = f"an array of rows (B, {num_classes or 'C'}) or of class numbers (B,)"
        raise ValueError(f"labels: {expected(what, f'{values.dtype} {values.shape}')}")
    if values.dtype == bool:
        return values
    is_label = (values == 0) | (values == 1) | np.isnan(values)
    if not is_label.all():
        raise ValueError(f"labels: {expected('0, 1 or NaN', values[~is_label][0])}")
    return values == 1


def read_array(labels: Any) -> np.ndarray:
    """Return labels as an array of numbers."""
    if hasattr(labels, "tocoo"):  # a sparse matrix
        labels = labels.toarray()
    # lists could be rows as well as class numbers
    if isinstance(labels, list | tuple) and any(map(np.iterable, labels)):
        got = f"a {type(labels).__name__} of {type(labels[0]).__name__}"
        raise ValueError(f"labels: {expected('an array', got, OF_NAMES)}")
    values = as_array("labels", labels)
    if values.dtype == object:
        with suppress(TypeError, ValueError):
            if hasattr(labels, "to_numpy"):  # NA of pandas
                return labels.to_numpy(float, na_value=np.nan)
            return values.astype(float)
    if values.dtype.kind not in "biuf":
        got = f"{values.dtype} {values.shape}"
        raise ValueError(f"labels: {expected('an array of numbers', got, OF_NAMES)}")
    return values


def one_hot(numbers: np.ndarray, num_classes: int | None) -> np.ndarray:
    """Return class numbers (B,) as rows, bool (B, C)."""
    numbers = numbers.astype(np.int64)
    most = MOST_CLASSES if num_classes is None else num_classes
    outside = numbers[(numbers < 0) | (numbers >= most)]
    if outside.size:
        what = f"class numbers from 0 to {most - 1}"
        raise ValueError(f"labels: {expected(what, outside[0])}")
    if num_classes is None:
        num_classes = int(numbers.max(initial=-1)) + 1
    rows = np.zeros((len(numbers), num_classes), bool)
    rows[np.arange(len(numbers)), numbers] = True
    return rows
