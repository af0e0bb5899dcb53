"""The compiled state and decisions of Partitioning Reservoir Sampling, in small functions.

The state of a sampler lies in two flat arrays, because a compiled call costs time for every array
it is given; ``unpack`` names their parts. What depends on the whole memory is kept up as samples
come and go: the counts, n_i^rho, the slots of each class, the labels of each slot, and one byte a
label, its code, by which K is found without a look at every member of a class.

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

BLOCK = 512  # codes that are counted before one of them is looked for
EFFORT = 4  # codes that are read in the time of a look at one member

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
    rivals: np.ndarray  # (C,) scratch: classes that may be shrunk; then those near target
    above: np.ndarray  # (C,) 1 for a class with surplus when it was last computed, else 0
    start: np.ndarray  # (C + 1,) where in members the row of a class begins and the next one's
    slot_sizes: np.ndarray  # (m,) labels of each slot
    scarce: np.ndarray  # (m,) how many of them are not above
    apart: np.ndarray  # (m + 1,) scratch: where in the chosen class's row members are set apart
    slot_labels: np.ndarray  # int32 (m, L) its classes, the first slot_sizes of a row
    position: np.ndarray  # int32 (m, L) where in the row of each of them the slot stands
    members: np.ndarray  # int32 (any,) slots of each class
    codes: np.ndarray  # uint8 (any,) code of each member, see ``write_code``
    reference: np.ndarray  # (1,) logarithm that is subtracted from every power
    power: np.ndarray  # (C,) n_i^rho / exp(reference), 0 before the class is observed
    partition: np.ndarray  # (C,) p_i
    surplus: np.ndarray  # (C,) delta_i
    weight: np.ndarray  # (C,) scratch: w_i of the sample's own classes, times their sum
    probability: np.ndarray  # (C,) scratch: chance of each rival to be shrunk
    base: np.ndarray  # (C + 1,) scratch: distance to target with b labels less
    distance: np.ndarray  # (m,) scratch: distance to target without each of those apart


def allocate(size, num_classes, width=1, members=0):
    """Return the two arrays of an empty sampler: int64, the end used as others, and float64."""
    narrow = size * width + 5 * members // 8
    integers = np.zeros(6 + 7 * num_classes + 3 * size + narrow, np.int64)
    integers[3] = width
    return integers, np.zeros(2 + 6 * num_classes + size, np.float64)


@compiled
def unpack(integers, floats, size, num_classes):
    """Name the parts of the two arrays; nothing is copied."""
    m, c, width = size, num_classes, integers[3]
    a, b = 5 + 7 * c, m * width
    narrow = integers[a + 3 * m + 1 :].view(np.int32)
    room = 4 * (len(narrow) - 2 * b) // 5
    rows, shares = integers[4 : 4 + 6 * c].reshape(6, c), floats[1 : 1 + 5 * c].reshape(5, c)
    return State(
        integers[:4], rows[0], rows[1], rows[2], rows[3], rows[4], rows[5],
        integers[4 + 6 * c : a], integers[a : a + m], integers[a + m : a + 2 * m],
        integers[a + 2 * m : a + 3 * m + 1],
        narrow[:b].reshape(m, width), narrow[b : 2 * b].reshape(m, width),
        narrow[2 * b : 2 * b + room], narrow[2 * b + room :].view(np.uint8),
        floats[:1], shares[0], shares[1], shares[2], shares[3], shares[4],
        floats[1 + 5 * c : 2 + 6 * c], floats[2 + 6 * c :],
    )  # fmt: skip


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
    for c in state.own[:count]:
        if state.class_freq[c] == 0:
            state.appearance[state.totals[1]] = c
            state.totals[1] += 1
        state.class_freq[c] += 1
        state.power[c] = math.exp(rho * math.log(state.class_freq[c]) - state.reference[0])


@compiled
def has_room(state, count):
    """Return whether the lists take one more sample of the classes at hand."""
    enough = count <= state.totals[3]
    for c in state.own[:count]:
        enough &= state.start[c] + state.class_counts[c] < state.start[c + 1]
    return enough


@compiled
def remove(state, slot):
    """Take the sample in ``slot`` out of the lists of its classes."""
    for j in range(state.slot_sizes[slot]):
        c, place = state.slot_labels[slot, j], state.position[slot, j]
        state.class_counts[c] -= 1
        end = state.start[c] + state.class_counts[c]
        last, k = state.members[end], 0
        while state.slot_labels[last, k] != c:
            k += 1
        state.position[last, k] = place
        state.members[state.start[c] + place] = last
        state.codes[state.start[c] + place] = state.codes[end]
    state.totals[2] -= state.slot_sizes[slot]


@compiled
def insert(state, slot, count):
    """Put the sample at hand into ``slot`` and into the lists of its classes."""
    state.slot_sizes[slot] = state.scarce[slot] = count
    for k in range(count):
        c = state.own[k]
        state.slot_labels[slot, k] = c
        state.position[slot, k] = state.class_counts[c]
        state.members[state.start[c] + state.class_counts[c]] = slot
        state.class_counts[c] += 1
        state.scarce[slot] -= state.above[c]
    state.totals[2] += count
    write_code(state, slot)


@compiled
def write_code(state, slot):
    """Write the code of a sample into the rows of its classes."""
    # Of the members of a class, K of Eq. (4) are those with the fewest labels that are not in
    # surplus, which is the code / 32; of equals those with more labels have the lower code.
    # Samples of 31 and more labels share one, as those of 7 and more scarce labels do.
    code = 32 * min(state.scarce[slot], 7) + max(31 - state.slot_sizes[slot], 0)
    for j in range(state.slot_sizes[slot]):
        state.codes[state.start[state.slot_labels[slot, j]] + state.position[slot, j]] = code


@compiled
def follow_surplus(state):
    """Bring up to date which classes have a surplus, and what that means for their members."""
    crossed = 0
    for c in range(len(state.above)):
        crossed += (state.surplus[c] > 0.0) != state.above[c]
    for c in range(len(state.above) if crossed else 0):
        if (state.surplus[c] > 0.0) != state.above[c]:
            state.above[c] = 1 - state.above[c]
            for k in range(state.start[c], state.start[c] + state.class_counts[c]):
                state.scarce[state.members[k]] += 1 - 2 * state.above[c]
                write_code(state, state.members[k])


@compiled
def total_power(state, rho, authors):
    """Return the denominator of Eq. (1), the reference moved where it would leave the floats."""
    gate = state.class_counts if authors else state.class_freq
    total = gated_sum(state.power, gate)
    if 1.0 / FAR < total < FAR:
        return total
    for c in range(len(gate)):
        if state.class_freq[c] > 0:
            state.power[c] = rho * math.log(state.class_freq[c])
    state.reference[0] = highest(state.power, gate)
    for c in range(len(gate)):
        if state.class_freq[c] > 0:
            state.power[c] = math.exp(state.power[c] - state.reference[0])
    return gated_sum(state.power, gate)


@in_any_order
def gated_sum(values, gate):
    """Return the sum of the values whose gate is above zero."""
    total = 0.0
    for c in range(len(values)):
        total += values[c] if gate[c] > 0 else 0.0
    return total


@in_any_order
def highest(values, gate):
    """Return the largest value whose gate is above zero."""
    top = -np.inf
    for c in range(len(values)):
        top = values[c] if gate[c] > 0 and values[c] > top else top
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
    s, weights = 0.0, 0.0
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
    follow_surplus(state)
    return class_probability(state, authors)


@compiled
def class_probability(state, authors):
    """Write the classes that may be shrunk, ascending, and softmax(delta_i) of each."""
    # Where no class is above its target, those in memory with the largest delta_i may be.
    surplus, counts = state.surplus, state.class_counts
    rivals, probability = state.rivals, state.probability
    top = highest(surplus, counts)
    bound = -np.inf if authors else min(top - TOLERANCE, TOLERANCE)
    count, total = 0, 0.0
    for c in range(len(surplus)):  # without a branch: which are above is hard to predict
        rivals[count] = c
        count += (counts[c] > 0) & (surplus[c] >= bound)
    for k in range(count):
        gap = surplus[rivals[k]] - top if authors or top > 0.0 else 0.0
        probability[k] = math.exp(gap) if gap > -750.0 else 0.0
        total += probability[k]
    for k in range(count):
        probability[k] /= total
    return count


@compiled
def draw_class(state, count, uniform):
    """Return the class at ``uniform`` in the cumulated probabilities."""
    last, reached = 0, 0.0
    for k in range(count):
        last = k if state.probability[k] > 0.0 else last
        reached += state.probability[k]
        if uniform < reached:
            break
    return state.rivals[last]


@in_any_order
def number_of(codes, code):
    """Return how many codes are equal to one."""
    count, narrow = 0, np.uint8(code)  # many are compared at once
    for k in range(len(codes)):
        count += codes[k] == narrow
    return count


@compiled
def nth(codes, code, index):
    """Return where a code is found the index-th time, from 0."""
    k, found = 0, 0
    while index >= found:  # by whole blocks, as far as that goes
        index, k = index - found, k + BLOCK
        found = number_of(codes[k - BLOCK : k], code)
    k -= BLOCK
    while index > 0 or codes[k] != code:
        index -= codes[k] == code
        k += 1
    return k


@compiled
def set_apart(state, chosen, codes, low, alone):
    """Take members whose code misleads out of the codes; return how many to weigh, and of all."""
    # A label less changes abs(l_i - p_i held) by 1, to either side, unless the class is near its
    # target. Without such labels equal codes mean equal distances, and the lowest the least: the
    # more labels in surplus leave, the better. A label near from above makes a distance larger.
    near, weighed, number, effort, most = 0, 0, 0, 0, state.totals[3]
    for c in range(0 if alone else len(state.surplus)):  # without a branch
        gap, p = state.surplus[c], state.partition[c]
        is_near = (gap + p < 1.0) if gap > 0.0 else (gap + p * most > 0.0)
        state.rivals[near] = c
        near += is_near and c != chosen
        effort += is_near * state.class_counts[c]
    if not alone and effort <= EFFORT * len(codes):
        for i in range(2 * near):
            c = state.rivals[i % near]
            gap, p = state.surplus[c], state.partition[c]
            if (gap > 0.0 and gap + p * most < 1.0 - TOLERANCE) != (i >= near):
                continue  # those whose label makes the distance larger come last
            for k in range(state.start[c], state.start[c] + state.class_counts[c]):
                slot, j = state.members[k], 0
                if state.codes[k] == low if i >= near else state.codes[k] >> 5 == low >> 5:
                    while j < state.slot_sizes[slot] and state.slot_labels[slot, j] != chosen:
                        j += 1
                    if j < state.slot_sizes[slot] and codes[state.position[slot, j]] < 255:
                        state.apart[number] = state.position[slot, j]
                        codes[state.position[slot, j]] = 255
                        number += 1
            weighed = number if i < near else weighed
        if number == 0 or codes.min() == low:
            return weighed, number
    for k in range(len(codes)):  # all of K, but those of one label
        state.apart[number] = k
        number += codes[k] >> 5 == low >> 5 and codes[k] & 31 != 30
    for k in range(number):
        codes[state.apart[k]] = 255
    return number, number


@compiled
def sample_out(state, total, size, authors, uniform_class, uniform_tie):
    """Return the slot to overwrite, of those that may go in the order of ``members`` (Sec. 3.4)."""
    chosen = draw_class(state, weigh_classes(state, total, authors), uniform_class)
    first = state.start[chosen]
    members = state.members[first : first + state.class_counts[chosen]]
    codes = state.codes[first : first + state.class_counts[chosen]]
    low = np.int64(codes.min())
    group, fewest, alike = low >> 5, len(state.surplus), np.inf
    weighed, number = set_apart(state, chosen, codes, low, authors or group == 7 or low & 31 == 0)
    for k in range(weighed):
        fewest = min(fewest, state.scarce[members[state.apart[k]]])
    state.base[:] = -1.0
    low = np.int64(codes.min()) if number else low
    if low < 255 and low >> 5 == group:
        alike = removal_distance(state, members[nth(codes, low, 0)], authors)
    least = alike
    for k in range(weighed):
        slot = members[state.apart[k]]
        state.distance[k] = np.inf
        if state.scarce[slot] == fewest:
            state.distance[k] = removal_distance(state, slot, authors)
            least = min(least, state.distance[k])
    bound = largest_to_leave(least, size, authors)
    mark = low if alike <= bound else 0
    for k in range(weighed):
        if state.distance[k] <= bound:
            codes[state.apart[k]] = mark
    place = nth(codes, mark, 0 if authors else int(uniform_tie * number_of(codes, mark)))
    for k in range(place, len(codes) if authors else 0):  # the lowest slot
        place = k if codes[k] == mark and members[k] < members[place] else place
    for k in range(number):
        count = state.slot_sizes[members[state.apart[k]]]
        codes[state.apart[k]] = 32 * group + max(31 - count, 0)
    return members[place]


@compiled
def largest_to_leave(least, size, authors):
    """Return the distance up to which a member of K may go, Eq. (5)."""
    return (least if least < size else FARTHEST) if authors else least + TOLERANCE


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
    for c in state.appearance[: state.totals[1]]:
        if state.class_counts[c] > 0:
            target = np.float32(state.partition[c]) * rest
            distance += abs(np.float32(state.class_counts[c]) - target)
    for j in range(size):
        state.class_counts[state.slot_labels[slot, j]] += 1
    return np.float64(distance)


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
