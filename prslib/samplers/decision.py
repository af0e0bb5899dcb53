"""The quantities from which PRS selects a slot, for `PRS.explain`."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from prslib.samplers.prs import PRS


@dataclass
class Decision:
    """Quantities from which PRS selects the slot of one sample (Eqs. (1)-(5)).

    With ``unlabelled="class"``, arrays of shape (C,) have one more entry at the end,
    which is for samples without a label.

    Attributes
    ----------
    class_freq : int64 (C,)
        Number n_i of samples of each class so far, including this sample.
    partition : float64 (C,)
        Target share p_i of each class, Eq. (1); 0 if the class was not observed.
    quota : float64 (C,)
        Target number of samples m_i = m p_i.
    weight : float64 (C,)
        Weight w_i of each class of the sample, Eq. (2); 0 for other classes.
    acceptance : float
        Probability s with which the sample is stored, Eq. (2); 1 until the memory is
        full.
    surplus : float64 (C,)
        Surplus delta_i, the number of samples of each class above its target, Eq. (3).
    scarce : bool (C,)
        q_i, whether each class has been observed and has no surplus.
    class_probability : float64 (C,)
        Probability with which each class is drawn as the class to shrink; 0 for all
        classes until the memory is full.
    candidates : dict of int to int64 (K,)
        For each class with a positive ``class_probability``, the slots of its
        candidates K, Eq. (4), in ascending order.
    distance : dict of int to float64 (K,)
        For the same classes, the distance between the target and the memory without
        each candidate, Eq. (5), in the order of ``candidates``.
    leaving : dict of int to int64
        For the same classes, the candidates with the smallest distance, in ascending
        order. The slot to overwrite is drawn uniformly from them.
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
        slots = sampler._sets.slots_of(k)
        of_set = np.zeros(len(sampler._sets.width))
        of_set[k] = distance
        decision.candidates[c] = slots
        decision.distance[c] = of_set[sampler._sets.of_slot[slots]]
        decision.leaving[c] = sampler._sets.slots_of(sampler.nearest(k, distance))
    return decision
