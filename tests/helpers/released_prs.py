"""A second implementation of the authors' released code, by its departures from the paper."""

import numpy as np
from plain_prs import PlainPRS


class PlainReleasedPRS(PlainPRS):
    """PRS as in the authors' released code; compared with studies/released.py."""

    def __init__(self, size, num_classes, seed, *, rho=0.0):
        super().__init__(size, num_classes, seed, rho=rho)
        # p_i, also of classes that are no longer in memory
        self._stale = np.zeros(self.num_classes, np.float32)
        self._order = []  # classes in the order of their first samples

    def choose(self, y, u):
        """Decide with the counts before the sample."""
        self._order += [
            c for c in np.flatnonzero(self.counted(y)) if c not in self._order
        ]
        present = self.class_counts > 0
        weight = self.counted(y)[present].astype(float) ** self.rho
        self._stale[present] = weight / weight.sum()
        return super().choose(y, u)

    def counted(self, y):
        """Return n_i without the current sample."""
        return self.class_freq - y

    def partition(self, y):
        """Return p_i as it was when the class was last in memory, float32."""
        return self._stale

    def acceptance(self, y, p):
        """Limit each m_i / n_i to 1 before weighting; it is 1 for a new class."""
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
        """Sum in float32, oldest class first, without classes that a removal empties."""
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
