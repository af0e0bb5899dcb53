"""The compiled state and decisions of Partitioning Reservoir Sampling, in small functions.

The state of a sampler lies in two flat arrays, because a compiled call costs time for every array
it is given; ``unpack`` names their parts. Everything that depends on the whole memory is kept up
as samples come and go: the counts, n_i^rho, the slots of each class and the labels of each slot.

All of it is in one file since numba's cache looks at the file of the function that is called, and
would not notice a change in another file that was compiled into it.
"""

import math
from typing import NamedTuple

import numba
import numpy as np

TOLERANCE = 1e-9  # below this a surplus is none and two distances are equal: rounding, not data
FAR = math.exp(100.0)  # a sum of powers beyond FAR or 1 / FAR asks for a new reference

compiled = numba.njit(cache=True, error_model="numpy", forceinline=True)
in_any_order = numba.njit(cache=True, forceinline=True, fastmath={"reassoc"})  # vectorised sums


class State(NamedTuple):
    """Named parts of a sampler's two arrays; C classes, m slots."""

    totals: np.ndarray  # (3,) filled slots, classes observed, labels in memory (sum of l_i)
    class_freq: np.ndarray  # (C,) n_i
    class_counts: np.ndarray  # (C,) l_i
    appearance: np.ndarray  # (C,) observed classes, first seen first
    own: np.ndarray  # (C,) scratch: classes of the sample at hand
    slot_sizes: np.ndarray  # (m,) labels of each slot
    slot_labels: np.ndarray  # (m, C) its classes, the first slot_sizes of a row
    position: np.ndarray  # (m, C) where the slot stands in members[class]
    members: np.ndarray  # (C, m) slots of each class, the first class_counts of a row
    candidates: np.ndarray  # (m,) scratch: the set K, then the slots that may go
    reference: np.ndarray  # (1,) logarithm that is subtracted from every power
    power: np.ndarray  # (C,) n_i^rho / exp(reference), 0 before the class is observed
    partition: np.ndarray  # (C,) p_i
    surplus: np.ndarray  # (C,) delta_i
    probability: np.ndarray  # (C,) chance of each class to be shrunk
    base: np.ndarray  # (C + 1,) scratch: distance to target with b labels less
    distance: np.ndarray  # (m,) scratch: distance to target without each candidate


def allocate(size, num_classes):
    """Return the two arrays of an empty sampler, all zeros: int64 and float64."""
    integers = 3 + 4 * num_classes + 2 * size + 3 * size * num_classes
    floats = 2 + 5 * num_classes + size
    return np.zeros(integers, np.int64), np.zeros(floats, np.float64)


@compiled
def unpack(integers, floats, size, num_classes):
    """Name the parts of the two arrays; nothing is copied."""
    m, c = size, num_classes
    a, b = 3 + 4 * c, 3 + 4 * c + 2 * m
    return State(
        integers[:3],
        integers[3 : 3 + c],
        integers[3 + c : 3 + 2 * c],
        integers[3 + 2 * c : 3 + 3 * c],
        integers[3 + 3 * c : a],
        integers[a : a + m],
        integers[b : b + m * c].reshape(m, c),
        integers[b + m * c : b + 2 * m * c].reshape(m, c),
        integers[b + 2 * m * c :].reshape(c, m),
        integers[a + m : b],
        floats[:1],
        floats[1 : 1 + c],
        floats[1 + c : 1 + 2 * c],
        floats[1 + 2 * c : 1 + 3 * c],
        floats[1 + 3 * c : 1 + 4 * c],
        floats[1 + 4 * c : 2 + 5 * c],
        floats[2 + 5 * c :],
    )


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
def observe(state, count, rho):
    """Count the sample at hand in n_i (Algorithm 1, line 5)."""
    for k in range(count):
        c = state.own[k]
        if state.class_freq[c] == 0:
            state.appearance[state.totals[1]] = c
            state.totals[1] += 1
        state.class_freq[c] += 1
        state.power[c] = math.exp(rho * math.log(state.class_freq[c]) - state.reference[0])


@compiled
def remove(state, slot):
    """Take the sample in ``slot`` out of the lists of its classes."""
    for j in range(state.slot_sizes[slot]):
        c = state.slot_labels[slot, j]
        state.class_counts[c] -= 1
        last = state.members[c, state.class_counts[c]]
        state.members[c, state.position[slot, c]] = last
        state.position[last, c] = state.position[slot, c]
    state.totals[2] -= state.slot_sizes[slot]


@compiled
def insert(state, slot, count):
    """Put the sample at hand into ``slot`` and into the lists of its classes."""
    for k in range(count):
        c = state.own[k]
        state.slot_labels[slot, k] = c
        state.position[slot, c] = state.class_counts[c]
        state.members[c, state.class_counts[c]] = slot
        state.class_counts[c] += 1
    state.slot_sizes[slot] = count
    state.totals[2] += count


@compiled
def total_power(state, rho, authors):
    """Return the denominator of Eq. (1), the reference moved where it would leave the floats."""
    gate = state.class_counts if authors else state.class_freq
    total = gated_sum(state.power, gate)
    if 1.0 / FAR < total < FAR:
        return total
    top = -np.inf
    for c in range(len(gate)):
        if gate[c] > 0:
            top = max(top, rho * math.log(state.class_freq[c]))
    state.reference[0] = top
    for c in range(len(gate)):
        if state.class_freq[c] > 0:
            state.power[c] = math.exp(rho * math.log(state.class_freq[c]) - top)
    return gated_sum(state.power, gate)


@in_any_order
def gated_sum(values, gate):
    """Return the sum of the values whose gate is above zero."""
    total = 0.0
    for c in range(len(values)):
        total += values[c] if gate[c] > 0 else 0.0
    return total


@in_any_order
def distance_to_target(class_counts, partition, held):
    """Return the sum of abs(l_i - p_i held)."""
    distance = 0.0
    for c in range(len(partition)):
        distance += abs(class_counts[c] - partition[c] * held)
    return distance


@compiled
def share(state, c, total, authors):
    """Return p_c, Eq. (1); the authors' is float32 and stays as it was without a sample."""
    if not authors:
        return state.power[c] / total
    if state.class_counts[c] > 0:
        return np.float64(np.float32(state.power[c] / total))
    return state.partition[c]


@compiled
def acceptance(state, count, total, size, authors):
    """Return the probability s that the sample at hand is taken in, Eq. (2)."""
    least = state.class_freq[state.own[0]]
    for k in range(1, count):
        least = min(least, state.class_freq[state.own[k]])
    s = 0.0
    weights = 0.0
    for k in range(count):
        c = state.own[k]
        n = state.class_freq[c]
        quota = size * share(state, c, total, authors)
        ratio = 1.0 if authors and n <= quota else quota / n
        weight = math.exp(least - n)
        s += weight * ratio
        weights += weight
    return min(1.0, s / weights)


@compiled
def weigh_classes(state, total, authors):
    """Write p_i, delta_i and the chance of each class to be shrunk, Eqs. (1), (3)."""
    power, counts = state.power, state.class_counts
    partition, surplus = state.partition, state.surplus
    held = state.totals[2]
    if authors:
        for c in range(len(partition)):
            partition[c] = share(state, c, total, authors)
            target = np.float32(partition[c]) * np.float32(held)
            gap = np.float64(np.float32(counts[c]) - target)
            surplus[c] = gap if counts[c] > 0 else 0.0
    else:
        for c in range(len(partition)):
            partition[c] = power[c] / total
            gap = counts[c] - partition[c] * held
            surplus[c] = gap if abs(gap) > TOLERANCE else 0.0
    class_probability(state, authors)


@compiled
def class_probability(state, authors):
    """Write softmax(delta_i) over the classes that may be shrunk."""
    surplus, counts, probability = state.surplus, state.class_counts, state.probability
    top = -np.inf
    for c in range(len(surplus)):
        if counts[c] > 0:
            top = max(top, surplus[c])
    total = 0.0
    for c in range(len(surplus)):
        weight = 0.0
        if counts[c] > 0:
            if authors or surplus[c] > 0.0:
                weight = math.exp(surplus[c] - top)
            elif top <= 0.0 and surplus[c] >= top - TOLERANCE:
                weight = 1.0
        probability[c] = weight
        total += weight
    for c in range(len(surplus)):
        probability[c] /= total


@compiled
def draw_class(probability, uniform):
    """Return the class at ``uniform`` in the cumulated probabilities."""
    chosen = -1
    reached = 0.0
    for c in range(len(probability)):
        if probability[c] > 0.0:
            chosen = c
            reached += probability[c]
            if uniform < reached:
                break
    return chosen


@compiled
def candidate_set(state, chosen):
    """Write the set K of a class into ``candidates``, Eq. (4); return its size.

    (not y).q is the sum of q less the sample's own labels with q = 1, so the largest is where a
    sample has fewest labels that are not in surplus.
    """
    count = 0
    fewest = len(state.surplus) + 1
    alone = 1 if state.surplus[chosen] <= 0.0 else 0
    for k in range(state.class_counts[chosen]):
        slot = state.members[chosen, k]
        scarce = alone
        if state.slot_sizes[slot] > 1:  # spare most slots the look at their labels, far in memory
            scarce = 0
            for j in range(state.slot_sizes[slot]):
                if state.surplus[state.slot_labels[slot, j]] <= 0.0:
                    scarce += 1
        if scarce < fewest:
            fewest = scarce
            count = 0
        if scarce == fewest:
            state.candidates[count] = slot
            count += 1
    return count


@compiled
def removal_distances(state, count, authors):
    """Write the distance of Eq. (5) without each candidate into ``distance``.

    Candidates with the chosen class alone, most of them, are all alike and computed once.
    """
    state.base[:] = -1.0
    alone = -1.0
    for k in range(count):
        slot = state.candidates[k]
        single = state.slot_sizes[slot] == 1
        if single and alone >= 0.0:
            state.distance[k] = alone
            continue
        distance = trial_distance(state, slot) if authors else removal_distance(state, slot)
        state.distance[k] = distance
        if single:
            alone = distance


@compiled
def removal_distance(state, slot):
    """Return the distance of Eq. (5) without a slot in the time of its own labels.

    Only the number of its labels matters to the other classes, so their sum is computed once for
    each number; the classes of the slot itself then differ by one sample.
    """
    size = state.slot_sizes[slot]
    rest = state.totals[2] - size
    if state.base[size] < 0.0:
        state.base[size] = distance_to_target(state.class_counts, state.partition, rest)
    distance = state.base[size]
    for j in range(size):
        c = state.slot_labels[slot, j]
        gap = state.class_counts[c] - state.partition[c] * rest
        distance += abs(gap - 1.0) - abs(gap)
    return max(distance, 0.0)


@compiled
def trial_distance(state, slot):
    """Return the authors' distance: float32, summed over classes still present, oldest first."""
    size = state.slot_sizes[slot]
    rest = np.float32(state.totals[2] - size)
    for j in range(size):
        state.class_counts[state.slot_labels[slot, j]] -= 1
    distance = np.float32(0.0)
    for k in range(state.totals[1]):
        c = state.appearance[k]
        if state.class_counts[c] > 0:
            target = np.float32(state.partition[c]) * rest
            distance += abs(np.float32(state.class_counts[c]) - target)
    for j in range(size):
        state.class_counts[state.slot_labels[slot, j]] += 1
    return np.float64(distance)


@compiled
def closest(state, count, size, authors):
    """Move the candidates that may go, Eq. (5), to the front; return how many there are."""
    if authors:
        best, least = state.candidates[0], np.float64(size)
        for k in range(1, count):
            best = min(best, state.candidates[k])
        for k in range(count):
            slot, distance = state.candidates[k], state.distance[k]
            if distance < least or (distance == least and distance < size and slot < best):
                best, least = slot, distance
        state.candidates[0] = best
        return 1
    least = state.distance[0]
    for k in range(1, count):
        least = min(least, state.distance[k])
    ties = 0
    for k in range(count):
        if state.distance[k] <= least + TOLERANCE:
            state.candidates[ties] = state.candidates[k]
            ties += 1
    return ties


@compiled
def sample_out(state, total, size, authors, uniform_class, uniform_tie):
    """Return the slot to overwrite (Sec. 3.4, sample-out)."""
    weigh_classes(state, total, authors)
    chosen = draw_class(state.probability, uniform_class)
    count = candidate_set(state, chosen)
    removal_distances(state, count, authors)
    ties = closest(state, count, size, authors)
    return state.candidates[int(uniform_tie * ties)]


@compiled
def place(integers, floats, labels, uniforms, slots, size, rho, authors):
    """Take the samples one by one and write the slot of each (Algorithm 1)."""
    state = unpack(integers, floats, size, labels.shape[1])
    for b in range(len(labels)):
        slots[b] = -1
        count = read_labels(state, labels[b])
        if count == 0:
            continue
        if not authors:
            observe(state, count, rho)
        if state.totals[0] < size:
            slots[b] = state.totals[0]
            state.totals[0] += 1
            insert(state, slots[b], count)
        else:
            total = total_power(state, rho, authors)
            if uniforms[b, 0] < acceptance(state, count, total, size, authors):
                slots[b] = sample_out(state, total, size, authors, uniforms[b, 1], uniforms[b, 2])
                remove(state, slots[b])
                insert(state, slots[b], count)
        if authors:
            observe(state, count, rho)
