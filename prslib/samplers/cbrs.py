"""Class-balancing reservoir sampling: a reservoir a class; the largest gives way."""

import numpy as np

from prslib.checks import Seed
from prslib.samplers import books
from prslib.samplers.base import Sampler
from prslib.samplers.books import Array, Arrays, Batch, State
from prslib.samplers.compiling import compiled, entry

# slot_class, class_seen, class_slots and is_full of `CBRS`
Reservoirs = tuple[Array, Array, Array, Array]


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
    class_slots : int64 (C,)
        m_y, samples in memory that count for each class.
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

    _compiled = True
    draws = 3  # rarest label, acceptance, slot
    by_class = ("class_seen", "class_slots", "is_full")

    def __init__(self, size: int, num_classes: int | None, seed: Seed):
        super().__init__(size, num_classes, seed)
        self.slot_class = np.full(self.size, -1)
        self.class_seen = np.zeros(self.num_classes, np.int64)
        self.is_full = np.zeros(self.num_classes, np.bool_)
        self.class_slots = np.zeros(self.num_classes, np.int64)

    def choose_batch(self, labels: Array, uniforms: Array) -> Array:
        """Return the slots of a batch, one sample after the other."""
        reservoirs = self.slot_class, self.class_seen, self.class_slots, self.is_full
        return self._run(place, labels, uniforms, reservoirs)


@entry
def place(arrays: Arrays, begin: int, batch: Batch, reservoirs: Reservoirs) -> int:
    """Place a batch as `books.place` does."""
    return books.place(arrays, begin, batch, choose, (reservoirs,))


@compiled
def choose(state: State, classes: Array, u: Array, reservoirs: Reservoirs) -> int:
    """Return the slot of a sample, -1 for none; count it for its rarest class."""
    slot_class, class_seen, class_slots, _ = reservoirs
    y = books.rarest(classes, state.class_freq, u[0])
    class_seen[y] += 1
    slot = state.filled[0]
    if slot == len(slot_class):
        slot = choose_in_full(y, u, reservoirs)
    if slot >= 0:
        if slot_class[slot] >= 0:
            class_slots[slot_class[slot]] -= 1
        slot_class[slot] = y
        class_slots[y] += 1
    return slot


@compiled
def choose_in_full(y: int, u: Array, reservoirs: Reservoirs) -> int:
    """Return the slot for a sample of class y in a full memory, -1 for none."""
    slot_class, class_seen, class_slots, is_full = reservoirs
    chosen = class_slots == class_slots.max()
    is_full |= chosen
    if is_full[y]:
        if u[1] * class_seen[y] >= class_slots[y]:
            return -1
        chosen = np.arange(len(is_full)) == y
    n = int(u[2] * class_slots[chosen].sum())  # the slot to draw, of the chosen classes
    slot = -1
    while n >= 0:
        slot += 1
        n -= chosen[slot_class[slot]]
    return slot
