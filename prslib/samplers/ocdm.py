"""Optimising the class distribution in memory: delete what is furthest from the target.

With L = sum l_i, the labels in memory, the distance to the target p_i = n_i^rho / Z is

    KL(q || p) = (1 / L) sum_i l_i (log l_i - rho log n_i) - log L + log Z,

so that a deletion changes only the terms of the deleted sample's labels.
"""

import math

import numpy as np

from prslib.checks import Seed, power
from prslib.samplers.base import Sampler
from prslib.samplers.books import Array, lists_of
from prslib.samplers.compiling import compiled, entry

# distances, times L, that differ by less are equal: rounding, not data
TOLERANCE = 1e-9


class OCDM(Sampler):
    """Keep the subset whose mix is closest to p_i ~ n_i^rho (Liang & Li 2022).

    The memory and the batch are joined, then samples are deleted one at a time, always
    the one whose removal leaves the label distribution closest to p, until m remain.

    Parameters
    ----------
    size, num_classes, seed
        As in `make_sampler`.
    rho : float
        Power of allocation: 0 asks for equal shares, 1 for the stream's own.

    Raises
    ------
    ValueError
        If ``rho`` is not within a million of 0.
    TypeError
        If ``rho`` is not a number.

    Notes
    -----
    A batch is decided as a whole (``decides_by_batch``): n_i counts all of it before
    the first deletion, and a sample competes with those that come after it in the same
    batch. A batch of 1000 and 1000 batches of one therefore differ by design.

    The source leaves open, and we settle so:

    - The distance is KL(q || p), from the memory's mix q_i = l_i / sum l_j to the
      target. A class that has left the memory adds 0 to it, and p_i > 0 for every class
      that was observed, so that it is always finite; in the other direction one absent
      class makes it infinite.
    - Ties are uniform over the samples, not over label sets: distances that differ from
      the least by less than 1e-9 / sum l_j are equal, so that rounding decides nothing.
    - Uniform ties, the rule's plain reading, favour late samples: where a class is at
      its target with l samples of one label set, a new one joins and any of the l + 1
      goes, however long the stream. The classes are on target, but within each it is no
      reservoir.
    - While there are free slots the batch's first samples take them in order; those
      that come later and stay take the places of what was deleted, in order. A sample
      of the batch that was given a slot and deleted in the same batch is overwritten by
      a later one of that batch.

    Examples
    --------
    >>> stream = np.repeat(np.eye(3, dtype=bool), [900, 90, 10], axis=0)
    >>> sampler = OCDM(size=30, num_classes=3, seed=0, rho=0.0)
    >>> _ = sampler.place(np.random.default_rng(0).permutation(stream))
    >>> print(sampler.class_freq, sampler.class_counts)
    [900  90  10] [10 10 10]
    """

    def __init__(
        self, size: int, num_classes: int | None, seed: Seed, *, rho: float = 0.0
    ):
        super().__init__(size, num_classes, seed)
        self.rho = power("rho", rho)

    def choose_batch(self, labels: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
        """Join the batch, delete what is too much, and give the others slots."""
        (rows,) = np.nonzero(labels.any(axis=1))
        new = lists_of(labels[rows])
        memory = self.state.classes[: len(self)]
        width = max(new.shape[1], memory.shape[1])
        joined = np.full((len(memory) + len(new), width), -1, np.int32)
        joined[: len(memory), : memory.shape[1]] = memory
        joined[len(memory) :, : new.shape[1]] = new
        more = labels.sum(axis=0)
        counts, freq = self.state.class_counts + more, self.state.class_freq + more
        stays = np.ones(len(joined), np.bool_)
        delete(joined, stays, counts, freq, self.size, self.rho, uniforms[:, 0])
        free = iter(np.flatnonzero(~stays[: self.size]))
        slots = np.full(len(labels), -1)
        for candidate, row in enumerate(rows, start=len(self)):
            if candidate < self.size:
                slots[row] = candidate
            elif stays[candidate]:
                slots[row] = next(free)
        return slots


@compiled
def term(count: int, n: int, rho: float) -> float:
    """Return l_i (log l_i - rho log n_i)."""
    return count * (math.log(count) - rho * math.log(n)) if count > 0 else 0.0


@compiled
def loss_of(count: int, n: int, rho: float) -> float:
    """Return what the sum over i loses with a sample of the class."""
    return term(count, n, rho) - term(count - 1, n, rho)


@entry
def delete(
    joined: Array,
    stays: Array,
    counts: Array,
    freq: Array,
    size: int,
    rho: float,
    uniforms: Array,
) -> None:
    """Delete samples one at a time, the closest first, until only ``size`` stay."""
    labels = counts.sum()  # L
    loss = np.zeros(len(freq))
    terms = 0.0
    for c in range(len(freq)):
        loss[c] = loss_of(counts[c], freq[c], rho)
        terms += term(counts[c], freq[c], rho)
    for d in range(len(joined) - size):
        k = draw_closest(joined, stays, loss, terms, labels, uniforms[d])
        stays[k] = False
        for c in joined[k]:
            if c >= 0:
                labels -= 1
                terms -= loss[c]
                counts[c] -= 1
                loss[c] = loss_of(counts[c], freq[c], rho)


@compiled
def draw_closest(
    joined: Array, stays: Array, loss: Array, terms: float, labels: int, u: float
) -> int:
    """Return a random one of the samples whose removal leaves the mix closest to p.

    With b labels less and the mean sum / L, L times the distance rises by
    L (b mean - loss) / (L - b) - L log(1 - b / L).
    """
    mean = terms / labels
    width = joined.shape[1]
    fewer = np.arange(width + 1)  # b
    scale = labels / (labels - fewer)
    offset = -labels * np.log1p(-fewer / labels)
    rise = np.full(len(joined), np.inf)
    for k in range(len(joined)):
        if stays[k]:
            lost, b = 0.0, 0
            while b < width and joined[k, b] >= 0:
                lost += loss[joined[k, b]]
                b += 1
            rise[k] = (b * mean - lost) * scale[b] + offset[b]
    closest = np.flatnonzero(rise <= rise.min() + TOLERANCE)
    return closest[int(u * len(closest))]
