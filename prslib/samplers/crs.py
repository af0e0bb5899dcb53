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

    listed = True

    def __len__(self) -> int:
        """Return the number of filled slots."""
        return min(self._count, self.size)

    def _decide(self, labels: np.ndarray, uniforms: np.ndarray, slots: np.ndarray) -> None:
        done = 0
        while done < len(labels):
            done, self._count = _place(
                done, self._count, self._labels, self._freq, self._held, labels, uniforms, slots
            )
            if done < len(labels):
                self._widen(labels[done])


@numba.njit(cache=True)
def _place(begin, seen, memory, freq, counts, labels, uniforms, slots):
    """Fill ``slots`` and the memory; return where it stops, and the samples seen."""
    for b in range(begin, len(labels)):
        slots[b] = -1
        count = 0
        for c in range(len(freq)):
            count += labels[b, c]
        if count == 0:
            continue
        if count > memory.shape[1]:
            return b, seen
        for c in range(len(freq)):
            freq[c] += labels[b, c]
        seen += 1
        slot = seen - 1 if seen <= len(memory) else int(uniforms[b, 0] * seen)
        if slot < len(memory):
            slots[b] = slot
            for c in memory[slot]:
                counts[c] -= c >= 0
            count = 0
            for c in range(len(freq)):
                if labels[b, c]:
                    memory[slot, count] = c
                    counts[c] += 1
                    count += 1
            memory[slot, count:] = -1
    return len(labels), seen
