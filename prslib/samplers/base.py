"""Define what every sampler offers, and share the checks and counts of label-only samplers."""

from abc import ABC, abstractmethod
from numbers import Integral
from typing import ClassVar, Protocol, runtime_checkable

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


class LabelSampler(ABC):
    """Share what samplers that look at labels alone have in common (Sec. 3).

    A subclass sets ``draws``, keeps its state in ``_decide`` and offers the counts as properties.

    Parameters
    ----------
    size : int
        Capacity of the memory m, in samples.
    num_classes : int
        Number of classes C, that is columns of the labels.
    seed : int, SeedSequence or Generator
        Source of every random decision.

    Raises
    ------
    ValueError
        If ``size`` or ``num_classes`` is below 1.
    TypeError
        If one of them is not an integer, or ``seed`` is none of the three kinds.

    Notes
    -----
    Each sample consumes ``draws`` uniform numbers whether or not it needs them. Where a stream is
    cut into batches therefore changes nothing: same stream, same seed, same slots. A sampler that
    decides a batch as a whole, such as OCDM, says so by ``decides_by_batch``.
    """

    needs: ClassVar[frozenset[str]] = frozenset()
    draws: ClassVar[int] = 1
    decides_by_batch: ClassVar[bool] = False

    def __init__(self, size: int, num_classes: int, seed: Seed):
        self.size = whole("size", size, least=1)
        self.num_classes = whole("num_classes", num_classes, least=1)
        self._rng = generator(seed)

    def place(self, labels: np.ndarray) -> np.ndarray:
        """Take a batch of the stream and return the slot of each sample (Algorithm 1).

        Parameters
        ----------
        labels : bool (B, C)
            Multi-hot labels in stream order. Not modified.

        Returns
        -------
        int64 (B,)
            Slot of each sample, -1 where it is not stored; of equal slots the later sample holds
            it.

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
    """Return the generator of a sampler's decisions.

    Parameters
    ----------
    seed : int, SeedSequence or Generator
        An int is spawned from, so that a stream drawn from ``default_rng`` of the same int, as many
        a script does, does not share its numbers with the sampler; the others are taken as they
        are.

    Returns
    -------
    Generator
        Of numpy's default kind.

    Raises
    ------
    TypeError
        If the seed is none of these.
    """
    if isinstance(seed, bool) or not isinstance(seed, Seed | Integral):
        raise TypeError(
            f"seed: expected an int, SeedSequence or Generator, got {seed!r}; "
            "pass one, so that the run can be repeated"
        )
    if isinstance(seed, Integral):
        (seed,) = np.random.SeedSequence(seed).spawn(1)
    return np.random.default_rng(seed)


def check_labels(labels: np.ndarray, num_classes: int) -> np.ndarray:
    """Return a batch's labels as compiled code wants them, or say what was expected.

    Parameters
    ----------
    labels : bool (B, C)
        Multi-hot labels.
    num_classes : int
        The number of columns C they must have.

    Returns
    -------
    bool (B, C)
        The same labels, contiguous and writeable: a copy only where they are not. Not to be
        modified or kept.

    Raises
    ------
    TypeError
        If they are not boolean.
    ValueError
        If they do not have the shape (B, ``num_classes``).
    """
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
