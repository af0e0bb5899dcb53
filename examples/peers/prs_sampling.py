"""Partitioning Reservoir Sampling in one file, which needs only NumPy.

``PRSSampling`` has the same signature as Mammoth's selection functions. The buffers for
Avalanche and River in this folder also use it.
"""

import numpy as np

ROUNDING = 1e-9  # a smaller surplus is zero, a smaller difference of distances a tie


class PRSSampling:
    """Select samples so that the class shares in a memory stay close to their targets.

    The target share of class i is p_i = n_i^rho / sum_j n_j^rho, where n_i is the number
    of samples of the class in the stream. A sample may have several classes.

    Parameters
    ----------
    buffer_size : int
        Number of slots of the memory.
    rho : float
        Exponent of the target shares: 0 for equal shares, 1 for the shares in the stream.
    seed : int, optional
        Seed of all random decisions.

    Attributes
    ----------
    class_freq : int64 (C,)
        Samples of each class in the stream, n_i.
    stored : bool (buffer_size, C)
        Classes of the sample in each slot.

    References
    ----------
    Kim, Jeong and Kim, "Imbalanced Continual Learning with Partitioning Reservoir
    Sampling", ECCV 2020, Algorithm 1.
    """

    def __init__(self, buffer_size, rho=0.0, seed=None):
        self.buffer_size = buffer_size
        self.rho = rho
        self.rng = np.random.default_rng(seed)
        self.empty()

    def empty(self):
        """Reset the counts of the stream and the memory."""
        self.class_freq = np.zeros(0, dtype=np.int64)
        self.stored = np.zeros((self.buffer_size, 0), dtype=bool)

    def __call__(self, num_seen_examples, labels):
        """Return the slot in which to store the next sample, -1 for none.

        Parameters
        ----------
        num_seen_examples : int
            Number of samples before this one. At 0 the memory is empty.
        labels : int or array (C,)
            Class number of the sample, or a row of 0 and 1.
        """
        if num_seen_examples == 0:
            self.empty()
        y = self.read(labels)
        self.class_freq += y
        u = self.rng.random(3)
        if num_seen_examples < self.buffer_size:
            slot = num_seen_examples
        elif u[0] < self.acceptance(y):
            slot = self.find_slot(u[1], u[2])
        else:
            return -1
        self.stored[slot] = y
        return slot

    def read(self, labels):
        """Return the labels of a sample as a row, and make room for new classes."""
        labels = np.asarray(labels)
        classes = np.flatnonzero(labels) if labels.ndim else labels[None].astype(int)
        if len(classes) == 0:
            raise ValueError("expected at least one class per sample")
        new = max(labels.size if labels.ndim else classes[0] + 1, len(self.class_freq))
        new -= len(self.class_freq)
        self.class_freq = np.pad(self.class_freq, (0, new))
        self.stored = np.pad(self.stored, ((0, 0), (0, new)))
        return np.isin(np.arange(len(self.class_freq)), classes)

    def partition(self):
        """Return the target shares p, Eq. (1)."""
        n = self.class_freq
        return softmax(np.where(n > 0, self.rho * np.log(np.maximum(n, 1)), -np.inf))

    def acceptance(self, y):
        """Return the probability that a sample enters the full memory, Eq. (2)."""
        n = self.class_freq[y]
        quota = self.buffer_size * self.partition()[y]
        return (softmax(-n) * quota / n).sum()

    def find_slot(self, u_class, u_slot):
        """Return the slot to overwrite, Eqs. (3)-(5), from two uniform numbers."""
        p = self.partition()
        counts = self.stored.sum(axis=0)
        delta = counts - p * counts.sum()  # surplus of each class
        delta[np.abs(delta) <= ROUNDING] = 0
        logits = np.where(delta > 0, delta, -np.inf)
        if not (delta > 0).any():
            most = delta[counts > 0].max()
            logits = np.where((counts > 0) & (delta >= most - ROUNDING), 0, -np.inf)
        chance = softmax(logits)
        c = min(chance.cumsum().searchsorted(u_class, "right"), chance.nonzero()[0][-1])
        # samples of class c with the fewest labels of scarce classes
        members = np.flatnonzero(self.stored[:, c])
        scarce = (delta <= 0) & (self.class_freq > 0)
        lost = (self.stored[members] & scarce).sum(axis=1)
        members = members[lost == lost.min()]
        # among them, the samples whose removal brings the memory closest to its targets
        rest = counts - self.stored[members]  # (K, C)
        distance = np.abs(rest - p * rest.sum(axis=1, keepdims=True)).sum(axis=1)
        nearest = members[distance <= distance.min() + ROUNDING]
        return int(nearest[int(u_slot * len(nearest))])


def softmax(x):
    """Return e^x / sum e^x."""
    weight = np.exp(x - x.max())
    return weight / weight.sum()
