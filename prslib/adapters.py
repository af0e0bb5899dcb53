"""Use samplers that look at labels alone to resample data, as scikit-learn does."""

import warnings
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from numbers import Integral
from types import SimpleNamespace
from typing import Any

import numpy as np

from prslib import labels
from prslib.checks import as_array, expected, naming_extra, unmasked
from prslib.memory import Memory
from prslib.samplers import make_sampler

with naming_extra("data"):
    from scipy.sparse import issparse
    from sklearn.base import BaseEstimator, OneToOneFeatureMixin
    from sklearn.utils import (
        InputTags,
        Tags,
        _safe_indexing,
        check_random_state,
        column_or_1d,
    )
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import validate_data


@dataclass
class _InputTags(InputTags):
    """Scikit-learn's tags of inputs, and the one of imbalanced-learn's checks."""

    dataframe: bool = True


@dataclass
class _Tags(Tags):
    """Scikit-learn's tags of an estimator, and the one of imbalanced-learn's checks."""

    sampler_tags: Any = field(
        default_factory=partial(SimpleNamespace, sample_indices=True)
    )


class MemoryResampler(OneToOneFeatureMixin, BaseEstimator):
    """Resample data with one or several labels a sample by what a sampler keeps.

    Parameters
    ----------
    size : int
        Rows to keep. Of ``size`` labelled rows and fewer all are kept.
    method : str
        A key of `SAMPLERS` that looks at labels alone.
    random_state : int, RandomState or None
        Seed of the order of the rows and of the sampler.
    rho : float or None
        Power of allocation of PRS and OCDM; None for the sampler's own.

    Attributes
    ----------
    sample_indices_ : int64 (size,)
        The rows that were kept, ascending.
    sampling_strategy_ : dict
        How many samples of each class were kept.

    Notes
    -----
    A row without any label never enters a memory. It is left out with a warning.

    Examples
    --------
    >>> X = np.arange(60)[:, None]
    >>> y = ["rare" if k % 10 > 7 else "usual" for k in range(60)]
    >>> _, kept = MemoryResampler(20).fit_resample(X, y)
    >>> y.count("usual"), y.count("rare"), kept.count("usual"), kept.count("rare")
    (48, 12, 10, 10)
    """

    # imbalanced-learn then sets no sampling_strategy
    _sampling_type = "bypass"

    def __init__(
        self,
        size: int = 100,
        method: str = "prs",
        random_state: int | np.random.RandomState | None = 0,
        rho: float | None = None,
    ):
        self.size = size
        self.method = method
        self.random_state = random_state
        self.rho = rho

    def fit(self, X: Any, y: Any) -> "MemoryResampler":  # noqa: N803
        """Choose the rows to keep."""
        self.fit_resample(X, y)
        return self

    def fit_resample(self, X: Any, y: Any) -> tuple[Any, Any]:  # noqa: N803
        """Return the rows of X and y that a memory keeps of them in random order.

        Parameters
        ----------
        X : list, array, sparse matrix or data frame, (N, ...)
            The samples.
        y : list, array, sparse matrix, series or data frame, (N,) or (N, C)
            One label a sample, numbers or text; or multi-hot rows of 0 and 1, or of -1
            and 1. In rows NaN, and -1 beside zeros, stand for a label that is not
            known, which is none.

        Returns
        -------
        X, y
            The rows that are kept, in order and of the same type.

        Raises
        ------
        ValueError
            If ``y`` is neither, or no row has a label.

        Warns
        -----
        UserWarning
            If rows without a label are left out.
        """
        X, y = _dense(X), _dense(y)  # noqa: N806
        checked, targets = validate_data(
            self,
            X,
            _plain(y),
            accept_sparse=["csr", "csc"],  # which have rows
            multi_output=True,
            dtype=None,
            ensure_all_finite=False,
            allow_nd=True,
        )
        X = checked if issparse(X) else X  # noqa: N806
        y = targets if issparse(y) else y
        rows, classes = _rows_and_classes(targets)
        unlabelled = len(rows) - np.count_nonzero(rows.any(axis=1))
        if unlabelled == len(rows):
            got = f"{len(rows)} rows without any label"
            raise ValueError(f"y: {expected('a row with a label', got)}")
        if unlabelled:
            text = f"{unlabelled} of {len(rows)} rows have no label and are left out"
            warnings.warn(text, stacklevel=2)
        seed = self.random_state
        if not isinstance(seed, Integral):
            seed = check_random_state(seed).randint(2**31 - 1)
        options = {} if self.rho is None else {"rho": self.rho}
        sampler = make_sampler(
            self.method, self.size, len(classes), int(seed), **options
        )
        order = np.random.default_rng(int(seed)).permutation(len(rows))
        memory = Memory(self.size)
        with warnings.catch_warnings():  # it was told already
            warnings.simplefilter("ignore", UserWarning)
            slots = sampler.place(rows[order])
        memory.write(slots, row=order)
        self.sample_indices_ = np.sort(memory.read(memory.filled)["row"])
        counts = sampler.class_counts.tolist()
        self.sampling_strategy_ = dict(zip(classes.tolist(), counts, strict=True))
        return tuple(_safe_indexing(data, self.sample_indices_) for data in (X, y))

    def __sklearn_tags__(self):
        """Say what the estimator takes."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.input_tags = _InputTags(**asdict(tags.input_tags))
        return _Tags(**{each.name: getattr(tags, each.name) for each in fields(tags)})


def _plain(y: Any) -> Any:
    """Return targets as scikit-learn checks them: in rows -1 for unknown labels."""
    if y is None or issparse(y):
        return y
    if not isinstance(y, list | tuple):
        y = as_array("y", y)
    rows = list(y) if not hasattr(y, "dtype") or y.dtype == object else []
    if rows and all(map(is_list, rows)):
        lengths = {len(row) for row in rows}
        if len(lengths) > 1 or not hasattr(rows[0], "__getitem__"):  # sets
            return labels.multi_hot(rows)  # which refuses them
        y = [list(row) for row in rows]
    y = unmasked("y", as_array("y", y))
    if y.dtype.names:
        advice = "leave one field, y[name]"
        raise TypeError(f"y: {expected('labels', f'fields {y.dtype.names}', advice)}")
    if y.dtype.kind == "T":  # which scikit-learn does not know
        y = as_array("y", y.tolist())
    if y.dtype.kind == "f" and y.ndim == 2:
        return np.nan_to_num(y, nan=-1, posinf=np.inf, neginf=-np.inf)
    if y.dtype == object and y.ndim == 1:  # text beside what is no text
        values = [value for value in y if not isinstance(value, str)]
        if len(values) < len(y):
            advice = "leave out rows without a label, and write labels of one type"
            raise TypeError(f"y: {expected('text alone', repr(values[0]), advice)}")
    return y


def is_list(row: object) -> bool:
    """Tell whether a row of labels is a list or a set of them."""
    return isinstance(row, Collection) and not isinstance(row, str | bytes | Mapping)


def _dense(data: Any) -> Any:
    """Return data with rows: of sparse tensors dense ones."""
    is_sparse = str(getattr(data, "layout", "torch.strided")) != "torch.strided"
    return data.to_dense() if is_sparse else data


def _rows_and_classes(targets: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return checked targets as bool (N, C), and what each class is called."""
    targets = targets.toarray() if issparse(targets) else targets
    if targets.ndim == 1 or targets.shape[1] == 1:
        targets = column_or_1d(targets)
        check_classification_targets(targets)
        classes, numbers = np.unique(targets, return_inverse=True)
        return labels.one_hot(numbers, len(classes)), classes
    is_plain = targets.dtype != object  # text and numbers have no order
    values = set((np.unique(targets) if is_plain else targets.ravel()).tolist())
    if not values <= {-1, 0, 1} or values == {-1, 0}:
        shown = ", ".join(map(repr, list(values)[:5]))
        what = "multi-hot rows of 0 and 1, or of -1 and 1"
        advice = "write y == v, where v is the value that stands for a label"
        raise ValueError(f"y: {expected(what, f'the values {shown}', advice)}")
    return targets == 1, np.arange(targets.shape[1])


def multi_hot(targets: Any, num_classes: int) -> np.ndarray:
    """Return labels as ``place`` takes them as multi-hot rows, bool (N, C).

    Of a list of arrays or tensors each is a row or a class number, as in data sets.
    """
    rows = targets if isinstance(targets, list | tuple) else []
    if rows and all(hasattr(row, "dtype") for row in rows):
        targets = np.stack([as_array("labels", row) for row in rows])
    return labels.multi_hot(targets, num_classes)
