"""Conventional reservoir sampling: every sample of the stream survives with the same chance."""

import numba
import numpy as np

from prslib.samplers.base import Counted, LabelSampler


class CRS(Counted, LabelSampler):
    """Keep item t of the stream with probability m / t (Vitter 1985; Sec. 3.2).

    Parameters
    ----------
    size, num_classes, seed
        As in `make_sampler`.

    Notes
    -----
    Item t, counted from 1 over the samples that have a label, draws j uniformly from 0 .. t - 1
    and takes slot j if j < m. The authors' released code draws before it counts and is one step
    late, so that its first m items survive less often than the rest; this one is not.

    Examples
    --------
    >>> CRS(size=2, num_classes=3, seed=0).place(np.eye(3, dtype=bool)[:2])
    array([0, 1])
    """

    def __len__(self) -> int:
        """Return the number of filled slots."""
        return min(self._count, self.size)

    def _decide(self, labels: np.ndarray, uniforms: np.ndarray, slots: np.ndarray) -> None:
        state = self._freq, self._held, self._labels
        self._count = _place(labels, uniforms, slots, self._count, *state)  # of the stream


@numba.njit(cache=True)
def _place(labels, uniforms, slots, seen, freq, counts, memory):
    """Fill ``slots`` and bring the counts and the memory's labels up to date."""
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
                freq[c] += 1
            if kept:
                counts[c] += np.int64(row[c]) - np.int64(memory[slot, c])
                memory[slot, c] = row[c]
        if kept:
            slots[b] = slot
    return seen
