"""Class-balancing reservoir sampling: a reservoir a class; the largest gives way."""

from typing import Any

import numpy as np

from prslib.samplers import books
from prslib.samplers.base import Sampler, Seed
from prslib.samplers.books import compiled, expect

BLOCK = 256  # slots that are counted together, so that one of a class is found quickly


class CBRS(Sampler):
    """Balance the classes, each with a reservoir (Chrysakis & Moens, ICML 2020).

    Until the memory is full every sample is stored. From then on a class that is, or
    ever was, the largest in memory is *full*. A sample of a class that is not full
    overwrites a random sample of a largest class; one of a full class takes the place
    of a random sample of its class with probability m_y / n_y, and is dropped
    otherwise.

    Parameters
    ----------
    size, num_classes, seed
        As in `make_sampler`.

    Attributes
    ----------
    slot_class : int64 (m,)
        The class that the sample in each slot counts for, -1 for none.
    class_seen : int64 (C,)
        n_y, samples of the stream that counted for each class.
    is_full : bool (C,)
        Classes that are or were the largest in a full memory.

    Notes
    -----
    The source has one label a sample. Of several labels a sample counts for the one
    that is rarest in the stream so far, the sample included; ties fall uniformly. It
    counts for that class as long as it is in memory, and m_y, n_y, "largest" and "full"
    are about these classes. Each class is then a proper reservoir. ``class_freq`` and
    ``class_counts`` count all labels, as in every sampler.

    Left open as well, and settled so:

    - A class becomes full by being a largest one when the memory has no free slot.
      Judged from the first sample on, the first class of a stream would be full with
      one sample.
    - Where several classes are the largest, all are full, and the sample to overwrite
      is drawn uniformly from the samples of all of them.
    - n_y counts the sample at hand, as in reservoir sampling.

    Examples
    --------
    >>> stream = np.repeat(np.eye(3, dtype=bool), [900, 90, 10], axis=0)
    >>> sampler = CBRS(size=30, num_classes=3, seed=0)
    >>> _ = sampler.place(np.random.default_rng(0).permutation(stream))
    >>> print(sampler.class_freq, sampler.class_counts)
    [900  90  10] [10 10 10]
    """

    draws = 3  # rarest label, acceptance, slot

    def __init__(self, size: int, num_classes: int, seed: Seed):
        super().__init__(size, num_classes, seed)
        self.slot_class = np.full(self.size, -1)
        self.class_seen = np.zeros(self.num_classes, np.int64)
        self.is_full = np.zeros(self.num_classes, np.bool_)
        self._tally = tally(self.slot_class, self.num_classes)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on as the sampler whose `state_dict` this is; see `Sampler`."""
        super().load_state_dict(state)
        self._tally = tally(self.slot_class, self.num_classes)

    def check_state(self, state: dict[str, Any]) -> None:
        """Refuse classes that the samples do not have, and counts that do not fit."""
        labels, slot_class = state["labels"], state["slot_class"]
        filled = labels.any(axis=1)
        inside = (slot_class >= 0) & (slot_class < self.num_classes)
        right = (inside == filled).all()
        right = right and labels[filled, slot_class[filled]].all()
        expect("slot_class", right, "a class of each sample, else -1", slot_class)
        counts = np.bincount(slot_class[filled], minlength=self.num_classes)
        seen = state["class_seen"]
        right = (counts <= seen).all() and (seen <= state["class_freq"]).all()
        right = right and seen.sum() == state["seen"]
        expect("class_seen", right, "counts that fit seen and class_freq", seen)

    def _decide(
        self, labels: np.ndarray, uniforms: np.ndarray, slots: np.ndarray
    ) -> None:
        mine = self.slot_class, self.class_seen, self.is_full, *self._tally
        self._run(place, labels, uniforms, slots, mine)


def tally(slot_class: np.ndarray, num_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return m_y, int64 (C,), and m_y in each block of slots, int64 (C, blocks)."""
    blocks = np.zeros((num_classes, -(-len(slot_class) // BLOCK)), np.int64)
    (filled,) = np.nonzero(slot_class >= 0)
    np.add.at(blocks, (slot_class[filled], filled // BLOCK), 1)
    return blocks.sum(axis=1), blocks


@compiled
def place(arrays, begin, labels, uniforms, slots, mine):
    """Write the slots from ``begin`` on; return where a class has no room, else -1."""
    state = books.State(*arrays)
    slot_class, class_seen, _, counts, blocks = mine
    scratch = np.empty(labels.shape[1] + 1, np.int64)
    for b in range(begin, len(labels)):
        classes = books.list_classes(labels[b], scratch)
        if len(classes) > 0:
            if not books.has_room(state, classes):
                return b
            u = uniforms[b]
            books.count(state, classes)
            own = books.rarest(classes, state.class_freq, u[0])
            class_seen[own] += 1
            slot = state.filled[0]
            if slot == len(slot_class):
                slot = choose(own, u, mine)
            if slot >= 0:
                before = slot_class[slot]
                if before >= 0:
                    counts[before] -= 1
                    blocks[before, slot // BLOCK] -= 1
                counts[own] += 1
                blocks[own, slot // BLOCK] += 1
                slot_class[slot] = own
                books.store(state, classes, slot)
            slots[b] = slot
    return -1


@compiled
def choose(own, u, mine):
    """Return the slot for a sample of class ``own`` in a full memory, -1 for none."""
    slot_class, class_seen, is_full, counts, blocks = mine
    largest = counts.max()
    gives_way = np.empty(len(counts), np.int64)
    number = 0
    for c in range(len(counts)):
        if counts[c] == largest:
            is_full[c] = True
            gives_way[number] = c
            number += 1
    if is_full[own]:
        if u[1] * class_seen[own] >= counts[own]:
            return -1
        gives_way[0] = own
        number = 1
    return slot_at(u[2], slot_class, gives_way[:number], counts, blocks)


@compiled
def slot_at(u, slot_class, classes, counts, blocks):
    """Return the slot at u among those of some classes, in ascending order."""
    total = 0
    for c in classes:
        total += counts[c]
    left = int(u * total)
    block = 0
    number = 0
    while True:
        for c in classes:
            number += blocks[c, block]
        if left < number:
            break
        left -= number
        number = 0
        block += 1
    is_chosen = np.zeros(len(blocks), np.bool_)
    for c in classes:
        is_chosen[c] = True
    slot = block * BLOCK
    while left > 0 or not is_chosen[slot_class[slot]]:
        left -= is_chosen[slot_class[slot]]
        slot += 1
    return slot
