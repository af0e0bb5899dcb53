"""Partitioning Reservoir Sampling (Kim, Jeong and Kim, ECCV 2020), Algorithm 1.

Samples with the same labels are interchangeable in Eqs. (4) and (5). Both equations are
therefore computed once for each distinct label set in memory.
"""

import copy
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from prslib.checks import Seed, power
from prslib.labels import multi_hot
from prslib.samplers.base import Sampler
from prslib.samplers.decision import Decision, explain
from prslib.samplers.label_sets import NONE, draw_slot

# due to rounding, a smaller surplus is 0, and distances that differ by less are ties
TOLERANCE = 1e-9


class PRS(Sampler):
    """Partitioning Reservoir Sampling (Kim, Jeong and Kim 2020, Algorithm 1).

    The share of class i in memory is kept close to its target
    p_i = n_i^rho / sum_j n_j^rho, Eq. (1), where n_i is the number of samples of class i
    in the stream so far.

    Parameters
    ----------
    size : int
        Capacity of the memory m, in samples.
    num_classes : int or None
        Number of classes C. If it is None, classes are added when they first occur.
    seed : int, SeedSequence or Generator
        Source of every random decision.
    rho : float
        Power of allocation: 0 gives all classes equal shares, 1 the shares that they
        have in the stream.
    unlabelled : {"drop", "class"}
        Whether samples without a label are dropped or form an additional class.

    Raises
    ------
    ValueError
        If abs(rho) is above 20, or as in `make_sampler`.
    TypeError
        If ``rho`` is not a number.

    See Also
    --------
    prslib.samplers.OCDM : The same target, without random acceptance.

    Notes
    -----
    To write a variant of PRS, inherit from this class and override the method for one
    equation. The paper leaves some details open, which are settled as follows:

    - n_i includes the current sample, and the probability of acceptance s, Eq. (2), is
      at most 1. Because e^(-n_i) underflows for n_i above 745, it is computed relative
      to the smallest n_i among the classes of the sample.
    - If no surplus delta_i, Eq. (3), is positive, the class to shrink is drawn
      uniformly from the classes in memory with the largest delta_i.
    - The slot to overwrite is drawn uniformly from the candidates, Eq. (4), with the
      smallest distance, Eq. (5). Such ties are common, because most candidates have the
      same label set.
    - A delta_i within 1e-9 of zero is zero, and distances within 1e-9 of the smallest
      are ties, because such differences are due to rounding.

    If some samples have several labels, the memory usually contains more early than late
    samples.

    Examples
    --------
    >>> stream = np.repeat(np.eye(3, dtype=bool), [900, 90, 10], axis=0)
    >>> stream = np.random.default_rng(0).permutation(stream)
    >>> sampler = PRS(size=30, num_classes=3, seed=0, rho=0.0)
    >>> _ = sampler.place(stream)
    >>> print(sampler.class_freq, sampler.class_counts)
    [900  90  10] [10 11  9]
    """

    draws = 3  # acceptance, class, tie
    by_class = ("powers",)

    def __init__(
        self,
        size: int,
        num_classes: int | None,
        seed: Seed,
        *,
        rho: float = 0.0,
        unlabelled: str = "drop",
    ):
        super().__init__(size, num_classes, seed, unlabelled=unlabelled)
        self.rho = power("rho", rho)
        self.powers = np.zeros(self.num_classes + 1)  # n_i^rho, 0 if not observed

    def choose(self, y: np.ndarray, u: np.ndarray) -> int:
        """Return the slot of a sample, or -1 for none (Algorithm 1, lines 6 to 16)."""
        if len(self) < self.size:  # line 6: the memory fills
            return len(self)
        p = self.partition()  # line 12
        if u[0] >= self.acceptance(y, p):  # lines 13 to 15: sample-in
            return -1
        delta = self.surplus(p)  # line 16: sample-out
        c = self.draw_class(self.class_probability(delta), u[1])
        k = self.candidates(c, self.scarce(delta))
        if len(k) > 1:
            k = self.nearest(k, self.distances(k, p))
        return draw_slot(self._sets.slots_of(k), u[2])

    def partition(self) -> np.ndarray:
        """Return p_i = n_i^rho / sum_j n_j^rho, Eq. (1), (C,); 0 if unobserved."""
        return self.powers / self.powers.sum()

    def acceptance(self, y: np.ndarray, p: np.ndarray) -> float:
        """Return s = sum_i w_i m_i / n_i, Eq. (2), at most 1, with m_i = m p_i."""
        classes = self.classes_of(y)
        n = [self._freq.item(c) for c in classes]
        m = [self.size * p.item(c) for c in classes]
        terms = zip(self.weights(n), m, n, strict=True)
        return min(1.0, sum(w * m_i / n_i for w, m_i, n_i in terms))

    def weights(self, n: Sequence[int]) -> list[float]:
        """Return w_i = e^(-n_i) / sum_j e^(-n_j), Eq. (2), of a sample's classes."""
        least = min(n)
        weight = [math.exp(least - n_i) for n_i in n]  # e^(-n) is 0 from n = 746
        total = sum(weight)
        return [w / total for w in weight]

    def surplus(self, p: np.ndarray) -> np.ndarray:
        """Return delta_i = l_i - p_i sum_j l_j, Eq. (3), (C,)."""
        delta = self._counts - p * self._counts.sum()
        delta[np.abs(delta) <= TOLERANCE] = 0
        return delta

    def class_probability(self, delta: np.ndarray) -> np.ndarray:
        """Return softmax(delta_i) over delta_i > 0, or the largest if none is; (C,)."""
        most = delta.max()
        weight = np.exp(delta - most) * (delta > 0)
        if most <= 0:
            present = self._counts > 0
            weight = present & (delta >= delta[present].max() - TOLERANCE)
        return weight / weight.sum()

    def draw_class(self, chance: np.ndarray, u: float) -> int:
        """Return the first class whose cumulative probability exceeds u."""
        c = int(chance.cumsum().searchsorted(u, side="right"))
        if c == len(chance):  # the rounded sum is below 1
            c = int(chance.nonzero()[0][-1])
        return c

    def scarce(self, delta: np.ndarray) -> np.ndarray:
        """Return q_i, the observed classes not above their target (Sec. 3.4), bool (C,)."""
        return (self._freq > 0) & (delta <= 0)

    def candidates(self, c: int, q: np.ndarray) -> np.ndarray:
        """Return K, the sets with class c whose (not y).q is largest, Eq. (4), (K,)."""
        k = self._sets.with_class(c)
        classes = self._sets.classes[k]  # (K, W)
        number = (q[classes] & (classes != NONE)).sum(axis=1)  # y.q, least is best
        return k[number == number.min()]

    def distances(self, k: np.ndarray, p: np.ndarray) -> np.ndarray:
        """Return sum_i abs(C_ki - p_i sum_l C_kl) for each set k of K, Eq. (5), (K,)."""
        classes = self._sets.classes[k]  # (K, W)
        width = self._sets.width[k]  # number of labels that leave with k
        least = width.min()
        widths = np.arange(least, width.max() + 1)
        gap = self._counts - p * (self._counts.sum() - widths[:, None])
        far = np.abs(gap)  # a row per width
        row = width - least
        here = gap[row[:, None], classes]
        change = (np.abs(here - 1) - np.abs(here)) * (classes != NONE)
        return far.sum(axis=1)[row] + change.sum(axis=1)

    def nearest(self, k: np.ndarray, distance: np.ndarray) -> np.ndarray:
        """Return the sets of K with the smallest distance, ties included."""
        return k[distance <= distance.min() + TOLERANCE]

    def explain(self, label: Any) -> Decision:
        """Show what PRS would do with a sample if it came next (Eqs. (1)-(5)).

        The sampler does not change.

        Parameters
        ----------
        label : bool (C,) or int
            Labels of one sample: a row, or the number of its class.

        Returns
        -------
        Decision
            All quantities from which the slot is selected, and the slots that may be
            overwritten.

        Raises
        ------
        ValueError
            If ``label`` has another form, such as the labels of a batch.

        Examples
        --------
        >>> sampler = PRS(size=1, num_classes=2, seed=0)
        >>> sampler.explain(np.array([False, True])).acceptance
        1.0
        """
        y = multi_hot(np.asarray(label)[None], None if self.grows else self.num_classes)
        sampler = copy.deepcopy(self)
        return explain(sampler, sampler._widen(y)[0])

    def _count(self, classes: Sequence[int]) -> None:
        """Count a sample in n_i and in n_i^rho (line 5)."""
        super()._count(classes)
        for c in classes:
            self.powers[c] = self._freq.item(c) ** self.rho


def partition(n: np.ndarray, rho: float) -> np.ndarray:
    """Return p_i = n_i^rho / sum_j n_j^rho, Eq. (1), of counts (C,)."""
    powers = powers_of(n, rho)
    return powers / powers.sum()


def powers_of(n: np.ndarray, rho: float) -> np.ndarray:
    """Return n_i^rho of counts (C,), or 0 if n_i = 0."""
    return np.where(n > 0, np.maximum(n, 1.0) ** rho, 0.0)
