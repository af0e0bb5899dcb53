"""The compiled state and decisions of Partitioning Reservoir Sampling, in small functions.

The state of a sampler lies in two flat arrays, because a compiled call costs time for every array
it is given; ``unpack`` names their parts. Everything that depends on the whole memory is kept up
as samples come and go: the counts, n_i^rho, the slots of each class and the labels of each slot.
The lists take space in proportion to the labels held; ``enlarge`` gives them more.

All of it is in one file since numba's cache looks at the file of the function that is called, and
would not notice a change in another file that was compiled into it.
"""

import math
from typing import NamedTuple

import numba
import numpy as np
from numba.extending import intrinsic

TOLERANCE = 1e-9  # below this a surplus is none and two distances are equal: rounding, not data
FARTHEST = np.finfo(np.float64).max  # of all distances but infinity, which is outside K
FAR = math.exp(100.0)  # a sum of powers beyond FAR or 1 / FAR asks for a new reference

compiled = numba.njit(cache=True, error_model="numpy", forceinline=True)
# sums and maxima are vectorised if the order of the terms is free
in_any_order = numba.njit(cache=True, forceinline=True, fastmath={"reassoc", "nnan", "nsz"})


class State(NamedTuple):
    """Named parts of a sampler's two arrays; C classes, m slots, room for L labels a sample."""

    totals: np.ndarray  # (4,) filled slots, classes observed, labels in memory (sum of l_i), L
    class_freq: np.ndarray  # (C,) n_i
    class_counts: np.ndarray  # (C,) l_i
    appearance: np.ndarray  # (C,) observed classes, first seen first
    own: np.ndarray  # (C,) scratch: classes of the sample at hand
    rivals: np.ndarray  # (C,) scratch: classes that may be shrunk, ascending
    start: np.ndarray  # (C + 1,) where in members the row of a class begins and the next one's
    slot_sizes: np.ndarray  # (m,) labels of each slot
    crowd: np.ndarray  # (m,) scratch: where in its row a class has samples of several labels
    scarce: np.ndarray  # (m,) scratch: labels of each that are not in surplus
    slot_labels: np.ndarray  # int32 (m, L) its classes, the first slot_sizes of a row
    position: np.ndarray  # int32 (m, L) where in the row of each of them the slot stands
    members: np.ndarray  # int32 (any,) slots s of each class, ~s where s has several labels
    reference: np.ndarray  # (1,) logarithm that is subtracted from every power
    power: np.ndarray  # (C,) n_i^rho / exp(reference), 0 before the class is observed
    partition: np.ndarray  # (C,) p_i
    surplus: np.ndarray  # (C,) delta_i
    weight: np.ndarray  # (C,) scratch: w_i of the sample's own classes, times their sum
    probability: np.ndarray  # (C,) scratch: chance of each rival to be shrunk
    base: np.ndarray  # (C + 1,) scratch: distance to target with b labels less
    distance: np.ndarray  # (m,) scratch: distance to target without each of the crowd


def allocate(size, num_classes, width=1, members=0):
    """Return the two arrays of an empty sampler: int64, the end used as int32, and float64."""
    narrow = (2 * size * width + members + 1) // 2
    integers = np.zeros(5 + 6 * num_classes + 3 * size + narrow, np.int64)
    integers[3] = width
    return integers, np.zeros(2 + 6 * num_classes + size, np.float64)


def enlarge(integers, floats, size, num_classes, labels):
    """Return the integers with room for samples of so many labels, and for more members."""
    old = unpack.py_func(integers, floats, size, num_classes)
    width, counts = old.totals[3], old.class_counts
    room = 2 * counts + counts.sum() // num_classes + 4  # a new class soon has its share
    wider = max(width, min(2 * labels, num_classes))
    larger, _ = allocate(size, num_classes, wider, room.sum())
    new = unpack.py_func(larger, floats, size, num_classes)
    for was, now in zip(old[:8], new, strict=False):
        now[:] = was
    new.totals[3], new.start[1:] = wider, np.cumsum(room)
    new.slot_labels[:, :width], new.position[:, :width] = old.slot_labels, old.position
    for c, count in enumerate(counts):
        new.members[new.start[c] :][:count] = old.members[old.start[c] :][:count]
    return larger


@compiled
def unpack(integers, floats, size, num_classes):
    """Name the parts of the two arrays; nothing is copied."""
    m, c, width = size, num_classes, integers[3]
    a, b = 5 + 6 * c, m * width
    narrow = integers[a + 3 * m :].view(np.int32)
    return State(
        integers[:4],
        integers[4 : 4 + c],
        integers[4 + c : 4 + 2 * c],
        integers[4 + 2 * c : 4 + 3 * c],
        integers[4 + 3 * c : 4 + 4 * c],
        integers[4 + 4 * c : 4 + 5 * c],
        integers[4 + 5 * c : 5 + 6 * c],
        integers[a : a + m],
        integers[a + m : a + 2 * m],
        integers[a + 2 * m : a + 3 * m],
        narrow[:b].reshape(m, width),
        narrow[b : 2 * b].reshape(m, width),
        narrow[2 * b :],
        floats[:1],
        floats[1 : 1 + c],
        floats[1 + c : 1 + 2 * c],
        floats[1 + 2 * c : 1 + 3 * c],
        floats[1 + 3 * c : 1 + 4 * c],
        floats[1 + 4 * c : 1 + 5 * c],
        floats[1 + 5 * c : 2 + 6 * c],
        floats[2 + 6 * c :],
    )


@intrinsic
def borrowed(typing_context, array):
    """Return an array without its owner, so that no use of it is counted."""
    # numba counts the users of every array of a State anew in each function that is given one,
    # which takes longer than the work done there. Whoever calls ``place`` keeps the owner alive.

    def generate(context, builder, signature, arguments):
        value = context.make_array(array)(context, builder, arguments[0])
        value.meminfo = value.meminfo.type(None)  # a null pointer
        return value._getvalue()

    return array(array), generate


@compiled
def read_labels(state, row):
    """Write the classes of a multi-hot row into ``own``; return how many."""
    count = 0
    for c in range(len(row)):
        state.own[count] = c
        count += row[c]
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
def slot_at(state, c, k):
    """Return the slot of the k-th member of a class."""
    member = state.members[state.start[c] + k]
    return member if member >= 0 else ~member


@compiled
def has_room(state, count):
    """Return whether the lists take one more sample of the classes at hand."""
    enough = count <= state.totals[3]
    for k in range(count):
        c = state.own[k]
        enough &= state.start[c] + state.class_counts[c] < state.start[c + 1]
    return enough


@compiled
def remove(state, slot):
    """Take the sample in ``slot`` out of the lists of its classes."""
    for j in range(state.slot_sizes[slot]):
        c, place = state.slot_labels[slot, j], state.position[slot, j]
        state.class_counts[c] -= 1
        last = slot_at(state, c, state.class_counts[c])
        k = 0
        while state.slot_labels[last, k] != c:
            k += 1
        state.position[last, k] = place
        first = state.start[c]
        state.members[first + place] = state.members[first + state.class_counts[c]]
    state.totals[2] -= state.slot_sizes[slot]


@compiled
def insert(state, slot, count):
    """Put the sample at hand into ``slot`` and into the lists of its classes."""
    for k in range(count):
        c = state.own[k]
        state.slot_labels[slot, k] = c
        state.position[slot, k] = state.class_counts[c]
        state.members[state.start[c] + state.class_counts[c]] = slot if count == 1 else ~slot
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
def largest(values):
    """Return the largest value."""
    top = values[0]
    for k in range(1, len(values)):
        top = values[k] if values[k] > top else top
    return top


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
        state.weight[k] = math.exp(least - n)
        s += state.weight[k] * ratio
        weights += state.weight[k]
    return min(1.0, s / weights)


@compiled
def weigh_classes(state, total, authors):
    """Write p_i and delta_i, Eqs. (1), (3), and who may be shrunk; return how many classes may."""
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
    return class_probability(state, authors)


@compiled
def class_probability(state, authors):
    """Write the classes that may be shrunk, ascending, and softmax(delta_i) of each."""
    surplus, counts = state.surplus, state.class_counts
    rivals, probability = state.rivals, state.probability
    count = 0
    for c in range(len(surplus)):  # without a branch: which are above zero is hard to predict
        rivals[count] = c
        count += counts[c] > 0 if authors else surplus[c] > 0.0
    if count == 0:
        return largest_deficits(state)
    for k in range(count):
        probability[k] = surplus[rivals[k]]
    top = largest(probability[:count])
    total = 0.0
    for k in range(count):
        probability[k] = math.exp(probability[k] - top)
        total += probability[k]
    for k in range(count):
        probability[k] /= total
    return count


@compiled
def largest_deficits(state):
    """Write the classes in memory with the largest delta_i, where none is above its target."""
    top = -np.inf
    for c in range(len(state.surplus)):
        if state.class_counts[c] > 0:
            top = max(top, state.surplus[c])
    count = 0
    for c in range(len(state.surplus)):
        if state.class_counts[c] > 0 and state.surplus[c] >= top - TOLERANCE:
            state.rivals[count] = c
            count += 1
    state.probability[:count] = 1.0 / count
    return count


@compiled
def draw_class(state, count, uniform):
    """Return the class at ``uniform`` in the cumulated probabilities."""
    last = 0
    reached = 0.0
    for k in range(count):
        if state.probability[k] > 0.0:
            last = k
        reached += state.probability[k]
        if uniform < reached:
            break
    return state.rivals[last]


@compiled
def removal_distances(state, chosen, authors):
    """Find the distances of Eq. (5) in K; return the size of the crowd and the others' distance."""
    # Outside the set K of Eq. (4) they are infinite: (not y).q is largest where a sample has fewest
    # labels that are not in surplus. Most samples have the chosen class alone and share one
    # distance; the crowd are those of several labels.
    first, count = state.start[chosen], 0
    for k in range(state.class_counts[chosen]):  # without a branch: a row has them in any order
        state.crowd[count] = k
        count += state.members[first + k] < 0
    singles = state.class_counts[chosen] - count
    fewest = len(state.surplus) + 1
    scarce_alone = fewest
    if singles > 0:
        fewest = scarce_alone = 1 if state.surplus[chosen] <= 0.0 else 0
    for k in range(count):
        slot = ~state.members[first + state.crowd[k]]
        scarce = 0
        for j in range(state.slot_sizes[slot]):
            scarce += state.surplus[state.slot_labels[slot, j]] <= 0.0
        state.scarce[k] = scarce
        fewest = min(fewest, scarce)
    state.base[:] = -1.0
    for k in range(count):
        state.distance[k] = np.inf
        if state.scarce[k] == fewest:
            slot = ~state.members[first + state.crowd[k]]
            state.distance[k] = removal_distance(state, slot, authors)
    alone = np.inf
    if scarce_alone == fewest:
        k = 0
        while k < count and state.crowd[k] == k:
            k += 1
        alone = removal_distance(state, state.members[first + k], authors)
    return count, alone


@compiled
def removal_distance(state, slot, authors):
    """Return the distance of Eq. (5) without a slot in the time of its own labels."""
    # Only the number of its labels matters to the other classes, so their sum is computed once for
    # each number; the classes of the slot itself then differ by one sample.
    if authors:
        return trial_distance(state, slot)
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
def largest_to_leave(state, count, alone, size, authors):
    """Return the distance up to which a member of K may go, Eq. (5)."""
    least = alone
    for k in range(count):
        least = min(least, state.distance[k])
    if not authors:
        return least + TOLERANCE
    return least if least < size else FARTHEST


@compiled
def leaving(state, chosen, count, alone, bound, uniform):
    """Return the slot at ``uniform`` among those of K that may go, in the order of ``members``."""
    ties = state.class_counts[chosen] - count if alone <= bound else 0
    for k in range(count):
        ties += state.distance[k] <= bound
    index = int(uniform * ties)
    if alone <= bound:  # all but some of the crowd may go: step over these
        for k in range(count):
            index += state.distance[k] > bound and state.crowd[k] <= index
        return slot_at(state, chosen, index)
    for k in range(count):
        if state.distance[k] <= bound:
            if index == 0:
                return slot_at(state, chosen, state.crowd[k])
            index -= 1
    return -1


@compiled
def lowest_leaving(state, chosen, count, alone, bound):
    """Return the lowest slot among those of K that may go, as the authors' code does."""
    lowest = len(state.slot_sizes)
    for k in range(state.class_counts[chosen]):
        slot = state.members[state.start[chosen] + k]
        if slot >= 0 and alone <= bound:
            lowest = min(lowest, slot)
    for k in range(count):
        if state.distance[k] <= bound:
            lowest = min(lowest, slot_at(state, chosen, state.crowd[k]))
    return lowest


@compiled
def sample_out(state, total, size, authors, uniform_class, uniform_tie):
    """Return the slot to overwrite (Sec. 3.4, sample-out)."""
    rivals = weigh_classes(state, total, authors)
    chosen = draw_class(state, rivals, uniform_class)
    count, alone = removal_distances(state, chosen, authors)
    bound = largest_to_leave(state, count, alone, size, authors)
    if authors:
        return lowest_leaving(state, chosen, count, alone, bound)
    return leaving(state, chosen, count, alone, bound, uniform_tie)


@compiled
def place(integers, floats, labels, uniforms, slots, begin, size, rho, authors):
    """Take samples from ``begin`` on, write the slot of each; return the first without room."""
    state = unpack(borrowed(integers), borrowed(floats), size, labels.shape[1])
    labels = borrowed(labels)
    for b in range(begin, len(labels)):
        slots[b] = -1
        count = read_labels(state, labels[b])
        if count == 0:
            continue
        if not has_room(state, count):
            return b
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
    return len(labels)
