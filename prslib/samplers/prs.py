"""Partitioning Reservoir Sampling: a memory that is led towards a target mix of classes."""

import copy
from dataclasses import dataclass

import numpy as np

from prslib.checks import power
from prslib.samplers import prs_kernel as kernel
from prslib.samplers.base import Compiled, Seed, check_labels

VARIANTS = ("paper", "authors")


@dataclass(frozen=True)
class Decision:
    """Hold what PRS would do with one sample, quantity by quantity (Eqs. (1)-(5)).

    Attributes
    ----------
    class_freq : int64 (C,)
        Running frequency n_i that the decision rests on.
    partition : float64 (C,)
        Target share p_i of each class, Eq. (1); 0 where the class was not observed.
    quota : float64 (C,)
        Target number of samples m_i = m p_i.
    weight : float64 (C,)
        Weight w_i of each of the sample's own classes, Eq. (2); 0 for the others.
    acceptance : float
        Probability s of being taken in, Eq. (2); 1 while the memory fills.
    surplus : float64 (C,)
        delta_i, the samples a class holds above its target, Eq. (3).
    scarce : bool (C,)
        q_i, the observed classes with no surplus (in memory, for the authors' variant).
    class_probability : float64 (C,)
        Chance of each class to be the one that is shrunk; all 0 while the memory fills.
    candidates : dict of int to int64 (K,)
        For each class with a chance: the slots of the set K, ascending, Eq. (4).
    distance : dict of int to float64 (K,)
        Distance to the target without each candidate, Eq. (5), in the same order.
    leaving : dict of int to int64
        The slots of K that may be overwritten, ascending; one of them is drawn uniformly.
    """

    class_freq: np.ndarray
    partition: np.ndarray
    quota: np.ndarray
    weight: np.ndarray
    acceptance: float
    surplus: np.ndarray
    scarce: np.ndarray
    class_probability: np.ndarray
    candidates: dict[int, np.ndarray]
    distance: dict[int, np.ndarray]
    leaving: dict[int, np.ndarray]


class PRS(Compiled):
    """Lead the memory's mix of classes to the target p_i ~ n_i^rho (Algorithm 1).

    Parameters
    ----------
    size, num_classes, seed
        As in `make_sampler`.
    rho : float
        Power of allocation: 0 asks for equal shares, 1 for the stream's own, Eq. (1).
    variant : {"paper", "authors"}
        Where the printed method and the released code differ, the one to follow.

    Raises
    ------
    ValueError
        If ``rho`` is not within a million of 0 or the variant unknown.
    TypeError
        If ``rho`` is not a number.

    Notes
    -----
    The paper leaves open, and ``variant="paper"`` settles so:

    - n_i counts the sample at hand, s is cut at 1, and e^(-n) is taken relative to the least n of
      the sample's labels, since it underflows from n = 746.
    - p_i is computed from logarithms with the largest subtracted, so that no ``rho`` overflows.
    - Where no delta_i is positive, the class to shrink is drawn uniformly from the classes in
      memory with the largest.
    - The slot to overwrite is drawn uniformly from the candidates of least distance. Most
      candidates share one label set, so ties decide most removals.
    - A delta within 1e-9 of zero is zero and distances within 1e-9 of the least are ties, so that
      rounding decides nothing.

    ``variant="authors"`` follows the released code instead: n_i is counted after the sample was
    placed; p_i runs over the classes in memory and stays as it was when a class leaves; each
    m_i / n_i is cut at 1 before it is weighed, and is 1 for a class met for the first time; every
    class in memory may be shrunk; a class that a trial removal empties leaves the sum of Eq. (5);
    of equal candidates the lowest slot goes; a distance of m or more never wins, and without a
    winner the first candidate goes. Its p, delta and distances are float32, the distance summed
    over the classes in the order they appeared; p itself is computed in float64 and rounded.

    Examples
    --------
    >>> PRS(size=2, num_classes=3, seed=0, rho=0.5).place(np.eye(3, dtype=bool)[:2])
    array([0, 1])
    """

    draws = 3  # acceptance, class, tie

    def __init__(
        self, size: int, num_classes: int, seed: Seed, *, rho: float = 0.0, variant: str = "paper"
    ):
        super().__init__(size, num_classes, seed)
        self.rho = power("rho", rho)
        if variant not in VARIANTS:
            raise ValueError(
                f"unknown variant {variant!r} of PRS; known variants: {', '.join(VARIANTS)}"
            )
        self.variant = variant
        self._authors = variant == "authors"
        self._integers, self._floats = kernel.allocate(self.size, self.num_classes)
        self._enlarge(1)  # gives each class a row

    @property
    def _state(self) -> kernel.State:  # ty: ignore
        return kernel.unpack.py_func(self._integers, self._floats, self.size, self.num_classes)

    @property
    def labels(self) -> np.ndarray:
        """Labels of the sample in each slot; bool (size, C), a copy."""
        state = self._state
        labels = np.zeros((self.size, self.num_classes), np.bool_)
        slots, columns = np.nonzero(np.arange(state.totals[3]) < state.slot_sizes[:, None])
        labels[slots, state.slot_labels[slots, columns]] = True
        return labels

    def explain(self, label: np.ndarray) -> Decision:
        """Show what would be decided if this sample came next; nothing changes (Eqs. (1)-(5)).

        Parameters
        ----------
        label : bool (C,)
            Multi-hot labels of one sample.

        Returns
        -------
        Decision
            Computed on a copy of the state by the functions that ``place`` runs.

        Raises
        ------
        TypeError, ValueError
            If ``label`` is not boolean or not of shape (C,), as for a batch.

        Examples
        --------
        >>> sampler = PRS(size=1, num_classes=2, seed=0)
        >>> sampler.explain(np.array([False, True])).acceptance
        1.0
        """
        row = check_labels(np.asarray(label)[None], self.num_classes)[0]
        state = copy.deepcopy(self._state)
        count = kernel.read_labels(state, row)
        if not self._authors:
            kernel.observe(state, count, self.rho)
        full = len(self) == self.size
        known = state.class_counts if self._authors else state.class_freq
        total = kernel.total_power(state, self.rho, self._authors)
        accepted, weight = 0.0, np.zeros(self.num_classes)
        if count:
            accepted = kernel.acceptance(state, count, total, self.size, self._authors)
            accepted = accepted if full else 1.0
            weight[state.own[:count]] = state.weight[:count] / state.weight[:count].sum()
        rivals = kernel.weigh_classes(state, total, self._authors)
        if not known.any():
            state.partition[:] = 0.0  # where nothing was observed there are no shares
            state.surplus[:] = 0.0
        probability = np.zeros(self.num_classes)
        candidates, distance, leaving = {}, {}, {}
        for k, chosen in enumerate(state.rivals[: rivals * full].tolist()):
            probability[chosen] = state.chance[k] / state.reached[rivals - 1]
            if probability[chosen] > 0.0:
                candidates[chosen], distance[chosen], leaving[chosen] = self._look(state, chosen)
        return Decision(
            class_freq=state.class_freq,
            partition=state.partition,
            quota=self.size * state.partition,
            weight=weight,
            acceptance=accepted,
            surplus=state.surplus,
            scarce=(state.surplus <= 0.0) & (known > 0),
            class_probability=probability,
            candidates=candidates,
            distance=distance,
            leaving=leaving,
        )

    def _look(self, state: kernel.State, chosen: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return K of a class, its distances, and the slots of K that may go."""
        row = slice(state.start[chosen], state.start[chosen] + state.class_counts[chosen])
        group = state.codes[row] // kernel.GROUP
        candidates = np.sort(state.members[row][group == group.min()])
        state.base[:] = -1.0
        distances = [kernel.removal_distance(state, slot, self._authors) for slot in candidates]
        bound = kernel.largest_to_leave(min(distances), self.size, self._authors)
        leaving = candidates[np.array(distances) <= bound]
        return candidates, np.array(distances), leaving[:1] if self._authors else leaving

    def _enlarge(self, labels: int) -> None:
        """Make room for samples of so many labels, and for more members of each class."""
        old, sizes = self._state, (self.size, self.num_classes)
        width, counts = int(old.totals[3]), old.class_counts
        room = 2 * counts + 2 * self.size // self.num_classes + 4  # for a new class, too
        wider = max(width, min(2 * labels, self.num_classes))
        self._integers, _ = kernel.allocate(*sizes, wider, room.sum())
        new = self._state
        for was, now in zip(old[:10], new, strict=False):
            now[:] = was
        new.totals[3], new.totals[5], new.start[1:] = wider, 0, np.cumsum(room)
        new.slot_labels[:, :width], new.position[:, :width] = old.slot_labels, old.position
        rank = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        was, now = (rank + np.repeat(state.start[:-1], counts) for state in (old, new))
        new.members[now], new.codes[now] = old.members[was], old.codes[was]

    def _decide(self, labels: np.ndarray, uniforms: np.ndarray, slots: np.ndarray) -> None:
        place, done = kernel.place[self.variant], 0
        while done < len(labels):
            done = place(
                self._integers, self._floats, labels, uniforms, slots, done, self.size, self.rho
            )
            if done < len(labels):
                self._enlarge(int(labels[done].sum()))
