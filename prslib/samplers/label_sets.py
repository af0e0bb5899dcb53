"""Index the samples of a memory by their distinct label sets."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

NONE = -1  # no class, or no set; as an index, it selects the last entry, a 0


class LabelSets:
    """The label set of each slot.

    To a sampler that needs only labels, samples with the same labels are
    interchangeable. Such a sampler can therefore compare distinct label sets. A memory
    with 2,000 samples of COCOseq contains about 130 of them. A set that is no longer in
    any slot is forgotten, and its number is reused.

    Parameters
    ----------
    size : int
        Number of slots.
    """

    def __init__(self, size: int):
        self.of_slot = np.full(size, NONE)  # number of the set in each slot
        self.numbers = {}  # number of each set, by its classes
        self.classes = np.full((8, 1), NONE)  # of each set, (S, W), padded with NONE
        self.width = np.zeros(8, np.int64)  # how many classes each set has
        self.count = np.zeros(8, np.int64)  # how many slots each set has
        self.of_class = defaultdict(set)  # sets with each class

    def put(self, classes: Sequence[int], slot: int) -> None:
        """Assign a label set to a free slot."""
        number = self.numbers.get(tuple(classes))
        if number is None:
            number = self._add(classes)
        self.count[number] += 1
        self.of_slot[slot] = number

    def take(self, slot: int) -> Sequence[int]:
        """Free a slot and return the classes of its label set."""
        number = self.of_slot.item(slot)
        if number == NONE:
            return ()
        classes = self.classes[number, : self.width[number]].tolist()
        self.of_slot[slot] = NONE
        self.count[number] -= 1
        if self.count[number] == 0:
            del self.numbers[tuple(classes)]
            for c in classes:
                self.of_class[c].remove(number)
        return classes

    def resize(self, size: int) -> None:
        """Change the number of slots; removed slots must be free."""
        room = max(0, size - len(self.of_slot))
        self.of_slot = np.pad(self.of_slot[:size], (0, room), constant_values=NONE)

    def all(self) -> np.ndarray:
        """Return all sets, int64 (K,)."""
        return self.count.nonzero()[0]

    def with_class(self, c: int) -> np.ndarray:
        """Return the sets that have class c, int64 (K,)."""
        sets = self.of_class[c]
        return np.fromiter(sets, np.int64, len(sets))

    def slots_of(self, sets: np.ndarray) -> np.ndarray:
        """Return the slots of the given sets in ascending order, int64."""
        is_given = np.zeros(len(self.count) + 1, bool)  # the last is for NONE
        is_given[sets] = True
        return is_given[self.of_slot].nonzero()[0]

    def rows(self, sets: np.ndarray, num_classes: int) -> np.ndarray:
        """Return the labels of given sets, bool (K, C); NONE has no label."""
        rows = np.zeros((len(sets), num_classes), bool)
        classes = self.classes[sets]  # (K, W)
        classes[sets == NONE] = NONE
        row, column = np.nonzero(classes != NONE)
        rows[row, classes[row, column]] = True
        return rows

    def _add(self, classes: Sequence[int]) -> int:
        """Add a new set and return its number."""
        number = int(self.count.argmin())
        more = 0
        if self.count[number]:  # no number is free
            number = more = len(self.count)
        wider = max(0, len(classes) - self.classes.shape[1])
        if more or wider:
            room = (0, more), (0, wider)
            self.classes = np.pad(self.classes, room, constant_values=NONE)
            self.width = np.pad(self.width, (0, more))
            self.count = np.pad(self.count, (0, more))
        self.classes[number] = NONE
        self.classes[number, : len(classes)] = classes
        self.width[number] = len(classes)
        self.numbers[tuple(classes)] = number
        for c in classes:
            self.of_class[c].add(number)
        return number


def draw_slot(slots: np.ndarray, u: float) -> int:
    """Return the slot at fraction u (0 <= u < 1) of an array of slots."""
    return slots.item(int(u * len(slots)))
