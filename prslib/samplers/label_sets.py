"""Index the samples of a memory by their distinct label sets."""

from bisect import bisect, bisect_left, insort
from collections.abc import Sequence
from itertools import chain, repeat

import numpy as np

NONE = -1  # no class, or no set; used as an index, it selects a final 0
FEW = 1000  # slots, which are sorted faster than searched


class LabelSets:
    """The label set of each slot, and the slots of each set.

    To a sampler that needs only labels, samples with the same labels are
    interchangeable. Such a sampler can therefore compare distinct label sets, of which
    a memory of 2,000 samples of COCOseq contains about 130. A set that is no longer in
    any slot is forgotten, and its number is reused.

    Parameters
    ----------
    size : int
        Number of slots.
    """

    def __init__(self, size: int):
        self.of_slot = np.full(size, NONE)  # number of the set in each slot
        self.numbers = {}  # number of each set, by its classes
        self.keys = []  # classes of each set
        self.slots = []  # slots of each set, ascending
        self.classes = np.full((8, 1), NONE)  # the keys as (S, W), filled by NONE
        self.width = np.zeros(8, np.int64)  # how many classes each set has
        self.of_class = {}  # sets with a class, as the keys of a dict to keep their order
        self.unused = []  # numbers of sets that were forgotten

    def put(self, classes: Sequence[int], slot: int) -> None:
        """Assign a label set to a free slot."""
        key = tuple(classes)
        number = self.numbers.get(key, NONE)
        if number == NONE:
            number = self._add(key)
        insort(self.slots[number], slot)
        self.of_slot[slot] = number

    def take(self, slot: int) -> Sequence[int]:
        """Free a slot and return the classes that it had."""
        number = self.of_slot.item(slot)
        if number == NONE:
            return ()
        slots = self.slots[number]
        del slots[bisect_left(slots, slot)]
        self.of_slot[slot] = NONE
        if not slots:
            self._forget(number)
        return self.keys[number]

    def resize(self, size: int) -> None:
        """Change the number of slots; removed slots must be free."""
        room = max(0, size - len(self.of_slot))
        self.of_slot = np.pad(self.of_slot[:size], (0, room), constant_values=NONE)

    def all(self) -> np.ndarray:
        """Return all sets, int64 (K,)."""
        return np.fromiter(self.numbers.values(), np.int64, len(self.numbers))

    def with_class(self, c: int) -> np.ndarray:
        """Return the sets that have class c, int64 (K,)."""
        sets = self.of_class.get(c, ())
        return np.fromiter(sets, np.int64, len(sets))

    def slots_of(self, sets: np.ndarray) -> list[list[int]]:
        """Return the slots of each given set, ascending."""
        return [self.slots[number] for number in sets.tolist()]

    def rows(self, sets: np.ndarray, num_classes: int) -> np.ndarray:
        """Return the labels of given sets, bool (K, C); NONE has no label."""
        rows = np.zeros((len(sets), num_classes), bool)
        classes = self.classes[sets]  # (K, W)
        classes[sets == NONE] = NONE
        row, column = np.nonzero(classes != NONE)
        rows[row, classes[row, column]] = True
        return rows

    def _add(self, classes: tuple[int, ...]) -> int:
        """Add a new set and return its number."""
        if self.unused:
            number = self.unused.pop()
        else:
            number = len(self.slots)
            self.slots.append([])
            self.keys.append(())
        more = len(self.classes) if number == len(self.classes) else 0
        wider = max(0, len(classes) - self.classes.shape[1])
        if more or wider:
            room = (0, more), (0, wider)
            self.classes = np.pad(self.classes, room, constant_values=NONE)
            self.width = np.pad(self.width, (0, more))
        self.classes[number] = NONE
        self.classes[number, : len(classes)] = classes
        self.width[number] = len(classes)
        self.numbers[classes] = number
        self.keys[number] = classes
        for c in classes:
            self.of_class.setdefault(c, {})[number] = None
        return number

    def _forget(self, number: int) -> None:
        """Forget a set without slots, whose number can then be reused."""
        classes = self.keys[number]
        del self.numbers[classes]
        for c in classes:
            del self.of_class[c][number]
        self.unused.append(number)


def draw_slot(lists: Sequence[list[int]], u: float) -> int:
    """Return the slot at u, in [0, 1), among the sorted slots of ascending lists."""
    total = sum(map(len, lists))
    n = int(u * total)
    if len(lists) == 1:
        return lists[0][n]
    if total <= FEW:
        return sorted(chain.from_iterable(lists))[n]
    end = 1 + max(slots[-1] for slots in lists)

    def count_up_to(slot: int) -> int:
        return sum(map(bisect, lists, repeat(slot)))

    return bisect(range(end), n, key=count_up_to)  # the first that n others precede
