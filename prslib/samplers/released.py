"""PRS as the authors' released code has it, ``variant="authors"``, in plain numpy.

Each function replaces that of the same name in prs.py. n_i is here without the sample at
hand, which the released code counts after it was placed. p_i, delta_i and the distances
are computed in float32.
"""

import numpy as np

from prslib.samplers import books, prs
from prslib.samplers.books import Array, State
from prslib.samplers.reference import TOLERANCE


@np.errstate(under="ignore")
def choose(sampler: prs.PRS, y: Array, u: Array) -> int:
    """Return the slot of a sample, -1 for none (Algorithm 1, lines 6 to 18)."""
    state = sampler.state
    n = state.class_freq
    counts = state.class_counts
    classes = np.flatnonzero(y)
    if len(sampler) < sampler.size:
        return len(sampler)
    p = sampler.partition = partition(n, sampler.rho, counts, sampler.partition)
    if u[0] >= acceptance(classes, n, p, sampler.size):
        return -1
    delta = surplus(counts, p)
    chance = class_probability(delta, counts)
    k = prs.candidates(state, prs.draw_class(chance, u[1]), prs.scarce(counts, delta))
    gaps = distances(state, k, p, sampler.appearance)
    return int(leaving(k, gaps, sampler.size)[0])


def partition(n: Array, rho: float, counts: Array, before: Array) -> Array:
    """Return p_i of the classes in memory, Eq. (1), and of others what it was before."""
    present = counts > 0
    p = before.copy()
    p[present] = prs.softmax(rho * np.log(n[present]))
    return p


def acceptance(classes: Array, n: Array, p: Array, size: int) -> float:
    """Return s, Eq. (2), each m_i / n_i cut at 1, which it is for a new class."""
    quota = size * p[classes].astype(float)
    ratio = np.minimum(quota / np.maximum(n[classes], 1), 1)
    ratio[n[classes] == 0] = 1
    return min(1.0, float((prs.weights(classes, n) * ratio).sum()))


def surplus(counts: Array, p: Array) -> Array:
    """Return delta_i of the classes in memory, Eq. (3)."""
    gap = np.float32(counts) - p * np.float32(counts.sum())
    gap[(counts == 0) | (abs(gap) <= TOLERANCE)] = 0
    return gap.astype(float)


def class_probability(delta: Array, counts: Array) -> Array:
    """Return softmax(delta_i) over all classes in memory."""
    return prs.softmax(np.where(counts > 0, delta, -np.inf))


def distances(state: State, k: Array, p: Array, appearance: Array) -> Array:
    """Return Eq. (5) without the classes that a removal empties, oldest class first."""
    counts = np.float32(state.class_counts - books.labels_of(state, k))  # (K, C)
    gaps = abs(counts - p * counts.sum(axis=1, keepdims=True))
    gaps[counts == 0] = 0
    # float32 sums depend on their order
    return gaps[:, appearance].cumsum(axis=1)[:, -1].astype(float)


def leaving(k: Array, gaps: Array, size: int) -> Array:
    """Return the lowest of the nearest slots of K, an array of one.

    A distance of m or more never wins. Where all are that far, the lowest slot goes.
    """
    bound = gaps.min() + TOLERANCE
    nearest = k[gaps <= bound] if bound < size else k
    return nearest[nearest == nearest.min()]
