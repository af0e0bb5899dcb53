"""Partitioning Reservoir Sampling, compiled. Read reference.py first.

The equations have the names of `ReferencePRS`'s methods and compute the same, in the
order of Algorithm 1. np.where is avoided: it takes a second to compile. What the
released code does otherwise is in released.py.
"""

from typing import ClassVar

import numpy as np

from prslib.checks import VARIANTS, Seed, expected, one_of
from prslib.samplers import books
from prslib.samplers.books import Array, Arrays, Batch, State
from prslib.samplers.compiling import compiled, entry
from prslib.samplers.reference import TOLERANCE, ReferencePRS


@compiled
def softmax(x: Array) -> Array:
    """Return e^(x_i) / sum_j e^(x_j), which is 0 for -inf."""
    weight = np.exp(x - x.max())  # neither overflows nor is 0 throughout
    return weight / weight.sum()


@compiled
def partition(n: Array, rho: float) -> Array:
    """Return p_i = n_i^rho / sum_j n_j^rho, Eq. (1); 0 if not observed."""
    if rho == 0.0:  # the logarithms take a third of the time of a rejected sample
        seen = (n > 0) * 1.0
        return seen / seen.sum()
    log = rho * np.log(np.maximum(n, 1))
    log[n == 0] = -np.inf
    return softmax(log)


@compiled
def weights(classes: Array, n: Array) -> Array:
    """Return w_i = e^(-n_i) / sum_j e^(-n_j), Eq. (2), of the classes with y_i = 1."""
    return softmax(-n[classes])


@compiled
def acceptance(classes: Array, n: Array, p: Array, size: int) -> float:
    """Return s = sum_i w_i m_i / n_i, Eq. (2), cut at 1; the quota m_i is m p_i."""
    ratio = size * p[classes] / n[classes]
    return min(1.0, (weights(classes, n) * ratio).sum())


@compiled
def surplus(counts: Array, p: Array) -> Array:
    """Return delta_i = l_i - p_i sum_j l_j, Eq. (3)."""
    delta = counts - p * counts.sum()
    delta[np.abs(delta) <= TOLERANCE] = 0
    return delta


@compiled
def class_probability(delta: Array, counts: Array) -> Array:
    """Return softmax(delta_i) over delta_i > 0; if none is, of the largest in memory."""
    largest = delta[counts > 0].max()
    # what is not 0 is above the tolerance
    bound = TOLERANCE if largest > 0.0 else largest - TOLERANCE
    chance = delta.copy()
    chance[(counts == 0) | (delta < bound)] = -np.inf
    return softmax(chance)


@compiled
def draw_class(chance: Array, u: float) -> int:
    """Return the class at u in the cumulated chances."""
    drawn = np.searchsorted(chance.cumsum(), u, side="right")
    last = chance.nonzero()[0][-1]  # the sum may fall short of 1
    return int(min(drawn, last))


@compiled
def scarce(observed: Array, delta: Array) -> Array:
    """Return q_i, the observed classes that are not above their target (Sec. 3.4)."""
    return (observed > 0) & (delta <= 0)


@compiled
def candidates(state: State, c: int, q: Array) -> Array:
    """Return K, the slots of Y, members of c, with the largest (not y).q, Eq. (4)."""
    members = books.members_of(state, c)
    number = np.zeros(len(members))  # y.q, least where (not y).q is largest
    for j, slot in enumerate(members):
        for column in range(books.label_count(state, slot)):
            number[j] += q[state.classes[slot, column]]
    return members[number <= number.min()]


@compiled
def distances(state: State, k: Array, p: Array) -> Array:
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
        if sums[b] < 0.0:
            sums[b] = np.abs(counts - p * rest).sum()
        result[j] = sums[b]
        for column in range(b):
            i = state.classes[slot, column]
            gap = counts[i] - p[i] * rest
            result[j] += abs(gap - 1.0) - abs(gap)
    return result


@compiled
def leaving(k: Array, gaps: Array) -> Array:
    """Return the slots of K nearest to the target, equally good to overwrite."""
    return k[gaps <= gaps.min() + TOLERANCE]


@compiled
def choose(state: State, classes: Array, u: Array, rho: float) -> int:
    """Return the slot of a sample, -1 for none (Algorithm 1, lines 6 to 18)."""
    size = len(state.classes)
    n = state.class_freq  # with the sample at hand
    counts = state.class_counts
    if state.filled[0] < size:  # line 6: the memory fills
        return state.filled[0]
    p = partition(n, rho)  # line 12
    if u[0] >= acceptance(classes, n, p, size):  # lines 14 and 15: sample-in
        return -1
    delta = surplus(counts, p)  # line 16: sample-out
    chance = class_probability(delta, counts)
    k = candidates(state, draw_class(chance, u[1]), scarce(n, delta))
    nearest = leaving(k, distances(state, k, p))
    return nearest[int(u[2] * len(nearest))]


@entry
def place(arrays: Arrays, begin: int, batch: Batch, rho: float) -> int:
    """Place a batch as `books.place` does."""
    return books.place(arrays, begin, batch, choose, (rho,))


class PRS(ReferencePRS):
    """Lead the memory's mix of classes to the target p_i ~ n_i^rho (Algorithm 1).

    Parameters
    ----------
    size, num_classes, seed
        As in `make_sampler`.
    rho : float
        Power of allocation: 0 asks for equal shares, 1 for the stream's own, Eq. (1).
    variant : {"paper", "authors"}
        The printed method, or the released code where that differs: `make_sampler` then
        makes a ``ReleasedPRS``.

    Raises
    ------
    ValueError
        If ``rho`` is not within a million of 0, or the variant unknown.
    TypeError
        If ``rho`` is not a number.

    Notes
    -----
    The decisions are compiled, and are those of `ReferencePRS`, whose methods are the
    equations. What inherits from this class and replaces one is not compiled.

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
    order they appeared; p itself is computed in float64 and rounded. This variant is not
    compiled: a sample takes up to a millisecond.

    Examples
    --------
    >>> stream = np.repeat(np.eye(3, dtype=bool), [900, 90, 10], axis=0)
    >>> stream = np.random.default_rng(0).permutation(stream)
    >>> sampler = PRS(size=30, num_classes=3, seed=0, rho=0.0)
    >>> _ = sampler.place(stream)
    >>> print(sampler.class_freq, sampler.class_counts)
    [900  90  10] [10 11  9]
    """

    _compiled = True
    variant: ClassVar[str] = "paper"

    def __init__(
        self,
        size: int,
        num_classes: int | None,
        seed: Seed,
        *,
        rho: float = 0.0,
        variant: str = "paper",
    ):
        super().__init__(size, num_classes, seed, rho=rho)
        if one_of("variant", variant, VARIANTS) != self.variant:
            what = f"variant {self.variant!r} of {type(self).__name__}"
            advice = "make_sampler('prs', ...) makes either variant"
            raise ValueError(expected(what, repr(variant), advice))

    def choose_batch(self, labels: Array, uniforms: Array) -> Array:
        """Return the slots of a batch, one sample after the other (Algorithm 1)."""
        return self._run(place, labels, uniforms, self.rho)
