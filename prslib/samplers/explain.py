"""The quantities by which PRS decides, from the functions that it runs."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from prslib.samplers import prs, released


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
def explain(sampler: prs.PRS, y: np.ndarray) -> Decision:
    """Return what would be decided if a sample with the labels y came next."""
    state, size = sampler.state, sampler.size
    counts = state.class_counts
    n = state.class_freq + y
    if sampler.variant == "authors":
        rules = released
        n = state.class_freq.copy()
        observed = counts
        p = sampler.partition
        if counts.any():
            p = released.partition(n, sampler.rho, counts, p)
        distances = partial(released.distances, appearance=sampler.appearance)
        leaving = partial(released.leaving, size=size)
    else:
        rules = prs
        observed = n
        p = prs.partition(n, sampler.rho) if n.any() else np.zeros(len(n))
        distances, leaving = prs.distances, prs.leaving
    full = len(sampler) == size
    classes = np.flatnonzero(y)
    weight = np.zeros(len(n))
    acceptance = 0.0
    if len(classes) > 0:
        weight[classes] = prs.weights(classes, n)
        acceptance = rules.acceptance(classes, n, p, size) if full else 1.0
    delta = rules.surplus(counts, p)
    scarce = prs.scarce(observed, delta)
    chance = rules.class_probability(delta, counts) if full else np.zeros(len(n))
    candidates = {}
    distance = {}
    may_leave = {}
    for c in np.flatnonzero(chance).tolist():
        k = candidates[c] = np.sort(prs.candidates(state, c, scarce))
        gaps = distance[c] = distances(state, k, p)
        may_leave[c] = leaving(k, gaps)
    return Decision(
        class_freq=n,
        partition=p.astype(np.float64),
        quota=size * p.astype(np.float64),
        weight=weight,
        acceptance=acceptance,
        surplus=delta,
        scarce=scarce,
        class_probability=chance,
        candidates=candidates,
        distance=distance,
        leaving=may_leave,
    )
