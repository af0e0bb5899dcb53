"""Sample with class-balancing reservoirs: one in every class; the largest class gives way."""

import numba
import numpy as np

from prslib.samplers.base import Counted, LabelSampler, Seed, rarest

BLOCK = 256  # slots that are counted together, to find one of a class without a look at each


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

    def __init__(self, size: int, num_classes: int, seed: Seed):
        super().__init__(size, num_classes, seed)
        self._slot_class = np.full(self.size, -1)
        self._reservoirs = np.zeros((2, self.num_classes), np.int64)  # n_y, m_y
        self._blocks = np.zeros((self.num_classes, -(-self.size // BLOCK)), np.int32)  # m_y of each
        self._is_full = np.zeros(self.num_classes, np.bool_)

    @property
    def slot_class(self) -> np.ndarray:
        """The class that the sample in each slot counts for, -1 for none; int64 (size,), a copy."""
        return self._slot_class.copy()

    def _decide(self, labels: np.ndarray, uniforms: np.ndarray, slots: np.ndarray) -> None:
        counts = self._freq, self._held, *self._reservoirs
        state = self._labels, self._slot_class, *counts, self._blocks, self._is_full
        self._count = _place(labels, uniforms, slots, self._count, *state)


@numba.njit(cache=True)
def _place(
    labels, uniforms, slots, stored, memory, slot_class, freq, counts, seen, held, blocks, is_full
):
    """Take the samples one by one and write the slot of each; return the slots filled."""
    for b in range(len(labels)):
        slots[b] = -1
        row = labels[b]
        if not row.any():
            continue
        for c in range(len(row)):
            freq[c] += row[c]
        own = rarest(row, freq, uniforms[b, 0])
        seen[own] += 1
        slot = stored
        if stored < len(memory):
            stored += 1
        else:
            slot = _victim(own, uniforms[b], slot_class, seen, held, blocks, is_full)
            if slot < 0:
                continue
            held[slot_class[slot]] -= 1
            blocks[slot_class[slot], slot // BLOCK] -= 1
        slots[b] = slot
        slot_class[slot] = own
        held[own] += 1
        blocks[own, slot // BLOCK] += 1
        for c in range(len(row)):
            counts[c] += np.int64(row[c]) - np.int64(memory[slot, c])
            memory[slot, c] = row[c]
    return stored


@numba.njit(cache=True)
def _victim(own, uniforms, slot_class, seen, held, blocks, is_full):
    """Mark the largest classes as full; return the slot to overwrite, -1 to drop the sample."""
    largest = held.max()
    number, block = 0, 0  # of the samples that may go; where to look for them from
    for c in range(len(held)):
        if held[c] == largest:
            is_full[c] = True
            number += largest
    own_class_gives = is_full[own]
    if own_class_gives:
        if uniforms[1] * seen[own] >= held[own]:
            return -1
        number = held[own]
    chosen = int(uniforms[2] * number)
    while own_class_gives and chosen >= blocks[own, block]:
        chosen -= blocks[own, block]
        block += 1
    for slot in range(block * BLOCK, len(slot_class)):
        c = slot_class[slot]
        if (c == own) if own_class_gives else (held[c] == largest):
            if chosen == 0:
                return slot
            chosen -= 1
    return -1
