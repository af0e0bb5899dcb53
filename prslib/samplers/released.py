"""PRS as the authors' released code has it, ``variant="authors"``, in plain numpy.

Each method replaces the equation of the same name in reference.py. n_i is here without
the sample at hand, which the released code counts after it was placed. p_i, delta_i and
the distances are computed in float32.
"""

import numpy as np

from prslib.checks import Seed, one_of
from prslib.samplers.reference import TOLERANCE, ReferencePRS

Array = np.ndarray


class ReleasedPRS(ReferencePRS):
    """Decide as the released code does; `PRS` lists the differences."""

    by_class = ("last_partition",)

    def __init__(
        self,
        size: int,
        num_classes: int | None,
        seed: Seed,
        *,
        rho: float = 0.0,
        variant: str = "authors",
    ):
        super().__init__(size, num_classes, seed, rho=rho)
        self.variant = one_of("variant", variant, ["authors"])
        # p_i of the last sample, and the classes in the order they appeared
        self.last_partition = np.zeros(self.num_classes, np.float32)
        self.appearance = np.zeros(0, np.int64)

    def choose(self, y: Array, u: Array) -> int:
        """Return the slot of a sample, -1 for none (Algorithm 1, lines 6 to 18)."""
        if len(self) == self.size:
            self.last_partition = self.partition(y)
        with np.errstate(under="ignore"):
            return super().choose(y, u)

    def follow(self, y: Array, slot: int) -> None:
        """Count a sample and store its labels in a slot, as every sampler does."""
        super().follow(y, slot)
        new = np.setdiff1d(np.flatnonzero(self._one_sample(y)), self.appearance)
        self.appearance = np.append(self.appearance, new)

    def counted(self, y: Array) -> Array:
        """Return n_i without the sample at hand."""
        return self.state.class_freq.copy()

    def partition(self, y: Array) -> Array:
        """Return p_i of the classes in memory, Eq. (1), and of others what it was before."""
        present = self.state.class_counts > 0
        log = self.rho * np.log(self.state.class_freq[present])
        weight = np.exp(log - log.max())
        p = self.last_partition.copy()
        p[present] = weight / weight.sum()
        return p

    def acceptance(self, y: Array, p: Array) -> float:
        """Return s, Eq. (2), each m_i / n_i cut at 1, which it is for a new class."""
        n = self.counted(y)
        quota = self.size * p.astype(float)
        ratio = np.minimum(quota / np.maximum(n, 1), 1)
        ratio[n == 0] = 1
        return min(1.0, float((self.weights(y) * ratio).sum()))

    def surplus(self, p: Array) -> Array:
        """Return delta_i of the classes in memory, Eq. (3)."""
        counts = self.state.class_counts
        gap = np.float32(counts) - p * np.float32(counts.sum())
        gap[(counts == 0) | (abs(gap) <= TOLERANCE)] = 0
        return gap.astype(float)

    def class_probability(self, delta: Array) -> Array:
        """Return softmax(delta_i) over all classes in memory."""
        gap = np.where(self.state.class_counts > 0, delta, -np.inf)
        weight = np.exp(gap - gap.max())
        return weight / weight.sum()

    def scarce(self, y: Array, delta: Array) -> Array:
        """Return q_i, the classes in memory that are not above their target."""
        return (delta <= 0) & (self.state.class_counts > 0)

    def distances(self, k: Array, p: Array) -> Array:
        """Return Eq. (5) without the classes that a removal empties, oldest class first."""
        counts = np.float32(self.state.class_counts - self.labels_of(k))  # (K, C)
        gaps = abs(counts - p * counts.sum(axis=1, keepdims=True))
        gaps[counts == 0] = 0
        # float32 sums depend on their order
        return gaps[:, self.appearance].cumsum(axis=1)[:, -1].astype(float)

    def leaving(self, k: Array, distances: Array) -> Array:
        """Return the lowest of the nearest slots of K, an array of one.

        A distance of m or more never wins. Where all are that far, the lowest slot goes.
        """
        bound = distances.min() + TOLERANCE
        nearest = k[distances <= bound] if bound < self.size else k
        return nearest[nearest == nearest.min()]
