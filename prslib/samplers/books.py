"""The state of every sampler's buffer: counts, labels and slots, in Python and compiled.

`place` is the loop over a stream of CRS, PRS and CBRS.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from prslib.samplers.compiling import compiled, entry

Array = np.ndarray
Arrays = tuple[Array, Array, Array]  # numbers, classes, members
# labels bool (B, C), uniforms float64 (B, draws), and the slots to write, int64 (B,)
Batch = tuple[Array, Array, Array]


class State(NamedTuple):
    """A sampler's counts of stream and memory: C classes, m slots."""

    seen: Array  # int64 (1,) samples of the stream that have a label
    filled: Array  # int64 (1,) slots in use; they fill in order
    class_freq: Array  # int64 (C,) n_i, samples of each class in the stream
    class_counts: Array  # int64 (C,) l_i, samples of each class in memory
    classes: Array  # int32 (m, L) classes of the sample in each slot, then -1
    members: Array  # int32, the slots of class 0, then room, those of class 1, ...
    start: Array  # int64 (C + 1,) where in members each class begins


@compiled
def state_of(arrays: Arrays) -> State:
    """Return a sampler's counts and lists by their names: views.

    All counts are in one array, since Python takes time to hand each over.
    """
    numbers, classes, members = arrays
    num_classes = (len(numbers) - 3) // 3
    freq_end = 2 + num_classes
    counts_end = freq_end + num_classes
    return State(
        numbers[:1],
        numbers[1:2],
        numbers[2:freq_end],
        numbers[freq_end:counts_end],
        classes,
        members,
        numbers[counts_end:],
    )


@compiled
def members_of(state: State, c: int) -> Array:
    """Return the slots of class c, a view."""
    return state.members[state.start[c] : state.start[c] + state.class_counts[c]]


@compiled
def label_count(state: State, slot: int) -> int:
    """Return how many classes the sample in a slot has."""
    number = 0
    while number < state.classes.shape[1] and state.classes[slot, number] >= 0:
        number += 1
    return number


@compiled
def list_classes(y: Array, classes: Array) -> Array:
    """Write the classes of a sample into the scratch array; return them, a view."""
    count = 0
    for c in range(len(y)):  # without a branch, which would be hard to predict
        classes[count] = c
        count += y[c]
    return classes[:count]


@compiled
def has_room(state: State, classes: Array) -> bool:
    """Tell whether a sample's classes have room, each for one more slot."""
    if len(classes) > state.classes.shape[1]:
        return False
    room = True
    for c in classes:
        room &= state.start[c] + state.class_counts[c] < state.start[c + 1]
    return room


@compiled
def count(state: State, classes: Array) -> None:
    """Count a sample in n_i (Algorithm 1, line 5)."""
    state.seen[0] += 1
    for c in classes:
        state.class_freq[c] += 1


@compiled
def store(state: State, classes: Array, slot: int) -> None:
    """Put a sample in a slot, in place of the one that is there (lines 9 and 18)."""
    for column in range(label_count(state, slot)):
        c = state.classes[slot, column]
        last = state.start[c] + state.class_counts[c] - 1
        k = state.start[c]
        while k < last and state.members[k] != slot:
            k += 1
        state.members[k] = state.members[last]  # moves to the place that is free
        state.class_counts[c] -= 1
        state.classes[slot, column] = -1
    for column, c in enumerate(classes):
        state.classes[slot, column] = c
        state.members[state.start[c] + state.class_counts[c]] = slot
        state.class_counts[c] += 1
    state.filled[0] = max(state.filled[0], slot + 1)


@compiled
def place(
    arrays: Arrays, begin: int, batch: Batch, choose: Callable, options: tuple
) -> int:
    """Place the samples from ``begin`` on where choose says (Algorithm 1, line 4).

    Return the first sample whose labels have no room, else -1. The compiled function
    ``choose(state, classes, u, *options)`` returns a slot, -1 for none. It is called
    when the sample is counted.
    """
    labels, uniforms, slots = batch
    state = state_of(arrays)
    scratch = np.empty(labels.shape[1] + 1, np.int64)
    for b in range(begin, len(labels)):
        slots[b] = -1
        classes = list_classes(labels[b], scratch)
        if len(classes) > 0:
            if not has_room(state, classes):
                return b
            count(state, classes)  # line 5
            slots[b] = choose(state, classes, uniforms[b], *options)
            if slots[b] >= 0:
                store(state, classes, slots[b])  # lines 9 and 18
    return -1


@entry
def follow(arrays: Arrays, classes: Array, slot: int) -> bool:
    """Count and store a sample; return False, and change nothing, if it has no room."""
    state = state_of(arrays)
    if not has_room(state, classes):
        return False
    count(state, classes)
    if slot >= 0:
        store(state, classes, slot)
    return True


@compiled
def rarest(classes: Array, counts: Array, u: float) -> int:
    """Return which of the classes has the least count, a random one of several."""
    of_classes = counts[classes]
    ties = classes[of_classes == of_classes.min()]
    return ties[int(u * len(ties))]


def empty(size: int, num_classes: int) -> Arrays:
    """Return the arrays of a sampler that has seen nothing."""
    numbers = np.zeros(3 * num_classes + 3, np.int64)
    classes = np.full((size, 1), -1, np.int32)
    return enlarged((numbers, classes, np.zeros(0, np.int32)), 1)


def enlarged(arrays: Arrays, width: int) -> Arrays:
    """Make room for ``width`` labels a sample, and for more members of each class."""
    state = state_of(arrays)
    size, columns = state.classes.shape
    share = 2 * size // max(1, len(state.class_counts))
    room = 2 * state.class_counts + share + 8
    start = np.concatenate([[0], room.cumsum()])
    members = np.zeros(start[-1], np.int32)
    for c in range(len(room)):
        members[start[c] : start[c] + state.class_counts[c]] = members_of(state, c)
    numbers = arrays[0].copy()
    numbers[-len(start) :] = start
    more = (0, 0), (0, max(width - columns, 0))
    return numbers, np.pad(state.classes, more, constant_values=-1), members


def with_classes(arrays: Arrays, num_classes: int) -> Arrays:
    """Return the arrays with more classes, which have no sample yet."""
    state = state_of(arrays)
    more = (0, num_classes - len(state.class_freq))
    counts = [np.pad(row, more) for row in (state.class_freq, state.class_counts)]
    start = np.pad(state.start, more, mode="edge")
    numbers = np.concatenate([state.seen, state.filled, *counts, start])
    return enlarged((numbers, state.classes, state.members), 1)


def labels_of(state: State, slots: Array) -> Array:
    """Return the labels of the samples in some slots, bool (K, C)."""
    labels = np.zeros((len(slots), len(state.class_freq)), np.bool_)
    classes = state.classes[slots]
    rows, columns = np.nonzero(classes >= 0)
    labels[rows, classes[rows, columns]] = True
    return labels


def lists_of(labels: Array) -> Array:
    """Return the classes of each sample, int32 (n, L), then -1."""
    counts = labels.sum(axis=1)
    lists = np.full((len(labels), counts.max(initial=1)), -1, np.int32)
    _, classes = np.nonzero(labels)
    lists[np.arange(lists.shape[1]) < counts[:, None]] = classes
    return lists
