"""A second implementation of CBRS, written from its rules in plain numpy."""

import numpy as np

from prslib.samplers import Sampler


class Twin(Sampler):
    """A CBRS sampler that recounts everything for every sample; it draws the same numbers."""

    draws = 3  # rarest label, acceptance, slot

    def __init__(self, size, num_classes, seed=0):
        super().__init__(size, num_classes, seed)
        self.slot_class = np.full(size, -1)  # the class that a stored sample counts for
        self.counted = []  # the class that each sample of the stream counted for
        self.full = set()

    def choose(self, y, u):
        classes = np.flatnonzero(y)
        freq = self.class_freq[classes]
        rarest = classes[freq == freq.min()]
        self.counted.append(rarest[int(u[0] * len(rarest))])
        slot = len(self) if len(self) < self.size else self.overwrite(u)
        if slot >= 0:
            self.slot_class[slot] = self.counted[-1]
        return slot

    def overwrite(self, u):
        """Return the slot of the last sample in a full memory, -1 for none."""
        c = self.counted[-1]
        counts = np.bincount(self.slot_class)
        largest = np.flatnonzero(counts == counts.max())
        self.full |= set(largest)
        candidates = np.flatnonzero(np.isin(self.slot_class, largest))
        if c in self.full:
            candidates = np.flatnonzero(self.slot_class == c)
            if u[1] >= len(candidates) / self.counted.count(c):
                return -1
        return candidates[int(u[2] * len(candidates))]
