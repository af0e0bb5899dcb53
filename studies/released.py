"""PRS as in the authors' released code, which departs from the paper in seven steps.

1. n_i is counted after a sample is placed.
2. p_i is computed over the classes in memory, and does not change when a class leaves.
3. Each m_i / n_i is limited to 1 before it is weighted, and is 1 for a new class.
4. Every class in memory may be shrunk.
5. A class that a trial removal empties is left out of the sum of Eq. (5).
6. Of equal candidates, the one in the lowest slot is removed.
7. A distance of m or more is never the smallest; without a smallest distance the first
   candidate is removed.

p, delta and distances are float32, and the distance is summed over the classes in the
order of their first samples. p is computed in float64 and then rounded.

``prslib.register("PRS, released code", ReleasedPRS)`` makes it a method.
"""

from collections.abc import Sequence

import numpy as np
from scipy.special import softmax

from prslib.samplers import PRS
from prslib.samplers.prs import TOLERANCE

Array = np.ndarray


class ReleasedPRS(PRS):
    """PRS of the released code; each method replaces an equation of `PRS`."""

    by_class = (*PRS.by_class, "last_partition")

    def __init__(self, size: int, num_classes: int | None, seed, *, rho: float = 0.0):
        super().__init__(size, num_classes, seed, rho=rho)
        # p_i of the last sample, and the classes in the order they appeared
        self.last_partition = np.zeros(self.num_classes + 1, np.float32)
        self.appearance = np.zeros(0, np.int64)

    def choose(self, y: Array, u: Array) -> int:
        """Return the slot of a sample, -1 for none; of equal slots the lowest."""
        return super().choose(y, np.append(u[:2], 0.0))

    def partition(self) -> Array:
        """Return p_i, Eq. (1); classes that are not in memory keep their last value."""
        present = self._counts > 0
        shares = softmax(self.rho * np.log(self._before[present]))
        self.last_partition[present] = shares
        return self.last_partition

    def acceptance(self, y: Array, p: Array) -> float:
        """Return s, Eq. (2), with each m_i / n_i limited to 1, and 1 for a new class."""
        classes = self.classes_of(y)
        n = self._before[classes]
        quota = self.size * p[classes].astype(float)
        ratio = np.minimum(quota / np.maximum(n, 1), 1)
        ratio[n == 0] = 1
        return min(1.0, float(np.dot(self.weights(n.tolist()), ratio)))

    def surplus(self, p: Array) -> Array:
        """Return delta_i of the classes in memory, Eq. (3)."""
        gap = np.float32(self._counts) - p * np.float32(self._counts.sum())
        gap[(self._counts == 0) | (abs(gap) <= TOLERANCE)] = 0
        return gap.astype(float)

    def class_probability(self, delta: Array) -> Array:
        """Return softmax(delta_i) over all classes in memory."""
        return softmax(np.where(self._counts > 0, delta, -np.inf))

    def scarce(self, delta: Array) -> Array:
        """Return q_i, the classes in memory that are not above their target."""
        return (delta <= 0) & (self._counts > 0)

    def distances(self, k: Array, p: Array) -> Array:
        """Return Eq. (5) without classes that a removal empties, oldest class first."""
        labels = self._sets.rows(k, len(self._counts))
        counts = np.float32(self._counts - labels)  # (K, C)
        gaps = abs(counts - p * counts.sum(axis=1, keepdims=True))
        gaps[counts == 0] = 0
        # float32 sums depend on their order
        return gaps[:, self.appearance].cumsum(axis=1)[:, -1].astype(float)

    def nearest(self, k: Array, distance: Array) -> Array:
        """Return the nearest sets of K; all of them if every distance is m or more."""
        return super().nearest(k, distance) if distance.min() < self.size else k

    def _count(self, classes: Sequence[int]) -> None:
        """Count a sample, but use the counts before it."""
        new = np.setdiff1d(classes, self.appearance)
        self.appearance = np.append(self.appearance, new)
        self._before = self._freq.copy()  # n_i
        super()._count(classes)
