"""The compiled state and decisions of Partitioning Reservoir Sampling, in small functions.

The state of a sampler lies in two flat arrays, because a compiled call costs time for every array
it is given; ``unpack`` names their parts. What depends on the whole memory is kept up as samples
come and go: the counts, n_i^rho, the slots of each class, the labels of each slot, and a code for
each of them, by which K is found without a look at every member of a class.

All of it is in one file since numba's cache looks at the file of the function that is called, and
would not notice a change in another file that was compiled into it.
"""

import math
from decimal import Decimal
from typing import NamedTuple

import numba
import numpy as np
from numba.extending import intrinsic

TOLERANCE = 1e-9  # below this a surplus is none and two distances are equal: rounding, not data
FARTHEST = np.finfo(np.float64).max  # of all distances but infinity, which is outside K
FAR = math.exp(100.0)  # a sum of powers beyond FAR or 1 / FAR asks for a new reference

LOG_2 = round(math.log(2.0) * 2**32) / 2**32  # short, so that whole multiples of it are exact
LOG_2_REST = float(Decimal(2).ln() - Decimal(LOG_2))
TAYLOR = tuple(1.0 / math.factorial(n) for n in range(13, -1, -1))  # of e^x, highest power first

GROUP = 2**16  # K of a class is those of least code // GROUP
SINGLE = GROUP - 2  # the code of a sample of one label
APART = 2**31 - 1  # above every code, as long as no sample has 2**15 labels
BLOCK = 64  # codes that are counted before one of them is looked for
LONG, FEW = 300, 16  # in rows below LONG, FEW members of K are weighed one by one
EFFORT = 4  # codes that are read in the time of a look at one member

compiled = numba.njit(cache=True, error_model="numpy", forceinline=True)
# sums and maxima are vectorised if the order of the terms is free
in_any_order = numba.njit(cache=True, forceinline=True, fastmath={"reassoc", "nnan", "nsz"})


class State(NamedTuple):
    """Named parts of a sampler's two arrays; C classes, m slots, room for L labels a sample."""

    totals: np.ndarray  # (6,) filled slots, classes seen, sum of l_i, L, rivals, 1 if a row is full
    class_freq: np.ndarray  # (C,) n_i
    class_counts: np.ndarray  # (C,) l_i
    appearance: np.ndarray  # (C,) observed classes, first seen first
    own: np.ndarray  # (C,) scratch: classes of the sample at hand
    rivals: np.ndarray  # (C,) classes that may be shrunk, ascending
    near: np.ndarray  # (C,) scratch: bits of ``exponentials``; classes near their target
    above: np.ndarray  # (C,) 1 for a class with surplus when it was last computed, else 0
    start: np.ndarray  # (C + 1,) where in members the row of a class begins and the next one's
    slot_sizes: np.ndarray  # (m,) labels of each slot
    apart: np.ndarray  # (m + 1,) scratch: where in the chosen class's row members are set apart
    slot_labels: np.ndarray  # int32 (m, L) its classes, the first slot_sizes of a row
    position: np.ndarray  # int32 (m, L) where in the row of each of them the slot stands
    members: np.ndarray  # int32 (any,) slots of each class
    codes: np.ndarray  # int32 (any,) code of each member, see ``insert``
    reference: np.ndarray  # (1,) logarithm that is subtracted from every power
    power: np.ndarray  # (C,) n_i^rho / exp(reference), 0 before the class is observed
    partition: np.ndarray  # (C,) p_i
    surplus: np.ndarray  # (C,) delta_i
    weight: np.ndarray  # (C,) scratch: w_i of the sample's own classes, times their sum
    chance: np.ndarray  # (C,) scratch: of each rival to be shrunk, times the sum of all
    reached: np.ndarray  # (C,) scratch: sum of the chances up to each
    base: np.ndarray  # (C + 1,) scratch: distance to target with b labels less
    distance: np.ndarray  # (m,) scratch: distance to target without each of those apart


def allocate(size, num_classes, width=1, members=0):
    """Return the two arrays of an empty sampler: int64, the end used as others, and float64."""
    narrow = size * width + members
    integers = np.zeros(8 + 8 * num_classes + 2 * size + narrow, np.int64)
    integers[3] = width
    return integers, np.zeros(2 + 7 * num_classes + size, np.float64)


@compiled
def unpack(integers, floats, size, num_classes):
    """Name the parts of the two arrays; nothing is copied."""
    m, c, width = size, num_classes, integers[3]
    a, b = 7 + 8 * c, m * width
    narrow = integers[a + 2 * m + 1 :].view(np.int32)
    room = len(narrow) // 2 - b
    rows, shares = integers[6 : 6 + 7 * c].reshape(7, c), floats[1 : 1 + 6 * c].reshape(6, c)
    return State(
        integers[:6], rows[0], rows[1], rows[2], rows[3], rows[4], rows[5], rows[6],
        integers[6 + 7 * c : a], integers[a : a + m], integers[a + m : a + 2 * m + 1],
        narrow[:b].reshape(m, width), narrow[b : 2 * b].reshape(m, width),
        narrow[2 * b : 2 * b + room], narrow[2 * b + room :],
        floats[:1], shares[0], shares[1], shares[2], shares[3], shares[4],
        shares[5], floats[1 + 6 * c : 2 + 7 * c], floats[2 + 7 * c :],
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
        if rho != 0.0 or state.class_freq[c] == 1:  # to the power of 0 all are alike
            state.power[c] = math.exp(rho * math.log(state.class_freq[c]) - state.reference[0])


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
    # Of the members of a class, K of Eq. (4) are those with the fewest other labels that are not
    # in surplus, the upper half of a code; of equals those with more labels have the lower code.
    state.slot_sizes[slot] = count
    code = count * GROUP - 1 - count
    for k in range(count):
        code -= GROUP * state.above[state.own[k]]
    for k in range(count):
        c = state.own[k]
        end = state.start[c] + state.class_counts[c]
        state.slot_labels[slot, k] = c
        state.position[slot, k] = state.class_counts[c]
        state.members[end], state.codes[end] = slot, code + GROUP * state.above[c]
        state.class_counts[c] += 1
        state.totals[5] |= end + 1 == state.start[c + 1]
    state.totals[2] += count


@compiled
def total_power(state, rho, authors):
    """Return the denominator of Eq. (1), the reference moved where it would leave the floats."""
    gate = state.class_counts if authors else state.class_freq
    total = gated_sum(state.power, gate)
    if 1.0 / FAR < total < FAR:
        return total
    for c in state.appearance[: state.totals[1]]:
        state.power[c] = rho * math.log(state.class_freq[c])
    state.reference[0] = highest(state.power, gate)
    for c in state.appearance[: state.totals[1]]:
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
        value = values[c] if gate[c] > 0 else -np.inf
        top = value if value > top else top
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
def follow_surplus(state):
    """Bring ``above`` and the codes up to date; return how many classes crossed their target."""
    surplus, above, codes, crossed = state.surplus, state.above, state.codes, 0
    for c in range(len(surplus)):
        crossed += (surplus[c] > 0.0) != above[c]
    for c in range(len(surplus) if crossed else 0):
        if (surplus[c] > 0.0) != above[c]:
            above[c] = 1 - above[c]
            change = GROUP - 2 * GROUP * above[c]
            for k in range(state.start[c], state.start[c] + state.class_counts[c]):
                slot = state.members[k]
                for j in range(state.slot_sizes[slot] if codes[k] != SINGLE else 0):
                    other = state.slot_labels[slot, j]
                    codes[state.start[other] + state.position[slot, j]] += change * (other != c)
    return crossed


@compiled
def weigh_classes(state, total, authors):
    """Write p_i and delta_i, Eqs. (1), (3), and who may be shrunk; return how many classes may."""
    power, counts, rivals, chance = state.power, state.class_counts, state.rivals, state.chance
    partition, surplus, held = state.partition, state.surplus, state.totals[2]
    if authors:
        for c in range(len(partition)):
            partition[c] = share(state, c, total, authors)
            gap = np.float32(counts[c]) - np.float32(partition[c]) * np.float32(held)
            surplus[c] = gap if counts[c] > 0 else 0.0
    else:
        inverse = 1.0 / total
        for c in range(len(partition)):
            partition[c] = power[c] * inverse
            gap = counts[c] - partition[c] * held
            surplus[c] = gap if abs(gap) > TOLERANCE else 0.0
    crossed = follow_surplus(state)
    # Where no class is above its target, those in memory with the largest delta_i may be shrunk.
    top = highest(surplus, counts)
    bound = -np.inf if authors else min(top - TOLERANCE, TOLERANCE)
    count, reached = state.totals[4], 0.0
    if crossed or authors or top <= 0.0:  # else they are those in ``above``, as the last time
        count = 0
        for c in range(len(surplus)):  # without a branch: which are above is hard to predict
            rivals[count] = c
            count += (counts[c] > 0) & (surplus[c] >= bound)
        state.totals[4] = count
    for k in range(count):
        chance[k] = surplus[rivals[k]] - top if authors or top > 0.0 else 0.0
    exponentials(chance[:count], state.near[:count])
    for k in range(count):
        reached += chance[k]
        state.reached[k] = reached
    return count


@numba.njit(cache=True, error_model="numpy", forceinline=True, fastmath={"contract"})
def exponentials(values, scale):
    """Replace values of at most 0 by their exponentials; several are computed at once."""
    for k in range(len(values)):  # e^v = 2^n e^x
        value = max(values[k], -709.0)  # whose exponential is 0 here
        n = math.floor(value / LOG_2 + 0.5)
        x, e = value - n * LOG_2 - n * LOG_2_REST, 0.0
        for term in TAYLOR:
            e = e * x + term
        scale[k], values[k] = np.int64(n + 1023.0) << 52, e  # bits of the float 2^n
    for k in range(len(values)):
        values[k] *= scale.view(np.float64)[k]


@in_any_order
def lowest(codes):
    """Return the lowest code."""
    low = np.int32(APART)
    for k in range(len(codes)):
        low = codes[k] if codes[k] < low else low
    return low


@in_any_order
def number_up_to(values, mark):
    """Return how many values are not above a mark of their type."""
    count = 0
    for k in range(len(values)):
        count += values[k] <= mark
    return count


@compiled
def nth(codes, low, index):
    """Return where the lowest code is found the index-th time, from 0."""
    k = 0
    while k + BLOCK < len(codes):  # by whole blocks, as far as that goes
        found = number_up_to(codes[k : k + BLOCK], low)
        if index < found:
            break
        index, k = index - found, k + BLOCK
    while index > 0 or codes[k] > low:
        index -= codes[k] == low
        k += 1
    return k


@compiled
def set_apart(state, chosen, codes, low, authors):
    """Take members whose code misleads out of the codes; return how many to weigh, and of all."""
    # A label less changes abs(l_i - p_i held) by 1, to either side, unless the class is near its
    # target. Without such labels equal codes mean equal distances, and the lowest the least: the
    # more labels in surplus leave, the better. A label near from above makes a distance larger.
    near, weighed, number, effort, most = 0, 0, 0, 0, state.totals[3]
    last = np.int32(low // GROUP * GROUP + SINGLE - 1)  # highest of K with several labels
    weigh_all = authors or (len(codes) < LONG and number_up_to(codes, last) <= FEW)
    for c in range(0 if weigh_all else len(state.surplus)):  # without a branch
        gap, p = state.surplus[c], state.partition[c]
        is_near = (gap + p < 1.0) if gap > 0.0 else (gap + p * most > 0.0)
        state.near[near] = c
        near += is_near and c != chosen
        effort += is_near * state.class_counts[c]
    if not weigh_all and effort <= EFFORT * len(codes):
        for i in range(2 * near):
            c = state.near[i % near]
            gap, p = state.surplus[c], state.partition[c]
            if (gap > 0.0 and gap + p * most < 1.0 - TOLERANCE) != (i >= near):
                continue  # those whose label makes the distance larger come last
            shift = GROUP * (state.above[chosen] - state.above[c])  # from row to row
            first, end = np.int32(low - shift), np.int32((low if i >= near else last) - shift)
            for k in range(state.start[c], state.start[c] + state.class_counts[c]):
                slot, j = state.members[k], 0
                if first <= state.codes[k] <= end:
                    while j < state.slot_sizes[slot] and state.slot_labels[slot, j] != chosen:
                        j += 1
                    if j < state.slot_sizes[slot] and codes[state.position[slot, j]] < APART:
                        state.apart[number] = state.position[slot, j]
                        codes[state.position[slot, j]] = APART
                        number += 1
            weighed = number if i < near else weighed
        if number == 0 or lowest(codes) == low:
            return weighed, number
    for k in range(len(codes)):  # all of K, but those of one label
        state.apart[number] = k
        number += codes[k] <= last
    codes[state.apart[:number]] = APART
    return number, number


@compiled
def sample_out(state, total, authors, uniform_class, uniform_tie):
    """Return the slot to overwrite, of those that may go in the order of ``members`` (Sec. 3.4)."""
    reached = state.reached[: weigh_classes(state, total, authors)]
    chosen = state.rivals[number_up_to(reached, uniform_class * reached[-1])]
    row = slice(state.start[chosen], state.start[chosen] + state.class_counts[chosen])
    members, codes = state.members[row], state.codes[row]
    low = lowest(codes)
    group, weighed, number = low // GROUP * GROUP, 0, 0
    if low < group + SINGLE:
        weighed, number = set_apart(state, chosen, codes, low, authors)
    if weighed > 0:
        low, alike = lowest(codes), np.inf
        state.base[:] = -1.0
        if low < group + GROUP:
            alike = removal_distance(state, members[nth(codes, low, 0)], authors)
        least = alike
        for k in range(weighed):
            state.distance[k] = removal_distance(state, members[state.apart[k]], authors)
            least = min(least, state.distance[k])
        bound = largest_to_leave(least, len(state.slot_sizes), authors)
        low = low if alike <= bound else np.int32(0)
        for k in range(weighed):
            if state.distance[k] <= bound:
                codes[state.apart[k]] = low
    place = nth(codes, low, 0 if authors else int(uniform_tie * number_up_to(codes, low)))
    for k in range(place, len(codes) if authors else 0):  # the lowest slot
        place = k if codes[k] == low and members[k] < members[place] else place
    for k in range(number):
        codes[state.apart[k]] = group + GROUP - 1 - state.slot_sizes[members[state.apart[k]]]
    return members[place]


@compiled
def largest_to_leave(least, size, authors):
    """Return the distance up to which a member of K may go, Eq. (5)."""
    return (least if least < size else FARTHEST) if authors else least + TOLERANCE


@compiled
def removal_distance(state, slot, authors):
    """Return the distance of Eq. (5) without a slot."""
    counts, own = state.class_counts, state.slot_labels[slot, : state.slot_sizes[slot]]
    rest = state.totals[2] - len(own)
    if authors:  # in float32, over the classes that are still there, oldest first
        for c in own:
            counts[c] -= 1
        trial, held = np.float32(0.0), np.float32(rest)
        for c in state.appearance[: state.totals[1]]:
            if counts[c] > 0:
                trial += abs(np.float32(counts[c]) - np.float32(state.partition[c]) * held)
        for c in own:
            counts[c] += 1
        return np.float64(trial)
    # Only the number of its labels matters to the other classes, so their sum is computed once for
    # each number; the classes of the slot itself then differ by one sample.
    if state.base[len(own)] < 0.0:
        state.base[len(own)] = distance_to_target(counts, state.partition, rest)
    distance = state.base[len(own)]
    for c in own:
        gap = counts[c] - state.partition[c] * rest
        distance += abs(gap - 1.0) - abs(gap)
    return max(distance, 0.0)


def compile_place(authors):
    """Return ``place`` of one variant: one for both would be slower, and take longer to compile."""

    @compiled
    def place(integers, floats, labels, uniforms, slots, begin, size, rho):
        """Take samples from ``begin`` on, write the slot of each; return the first without room."""
        state = unpack(borrowed(integers), borrowed(floats), size, labels.shape[1])
        for b in range(begin, len(labels)):
            slots[b] = -1
            count = read_labels(state, borrowed(labels)[b])
            if count == 0:
                continue
            if count > state.totals[3] or state.totals[5] > 0:
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
                    slots[b] = sample_out(state, total, authors, uniforms[b, 1], uniforms[b, 2])
                    remove(state, slots[b])
                    insert(state, slots[b], count)
            if authors:
                observe(state, count, rho)
        return len(labels)

    return place


place = {"paper": compile_place(False), "authors": compile_place(True)}
