"""Partitioning Reservoir Sampling on one page: plain numpy, equation by equation.

`ReferencePRS` is Algorithm 1 of the paper for readers, and the oracle of the tests:
`PRS`, which is compiled, gives every sample the same slot for the same seed. Each method
is one equation and computes it from the labels in memory. `prslib.conformance` checks
other implementations against it.
"""

import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from prslib.checks import Seed, power
from prslib.samplers.base import Sampler

if TYPE_CHECKING:
    from prslib.samplers.explain import Decision

# below this a surplus is none and two distances are equal: rounding, not data
TOLERANCE = 1e-9


class ReferencePRS(Sampler):
    """Lead the memory's mix of classes to p_i ~ n_i^rho, in numpy (Algorithm 1).

    Arguments are those of `make_sampler`, and `rho`, the power of allocation, Eq. (1).
    y is the label vector of the sample at hand, n_i the samples of class i in the
    stream, this one included, and l_i those in memory; all have the length C. A sample
    takes three uniform numbers u: the first accepts it, the second draws the class to
    shrink, the third draws one of the slots that are equally good to overwrite. `PRS`
    says what the paper leaves open and how it is settled.

    Examples
    --------
    >>> from prslib.samplers import PRS
    >>> stream = np.random.default_rng(0).random((500, 7)) < 0.2
    >>> plain = ReferencePRS(20, 7, seed=1, rho=0.5)
    >>> compiled = PRS(20, 7, seed=1, rho=0.5)
    >>> bool((plain.place(stream) == compiled.place(stream)).all())
    True
    """

    draws = 3  # acceptance, class, tie

    def __init__(
        self, size: int, num_classes: int | None, seed: Seed, *, rho: float = 0.0
    ):
        super().__init__(size, num_classes, seed)
        self.rho = power("rho", rho)

    def choose(self, y: np.ndarray, u: np.ndarray) -> int:
        """Return the slot of a sample, -1 for none (Algorithm 1, lines 6 to 18)."""
        if len(self) < self.size:  # line 6: the memory fills
            return len(self)
        p = self.partition(y)  # line 12
        if u[0] >= self.acceptance(y, p):  # lines 14 and 15, sample-in
            return -1
        delta = self.surplus(p)  # line 16, sample-out
        chance = self.class_probability(delta)
        k = self.candidates(self.draw_class(chance, u[1]), self.scarce(y, delta))
        leaving = self.leaving(k, self.distances(k, p))
        return int(leaving[int(u[2] * len(leaving))])

    def explain(self, label: Any) -> "Decision":
        """Show what would be decided if this sample came next (Eqs. (1)-(5)).

        Nothing changes.

        Parameters
        ----------
        label : bool (C,), or int, or list of int
            Labels of one sample: multi-hot, or its class numbers.

        Returns
        -------
        Decision
            For each class that may be shrunk, also the slots that may be overwritten.

        Raises
        ------
        TypeError, ValueError
            If ``label`` is no such labels, as for a batch.

        Examples
        --------
        >>> sampler = ReferencePRS(size=1, num_classes=2, seed=0)
        >>> sampler.explain(np.array([False, True])).acceptance
        1.0
        """
        from prslib.samplers.explain import explain

        sampler = copy.copy(self) if self._grows else self
        return explain(sampler, sampler._one_sample(label))

    def counted(self, y: np.ndarray) -> np.ndarray:
        """Return n_i with the sample at hand (line 5)."""
        return self.state.class_freq + y

    def partition(self, y: np.ndarray) -> np.ndarray:
        """Return p_i = n_i^rho / sum_j n_j^rho, Eq. (1); 0 if not observed."""
        n = self.counted(y)
        log = np.where(n > 0, self.rho * np.log(np.maximum(n, 1)), -np.inf)
        weight = np.exp(log - log.max())  # no rho overflows
        return weight / weight.sum()

    def weights(self, y: np.ndarray) -> np.ndarray:
        """Return w_i = y_i e^(-n_i) / sum_j y_j e^(-n_j), Eq. (2)."""
        n = np.where(y, self.counted(y), np.inf)
        weight = np.exp(n.min() - n)  # e^(-n) alone is 0 from n = 746
        return weight / weight.sum()

    def acceptance(self, y: np.ndarray, p: np.ndarray) -> float:
        """Return s = sum_i w_i m_i / n_i, Eq. (2), cut at 1; the quota m_i is m p_i."""
        ratio = self.size * p / np.maximum(self.counted(y), 1)
        return min(1.0, float((self.weights(y) * ratio).sum()))

    def surplus(self, p: np.ndarray) -> np.ndarray:
        """Return delta_i = l_i - p_i sum_j l_j, Eq. (3)."""
        delta = self.state.class_counts - p * self.state.class_counts.sum()
        return np.where(np.abs(delta) <= TOLERANCE, 0.0, delta)

    def class_probability(self, delta: np.ndarray) -> np.ndarray:
        """Return softmax(delta_i) over delta_i > 0; if none is, of the largest."""
        allowed, present = delta > 0, self.state.class_counts > 0
        if not allowed.any():
            allowed = present & (delta >= delta[present].max() - TOLERANCE)
            delta = np.zeros(len(delta))
        weight = np.exp(np.where(allowed, delta - delta[allowed].max(), -np.inf))
        return weight / weight.sum()

    def draw_class(self, chance: np.ndarray, u: float) -> int:
        """Return the class at u in the cumulated chances."""
        drawn = np.searchsorted(chance.cumsum(), u, side="right")
        last = chance.nonzero()[0][-1]  # the sum may fall short of 1
        return int(min(drawn, last))

    def scarce(self, y: np.ndarray, delta: np.ndarray) -> np.ndarray:
        """Return q_i, observed classes that are not above their target (Sec. 3.4)."""
        return (delta <= 0) & (self.counted(y) > 0)

    def candidates(self, c: int, q: np.ndarray) -> np.ndarray:
        """Return K, those slots of class c with the largest (not y).q, Eq. (4)."""
        members = self.members(c)  # Y
        score = (~self.labels_of(members) & q).sum(axis=1)
        return members[score == score.max()]

    def distances(self, k: np.ndarray, p: np.ndarray) -> np.ndarray:
        """Return sum_i abs(C_ki - p_i sum_l C_kl) for each k of K, Eq. (5)."""
        # (K, C): C_ki, the memory without k
        counts = self.state.class_counts - self.labels_of(k)
        return np.abs(counts - p * counts.sum(axis=1, keepdims=True)).sum(axis=1)

    def leaving(self, k: np.ndarray, distances: np.ndarray) -> np.ndarray:
        """Return the slots of K nearest to the target, equally good to overwrite."""
        return k[distances <= distances.min() + TOLERANCE]
