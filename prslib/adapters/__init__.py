"""Use label-only samplers to resample data; Avalanche has a file of its own."""

from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np

from prslib.checks import naming_extra
from prslib.samplers import make_sampler

with naming_extra("data"):
    from scipy.sparse import issparse
    from sklearn.base import BaseEstimator, OneToOneFeatureMixin
    from sklearn.utils import _safe_indexing, check_random_state
    from sklearn.utils.multiclass import check_classification_targets, type_of_target
    from sklearn.utils.validation import validate_data

try:  # imbalanced-learn's pipelines ask for its mixin
    from imblearn.base import BaseSampler
except ImportError:

    class BaseSampler(OneToOneFeatureMixin, BaseEstimator):
        """The part of scikit-learn's interface that imbalanced-learn's base has."""


class MemoryResampler(BaseSampler):
    """Resample data with one or several labels a sample by what a sampler keeps.

    Parameters
    ----------
    size : int
        Rows to keep; of ``size`` rows and fewer, all.
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

    Examples
    --------
    >>> X = np.arange(60)[:, None]
    >>> y = ["rare" if k % 10 > 7 else "usual" for k in range(60)]
    >>> _, kept = MemoryResampler(20).fit_resample(X, y)
    >>> y.count("usual"), y.count("rare"), kept.count("usual"), kept.count("rare")
    (48, 12, 10, 10)
    """

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
            One label a sample, numbers or text; or multi-hot rows.

        Returns
        -------
        X, y
            The rows that are kept, in order and of the same type.
        """
        lenient = {"dtype": None, "ensure_all_finite": False, "allow_nd": True}
        formats = ["csr", "csc"]  # that have rows
        checked, targets = validate_data(
            self, X, y, accept_sparse=formats, multi_output=True, **lenient
        )
        X = checked if issparse(X) else X  # noqa: N806
        y = targets if issparse(y) else y
        check_classification_targets(targets)
        if type_of_target(targets) == "multilabel-indicator":
            rows = (targets.toarray() if issparse(targets) else targets) == 1
            classes = np.arange(rows.shape[1])
        else:
            classes, numbers = np.unique(np.ravel(targets), return_inverse=True)
            rows = np.eye(len(classes), dtype=bool)[numbers]
        if len(classes) < 2 or len(rows) != targets.shape[0]:
            raise ValueError(
                "y: expected 2 classes or more, one label a sample or multi-hot rows, "
                f"got {len(classes)} class in an array of shape {targets.shape}"
            )
        seed = self.random_state
        if not isinstance(seed, Integral):
            seed = check_random_state(seed).randint(2**31 - 1)
        options = {} if self.rho is None else {"rho": self.rho}
        sampler = make_sampler(
            self.method, self.size, len(classes), int(seed), **options
        )
        check_empty(sampler)
        order = np.random.default_rng(int(seed)).permutation(len(rows))
        slots = sampler.place(rows[order])
        kept = np.full(self.size, -1)
        kept[slots[slots >= 0]] = order[slots >= 0]  # the last sample of a slot stays
        self.sample_indices_ = np.sort(kept[kept >= 0])
        counts = sampler.class_counts.tolist()
        self.sampling_strategy_ = dict(zip(classes.tolist(), counts, strict=True))
        return tuple(_safe_indexing(rows, self.sample_indices_) for rows in (X, y))

    _fit_resample = fit_resample  # imbalanced-learn's name

    def __sklearn_tags__(self):
        """Say what the estimator takes."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.allow_nan = tags.input_tags.string = (
            True
        )
        tags.target_tags.required = tags.target_tags.multi_output = True
        if hasattr(tags, "sampler_tags"):  # imbalanced-learn's
            tags.sampler_tags.sample_indices = True
        return tags


def check_empty(sampler: Any) -> None:
    """Raise TypeError or ValueError unless a sampler is empty and needs only labels."""
    if not hasattr(sampler, "place"):
        raise TypeError(f"sampler: expected what make_sampler returns, got {sampler!r}")
    if sampler.needs:
        needs = ", ".join(sorted(sampler.needs))
        raise ValueError(
            f"sampler: expected one that looks at labels, got one of {needs}"
        )
    if len(sampler):
        raise ValueError(f"sampler: expected an empty one, got {len(sampler)} samples")


def multi_hot(targets: Iterable, num_classes: int) -> np.ndarray:
    """Return class numbers, or rows of 0 and 1, as multi-hot rows, bool (N, C)."""
    try:
        array = np.asarray(targets)
    except ValueError:  # of several shapes
        array = np.empty(0, object)
    if array.dtype == object:  # a sequence of tensors
        rows = [np.asarray(target) for target in targets]
        shapes = sorted({row.shape for row in rows})
        if len(shapes) != 1:
            raise ValueError(f"targets: expected one shape throughout, got {shapes}")
        array = np.stack(rows)
    if array.ndim == 1 and array.dtype.kind in "iu":
        hot = np.arange(num_classes) == array[:, None]
        if np.count_nonzero(hot) != len(array):
            outside = array[~hot.any(axis=1)][0]
            raise ValueError(f"targets: expected 0 to {num_classes - 1}, got {outside}")
        return hot
    if array.ndim != 2 or array.shape[1] != num_classes:
        raise ValueError(
            f"targets: expected class numbers, or rows of {num_classes} zeros and "
            f"ones, got {array.dtype} of shape {array.shape}"
        )
    if array.dtype == bool:
        return array
    hot = array == 1
    if np.count_nonzero(hot) != np.count_nonzero(array):
        wrong = array[~hot & (array != 0)][0]
        raise ValueError(f"targets: expected rows of 0 and 1, got {wrong}")
    return hot
