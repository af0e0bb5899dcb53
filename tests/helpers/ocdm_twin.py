"""Optimising the class distribution in memory once more, from its rule, in dense numpy."""

import numpy as np

from prslib.checks import generator_of


class Twin:
    """An OCDM sampler that tries every deletion on the label matrix; it draws the same numbers."""

    def __init__(self, size, num_classes, seed=0, *, rho=0.0):
        self.size, self.rho = size, rho
        self.memory = np.zeros((0, num_classes), bool)
        self.freq = np.zeros(num_classes, int)
        self.rng = generator_of(seed)

    def place(self, labels):
        uniforms = self.rng.random((len(labels), 1))[:, 0]
        new = np.flatnonzero(labels.any(1))
        joined = np.vstack([self.memory, labels[new]])
        self.freq = self.freq + labels[new].sum(0)
        kept = list(range(len(joined)))
        for uniform in uniforms[: max(0, len(joined) - self.size)]:
            ties = self.closest(joined[kept])
            del kept[ties[int(uniform * len(ties))]]
        slots = np.full(len(labels), -1)
        slots[new] = self.settle(kept, len(self.memory) + np.arange(len(new)))
        self.memory = joined[: self.size].copy()
        for b in np.flatnonzero(slots >= 0):
            self.memory[slots[b]] = labels[b]
        return slots

    def closest(self, joined):
        """Return whose removal leaves the distribution closest to the target."""
        distance = self.distances(joined)
        return np.flatnonzero(distance <= distance.min() + 1e-9 / joined.sum())

    def distances(self, joined):
        """Return KL(q || p) without each sample of a label matrix."""
        return self.kl(joined.sum(0) - joined)

    def kl(self, counts):
        """Return the distance of memories with these class counts, (..., C), to the target."""
        seen = self.freq > 0
        log_p = self.rho * np.log(self.freq[seen])
        log_p = log_p - log_p.max() - np.log(np.exp(log_p - log_p.max()).sum())
        q = counts[..., seen] / counts.sum(-1, keepdims=True)
        return (q * (np.log(np.where(q > 0, q, 1)) - log_p)).sum(-1)

    def settle(self, kept, candidates):
        """Return the slots of the new samples: their own, one that came free, or none."""
        free = iter(sorted(set(range(self.size)) - set(kept)))
        return [
            k if k < self.size else next(free) if k in kept else -1 for k in candidates
        ]
