"""Convert labels from rows of 0 and 1, or class numbers, to boolean rows."""

from numbers import Integral
from typing import Any

import numpy as np

from prslib.checks import as_array, expected

MOST_CLASSES = 1_000_000  # a larger class number is probably a mistake
# for one-dimensional labels, by the kind of their dtype
ADVICE = {
    "f": "write labels.astype(int) for class numbers",
    "O": "scikit-learn's MultiLabelBinarizer makes rows of lists and sets",
}


def multi_hot(labels: Any, num_classes: int | None = None) -> np.ndarray:
    """Return labels as rows with an entry per class, bool (B, C).

    Parameters
    ----------
    labels : array, tensor, data frame or sparse matrix
        Rows (B, C), bool or 0 and 1 of any type, with NaN for unknown labels, which
        count as negative; or class numbers (B,), also in a list.
    num_classes : int, optional
        Number of classes C, by default inferred from the labels.

    Returns
    -------
    bool (B, C)
        The input itself if it is already an array of bool.

    Raises
    ------
    ValueError
        If the labels have another shape, or other values.

    Examples
    --------
    >>> multi_hot([2, 0], 3)
    array([[False, False,  True],
           [ True, False, False]])
    >>> multi_hot(np.array([[1, np.nan, 0]]))
    array([[ True, False, False]])
    """
    values = read_array(labels)
    kind = values.dtype.kind
    if values.ndim == 1 and (kind in "iu" or values.size == 0):
        return one_hot(values, num_classes)
    if values.ndim != 2 or num_classes not in (None, values.shape[1]):
        advice = ADVICE.get(kind, "") if values.ndim == 1 else ""
        got = f"{values.dtype} {values.shape}"
        raise ValueError(wrong_shape(num_classes, got, advice))
    if kind == "b":
        return values
    check_values(values)
    return values == 1


def read_array(labels: Any) -> np.ndarray:
    """Return labels as an array of numbers."""
    if is_sparse(labels):
        check_values(labels.tocoo().data)
        return (labels.tocsr() == 1).toarray()
    if isinstance(labels, list | tuple):
        # True is an integer, too
        if any(isinstance(n, bool) or not isinstance(n, Integral) for n in labels):
            kinds = sorted({type(row).__name__ for row in labels})
            got = f"a {type(labels).__name__} of {', '.join(kinds)}"
            raise ValueError(wrong_shape(None, got, ADVICE["O"]))
        return np.array(labels, np.int64)
    values = as_array("labels", labels)
    if values.dtype == object and values.ndim == 2:  # NA of pandas, or None
        if hasattr(labels, "to_numpy"):
            return labels.to_numpy(float, na_value=np.nan)
        return values.astype(float)
    return values


def is_sparse(labels: Any) -> bool:
    """Return whether labels are a sparse matrix of scipy."""
    return hasattr(labels, "tocoo")


def wrong_shape(num_classes: int | None, got: str, advice: str) -> str:
    """Return the error message for labels that are neither rows nor class numbers."""
    what = f"an array of rows (B, {num_classes or 'C'}) or of class numbers (B,)"
    return f"labels: {expected(what, got, advice)}"


def check_values(values: np.ndarray) -> None:
    """Refuse values other than 0, 1 and NaN."""
    is_number = values.dtype.kind in "biuf"
    if is_number:
        is_label = (values == 0) | (values == 1) | np.isnan(values)
    if not is_number or not is_label.all():
        got = values[~is_label].flat[0] if is_number else values.dtype
        raise ValueError(
            "labels: expected 0 and 1, and NaN for unknown labels, "
            f"got {got}; write labels > 0.5 for scores"
        )


def one_hot(numbers: np.ndarray, num_classes: int | None) -> np.ndarray:
    """Return class numbers (B,) as rows, bool (B, C)."""
    numbers = numbers.astype(np.int64)
    most = MOST_CLASSES if num_classes is None else num_classes
    outside = numbers[(numbers < 0) | (numbers >= most)]
    if outside.size:
        raise ValueError(
            f"labels: expected class numbers from 0 to {most - 1}, got {outside[0]}"
        )
    if num_classes is None:
        num_classes = int(numbers.max(initial=-1)) + 1
    rows = np.zeros((len(numbers), num_classes), bool)
    rows[np.arange(len(numbers)), numbers] = True
    return rows
