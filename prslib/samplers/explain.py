"""The quantities by which PRS decides, from the equations of reference.py."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from prslib.samplers.reference import ReferencePRS


@dataclass(frozen=True)
class Decision:
    """The quantities by which PRS decides about one sample (Eqs. (1)-(5)).

    Attributes
    ----------
    class_freq : int64 (C,)
        Running frequency n_i that the decision rests on.
    partition : float64 (C,)
        Target share p_i of each class, Eq. (1); 0 where the class was not observed.
    quota : float64 (C,)
        Target number of samples m_i = m p_i.
    weight : float64 (C,)
        Weight w_i of each class of the sample, Eq. (2); 0 for the others.
    acceptance : float
        Probability s of entering, Eq. (2); 1 while the memory fills.
    surplus : float64 (C,)
        delta_i, the samples of a class above its target, Eq. (3).
    scarce : bool (C,)
        q_i, the observed classes with no surplus (in memory, for the authors' variant).
    class_probability : float64 (C,)
        Chance of each class to be the one that is shrunk; all 0 while the memory fills.
    candidates : dict of int to int64 (K,)
        For each class with a chance: the slots of the set K, ascending, Eq. (4).
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


@np.errstate(under="ignore")
def explain(sampler: "ReferencePRS", y: np.ndarray) -> Decision:
    """Return what would be decided if a sample with the labels y came next."""
    n = sampler.counted(y)
    nothing = np.zeros(len(n))
    full = len(sampler) == sampler.size
    p = sampler.partition(y) if n.any() else nothing
    acceptance = 0.0
    if y.any():
        acceptance = sampler.acceptance(y, p) if full else 1.0
    delta = sampler.surplus(p)
    scarce = sampler.scarce(y, delta)
    chance = sampler.class_probability(delta) if full else nothing
    candidates = {}
    distance = {}
    leaving = {}
    for c in np.flatnonzero(chance).tolist():
        k = candidates[c] = np.sort(sampler.candidates(c, scarce))
        gaps = distance[c] = sampler.distances(k, p)
        leaving[c] = sampler.leaving(k, gaps)
    return Decision(
        class_freq=n,
        partition=p.astype(np.float64),
        quota=sampler.size * p.astype(np.float64),
        weight=sampler.weights(y) if y.any() else nothing,
        acceptance=acceptance,
        surplus=delta,
        scarce=scarce,
        class_probability=chance,
        candidates=candidates,
        distance=distance,
        leaving=leaving,
    )
