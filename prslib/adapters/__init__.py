"""Take a label-only sampler into other libraries; Avalanche's has a file of its own."""

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from prslib.samplers import Sampler, make_sampler


class MammothSelection:
    """Let a sampler choose the slots of a Mammoth buffer (https://github.com/aimagelab/mammoth).

    Parameters
    ----------
    buffer : Buffer
        Mammoth's, empty; ``add_data`` needs labels from now on.
    sampler : Sampler
        An empty sampler that looks at labels alone, of the buffer's size.

    Raises
    ------
    TypeError, ValueError
        If ``sampler`` is none, needs more than labels, is not empty or of another size; from
        ``add_data``, if there are no labels or a sample has none.

    Notes
    -----
    ``add_data`` places its labels, class numbers or multi-hot rows, as one batch. Mammoth then
    asks for a slot a sample: the buffer's ``sample_selection_fn``, or in older versions the
    function ``reservoir`` of its module, which is replaced for the time of the call.
    """

    def __init__(self, buffer: Any, sampler: Sampler):
        check_empty(sampler)
        self.sampler, self._slots, add_data = sampler, iter(()), buffer.add_data
        if buffer.buffer_size != len(sampler.labels):
            raise ValueError(
                f"sampler: expected the buffer's size, {buffer.buffer_size}, got "
                f"{len(sampler.labels)}; make one of that size"
            )
        buffer.sample_selection_fn = self

        def add_placed(examples, labels=None, **others):
            if labels is None:
                raise ValueError("labels: expected those of the examples, got None; pass them")
            rows = multi_hot(getattr(labels, "cpu", lambda: labels)(), sampler.labels.shape[1])
            if not rows.any(axis=1).all():
                raise ValueError(
                    "labels: expected one for every sample, as Mammoth counts all, got none; "
                    "leave these samples out"
                )
            self._slots = iter(sampler.place(rows).tolist())
            module = sys.modules[type(buffer).__module__]
            before = getattr(module, "reservoir", None)
            module.reservoir = self
            try:
                add_data(examples, labels=labels, **others)
            finally:
                module.reservoir = before

        buffer.add_data = add_placed

    def __call__(self, *_: Any, **__: Any) -> int:
        """Return the slot of the next sample, -1 for none."""
        return next(self._slots)


class MemoryResampler:
    """Resample multi-label data by what a sampler keeps, as imbalanced-learn does (Sec. 3).

    Parameters
    ----------
    size : int
        Rows to keep; fewer rows are all kept.
    method : str
        A key of `SAMPLERS` that looks at labels alone.
    random_state : int
        Seed of the order of the rows and of the sampler.
    rho : float or None
        Power of allocation of PRS and OCDM; None leaves it out.

    Attributes
    ----------
    sample_indices_ : int64 (rows kept,)
        Which rows were kept, ascending.

    Example
    -------
    >>> X, Y = np.arange(60), np.arange(60) % 10 > 7  # class numbers 0 and 1
    >>> np.bincount(MemoryResampler(20).fit_resample(X, Y.astype(int))[1])
    array([10, 10])
    """

    def __init__(
        self,
        size: int = 100,
        method: str = "prs",
        random_state: int = 0,
        rho: float | None = None,
    ):
        self.size, self.method, self.random_state, self.rho = size, method, random_state, rho

    def get_params(self, deep: bool = True) -> dict:
        """Return the parameters, as scikit-learn's estimators do."""
        return {name: getattr(self, name) for name in ("size", "method", "random_state", "rho")}

    def fit_resample(self, X: Any, Y: Any) -> tuple[Any, Any]:  # noqa: N803
        """Return the rows of X and Y that a memory holds after a random order of all rows.

        Parameters
        ----------
        X : array or DataFrame, (N, ...)
        Y : array or DataFrame, (N, C) multi-hot, or class numbers (N,)

        Returns
        -------
        X, Y
            The rows kept, in their order and of the types that came.
        """
        targets = np.asarray(Y)
        classes = targets.shape[1] if targets.ndim == 2 else int(targets.max()) + 1
        options = {} if self.rho is None else {"rho": self.rho}
        sampler = make_sampler(self.method, self.size, classes, self.random_state, **options)
        check_empty(sampler)
        order = np.random.default_rng(self.random_state).permutation(len(targets))
        slots = sampler.place(multi_hot(targets[order], classes))
        held = dict(zip(slots.tolist(), order.tolist(), strict=True))
        held.pop(-1, None)
        self.sample_indices_ = np.sort(np.array(list(held.values())))
        return tuple(getattr(a, "iloc", a)[self.sample_indices_] for a in (X, Y))


def check_empty(sampler: Sampler) -> None:
    """Raise TypeError or ValueError unless a sampler is empty and looks at labels alone."""
    if not isinstance(sampler, Sampler):
        raise TypeError(f"sampler: expected what make_sampler returns, got {sampler!r}")
    if sampler.needs:
        raise ValueError(
            f"sampler: expected one that looks at labels alone, got one that needs "
            f"{', '.join(sorted(sampler.needs))}; choose crs, prs, cbrs or ocdm"
        )
    if len(sampler):
        raise ValueError(
            f"sampler: expected an empty one, got one that holds {len(sampler)} samples; "
            "make a new one for each buffer"
        )


def multi_hot(targets: Iterable, num_classes: int) -> np.ndarray:
    """Return targets, class numbers or vectors of 0 and 1 throughout, as multi-hot rows.

    Raises TypeError for a single target that is no whole number, ValueError for others.

    Example
    -------
    >>> multi_hot([2, 0], num_classes=3).astype(int)
    array([[0, 0, 1],
           [1, 0, 0]])
    """
    values = [np.asarray(target) for target in targets]
    shapes = {value.shape for value in values}
    if shapes not in ({()}, {(num_classes,)}):
        raise ValueError(
            f"targets: expected whole numbers, or vectors of {num_classes} classes throughout, got "
            f"shapes {', '.join(map(str, sorted(shapes)))}; a sample with several labels is "
            f"a multi-hot vector of shape ({num_classes},)"
        )
    array = np.stack(values)
    if shapes == {(num_classes,)}:
        if not np.isin(array, (0, 1)).all():
            raise ValueError(
                f"targets: expected vectors of 0 and 1, got {array[~np.isin(array, (0, 1))][0]}; "
                "decide which labels a sample has before it is placed"
            )
        return array.astype(bool)
    if array.dtype.kind not in "iu":
        raise TypeError(f"targets: expected whole numbers, got {array.dtype}; pass class indices")
    outside = array[(array < 0) | (array >= num_classes)]
    if len(outside):
        raise ValueError(
            f"targets: expected classes 0 to {num_classes - 1}, got {outside[0]}; "
            "make the sampler with num_classes of the whole stream"
        )
    return np.arange(num_classes) == array[:, None]
