"""The compiled decisions of OCDM: join the batch, then one deletion after another.

With L = sum l_i, the labels in memory, the distance to the target p_i = n_i^rho / Z is

    KL(q || p) = (1 / L) sum_i l_i (log l_i - rho log n_i) - log L + log Z,

so that a deletion changes only the terms of the deleted sample's own labels. Candidates are kept
by label set: those of one set are interchangeable.

The sets of a block have as many labels each, so that the one that the sum loses most by is the
closest. What a block lost most by when last looked at is a bound: a deletion never raises what the
sum loses by another set, and what a batch adds is added. Where the bound of a block is farther
than the closest found, it is not looked at.
"""

import math
from typing import NamedTuple

import numba
import numpy as np

from prslib.samplers.base import read_labels

TOLERANCE = 1e-9  # two distances (times the labels in memory) are equal: rounding, not data
BLOCK = 32  # label sets that are looked at together
# a call would copy the whole state
compiled = numba.njit(cache=True, error_model="numpy", forceinline=True)


class State(NamedTuple):
    """The parts of a sampler; C classes, K candidates, R rows of sets of up to L labels."""

    totals: np.ndarray  # (2,) filled slots, blocks used of the table of label sets
    class_freq: np.ndarray  # (C,) n_i
    class_counts: np.ndarray  # (C,) l_i
    weighed: np.ndarray  # (C,) n_i when term and loss were computed
    own: np.ndarray  # (C,) scratch: classes of the sample at hand
    members: np.ndarray  # (R,) sum of the candidates of each label set: of one, the candidate
    set_of: np.ndarray  # (K,) label set of each candidate, slots first; -1 once deleted
    set_counts: np.ndarray  # (R,) candidates with each label set
    set_labels: np.ndarray  # (R, L) its classes
    sizes: np.ndarray  # (R / BLOCK,) how many classes, one number for a block
    unused: np.ndarray  # (L + 1,) first unused row of the open block of each size
    hashed: np.ndarray  # (R,) last set of each hash, -1 for none
    before: np.ndarray  # (R,) the set of the same hash before each
    looked_at: np.ndarray  # (R / BLOCK,) scratch: blocks, in the order in which they were looked at
    term: np.ndarray  # (C,) term of the class in the sum over i
    loss: np.ndarray  # (C,) what the sum loses with one sample of the class
    offset: np.ndarray  # (L + 1,) scratch: -L log(1 - k / L) for k labels
    bound: np.ndarray  # (R / BLOCK,) the most that the sum loses with a set of each block
    lost: np.ndarray  # (R,) scratch: what the sum loses with each set
    closest: np.ndarray  # (R + 1,) scratch: sets of least distance; the last stands for none


def allocate(candidates, num_classes, width):
    """Return the state of an empty sampler with room for candidates of so many labels."""
    blocks = 2 * (candidates // BLOCK + width + 1)
    rows = blocks * BLOCK
    integers = [np.zeros(length, np.int64) for length in (2, *[num_classes] * 4, rows)]
    shapes = [candidates, rows, (rows, width), blocks, width + 1, rows, rows, blocks]
    sets = [np.zeros(shape, np.int32) for shape in shapes]
    sets[5][:] = -1
    floats = [np.zeros(length) for length in (num_classes, num_classes, width + 1, blocks, rows)]
    return State(*integers, *sets, *floats, np.zeros(rows + 1, np.bool_))


@compiled
def find_set(state, count):
    """Return the row of the label set at hand, a new one where the table has none."""
    key = 0
    for j in range(count):
        key = key * 1000003 + state.own[j] + 1
    key = (key ^ key >> 20) % len(state.hashed)
    s = state.hashed[key]
    while s >= 0:
        j = 0 if state.sizes[s // BLOCK] == count else count + 1
        while j < count and state.set_labels[s, j] == state.own[j]:
            j += 1
        if j == count:
            return s
        s = state.before[s]
    s = state.unused[count]
    if s % BLOCK == 0:
        s = state.totals[1] * BLOCK
        state.sizes[state.totals[1]] = count
        state.totals[1] += 1
    state.unused[count] = s + 1
    state.before[s] = state.hashed[key]
    state.hashed[key] = s
    for j in range(count):
        state.set_labels[s, j] = state.own[j]
    return s


@compiled
def weigh(state, c, rho):
    """Bring the term and the loss of a class that was observed up to date."""
    count, power = state.class_counts[c], rho * math.log(state.class_freq[c])
    less = (count - 1) * (math.log(count - 1) - power) if count > 1 else 0.0
    state.term[c] = count * (math.log(count) - power) if count > 0 else 0.0
    state.weighed[c] = state.class_freq[c]
    if count > 0:
        state.loss[c] = state.term[c] - less


@compiled
def look_at(state, block):
    """Bring what the sum loses with the sets of a block up to date."""
    state.bound[block] = -np.inf
    for s in range(block * BLOCK, (block + 1) * BLOCK):
        lost, held = 0.0, state.set_counts[s] > 0
        for j in range(state.sizes[block] * held):
            lost += state.loss[state.set_labels[s, j]]
        state.lost[s] = lost if held else -np.inf
        state.bound[block] = max(state.bound[block], state.lost[s])


@compiled
def distance(loss, size, offset, mean, held):
    """Return L times what the distance rises by without a candidate of this loss and size."""
    # So a tie means the same in any memory. With k labels less and the mean sum / L, it is
    # L (k mean - loss) / (L - k) - L log(1 - k / L).
    return (size * mean - loss) * held / (held - size) + offset[size]


@compiled
def draw_closest(state, mean, held, joined, uniform):
    """Return a random one of the candidates with the least distance."""
    for k in range(len(state.offset)):
        state.offset[k] = -held * math.log1p(-k / held)
    state.closest[: state.totals[1] * BLOCK] = False
    least, looked, ties, only, bound = np.inf, 0, 0, 0, state.bound
    for block in range(state.totals[1]):
        size = state.sizes[block]
        if distance(bound[block], size, state.offset, mean, held) <= least + TOLERANCE:
            look_at(state, block)
            least = min(least, distance(bound[block], size, state.offset, mean, held))
            state.looked_at[looked] = block
            looked += 1
    for block in state.looked_at[:looked]:
        size = state.sizes[block]
        if distance(bound[block], size, state.offset, mean, held) <= least + TOLERANCE:
            for s in range(block * BLOCK, (block + 1) * BLOCK):
                now = distance(state.lost[s], size, state.offset, mean, held)
                state.closest[s] = now <= least + TOLERANCE
                ties += state.closest[s] * state.set_counts[s]
                only += state.closest[s] * state.members[s]
    if ties == 1:
        return only
    chosen = int(uniform * ties)
    for candidate in range(joined):
        chosen -= state.closest[state.set_of[candidate]]
        if chosen < 0:
            return candidate
    return -1


@compiled
def delete_surplus(state, joined, size, rho, uniforms):
    """Delete candidates one at a time until only ``size`` are left."""
    total, held, rise = 0.0, 0, TOLERANCE
    for c in range(len(state.class_counts)):
        if state.weighed[c] != state.class_freq[c]:
            before = state.loss[c]
            weigh(state, c, rho)
            rise = max(rise, state.loss[c] - before)
        total += state.term[c]
        held += state.class_counts[c]
    for block in range(state.totals[1]):
        state.bound[block] += state.sizes[block] * rise
    for k in range(joined - size):
        candidate = draw_closest(state, total / held, held, joined, uniforms[k, 0])
        s = state.set_of[candidate]
        state.set_of[candidate] = -1
        state.set_counts[s] -= 1
        state.members[s] -= candidate
        count = state.sizes[s // BLOCK]
        held -= count
        for j in range(count):
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
            state.members[state.set_of[hole]] += hole - candidate
            slots[b] = hole


@compiled
def place(state, labels, uniforms, slots, size, rho):
    """Write the slot of each sample; return False, and do nothing, where the batch lacks room."""
    widest, joined = 0, state.totals[0]
    for b in range(len(labels)):
        widest = max(widest, labels[b].sum())
    blocks = state.totals[1] + len(labels) // BLOCK + min(len(labels), widest)
    wide = widest > state.set_labels.shape[1]
    if wide or blocks > len(state.sizes) or joined + len(labels) > len(state.set_of):
        return False
    for b in range(len(labels)):
        slots[b] = -1
        count = read_labels(labels, b, state.own)
        if count > 0:
            s = find_set(state, count)
            state.set_of[joined] = s
            state.set_counts[s] += 1
            state.members[s] += joined
            state.bound[s // BLOCK] = np.inf
            for j in range(count):
                state.class_freq[state.own[j]] += 1
                state.class_counts[state.own[j]] += 1
            slots[b] = joined
            joined += 1
    if joined > size:
        delete_surplus(state, joined, size, rho, uniforms)
        settle(state, size, slots)
    state.totals[0] = min(joined, size)
    return True
