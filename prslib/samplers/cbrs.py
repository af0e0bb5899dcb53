"""Sample with class-balancing reservoirs: one in every class; the largest class gives way."""

import numba
import numpy as np

from prslib.samplers.base import Counted, LabelSampler, Seed, rarest, read_labels

BLOCK = 256  # slots that are counted together, to find one of a class without a look at each
SEEN, HELD, FULL = range(3)  # rows of the tally


class CBRS(Counted, LabelSampler):
    """Balance the classes, each with a reservoir of its own (Chrysakis & Moens, ICML 2020).

    Until the memory is full every sample is stored. From then on a class that is, or ever was,
    the largest in memory is *full*. A sample of a class that is not full overwrites a random
    sample of a largest class; one of a full class takes the place of a random sample of its own
    class with probability m_y / n_y, and is dropped otherwise.

    Parameters
    ----------
    size, num_classes, seed
        As in `make_sampler`.

    Notes
    -----
    The source has one label a sample. With several we let a sample count for one of them alone,
    the one that is rarest in the stream so far, the sample included; ties fall uniformly. It counts
    for that class as long as it is in memory, and m_y, n_y, "largest" and "full" are about these
    classes, which makes every class a proper reservoir: n_y is the number of samples of the stream
    that counted for y. ``class_freq`` and ``class_counts`` hold all labels, as in every sampler.

    Left open as well, and settled so:

    - A class becomes full by being a largest one when the memory has no empty slot. Judged from the
      first sample on, the first class of a stream would be full with a single sample.
    - Where several classes are the largest, all are full, and the sample to overwrite is drawn
      uniformly from the samples of all of them.
    - n_y counts the sample at hand, as in reservoir sampling.

    Examples
    --------
    >>> CBRS(size=2, num_classes=3, seed=0).place(np.eye(3, dtype=bool)[:2])
    array([0, 1])
    """

    draws = 3  # rarest label, acceptance, victim
    listed = True

    def __init__(self, size: int, num_classes: int, seed: Seed):
        super().__init__(size, num_classes, seed)
        self._slot_class = np.full(self.size, -1)
        # n_y, m_y and whether y is full; m_y in each block of slots. The last column and row are of
        # the largest classes: m_y of one, and the samples of all of them, 0 if they are not known
        self._tally = np.zeros((3, self.num_classes + 1), np.int64)
        self._blocks = np.zeros((self.num_classes + 1, -(-self.size // BLOCK)), np.int16)

    @property
    def slot_class(self) -> np.ndarray:
        """The class that the sample in each slot counts for, -1 for none; int64 (size,), a copy."""
        return self._slot_class.copy()

    def _decide(self, labels: np.ndarray, uniforms: np.ndarray, slots: np.ndarray) -> None:
        done, own = 0, (self._slot_class, self._tally, self._blocks)
        while done < len(labels):
            state = self._count, self._labels, self._freq, self._held
            done, self._count = _place(done, *state, labels, uniforms, slots, *own)
            if done < len(labels):
                self._widen(labels[done])


@numba.njit(cache=True)
def _place(begin, stored, memory, freq, counts, labels, uniforms, slots, slot_class, tally, blocks):
    """Fill ``slots`` and the memory; return where it stops, and how many slots are filled."""
    listed = np.empty(len(freq), np.int32)
    for b in range(begin, len(labels)):
        slots[b] = -1
        count = read_labels(labels, b, listed)
        if count == 0:
            continue
        if count > memory.shape[1]:
            return b, stored
        for c in listed[:count]:
            freq[c] += 1
        own = rarest(listed[:count], freq, uniforms[b, 0])
        tally[SEEN, own] += 1
        slot = stored if stored < len(memory) else _pop(own, uniforms[b], slot_class, tally, blocks)
        if slot < 0:
            continue
        stored = max(stored, slot + 1)
        slots[b] = slot
        slot_class[slot] = own
        tally[HELD, own] += 1
        blocks[own, slot // BLOCK] += 1
        if tally[HELD, own] == tally[SEEN, -1]:
            _rank(own, 1, tally, blocks)
        for c in memory[slot]:
            counts[c] -= c >= 0
        memory[slot, :count] = listed[:count]
        memory[slot, count:] = -1
        for c in listed[:count]:
            counts[c] += 1
    return len(labels), stored


@numba.njit(cache=True)
def _pop(own, uniforms, slot_class, tally, blocks):
    """Take a sample out of its class, for one of class ``own``; return its slot, -1 for none."""
    num_classes = tally.shape[1] - 1
    if tally[HELD, -1] == 0:
        tally[SEEN, -1] = tally[HELD].max()
        for c in range(num_classes):
            if tally[HELD, c] == tally[SEEN, -1]:
                _rank(c, 1, tally, blocks)
    row = own if tally[FULL, own] else num_classes
    if row == own and uniforms[1] * tally[SEEN, own] >= tally[HELD, own]:
        return -1
    chosen, block = int(uniforms[2] * tally[HELD, row]), 0
    while chosen >= blocks[row, block]:
        chosen -= blocks[row, block]
        block += 1
    slot = block * BLOCK - 1
    while chosen >= 0:
        slot += 1
        c = slot_class[slot]
        chosen -= c == own if row == own else tally[HELD, c] == tally[SEEN, -1]
    if tally[HELD, c] == tally[SEEN, -1]:
        _rank(c, -1, tally, blocks)
    tally[HELD, c] -= 1
    blocks[c, block] -= 1
    return slot


@numba.njit(cache=True)
def _rank(c, by, tally, blocks):
    """Count a class among the largest, which makes it full; no longer, where ``by`` is -1."""
    tally[FULL, c] = 1
    tally[HELD, -1] += by * tally[HELD, c]
    for block in range(blocks.shape[1]):
        blocks[-1, block] += by * blocks[c, block]
