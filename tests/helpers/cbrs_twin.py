"""Class-balancing reservoir sampling once more, from its rules, in plain numpy."""

import numpy as np

from prslib.checks import generator_of


class Twin:
    """A CBRS sampler that recounts everything for every sample; it draws the same numbers."""

    def __init__(self, size, num_classes, seed=0):
        self.size = size
        self.memory = np.zeros((0, num_classes), bool)
        self.held = np.zeros(0, int)  # the class that each stored sample counts for
        self.seen = []  # the class that each sample of the stream counted for
        self.freq = np.zeros(num_classes, int)
        self.full = set()
        self.rng = generator_of(seed)

    def place(self, labels):
        slots = np.full(len(labels), -1)
        uniforms = self.rng.random((len(labels), 3))
        for b, label in enumerate(labels):
            if label.any():
                slots[b] = self.choose(label, *uniforms[b])
                self.store(label, slots[b])
        return slots

    def choose(self, label, tie, acceptance, victim):
        self.freq = self.freq + label
        own = np.flatnonzero(label)
        rarest = own[self.freq[own] == self.freq[own].min()]
        self.seen.append(rarest[int(tie * len(rarest))])
        if len(self.memory) < self.size:
            return len(self.memory)
        largest = self.largest()
        self.full |= set(largest)
        candidates = np.flatnonzero(np.isin(self.held, largest))
        if self.seen[-1] in self.full:
            candidates = np.flatnonzero(self.held == self.seen[-1])
            if acceptance >= len(candidates) / self.seen.count(self.seen[-1]):
                return -1
        return candidates[int(victim * len(candidates))]

    def largest(self):
        """Return every class that has the most samples in memory."""
        classes, counts = np.unique(self.held, return_counts=True)
        return classes[counts == counts.max()]

    def store(self, label, slot):
        if slot == len(self.memory):
            self.memory = np.vstack([self.memory, label])
            self.held = np.append(self.held, self.seen[-1])
        elif slot >= 0:
            self.memory[slot], self.held[slot] = label, self.seen[-1]
