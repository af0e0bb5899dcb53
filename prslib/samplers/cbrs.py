"""Class-balancing reservoir sampling, with a reservoir for each class."""

from bisect import bisect, bisect_left, insort
from collections.abc import Mapping, Sequence
from itertools import chain, repeat
from typing import Any

import numpy as np

from prslib.checks import Seed
from prslib.samplers.base import Sampler, draw_rarest

FEW = 1000  # slots; up to this number, sorting is faster than searching


class CBRS(Sampler):
    """Class-balancing reservoir sampling (Chrysakis and Moens 2020).

    Until the memory is full, every sample is stored. From then on, a class that is or
    once was the largest in memory is called *full*. A sample of a class that is not
    full overwrites a random sample of a largest class. A sample of a full class y
    overwrites a random sample of this class with probability m_y / n_y, where m_y is
    the number of samples of class y in memory, and n_y is the number of samples of
    class y in the stream so far. Otherwise the sample is not stored.

    Parameters
    ----------
    size : int
        Capacity of the memory m, in samples.
    num_classes : int or None
        Number of classes C. If it is None, classes are added when they first occur.
    seed : int, SeedSequence or Generator
        Source of every random decision.
    unlabelled : {"drop", "class"}
        Whether samples without a label are dropped or form an additional class.

    Attributes
    ----------
    slot_class : int64 (m,)
        Class that the sample in each slot counts for, or -1 if the slot is free.
    class_seen : int64 (C + 1,)
        n_y, the number of samples in the stream so far that counted for each class. The
        last entry is for samples without a label.
    class_slots : int64 (C + 1,)
        m_y, the number of samples in memory that count for each class.
    is_full : bool (C + 1,)
        Whether each class is or once was the largest in a full memory.

    Notes
    -----
    In the paper, every sample has one label. In prslib, a sample with several labels
    counts for only one of them: the label that is rarest in the stream so far,
    including this sample. Ties are broken at random, and the choice remains the same
    while the sample is in memory. Because m_y, n_y, "largest" and "full" refer to this
    label, each class is a proper reservoir. In contrast, ``class_freq`` and
    ``class_counts`` count all labels, as in every sampler.

    The paper leaves some details open, which are settled as follows:

    - A class becomes full when it is a largest class and the memory has no free slot.
      Without the second condition, the first class of a stream would be full after one
      sample.
    - If several classes are the largest, all of them are full, and the sample to
      overwrite is drawn uniformly from all samples of these classes.
    - n_y includes the current sample, as in reservoir sampling.

    Examples
    --------
    >>> stream = np.repeat(np.eye(3, dtype=bool), [900, 90, 10], axis=0)
    >>> sampler = CBRS(size=30, num_classes=3, seed=0)
    >>> _ = sampler.place(np.random.default_rng(0).permutation(stream))
    >>> print(sampler.class_freq, sampler.class_counts)
    [900  90  10] [10 10 10]
    """

    draws = 3  # rarest label, acceptance, slot
    by_class = ("class_seen", "class_slots", "is_full")

    def __init__(
        self,
        size: int,
        num_classes: int | None,
        seed: Seed,
        *,
        unlabelled: str = "drop",
    ):
        super().__init__(size, num_classes, seed, unlabelled=unlabelled)
        self.slot_class = np.full(self.size, -1)
        self.class_seen = np.zeros(self.num_classes + 1, np.int64)
        self.class_slots = np.zeros(self.num_classes + 1, np.int64)
        self.is_full = np.zeros(self.num_classes + 1, bool)
        self._slots: dict[int, list[int]] = {}  # slots of each class, ascending
        self._largest: list[int] = []  # classes of a full memory; [] until needed

    def choose(self, y: np.ndarray, u: np.ndarray) -> int:
        """Return the slot of a sample or -1; count the sample for its rarest class."""
        c = draw_rarest(self.classes_of(y), self._freq, u[0])
        self.class_seen[c] += 1
        slot = len(self)
        if slot == self.size:
            slot = self._choose_in_full(c, u)
        if slot >= 0:
            self._move(slot, c)
        return slot

    def _choose_in_full(self, c: int, u: np.ndarray) -> int:
        """Return the slot for a sample of class c in a full memory, or -1 for none."""
        if not self._largest:
            largest = self.class_slots == self.class_slots.max()
            self.is_full |= largest
            self._largest = largest.nonzero()[0].tolist()
        gives = self._largest
        if self.is_full[c]:
            if u[1] * self.class_seen[c] >= self.class_slots[c]:
                return -1
            gives = [c]
        return draw_from_lists([self._slots[k] for k in gives], u[2])

    def _move(self, slot: int, c: int) -> None:
        """Let a slot count for class c instead of its previous class."""
        before = self.slot_class.item(slot)
        if before == c:
            return
        if before >= 0:
            slots = self._slots[before]
            del slots[bisect_left(slots, slot)]
            self.class_slots[before] -= 1
        insort(self._slots.setdefault(c, []), slot)
        self.class_slots[c] += 1
        self.slot_class[slot] = c
        self._largest = []

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state that `state_dict` returned; every sample keeps its slot."""
        super().load_state_dict(state)
        self._largest = []
        self._slots = {}
        for slot, c in enumerate(self.slot_class[: len(self)].tolist()):
            self._slots.setdefault(c, []).append(slot)


def draw_from_lists(lists: Sequence[list[int]], u: float) -> int:
    """Return the slot at fraction u (0 <= u < 1) of the sorted slots of sorted lists."""
    total = sum(map(len, lists))
    n = int(u * total)
    if len(lists) == 1:
        return lists[0][n]
    if total <= FEW:
        return sorted(chain.from_iterable(lists))[n]
    end = 1 + max(slots[-1] for slots in lists)

    def count_up_to(slot: int) -> int:
        return sum(map(bisect, lists, repeat(slot)))

    return bisect(range(end), n, key=count_up_to)  # the slot that n others precede
