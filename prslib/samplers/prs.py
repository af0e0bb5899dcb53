"""Partitioning Reservoir Sampling, compiled. Read reference.py first.

Each function that has the name of a method of `ReferencePRS` computes the same, one
equation a function, in the order of Algorithm 1. Most are loops, which compile faster
than numpy's functions. ``authors`` is True where the released code is to be followed,
``variant="authors"`` of `PRS`; its p is float32. The class at the end hands a whole
batch to `place`, in place of a method ``choose`` a sample.
"""

import math
from typing import TYPE_CHECKING

import numpy as np

from prslib.checks import VARIANTS, Seed, bool_labels, one_of, power
from prslib.samplers import books
from prslib.samplers.base import Sampler
from prslib.samplers.compiling import compiled, entry, in_any_order
from prslib.samplers.reference import TOLERANCE

if TYPE_CHECKING:
    from prslib.samplers.explain import Decision


@compiled
def softmax(x):
    """Turn x_i into e^(x_i) / sum_j e^(x_j), which is 0 for -inf."""
    top = -np.inf
    for value in x:
        top = max(top, value)
    norm = 0.0
    for i in range(len(x)):
        x[i] = math.exp(x[i] - top)  # neither overflows nor is 0 throughout
        norm += x[i]
    for i in range(len(x)):
        x[i] /= norm


@compiled
def partition(p, log_power, observed):
    """Write p_i = n_i^rho / sum_j n_j^rho, Eq. (1), of the observed classes.

    For the authors these are the classes in memory; one that left keeps its p_i.
    """
    share = np.empty(len(p))
    for i in range(len(p)):
        share[i] = log_power[i] if observed[i] else -np.inf
    softmax(share)
    for i in range(len(p)):
        if observed[i]:
            p[i] = share[i]


@compiled
def weights(classes, n):
    """Return w_i = e^(-n_i) / sum_j e^(-n_j), Eq. (2), of the classes with y_i = 1."""
    w = np.empty(len(classes))
    for j, i in enumerate(classes):
        w[j] = -n[i]
    softmax(w)
    return w


@compiled
def acceptance(classes, n, p, size, authors):
    """Return s = sum_i w_i m_i / n_i, Eq. (2), cut at 1; the quota m_i is m p_i.

    The authors cut each m_i / n_i at 1, which it is for a class met for the first time.
    """
    w = weights(classes, n)
    s = 0.0
    for j, i in enumerate(classes):
        quota = size * np.float64(p[i])
        s += w[j] * (1.0 if authors and n[i] <= quota else quota / n[i])
    return min(1.0, s)


@compiled
def surplus(counts, p, authors):
    """Return delta_i = l_i - p_i sum_j l_j, Eq. (3); the authors: if in memory."""
    dtype = p.dtype.type  # float64, and float32 for the authors
    labels = dtype(counts.sum())
    delta = np.zeros(len(p))
    for i in range(len(p)):
        gap = dtype(counts[i]) - p[i] * labels
        if abs(gap) > TOLERANCE and (counts[i] > 0 or not authors):
            delta[i] = gap
    return delta


@compiled
def class_probability(delta, counts, authors):
    """Return softmax(delta_i) over delta_i > 0; if none is, of the largest in memory.

    The authors take the softmax over all classes in memory.
    """
    largest = -np.inf
    for i in range(len(delta)):
        if counts[i] > 0:
            largest = max(largest, delta[i])
    # what is not 0 is above the tolerance
    bound = TOLERANCE if largest > 0.0 else largest - TOLERANCE
    chance = np.empty(len(delta))
    for i in range(len(delta)):
        allowed = counts[i] > 0 and (authors or delta[i] >= bound)
        chance[i] = delta[i] if allowed else -np.inf
    softmax(chance)
    return chance


@compiled
def draw_class(chance, u):
    """Return the class at u in the cumulated chances."""
    drawn, reached = -1, 0.0
    for c in range(len(chance)):
        if chance[c] > 0.0 and reached <= u:
            reached += chance[c]
            drawn = c
    return drawn


@compiled
def scarce(observed, delta):
    """Return q_i, the observed classes that are not above their target (Sec. 3.4)."""
    q = np.empty(len(delta), np.bool_)
    for i in range(len(delta)):
        q[i] = observed[i] > 0 and delta[i] <= 0.0
    return q


@compiled
def candidates(state, c, q):
    """Return K, the slots of Y, members of c, with the largest (not y).q, Eq. (4)."""
    members = books.members_of(state, c)
    number = np.zeros(len(members))  # y.q, least where (not y).q is largest
    for j, slot in enumerate(members):
        for column in range(books.label_count(state, slot)):
            number[j] += q[state.classes[slot, column]]
    return members[number <= number.min()]


@compiled
def distances(state, k, p, appearance, authors):
    """Return sum_i abs(C_ki - p_i sum_l C_kl) for each k of K, Eq. (5)."""
    counts = state.class_counts
    labels = counts.sum()
    result = np.empty(len(k))
    # sum_i abs(l_i - p_i (L - b)) of all classes, L labels in memory and b of k, once for
    # each b; in the terms of the classes of k, l_i then becomes l_i - 1
    sums = np.full(state.classes.shape[1] + 1, -1.0)
    for j, slot in enumerate(k):
        b = books.label_count(state, slot)
        rest = labels - b
        if authors:
            result[j] = authors_distance(state, slot, b, p, rest, appearance)
            continue
        if sums[b] < 0.0:
            sums[b] = distance(counts, p, rest)
        result[j] = sums[b]
        for column in range(b):
            i = state.classes[slot, column]
            gap = counts[i] - p[i] * rest
            result[j] += abs(gap - 1.0) - abs(gap)
    return result


@in_any_order
def distance(counts, p, rest):
    """Return sum_i abs(l_i - p_i rest), several terms added at once."""
    result = 0.0
    for i in range(len(p)):
        result += abs(counts[i] - p[i] * rest)
    return result


@compiled
def authors_distance(state, slot, b, p, rest, appearance):
    """Return the distance in float32, oldest class first, without emptied classes."""
    result = np.float32(0.0)
    for i in appearance:
        count = state.class_counts[i]
        for column in range(b):
            count -= state.classes[slot, column] == i
        if i >= 0 and count > 0:
            result += abs(np.float32(count) - p[i] * np.float32(rest))
    return result


@compiled
def leaving(k, gaps, size, authors):
    """Return the slots of K that are nearest to the target, equally good to overwrite.

    The authors take the lowest. A distance of m or more never wins, and where all are
    that far the lowest slot of K goes.
    """
    bound = gaps.min() + TOLERANCE
    if not authors:
        return k[gaps <= bound]
    if bound >= size:
        bound = np.inf
    nearest = k[gaps <= bound]
    return nearest[nearest == nearest.min()]  # an array of one


@compiled
def choose(state, target, classes, u, authors):
    """Return the slot of a sample, -1 for none (Algorithm 1, lines 6 to 18)."""
    p, log_power, appearance = target
    size, counts = len(state.classes), state.class_counts
    if state.filled[0] < size:  # line 6: the memory fills
        return state.filled[0]
    n = state.class_freq
    observed = counts if authors else n
    partition(p, log_power, observed)  # line 12
    if u[0] >= acceptance(classes, n, p, size, authors):  # lines 14 and 15: sample-in
        return -1
    delta = surplus(counts, p, authors)  # line 16: sample-out
    c = draw_class(class_probability(delta, counts, authors), u[1])
    k = candidates(state, c, scarce(observed, delta))
    gaps = distances(state, k, p, appearance, authors)
    nearest = leaving(k, gaps, size, authors)
    return nearest[int(u[2] * len(nearest))]


@compiled
def observe(state, target, classes, rho):
    """Count a sample in n_i (line 5), and renew what follows from n_i."""
    _, log_power, appearance = target
    books.count(state, classes)
    for i in classes:
        log_power[i] = rho * math.log(state.class_freq[i])
        if state.class_freq[i] == 1:
            last = 0  # the first place that is free
            while appearance[last] >= 0:
                last += 1
            appearance[last] = i


@entry
def place(arrays, begin, labels, uniforms, slots, target, rho, authors):
    """Write the slots from ``begin`` on; return where there is no room, else -1."""
    state = books.state_of(arrays)
    scratch = np.empty(labels.shape[1] + 1, np.int64)
    for b in range(begin, len(labels)):  # line 4
        slots[b] = -1
        classes = books.list_classes(labels[b], scratch)
        if len(classes) > 0:
            if not books.has_room(state, classes):
                return b
            if not authors:
                observe(state, target, classes, rho)  # line 5
            slots[b] = choose(state, target, classes, uniforms[b], authors)
            if slots[b] >= 0:
                books.store(state, classes, slots[b])  # lines 9 and 18
            if authors:
                observe(state, target, classes, rho)
    return -1


class PRS(Sampler):
    """Lead the memory's mix of classes to the target p_i ~ n_i^rho (Algorithm 1).

    Parameters
    ----------
    size, num_classes, seed
        As in `make_sampler`.
    rho : float
        Power of allocation: 0 asks for equal shares, 1 for the stream's own, Eq. (1).
    variant : {"paper", "authors"}
        The printed method, or the released code where that differs.

    Raises
    ------
    ValueError
        If ``rho`` is not within a million of 0 or the variant unknown.
    TypeError
        If ``rho`` is not a number.

    Notes
    -----
    The paper leaves open, and ``variant="paper"`` settles so:

    - n_i counts the sample at hand, s is cut at 1, and e^(-n) is taken relative to the
      least n of the sample's labels, since it underflows from n = 746.
    - p_i is computed from logarithms with the largest subtracted: no ``rho`` overflows.
    - Where no delta_i is positive, the class to shrink is drawn uniformly from the
      classes in memory with the largest.
    - The slot to overwrite is drawn uniformly from the candidates of least distance.
      Most candidates share one label set, so ties decide most removals.
    - A delta within 1e-9 of zero is zero and distances within 1e-9 of the least are
      ties, so that rounding decides nothing.

    ``variant="authors"`` follows the released code instead: n_i is counted after the
    sample was placed; p_i runs over the classes in memory and stays as it was when a
    class leaves; each m_i / n_i is cut at 1 before it is weighed, and is 1 for a class
    met for the first time; every class in memory may be shrunk; a class that a trial
    removal empties leaves the sum of Eq. (5); of equal candidates the lowest slot goes;
    a distance of m or more never wins, and without a winner the first candidate goes.
    Its p, delta and distances are float32, the distance summed over the classes in the
    order they appeared; p itself is computed in float64 and rounded.

    Examples
    --------
    >>> stream = np.repeat(np.eye(3, dtype=bool), [900, 90, 10], axis=0)
    >>> stream = np.random.default_rng(0).permutation(stream)
    >>> sampler = PRS(size=30, num_classes=3, seed=0, rho=0.0)
    >>> _ = sampler.place(stream)
    >>> print(sampler.class_freq, sampler.class_counts)
    [900  90  10] [10 11  9]
    """

    draws = 3  # acceptance, class, tie

    def __init__(
        self,
        size: int,
        num_classes: int,
        seed: Seed,
        *,
        rho: float = 0.0,
        variant: str = "paper",
    ):
        super().__init__(size, num_classes, seed)
        self.rho = power("rho", rho)
        self.variant = one_of("variant", variant, VARIANTS)
        dtype = np.float32 if variant == "authors" else np.float64
        self.partition = np.zeros(self.num_classes, dtype)  # p_i of the last sample
        self.log_power = np.zeros(self.num_classes)  # log n_i^rho
        self.appearance = np.full(self.num_classes, -1)  # classes as they came, then -1

    def explain(self, label: np.ndarray) -> "Decision":
        """Show what would be decided if this sample came next (Eqs. (1)-(5)).

        Nothing changes. The quantities come from the functions that `place` runs.

        Parameters
        ----------
        label : bool (C,)
            Multi-hot labels of one sample.

        Returns
        -------
        Decision
            For each class that may be shrunk, also the slots that may be overwritten.

        Raises
        ------
        TypeError, ValueError
            If ``label`` is not boolean or not of shape (C,), as for a batch.

        Examples
        --------
        >>> sampler = PRS(size=1, num_classes=2, seed=0)
        >>> sampler.explain(np.array([False, True])).acceptance
        1.0
        """
        from prslib.samplers.explain import explain

        (y,) = bool_labels(np.asarray(label)[None], self.num_classes)
        return explain(self, y)

    def _decide(
        self, labels: np.ndarray, uniforms: np.ndarray, slots: np.ndarray
    ) -> None:
        target = self.partition, self.log_power, self.appearance
        authors = self.variant == "authors"
        self._run(place, labels, uniforms, slots, target, self.rho, authors)
