"""PRS as the authors' released code has it: what departs from the paper."""

import numpy as np
from plain_prs import PlainPRS


class PlainReleasedPRS(PlainPRS):
    """Do what the authors' released code does: a twin of studies/released.py."""

    def __init__(self, size, num_classes, seed, *, rho=0.0):
        super().__init__(size, num_classes, seed, rho=rho)
        self._stale = np.zeros(self.num_classes, np.float32)  # p_i, also of who left
        self._order = []  # classes, first seen first

    def choose(self, y, u):
        """Decide on what was there before the sample."""
        self._order += [
            c for c in np.flatnonzero(self.counted(y)) if c not in self._order
        ]
        present = self.class_counts > 0
        weight = self.counted(y)[present].astype(float) ** self.rho
        self._stale[present] = weight / weight.sum()
        return super().choose(y, u)

    def counted(self, y):
        """Return n_i without the sample at hand."""
        return self.class_freq - y

    def partition(self, y):
        """Return p_i as it was when the class was last in memory, float32."""
        return self._stale

    def acceptance(self, y, p):
        """Cut each m_i / n_i at 1, which it is for a new class, before it is weighed."""
        n, quota = self.counted(y)[y], self.size * p[y].astype(float)
        ratio = np.where(n > quota, quota / np.maximum(n, 1), 1.0)
        return min(1.0, float((self.weights(y)[y] * ratio).sum()))

    def surplus(self, p):
        """Return delta_i of the classes in memory, float32."""
        counts = self.class_counts.astype(np.float32)
        return np.where(counts > 0, counts - p * counts.sum(), np.float32(0))

    def class_probability(self, delta):
        """Return softmax(delta_i) over all classes in memory."""
        present, delta = self.class_counts > 0, delta.astype(float)
        weight = np.exp(np.where(present, delta - delta[present].max(), -np.inf))
        return weight / weight.sum()

    def scarce(self, y, delta):
        """Return q_i of the classes in memory."""
        return (delta <= 0) & (self.class_counts > 0)

    def distances(self, k, p):
        """Leave classes that a removal empties out of the sum, which is float32 in order of age."""
        result = []
        for slot in k:
            counts, total = self.class_counts - self.labels[slot], np.float32(0)
            rest = np.float32(counts.sum())
            for c in self._order:
                if counts[c] > 0:
                    total += abs(np.float32(counts[c]) - np.float32(p[c] * rest))
            result.append(total)
        return np.array(result)

    def leaving(self, k, distances):
        """Return the lowest slot at the least distance; a distance of m or more never wins."""
        near = np.flatnonzero(distances < np.float32(self.size))
        return k[[near[distances[near].argmin()] if len(near) else 0]]
