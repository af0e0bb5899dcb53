"""A second implementation of OCDM, written from its rule in dense numpy."""

import numpy as np

from prslib.samplers import Sampler


class Twin(Sampler):
    """An OCDM sampler that tries every deletion on the label matrix; it draws the same numbers."""

    def __init__(self, size, num_classes, seed=0, *, rho=0.0):
        super().__init__(size, num_classes, seed)
        self.rho = rho

    def choose_batch(self, labels, uniforms):
        new = np.flatnonzero(labels.any(1))
        joined = np.vstack([self.labels[: len(self)], labels[new]])
        freq = self.class_freq + labels.sum(0)
        rows = list(range(len(joined)))
        for u in uniforms[: max(0, len(joined) - self.size), 0]:
            rest = joined[rows]
            distance = kl(rest.sum(0) - rest, freq, self.rho)  # without each sample
            ties = np.flatnonzero(distance <= distance.min() + 1e-9 / rest.sum())
            del rows[ties[int(u * len(ties))]]
        free = iter(sorted(set(range(self.size)) - set(rows)))
        slots = np.full(len(labels), -1)
        for row, k in zip(new, range(len(self), len(joined)), strict=True):
            if k < self.size:
                slots[row] = k
            elif k in rows:
                slots[row] = next(free)
        return self.follow(labels, slots)


def kl(counts, freq, rho):
    """Return KL(q || p) of memories with these class counts, (..., C)."""
    seen = freq > 0
    log_p = rho * np.log(freq[seen])
    log_p = log_p - log_p.max() - np.log(np.exp(log_p - log_p.max()).sum())
    q = counts[..., seen] / counts.sum(-1, keepdims=True)
    return (q * (np.log(np.where(q > 0, q, 1)) - log_p)).sum(-1)
