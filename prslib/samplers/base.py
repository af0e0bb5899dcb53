"""Define what every sampler offers, and share the checks and counts of label-only samplers."""

from abc import ABC, abstractmethod
from numbers import Integral
from typing import ClassVar, Protocol, runtime_checkable

import numba
import numpy as np

from prslib.checks import whole

BOOL = np.dtype(np.bool_)  # compared with in every call of ``place``; from np.bool_ it takes longer
Seed = int | np.random.SeedSequence | np.random.Generator


@runtime_checkable
class Sampler(Protocol):
    """Decide which samples of a stream the memory keeps, and where (Sec. 3).

    A sampler never holds images: it answers with slots, and ``prslib.memory.Memory`` stores
    there whatever the batch carries.

    Attributes
    ----------
    needs : frozenset of str
        Names of the keyword arguments that ``place`` wants beside the labels, such as
        ``"features"`` or ``"gradients"``. Empty for a sampler that looks at labels alone; the
        learner computes and passes only what is named here.
    class_freq : int64 (C,)
        Samples of each class in the stream so far, n_i.
    class_counts : int64 (C,)
        Samples of each class in the memory, l_i.
    labels : bool (size, C)
        Labels of the sample in each slot; a slot that was never filled has none.
    """

    needs: frozenset[str]

    @property
    def class_freq(self) -> np.ndarray: ...  # noqa: D102

    @property
    def class_counts(self) -> np.ndarray: ...  # noqa: D102

    @property
    def labels(self) -> np.ndarray: ...  # noqa: D102

    def __len__(self) -> int:
        """Return the number of filled slots."""
        ...

    def place(self, labels: np.ndarray, **context: np.ndarray) -> np.ndarray:
        """Take a batch of the stream and return the slot of each sample (Algorithm 1).

        Parameters
        ----------
        labels : bool (B, C)
            Multi-hot labels in stream order. Not modified.
        **context : arrays (B, ...)
            What ``needs`` names, and nothing else.

        Returns
        -------
        int64 (B,)
            Slot of each sample, -1 where it is not stored; of equal slots the later sample holds
            it.
        """
        ...


class Base:
    """Check what every sampler is made from."""

    def __init__(self, size: int, num_classes: int, seed: Seed):
        self.size = whole("size", size, least=1)
        self.num_classes = whole("num_classes", num_classes, least=1)
        self._rng = generator(seed)


class Counted(Base):
    """Hold labels and counts in plain arrays, which a subclass keeps up to date."""

    def __init__(self, size: int, num_classes: int, seed: Seed):
        super().__init__(size, num_classes, seed)
        self._count = 0
        self._freq = np.zeros(self.num_classes, np.int64)
        self._held = np.zeros(self.num_classes, np.int64)
        self._labels = np.zeros((self.size, self.num_classes), np.bool_)

    def __len__(self) -> int:
        """Return the number of filled slots."""
        return self._count

    @property
    def class_freq(self) -> np.ndarray:
        """Samples of each class in the stream so far, n_i; int64 (C,), a copy."""
        return self._freq.copy()

    @property
    def class_counts(self) -> np.ndarray:
        """Samples of each class in the memory, l_i; int64 (C,), a copy."""
        return self._held.copy()

    @property
    def labels(self) -> np.ndarray:
        """Labels of the sample in each slot; bool (size, C), a copy."""
        return self._labels.copy()


class LabelSampler(Base, ABC):
    """Share what samplers that look at labels alone have in common (Sec. 3).

    A subclass sets ``draws``, keeps its state in ``_decide`` and offers the counts as properties.

    Notes
    -----
    Each sample consumes ``draws`` uniform numbers whether or not it needs them. Where a stream is
    cut into batches therefore changes nothing: same stream, same seed, same slots. A sampler that
    decides a batch as a whole, such as OCDM, says so by ``decides_by_batch``.
    """

    needs: ClassVar[frozenset[str]] = frozenset()
    draws: ClassVar[int] = 1
    decides_by_batch: ClassVar[bool] = False

    def place(self, labels: np.ndarray) -> np.ndarray:
        """Take a batch of the stream and return the slot of each sample (Algorithm 1).

        Parameters and return value are those of `Sampler.place`.

        Raises
        ------
        TypeError
            If ``labels`` is not boolean.
        ValueError
            If ``labels`` does not have the shape (B, C).

        Notes
        -----
        A sample with no label never enters and counts nowhere.
        """
        labels = check_labels(labels, self.num_classes)
        uniforms = self._rng.random((len(labels), self.draws))
        slots = np.empty(len(labels), np.int64)
        self._decide(labels, uniforms, slots)
        return slots

    @abstractmethod
    def _decide(self, labels: np.ndarray, uniforms: np.ndarray, slots: np.ndarray) -> None:
        """Write the slot of each sample into ``slots``."""


def generator(seed: Seed) -> np.random.Generator:
    """Return the generator of a sampler's decisions; raise TypeError for another kind of seed."""
    if isinstance(seed, bool) or not isinstance(seed, Seed | Integral):
        raise TypeError(
            f"seed: expected an int, SeedSequence or Generator, got {seed!r}; "
            "pass one, so that the run can be repeated"
        )
    if isinstance(seed, Integral):  # spawned from: a stream is often drawn from the int itself
        (seed,) = np.random.SeedSequence(int(seed)).spawn(1)
    return np.random.default_rng(seed)


def check_labels(labels: np.ndarray, num_classes: int) -> np.ndarray:
    """Return bool labels (B, C) as compiled code wants them, a copy where needed; refuse others."""
    labels = np.asarray(labels, order="C")
    if labels.dtype != BOOL:
        raise TypeError(
            f"labels: expected bool, got {labels.dtype}; convert multi-hot labels by .astype(bool)"
        )
    if labels.ndim != 2 or labels.shape[1] != num_classes:
        raise ValueError(
            f"labels: expected shape (B, {num_classes}), got {labels.shape}; "
            "pass one row a sample and one column a class"
        )
    return labels if labels.flags.writeable else labels.copy()


@numba.njit(cache=True)
def rarest(row, counts, uniform):
    """Return the label of a row that has the least count, a random one of several; -1 for none."""
    least, ties = 0, 0
    for c in range(len(row)):
        if row[c] and (ties == 0 or counts[c] <= least):
            ties = ties + 1 if ties and counts[c] == least else 1
            least = counts[c]
    chosen = int(uniform * ties)
    for c in range(len(row)):
        if row[c] and counts[c] == least:
            if chosen == 0:
                return c
            chosen -= 1
    return -1
