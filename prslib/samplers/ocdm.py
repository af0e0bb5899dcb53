"""Optimising the class distribution in memory: deletions bring it close to a target.

Let L = sum l_i be the number of labels in memory. The distance to the target
p_i = n_i^rho / Z is

    KL(q || p) = (1 / L) sum_i l_i (log l_i - rho log n_i) - log L + log Z,

so that a deletion changes only the terms of the deleted sample's labels.
"""

import numpy as np

from prslib.checks import Seed, power
from prslib.samplers.base import Sampler
from prslib.samplers.label_sets import draw_slot

# distances times L that differ by less are ties: the difference is due to rounding
TOLERANCE = 1e-9


class OCDM(Sampler):
    """Optimise the class distribution in memory (Liang and Li 2022).

    The memory and the batch are joined. Samples are then deleted one at a time until m
    samples remain. Each deletion removes the sample without which the distribution of
    labels is closest to the target p_i = n_i^rho / sum_j n_j^rho.

    Parameters
    ----------
    size : int
        Capacity of the memory m, in samples.
    num_classes : int or None
        Number of classes C. If it is None, classes are added when they first occur.
    seed : int, SeedSequence or Generator
        Source of every random decision.
    rho : float
        Power of allocation: 0 gives all classes equal shares, 1 the shares that they
        have in the stream.
    unlabelled : {"drop", "class"}
        Whether samples without a label are dropped or form an additional class.

    Raises
    ------
    ValueError
        If abs(rho) is above 20.
    TypeError
        If ``rho`` is not a number.

    Notes
    -----
    A batch is processed as a whole: n_i includes the whole batch before the first
    deletion, and a sample competes with later samples of the same batch. One batch of
    1000 samples therefore results in a different memory than 1000 batches of one
    sample.

    The paper leaves some details open, which are settled as follows:

    - The distance to the target is KL(q || p), where q_i = l_i / sum_j l_j is the share
      of class i in memory. It is finite, because p_i > 0 for every observed class, and
      a class that is no longer in memory adds 0. In contrast, a single absent class
      would make KL(p || q) infinite.
    - Ties are broken uniformly over samples, not over label sets. Distances within
      1e-9 / sum_j l_j of the smallest are ties, because such differences are due to
      rounding.
    - Breaking ties uniformly favours late samples. If a class is at its target with l
      samples of one label set, and a new sample is added, each of the l + 1 samples is
      deleted with the same probability, no matter how many samples came before. Within
      a class, OCDM is therefore not reservoir sampling.
    - The first samples of a batch fill the free slots in order. Later samples that are
      not deleted fill the slots of deleted samples in order. If a sample receives a
      slot and is deleted in the same batch, a later sample of the batch overwrites it.

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
        """Add the batch, delete the surplus, and assign slots to the samples left."""
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
        """Delete one sample per uniform number; return the slots of deleted samples."""
        gone = set()
        if len(uniforms) == 0:
            return gone
        log_n = np.log(np.maximum(self._freq, 1))
        term = terms(self._counts, log_n, self.rho)
        total = float(term.sum())
        loss = np.zeros(len(term) + 1)  # of each term if l_i falls by 1; 0 for NONE
        loss[:-1] = term - terms(self._counts - 1, log_n, self.rho)
        for u in uniforms.tolist():
            sets = self._sets.all()
            closest = sets[self._rise(sets, loss, total) <= TOLERANCE]
            slot = draw_slot(self._sets.slots_of(closest), u)
            gone.add(slot)
            for c in self._remove(slot):
                total -= loss.item(c)
                counts = self._counts[c] - np.arange(2)  # l_i and l_i - 1
                loss[c] = np.subtract(*terms(counts, log_n[c], self.rho))
        return gone

    def _rise(self, sets: np.ndarray, loss: np.ndarray, total: float) -> np.ndarray:
        """Return for each set L times the distance after a deletion, less the minimum.

        Deleting a sample with b labels raises L times the distance by
        L (b mean - loss) / (L - b) - L log(1 - b / L), where mean is the sum of the
        terms divided by L.
        """
        labels = self._counts.sum()  # L
        b = self._sets.width[sets]
        lost = loss[self._sets.classes[sets]].sum(axis=1)
        rise = (b * total / labels - lost) * (labels / (labels - b))
        rise -= labels * np.log1p(-b / labels)
        return rise - rise.min()


def terms(counts: np.ndarray, log_n: np.ndarray, rho: float) -> np.ndarray:
    """Return l_i (log l_i - rho log n_i), or 0 if l_i <= 0."""
    log_l = np.log(np.maximum(counts, 1))
    return np.maximum(counts, 0) * (log_l - rho * log_n)
