"""The compiled decisions of OCDM: join the batch, then one deletion after another.

With L = sum l_i, the labels in memory, the distance to the target p_i = n_i^rho / Z is

    KL(q || p) = (1 / L) sum_i l_i (log l_i - rho log n_i) - log L + log Z,

so that a deletion changes only the terms of the deleted sample's own labels. Candidates are kept
by label set: those of one set are interchangeable.
"""

import math
from typing import NamedTuple

import numba
import numpy as np

TOLERANCE = 1e-9  # two distances (times the labels in memory) are equal: rounding, not data
compiled = numba.njit(cache=True, error_model="numpy")


class State(NamedTuple):
    """The parts of a sampler; C classes, room for K candidates, those in memory and the batch."""

    totals: np.ndarray  # (2,) filled slots, rows used of the table of label sets
    class_freq: np.ndarray  # (C,) n_i
    class_counts: np.ndarray  # (C,) l_i
    set_of: np.ndarray  # (K,) label set of each candidate, slots first; -1 once deleted
    set_counts: np.ndarray  # (K,) candidates with each label set; a row with none is free
    set_sizes: np.ndarray  # (K,) labels of each set
    set_labels: np.ndarray  # (K, C) its classes, the first set_sizes of a row
    own: np.ndarray  # (C,) scratch: classes of the sample at hand
    loss: np.ndarray  # (C,) scratch: what the sum over i loses with one sample of the class
    offset: np.ndarray  # (C + 1,) scratch: -L log(1 - k / L) for k labels, NaN: not yet computed
    distance: np.ndarray  # (K,) scratch: distance without a candidate of each set


def allocate(candidates, num_classes):
    """Return the state of an empty sampler with room for a number of candidates."""
    shapes = [2, num_classes, num_classes, *[candidates] * 3, (candidates, num_classes)]
    integers = [np.zeros(shape, np.int64) for shape in [*shapes, num_classes]]
    floats = [np.zeros(length) for length in (num_classes, num_classes + 1, candidates)]
    return State(*integers, *floats)


def enlarge(state, candidates):
    """Return a copy of the state with room for more candidates."""
    larger = allocate(candidates, len(state.class_freq))
    for old, new in zip(state, larger, strict=True):
        new[: len(old)] = old
    return larger


@compiled
def read_labels(state, row):
    """Write the classes of a multi-hot row into ``own``; return how many."""
    count = 0
    for c in range(len(row)):
        if row[c]:
            state.own[count] = c
            count += 1
    return count


@compiled
def find_set(state, count):
    """Return the row of the label set at hand, a new one where the table has none."""
    free = state.totals[1]
    for s in range(state.totals[1]):
        if state.set_sizes[s] == count:
            same = True
            for j in range(count):
                if state.set_labels[s, j] != state.own[j]:
                    same = False
                    break
            if same:
                return s
        if state.set_counts[s] == 0:
            free = min(free, s)
    if free == state.totals[1]:
        state.totals[1] += 1
    state.set_sizes[free] = count
    state.set_labels[free, :count] = state.own[:count]
    return free


@compiled
def join(state, candidate, count):
    """Add the sample at hand to the candidates and to both tallies."""
    s = find_set(state, count)
    state.set_of[candidate] = s
    state.set_counts[s] += 1
    for j in range(count):
        state.class_freq[state.own[j]] += 1
        state.class_counts[state.own[j]] += 1


@compiled
def term(state, c, count, rho):
    """Return the term of a class in the sum, had it this many samples in memory."""
    if count == 0:
        return 0.0
    return count * (math.log(count) - rho * math.log(state.class_freq[c]))


@compiled
def weigh(state, c, rho):
    """Bring the loss of a class up to date; return its term."""
    count = state.class_counts[c]
    now = term(state, c, count, rho)
    if count > 0:
        state.loss[c] = now - term(state, c, count - 1, rho)
    return now


@compiled
def weigh_all(state, rho):
    """Bring the loss of every class up to date; return the sum of terms and L."""
    total, held = 0.0, 0
    for c in range(len(state.class_counts)):
        total += weigh(state, c, rho)
        held += state.class_counts[c]
    return total, held


@compiled
def distances(state, total, held):
    """Write the distance without a candidate of each set; return the least.

    It is given as L times its change against now, so that a tie means the same in any memory:
    with k labels less, L (k mean - loss) / (L - k) - L log(1 - k / L), the mean being sum / L.
    """
    mean, least = total / held, np.inf
    state.offset[:] = np.nan
    for s in range(state.totals[1]):
        if state.set_counts[s] == 0:
            state.distance[s] = np.inf
            continue
        size = state.set_sizes[s]
        if math.isnan(state.offset[size]):
            state.offset[size] = -held * math.log1p(-size / held)
        gain = size * mean
        for j in range(size):
            gain -= state.loss[state.set_labels[s, j]]
        state.distance[s] = gain * held / (held - size) + state.offset[size]
        least = min(least, state.distance[s])
    return least


@compiled
def draw_closest(state, least, joined, uniform):
    """Return a random one of the candidates with the least distance."""
    ties = 0
    for s in range(state.totals[1]):
        if state.distance[s] <= least + TOLERANCE:
            ties += state.set_counts[s]
    chosen = int(uniform * ties)
    for candidate in range(joined):
        s = state.set_of[candidate]
        if s >= 0 and state.distance[s] <= least + TOLERANCE:
            if chosen == 0:
                return candidate
            chosen -= 1
    return -1


@compiled
def delete_surplus(state, joined, size, rho, uniforms):
    """Delete candidates one at a time until only ``size`` are left."""
    total, held = weigh_all(state, rho)
    for k in range(joined - size):
        least = distances(state, total, held)
        candidate = draw_closest(state, least, joined, uniforms[k, 0])
        s = state.set_of[candidate]
        state.set_of[candidate] = -1
        state.set_counts[s] -= 1
        held -= state.set_sizes[s]
        for j in range(state.set_sizes[s]):
            c = state.set_labels[s, j]
            total -= state.loss[c]
            state.class_counts[c] -= 1
            weigh(state, c, rho)


@compiled
def settle(state, size, slots):
    """Move the candidates beyond the slots into those that came free; correct ``slots``."""
    hole = 0
    for b in range(len(slots)):
        candidate = slots[b]
        if candidate < size:
            continue
        slots[b] = -1
        if state.set_of[candidate] >= 0:
            while state.set_of[hole] >= 0:
                hole += 1
            state.set_of[hole] = state.set_of[candidate]
            slots[b] = hole


@compiled
def place(state, labels, uniforms, slots, size, rho):
    """Join the batch with the memory, delete what is too much, write the slot of each sample."""
    joined = state.totals[0]
    for b in range(len(labels)):
        slots[b] = -1
        count = read_labels(state, labels[b])
        if count > 0:
            slots[b] = joined
            join(state, joined, count)
            joined += 1
    if joined > size:
        delete_surplus(state, joined, size, rho, uniforms)
        settle(state, size, slots)
    state.totals[0] = min(joined, size)
