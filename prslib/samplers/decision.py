"""The quantities from which PRS selects a slot, for `PRS.explain`."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from prslib.samplers.prs import PRS


@dataclass
class Decision:
    """Quantities from which PRS selects the slot of one sample (Eqs. (1)-(5)).

    With ``unlabelled="class"`` the arrays (C,) have one entry more at the end.

    Attributes
    ----------
    class_freq : int64 (C,)
        Number of samples n_i of each class so far, including this one.
    partition : float64 (C,)
        Target share p_i of each class, Eq. (1); 0 if the class was not observed.
    quota : float64 (C,)
        Target number of samples m_i = m p_i.
    weight : float64 (C,)
        Weight w_i of each class of the sample, Eq. (2); 0 for other classes.
    acceptance : float
        Probability s of entering, Eq. (2); 1 while the memory fills.
    surplus : float64 (C,)
        delta_i, the samples of a class above its target, Eq. (3).
    scarce : bool (C,)
        q_i, the observed classes with no surplus.
    class_probability : float64 (C,)
        Probability with which each class is the one to shrink; all 0 while the memory
        fills.
    candidates : dict of int to int64 (K,)
        For each class with a positive probability: the slots of K, ascending, Eq. (4).
    distance : dict of int to float64 (K,)
        Distance to the target without each candidate, Eq. (5), in the same order.
    leaving : dict of int to int64
        The slots of K that may be overwritten, ascending; one is drawn uniformly.
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


def explain(sampler: "PRS", y: np.ndarray) -> Decision:
    """Count a sample with the labels y, and return the quantities of the decision."""
    num_classes = sampler.num_classes + (sampler.unlabelled == "class")
    is_full = len(sampler) == sampler.size
    classes = sampler.classes_of(y)
    if classes:
        sampler._count(classes)
    n = sampler._freq
    p = sampler.partition() if n.any() else np.zeros(len(n))
    weight = np.zeros(num_classes)
    acceptance = 0.0
    if classes:
        weight[classes] = sampler.weights(n[classes].tolist())
        acceptance = sampler.acceptance(y, p) if is_full else 1.0
    delta = sampler.surplus(p)
    q = sampler.scarce(delta)
    chance = sampler.class_probability(delta) if is_full else np.zeros(len(n))
    decision = Decision(
        class_freq=n[:num_classes],
        partition=p[:num_classes],
        quota=sampler.size * p[:num_classes],
        weight=weight,
        acceptance=acceptance,
        surplus=delta[:num_classes],
        scarce=q[:num_classes],
        class_probability=chance[:num_classes],
        candidates={},
        distance={},
        leaving={},
    )
    for c in chance.nonzero()[0].tolist():
        k = sampler.candidates(c, q)
        distance = sampler.distances(k, p)
        slots = [np.array(of_set) for of_set in sampler._sets.slots_of(k)]
        order = np.argsort(np.concatenate(slots))
        decision.candidates[c] = np.concatenate(slots)[order]
        decision.distance[c] = distance.repeat([*map(len, slots)])[order]
        leaving = sampler._sets.slots_of(sampler.nearest(k, distance))
        decision.leaving[c] = np.sort(np.concatenate(leaving))
    return decision
