"""Optimising the class distribution in memory: delete what is furthest from the target.

With L = sum l_i, the labels in memory, the distance to the target p_i = n_i^rho / Z is

    KL(q || p) = (1 / L) sum_i l_i (log l_i - rho log n_i) - log L + log Z,

so that a deletion changes only the terms of the deleted sample's labels.
"""

import numpy as np

from prslib.checks import Seed, power
from prslib.samplers.base import Sampler
from prslib.samplers.label_sets import nth_slot

# distances, times L, that differ by less are equal: rounding, not data
TOLERANCE = 1e-9


class OCDM(Sampler):
    """Keep the subset whose mix is closest to p_i ~ n_i^rho (Liang & Li 2022).

    The memory and the batch are joined, then samples are deleted one at a time, always
    the one whose removal leaves the label distribution closest to p, until m remain.

    Parameters
    ----------
    size, num_classes, seed, unlabelled
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
    A batch is decided as a whole: n_i counts all of it before the first deletion, and a
    sample competes with those that come after it in the same batch. A batch of 1000 and
    1000 batches of one therefore differ by design.

    The source leaves open, and this class settles:

    - The distance is KL(q || p), from the memory's mix q_i = l_i / sum l_j to the
      target. A class that has left the memory adds 0 to it, and p_i > 0 for every class
      that was observed, so that it is always finite; in the other direction one absent
      class makes it infinite.
    - Ties are uniform over the samples, not over label sets: distances that differ from
      the least by less than 1e-9 / sum l_j are equal, so that rounding decides nothing.
    - Uniform ties, the rule's plain reading, favour late samples: if a class is at its
      target with l samples of one label set, a new one joins and any of the l + 1 goes,
      however long the stream. The classes are on target, but within each it is no
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
        self,
        size: int,
        num_classes: int | None,
        seed: Seed,
        *,
        rho: float = 0.0,
        unlabelled: str = "drop",
    ):
        super().__init__(size, num_classes, seed, unlabelled=unlabelled)
        self.rho = power("rho", rho)

    def choose_batch(self, labels: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
        """Join the batch, delete what is too much, and give the others slots."""
        samples = self._taking_part(labels)
        first = len(self)
        end = first + len(samples)
        self._sets.resize(max(self.size, end))
        for slot, (_, classes) in enumerate(samples, start=first):
            self._count(classes)
            self._store(classes, slot)
        gone = self._delete(uniforms[: max(0, end - self.size), 0])
        free = iter(sorted(slot for slot in gone if slot < self.size))
        slots = np.full(len(labels), -1)
        for slot, (b, _) in enumerate(samples, start=first):
            if slot < self.size:
                slots[b] = slot
            elif slot not in gone:
                slots[b] = new = next(free)
                self._sets.put(self._sets.take(slot), new)
        self._sets.resize(self.size)
        self._filled = min(end, self.size)
        return slots

    def _delete(self, uniforms: np.ndarray) -> set[int]:
        """Delete a sample for each number, the closest first; return their slots."""
        gone = set()
        if len(uniforms) == 0:
            return gone
        log_n = np.log(np.maximum(self._freq, 1))
        term = terms(self._counts, log_n, self.rho)
        total = float(term.sum())
        loss = np.zeros(len(term) + 1)  # a class's l_i - 1 in place of l_i; NONE's is 0
        loss[:-1] = term - terms(self._counts - 1, log_n, self.rho)
        sets = self._sets.all()
        for u in uniforms.tolist():
            closest = sets[self._rise(sets, loss, total) <= TOLERANCE]
            slots = self._sets.slots_of(closest)
            slot = nth_slot(slots, int(u * sum(map(len, slots))))
            gone.add(slot)
            number = self._sets.of_slot[slot]
            for c in self._remove(slot):
                total -= loss.item(c)
                counts = self._counts[c] - np.arange(2)  # l_i and l_i - 1
                loss[c] = np.subtract(*terms(counts, log_n[c], self.rho))
            if not self._sets.slots[number]:
                sets = sets[sets != number]
        return gone

    def _rise(self, sets: np.ndarray, loss: np.ndarray, total: float) -> np.ndarray:
        """Return L times the distance without a sample of each set, less the least.

        With b labels less and the mean sum / L it rises by
        L (b mean - loss) / (L - b) - L log(1 - b / L).
        """
        labels = self._label_count  # L
        b = self._sets.width[sets]
        lost = loss[self._sets.classes[sets]].sum(axis=1)
        rise = (b * total / labels - lost) * (labels / (labels - b))
        rise -= labels * np.log1p(-b / labels)
        return rise - rise.min()


def terms(counts: np.ndarray, log_n: np.ndarray, rho: float) -> np.ndarray:
    """Return l_i (log l_i - rho log n_i), 0 for l_i = 0 and below."""
    log_l = np.log(np.maximum(counts, 1))
    return np.maximum(counts, 0) * (log_l - rho * log_n)
