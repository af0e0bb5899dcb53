"""Sums, searches and the softmax in plain loops, for compiled samplers.

Numba compiles these in a fraction of the time that it takes for numpy's own.
"""

import math

import numpy as np

from prslib.samplers.compiling import compiled

BLOCK = 64


@compiled
def total(x):
    """Return sum_i x_i of whole numbers."""
    result = 0
    for value in x:
        result += value
    return result


@compiled
def least(x):
    """Return the least x_i."""
    result = np.inf
    for value in x:
        result = min(result, value)
    return result


@compiled
def at_most(slots, x, bound):
    """Return the slots whose x is at most a bound."""
    chosen = np.empty_like(slots)
    count = 0
    for j in range(len(slots)):
        if x[j] <= bound:
            chosen[count] = slots[j]
            count += 1
    return chosen[:count]


@compiled
def find_nth(x, value, n):
    """Return where a value stands for time n, counted from 0."""
    start, number = -BLOCK, 0
    while n >= number:  # a block at a time, of which several are compared at once
        n -= number
        start += BLOCK
        block = x[start : start + BLOCK]
        number = 0
        for k in range(len(block)):
            number += block[k] == value
    k = start - 1
    while n >= 0:
        k += 1
        n -= x[k] == value
    return k


@compiled
def softmax(x):
    """Turn x_i into e^(x_i) / sum_j e^(x_j), which is 0 for -inf."""
    top = -np.inf
    for value in x:
        top = max(top, value)
    norm = 0.0
    for i in range(len(x)):
        x[i] = math.exp(x[i] - top)  # neither overflows nor is 0 throughout
        norm += x[i]
    for i in range(len(x)):
        x[i] /= norm
