"""Use a label-only sampler in Mammoth, or to resample data; Avalanche has a file of its own."""

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from prslib.samplers import Sampler, is_sampler, make_sampler


class MammothSelection:
    """Let a sampler choose the slots of a Mammoth buffer (https://github.com/aimagelab/mammoth).

    ``MammothSelection(buffer, sampler)`` takes an empty buffer, and an empty sampler of its size
    that looks at labels alone. The buffer's ``add_data`` then places its labels, class numbers or
    multi-hot rows, as one batch. Mammoth asks for a slot a sample: the buffer's
    ``sample_selection_fn``, or in older versions the function ``reservoir`` of its module, which is
    replaced for the time of the call.
    """

    def __init__(self, buffer: Any, sampler: Sampler):
        check_empty(sampler)
        self.sampler, self._slots, add_data = sampler, iter(()), buffer.add_data
        if buffer.buffer_size != len(sampler.labels):
            sizes = f"{buffer.buffer_size}, got {len(sampler.labels)}"
            raise ValueError(f"sampler: expected the buffer's size, {sizes}")
        buffer.sample_selection_fn = self

        def add_placed(examples, labels=None, **others):
            if labels is None:
                raise ValueError("labels: expected those of the examples, got None; pass them")
            rows = multi_hot(getattr(labels, "cpu", lambda: labels)(), sampler.labels.shape[1])
            if not rows.any(axis=1).all():
                raise ValueError("labels: expected one for every sample, got a sample without")
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

    ``method`` is a key of `SAMPLERS` that looks at labels alone, ``random_state`` the seed of the
    order of the rows and of the sampler, ``rho`` the power of allocation of PRS and OCDM.
    ``sample_indices_`` says which rows were kept, ascending; of ``size`` rows and fewer, all.

    Examples
    --------
    >>> X, Y = np.arange(60), np.arange(60) % 10 > 7  # class numbers 0 and 1
    >>> np.bincount(MemoryResampler(20).fit_resample(X, Y.astype(int))[1])
    array([10, 10])
    """

    def __init__(self, size: int = 100, method: str = "prs", random_state: int = 0, rho=None):
        self.size, self.method, self.random_state, self.rho = size, method, random_state, rho

    def get_params(self, deep: bool = True) -> dict:
        """Return the parameters, as scikit-learn's estimators do."""
        return {name: getattr(self, name) for name in ("size", "method", "random_state", "rho")}

    def fit_resample(self, X: Any, Y: Any) -> tuple[Any, Any]:  # noqa: N803
        """Return the rows of X, (N, ...), and Y that a memory holds after all came in random order.

        Y has multi-hot rows, (N, C), or class numbers, (N,). The rows keep order and type.
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
    if not is_sampler(sampler):
        raise TypeError(f"sampler: expected what make_sampler returns, got {sampler!r}")
    if sampler.needs:
        needs = ", ".join(sorted(sampler.needs))
        raise ValueError(f"sampler: expected crs, prs, cbrs or ocdm, got one that needs {needs}")
    if len(sampler):
        raise ValueError(f"sampler: expected an empty one, got one that holds {len(sampler)}")


def multi_hot(targets: Iterable, num_classes: int) -> np.ndarray:
    """Return targets, class numbers or vectors of 0 and 1 throughout, as multi-hot rows."""
    values = [np.asarray(target) for target in targets]
    shapes = {value.shape for value in values}
    if shapes not in ({()}, {(num_classes,)}):
        raise ValueError(
            f"targets: expected whole numbers, or multi-hot vectors of {num_classes} classes "
            f"throughout, got shapes {', '.join(map(str, sorted(shapes)))}"
        )
    array = np.stack(values)
    if shapes == {(num_classes,)}:
        other = array[~np.isin(array, (0, 1))]
        if len(other):
            raise ValueError(f"targets: expected vectors of 0 and 1, got {other[0]}")
        return array.astype(bool)
    if array.dtype.kind not in "iu":
        raise TypeError(f"targets: expected whole numbers, got {array.dtype}; pass class indices")
    outside = array[(array < 0) | (array >= num_classes)]
    if len(outside):
        raise ValueError(f"targets: expected classes 0 to {num_classes - 1}, got {outside[0]}")
    return np.arange(num_classes) == array[:, None]
