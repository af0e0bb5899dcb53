"""PRS as the authors' released code has it, ``variant="authors"``, compiled.

A function with the name of one in prs.py takes its place. n_i is here without the
sample at hand, which the released code counts after it was placed. p_i, delta_i and the
distances are float32.
"""

import math

import numpy as np

from prslib.samplers import books, prs
from prslib.samplers.books import Array, Arrays, Batch, State
from prslib.samplers.compiling import compiled, entry
from prslib.samplers.reference import TOLERANCE


@compiled
def counted(state: State, classes: Array) -> Array:
    """Return n_i without the sample at hand."""
    n = state.class_freq.copy()
    for i in classes:
        n[i] -= 1
    return n


@compiled
def partition(n: Array, rho: float, counts: Array, p: Array) -> None:
    """Write p_i of the classes in memory, Eq. (1); one that left keeps its p_i."""
    log = np.full(len(n), -np.inf)
    for i in range(len(n)):
        if counts[i] > 0:
            log[i] = rho * math.log(n[i])
    share = prs.softmax(log)
    for i in range(len(n)):
        if counts[i] > 0:
            p[i] = share[i]


@compiled
def acceptance(classes: Array, n: Array, p: Array, size: int) -> float:
    """Return s, Eq. (2), each m_i / n_i cut at 1, which it is for a new class."""
    w = prs.weights(classes, n)
    s = 0.0
    for j, i in enumerate(classes):
        quota = size * np.float64(p[i])
        s += w[j] * (1.0 if n[i] <= quota else quota / n[i])
    return min(1.0, s)


@compiled
def surplus(counts: Array, p: Array) -> Array:
    """Return delta_i of the classes in memory, Eq. (3)."""
    labels = np.float32(counts.sum())
    delta = np.zeros(len(p))
    for i in range(len(p)):
        gap = np.float32(counts[i]) - p[i] * labels
        if counts[i] > 0 and abs(gap) > TOLERANCE:
            delta[i] = gap
    return delta


@compiled
def class_probability(delta: Array, counts: Array) -> Array:
    """Return softmax(delta_i) over all classes in memory."""
    allowed = np.full(len(delta), -np.inf)
    for i in range(len(delta)):
        if counts[i] > 0:
            allowed[i] = delta[i]
    return prs.softmax(allowed)


@compiled
def distances(state: State, k: Array, p: Array, appearance: Array) -> Array:
    """Return Eq. (5) without the classes that a removal empties, oldest class first."""
    result = np.zeros(len(k), np.float32)
    for j, slot in enumerate(k):
        b = books.label_count(state, slot)
        rest = np.float32(state.class_counts.sum() - b)
        for i in appearance:
            count = state.class_counts[i]
            for column in range(b):
                count -= state.classes[slot, column] == i
            if i >= 0 and count > 0:
                result[j] += abs(np.float32(count) - p[i] * rest)
    return result


@compiled
def leaving(k: Array, gaps: Array, size: int) -> Array:
    """Return the lowest of the nearest slots of K, an array of one.

    A distance of m or more never wins. Where all are that far, the lowest slot goes.
    """
    bound = gaps.min() + TOLERANCE
    if bound >= size:
        bound = np.inf
    nearest = k[gaps <= bound]
    return nearest[nearest == nearest.min()]


@compiled
def choose(
    state: State, classes: Array, u: Array, rho: float, p: Array, appearance: Array
) -> int:
    """Return the slot of a sample, -1 for none (Algorithm 1, lines 6 to 18)."""
    size = len(state.classes)
    n = counted(state, classes)
    counts = state.class_counts
    append_new(appearance, classes, n)
    if state.filled[0] < size:
        return state.filled[0]
    partition(n, rho, counts, p)
    if u[0] >= acceptance(classes, n, p, size):
        return -1
    delta = surplus(counts, p)
    chance = class_probability(delta, counts)
    k = prs.candidates(state, prs.draw_class(chance, u[1]), prs.scarce(counts, delta))
    return leaving(k, distances(state, k, p, appearance), size)[0]


@compiled
def append_new(appearance: Array, classes: Array, n: Array) -> None:
    """Append the classes that were not met before to the classes as they came."""
    for i in classes:
        if n[i] == 0:
            last = 0  # the first place that is free
            while appearance[last] >= 0:
                last += 1
            appearance[last] = i


@entry
def place(
    arrays: Arrays, begin: int, batch: Batch, rho: float, p: Array, appearance: Array
) -> int:
    """Place a batch as `books.place` does."""
    return books.place(arrays, begin, batch, choose, (rho, p, appearance))
