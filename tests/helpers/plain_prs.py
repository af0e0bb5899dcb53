"""A second implementation of PRS, equation by equation in dense numpy."""

import numpy as np

from prslib.samplers import Sampler

TOLERANCE = 1e-9


class PlainPRS(Sampler):
    """Algorithm 1 without label sets or running sums; it draws the same numbers."""

    draws = 3  # acceptance, class, tie

    def __init__(self, size, num_classes, seed, *, rho=0.0):
        super().__init__(size, num_classes, seed)
        self.rho = rho

    def choose(self, y, u):
        if len(self) < self.size:
            return len(self)
        p = self.partition(y)
        if u[0] >= self.acceptance(y, p):
            return -1
        delta = self.surplus(p)
        chance = self.class_probability(delta)
        k = self.candidates(self.draw_class(chance, u[1]), self.scarce(y, delta))
        leaving = self.leaving(k, self.distances(k, p))
        return int(leaving[int(u[2] * len(leaving))])

    def counted(self, y):
        """Return n_i, including the current sample."""
        return self.class_freq

    def partition(self, y):
        n = self.counted(y)
        log = np.where(n > 0, self.rho * np.log(np.maximum(n, 1)), -np.inf)
        weight = np.exp(log - log.max())
        return weight / weight.sum()

    def weights(self, y):
        n = np.where(y, self.counted(y), np.inf)
        weight = np.exp(n.min() - n)
        return weight / weight.sum()

    def acceptance(self, y, p):
        ratio = self.size * p / np.maximum(self.counted(y), 1)
        return min(1.0, float((self.weights(y) * ratio).sum()))

    def surplus(self, p):
        delta = self.class_counts - p * self.class_counts.sum()
        return np.where(np.abs(delta) <= TOLERANCE, 0.0, delta)

    def class_probability(self, delta):
        allowed, present = delta > 0, self.class_counts > 0
        if not allowed.any():
            allowed = present & (delta >= delta[present].max() - TOLERANCE)
            delta = np.zeros(len(delta))
        weight = np.exp(np.where(allowed, delta - delta[allowed].max(), -np.inf))
        return weight / weight.sum()

    def draw_class(self, chance, u):
        drawn = np.searchsorted(chance.cumsum(), u, side="right")
        return int(min(drawn, chance.nonzero()[0][-1]))

    def scarce(self, y, delta):
        return (delta <= 0) & (self.counted(y) > 0)

    def candidates(self, c, q):
        """Return K, slots in ascending order."""
        labels = self.labels
        members = np.flatnonzero(labels[:, c])
        score = (~labels[members] & q).sum(axis=1)
        return members[score == score.max()]

    def distances(self, k, p):
        counts = self.class_counts - self.labels[k]  # (K, C)
        return np.abs(counts - p * counts.sum(axis=1, keepdims=True)).sum(axis=1)

    def leaving(self, k, distances):
        return k[distances <= distances.min() + TOLERANCE]
