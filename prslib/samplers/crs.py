"""Conventional reservoir sampling: every sample of the stream survives with the same chance."""

import numba
import numpy as np

from prslib.samplers.base import LabelSampler, Seed


class CRS(LabelSampler):
    """Keep item t of the stream with probability m / t (Vitter 1985; Sec. 3.2).

    Parameters
    ----------
    size : int
        Capacity of the memory m, in samples.
    num_classes : int
        Number of classes C.
    seed : int, SeedSequence or Generator
        Source of every random decision.

    Notes
    -----
    Item t, counted from 1 over the samples that have a label, draws j uniformly from 0 .. t - 1
    and takes slot j if j < m. The authors' released code draws before it counts and is one step
    late, so that its first m items survive less often than the rest; this one is not.

    Example
    -------
    >>> CRS(size=2, num_classes=3, seed=0).place(np.eye(3, dtype=bool)[:2])
    array([0, 1])
    """

    draws = 1

    def __init__(self, size: int, num_classes: int, seed: Seed):
        super().__init__(size, num_classes, seed)
        self._seen = 0
        self._tallies = np.zeros((2, self.num_classes), np.int64)  # stream, memory
        self._labels = np.zeros((self.size, self.num_classes), np.bool_)

    def __len__(self) -> int:
        """Return the number of filled slots."""
        return min(self._seen, self.size)

    @property
    def class_freq(self) -> np.ndarray:
        """Samples of each class in the stream so far, n_i; int64 (C,), a copy."""
        return self._tallies[0].copy()

    @property
    def class_counts(self) -> np.ndarray:
        """Samples of each class in the memory, l_i; int64 (C,), a copy."""
        return self._tallies[1].copy()

    @property
    def labels(self) -> np.ndarray:
        """Labels of the sample in each slot; bool (size, C), a copy."""
        return self._labels.copy()

    def _decide(self, labels: np.ndarray, uniforms: np.ndarray, slots: np.ndarray) -> None:
        self._seen = _place(labels, uniforms, slots, self._seen, self._tallies, self._labels)


@numba.njit(cache=True)
def _place(labels, uniforms, slots, seen, tallies, memory):
    """Fill ``slots`` and bring the memory's labels and both tallies up to date."""
    for b in range(len(labels)):
        slots[b] = -1
        row = labels[b]
        if not row.any():
            continue
        seen += 1
        slot = seen - 1 if seen <= len(memory) else int(uniforms[b, 0] * seen)
        kept = slot < len(memory)
        for c in range(len(row)):
            if row[c]:
                tallies[0, c] += 1
            if kept:
                tallies[1, c] += np.int64(row[c]) - np.int64(memory[slot, c])
                memory[slot, c] = row[c]
        if kept:
            slots[b] = slot
    return seen
