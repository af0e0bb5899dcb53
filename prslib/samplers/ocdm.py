"""Optimising the class distribution in memory: delete what is furthest from the target mix."""

import numpy as np

from prslib.checks import power
from prslib.samplers import ocdm_kernel as kernel
from prslib.samplers.base import Compiled, Seed


class OCDM(Compiled):
    """Keep the subset whose mix of classes is closest to p_i ~ n_i^rho (Liang & Li 2022).

    The memory and the batch are joined, then samples are deleted one at a time, always the one
    whose removal leaves the label distribution closest to p, until m remain.

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
    A batch is decided as a whole (``decides_by_batch``): n_i counts all of it before the first
    deletion, and a sample competes with those that come after it in the same batch. A batch of 1000
    and 1000 batches of one therefore differ by design.

    The source leaves open, and we settle so:

    - The distance is KL(q || p), from the memory's mix q_i = l_i / sum l_j to the target. A class
      that has left the memory adds 0 to it, and p_i > 0 for every class that was observed, so that
      it is finite always; in the other direction one absent class makes it infinite.
    - Ties are uniform over the samples, not over label sets: distances that differ from the least
      by less than 1e-9 / sum l_j are equal, so that rounding decides nothing.
    - Uniform ties, the rule's plain reading, favour late samples: where a class is at its target
      with l samples of one label set, a new one joins and any of the l + 1 goes, however long the
      stream. The classes are on target, but within each it is no reservoir.
    - While there are empty slots the batch's first samples take them in order; those that come
      later and stay take the places of what was deleted, in order. A sample of the batch that was
      given a slot and deleted in the same batch is overwritten by a later one of that batch.

    Examples
    --------
    >>> OCDM(size=2, num_classes=3, seed=0, rho=0.5).place(np.eye(3, dtype=bool)[:2])
    array([0, 1])
    """

    draws = 1  # of the tied samples, one for each deletion
    decides_by_batch = True

    def __init__(self, size: int, num_classes: int, seed: Seed, *, rho: float = 0.0):
        super().__init__(size, num_classes, seed)
        self.rho = power("rho", rho)
        self._state = kernel.allocate(self.size, self.num_classes, 1)

    @property
    def labels(self) -> np.ndarray:
        """Labels of the sample in each slot; bool (size, C), a copy."""
        state, labels = self._state, np.zeros((self.size, self.num_classes), np.bool_)
        sets = state.set_of[: len(self)]
        sizes = state.sizes[sets // kernel.BLOCK]
        slots, columns = np.nonzero(np.arange(state.set_labels.shape[1]) < sizes[:, None])
        labels[slots, state.set_labels[sets[slots], columns]] = True
        return labels

    def _decide(self, labels: np.ndarray, uniforms: np.ndarray, slots: np.ndarray) -> None:
        options = self.size, self.rho
        if not kernel.place(self._state, labels, uniforms, slots, *options):
            state, held = self._state, self.labels[: len(self)]
            width = max(state.set_labels.shape[1], min(2 * labels.sum(1).max(), self.num_classes))
            self._state = kernel.allocate(self.size + 2 * len(labels), self.num_classes, width)
            kernel.place(self._state, held, uniforms, np.empty(len(held), np.int64), *options)
            self._state.class_freq[:] = state.class_freq
            kernel.place(self._state, labels, uniforms, slots, *options)
