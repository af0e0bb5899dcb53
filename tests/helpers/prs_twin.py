"""Partitioning Reservoir Sampling once more, from the equations, in dense numpy.

Slow and direct on purpose: nothing is kept up, every quantity is computed from the label matrix
of the memory, and each candidate is tried by deleting its row.
"""

import numpy as np


class Twin:
    """A PRS sampler that can also follow another one's choices."""

    def __init__(self, size, num_classes, seed=0, *, rho=0.0, variant="paper"):
        self.size, self.rho, self.variant = size, rho, variant
        self.memory = np.zeros((0, num_classes), bool)
        self.freq = np.zeros(num_classes, np.int64)
        self.order = []
        self.stale = np.zeros(num_classes, np.float32)
        self.rng = np.random.default_rng(seed)

    def place(self, labels):
        slots = np.full(len(labels), -1)
        for b, label in enumerate(labels):
            if label.any():
                slots[b] = self.choose(label)
                self.follow(label, slots[b])
        return slots

    def choose(self, label):
        if len(self.memory) < self.size:
            return len(self.memory)
        partition = self.partition(label)
        if self.rng.random() >= self.acceptance(label, partition):
            return -1
        surplus = self.surplus(partition)
        chance = self.class_probability(surplus)
        chosen = self.rng.choice(len(chance), p=chance)
        candidates = self.candidates(chosen, surplus)
        return self.rng.choice(self.leaving(candidates, self.distances(candidates, partition)))

    def follow(self, label, slot):
        """Put a sample where some sampler put it, and count it."""
        if slot == len(self.memory):
            self.memory = np.vstack([self.memory, label])
        elif slot >= 0:
            self.memory[slot] = label
        self.freq += label
        self.order += [c for c in np.flatnonzero(label) if c not in self.order]
        present = self.memory.any(0)
        power = self.freq[present].astype(float) ** self.rho
        self.stale[present] = power / power.sum()

    def counted(self, label):
        return self.freq + label if self.variant == "paper" else self.freq

    def partition(self, label):
        if self.variant == "authors":
            return self.stale
        n = self.counted(label).astype(float)
        power = np.zeros(len(n))
        power[n > 0] = n[n > 0] ** self.rho
        return power / power.sum()

    def weights(self, label):
        n = np.where(label, self.counted(label), np.inf).astype(float)
        weight = np.exp(n.min() - n)
        return weight / weight.sum()

    def scarce(self, label, surplus):
        known = self.counted(label) > 0 if self.variant == "paper" else self.memory.any(0)
        return (surplus <= 0) & known

    def acceptance(self, label, partition):
        n = self.counted(label)[label].astype(float)
        quota = self.size * partition[label].astype(float)
        weight = self.weights(label)[label]
        if self.variant == "authors":
            ratio = np.array([q / k if k > q else 1.0 for q, k in zip(quota, n, strict=True)])
        else:
            ratio = quota / n
        return min(1.0, float((weight * ratio).sum()))

    def surplus(self, partition):
        counts = self.memory.sum(0)
        if self.variant == "authors":
            delta = counts.astype(np.float32) - partition * np.float32(counts.sum())
            return np.where(counts > 0, delta, np.float32(0))
        delta = counts - partition * counts.sum()
        return np.where(np.abs(delta) <= 1e-9, 0.0, delta)

    def class_probability(self, surplus):
        present = self.memory.any(0)
        delta = surplus.astype(float)
        if self.variant == "authors":
            allowed = present
        elif (delta > 0).any():
            allowed = delta > 0
        else:
            allowed = present & (delta >= delta[present].max() - 1e-9)
            delta = np.zeros(len(delta))
        weight = np.where(allowed, np.exp(np.where(allowed, delta - delta[allowed].max(), 0)), 0)
        return weight / weight.sum()

    def candidates(self, chosen, surplus):
        q = surplus <= 0
        holders = np.flatnonzero(self.memory[:, chosen])
        score = (~self.memory[holders] & q).sum(1)
        return holders[score == score.max()]

    def distances(self, candidates, partition):
        result = []
        for k in candidates:
            counts = np.delete(self.memory, k, axis=0).sum(0)
            if self.variant == "authors":
                total, rest = np.float32(0), np.float32(counts.sum())
                for c in self.order:
                    if counts[c] > 0:
                        total += abs(np.float32(counts[c]) - np.float32(partition[c] * rest))
            else:
                total = np.abs(counts - partition * counts.sum()).sum()
            result.append(total)
        return np.array(result)

    def leaving(self, candidates, distances):
        if self.variant == "paper":
            return candidates[distances <= distances.min() + 1e-9]
        best, least = candidates[0], np.float32(self.size)
        for k, distance in zip(candidates, distances, strict=True):
            if distance < least:
                best, least = k, distance
        return np.array([best])
