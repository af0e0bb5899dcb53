"""Compute the quantities that decide the paper's claims: above 0 where a claim is right.

Each is called with what it compares and then with a table (seeds, cells), and returns the parts of
an `Effect`. The columns are what is compared (methods, sizes, values of rho), perhaps a group or a
task, and the metric. All parts but those of `times` and `steadier` are means over seeds of
differences.
"""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pandas as pd

from prslib.report.statistics import Effect

BALANCED = 0.2  # the paper sets rho within [-0.2, 0.2]


def _of_means(quantity: Callable) -> Callable[..., Effect]:
    """Turn `quantity(means, *what)` into `effect(*what)(table)`."""
    return lambda *what: lambda table: quantity(table.mean(), *what)


@_of_means
def beats(means: pd.Series, first: str, *others: str) -> np.ndarray:
    """Return the leads of one over others in every cell: right only if it leads everywhere."""
    return np.concatenate([(means[first] - means[other]).to_numpy() for other in others])


@_of_means
def gains(means: pd.Series, first: str, other: str) -> float:
    """Return the mean lead of one over another, over all cells."""
    return (means[first] - means[other]).mean()


@_of_means
def times(means: pd.Series, first: str, other: str) -> float:
    """Return by how many percent one is larger than another, in the mean of the cells."""
    return 100 * (means[first].mean() / means[other].mean() - 1)


@_of_means
def alike(means: pd.Series, first: str, other: str, share: float) -> np.ndarray:
    """Return how far two differences lie inside a share of the other's value (equivalence)."""
    gap, room = means[first] - means[other], share * means[other]
    return np.concatenate([room - gap, room + gap])


@_of_means
def runner_up(means: pd.Series, first: str, *others: str) -> np.ndarray:
    """Return the leads on all others but one, whichever, in every cell: (cells, others, rest)."""
    lead = np.stack([(means[first] - means[other]).to_numpy() for other in others], axis=1)
    return np.stack([np.delete(lead, left, axis=1) for left in range(len(others))], axis=1)


@_of_means
def above_floor(means: pd.Series, floor: str, *others: str) -> np.ndarray:
    """Return the leads of all the others on the floor in every cell."""
    return -np.concatenate([(means[floor] - means[other]).to_numpy() for other in others])


@_of_means
def gap_closes(means: pd.Series, first: str, other: str, high: str, low: str) -> float:
    """Return how much smaller the gap between two groups is for one method than for another."""
    wide, narrow = ((means[method][high] - means[method][low]).mean() for method in (other, first))
    return wide - narrow


def steadier(first: str, other: str) -> Effect:
    """Return how much less one method's score varies from schedule to schedule than another's.

    A difference of variances over schedules, averaged over metrics. The covariances of different
    seeds hold none of the seeds' noise, whose variance over schedules would speak against the
    noisier method. One row is taken as it is: means, as the paper prints them, with their noise.
    """

    def effect(table):
        schedules = table[first].columns.unique(0)
        values = [np.stack([table[m][s] for s in schedules], axis=1) for m in (other, first)]
        return schedule_variance(values[0]) - schedule_variance(values[1])

    return effect


def schedule_variance(scores: np.ndarray) -> np.ndarray:
    """Average the covariances over schedules of all pairs of different seeds.

    Takes (seeds, schedules, ..., metrics) and returns (...).
    """
    seeds, schedules = scores.shape[:2]
    scores = scores - scores.mean(axis=1, keepdims=True)
    total, pairs = (scores.sum(axis=0) ** 2).sum(axis=0), seeds**2
    if seeds > 1:  # without the pairs of a seed and itself
        total, pairs = total - (scores**2).sum(axis=(0, 1)), seeds * (seeds - 1)
    return (total / pairs / (schedules - 1)).mean(axis=-1)


@_of_means
def lead_grows(means: pd.Series, first: str, other: str) -> float:
    """Return how much larger a lead is after the last task than after the first."""
    lead = (means[first] - means[other]).groupby(level=0).mean()  # over metrics
    return lead[lead.index.max()] - lead[lead.index.min()]


def after_the_first(effect: Effect) -> Effect:
    """Return an effect on all trained tasks but the first.

    A first task that fits into the memory leaves the same samples to all methods that fill it.
    """

    def later(table):
        tasks = table.columns.get_level_values(1)
        return effect(table.loc[:, tasks > tasks.min()])

    return later


@_of_means
def flattens(means: pd.Series, low: float, middle: float, high: float) -> float:
    """Return how much less is gained by the second of two steps than by the first."""
    at = [means[value].mean() for value in (low, middle, high)]
    return (at[1] - at[0]) - (at[2] - at[1])


@_of_means
def near_balance(means: pd.Series) -> np.ndarray | float:
    """Return the leads of each rho within [-0.2, 0.2] on each outside: (metrics, within, outside).

    The first level of the columns is rho.
    """
    means = means.unstack()  # (rho, metrics)
    near = abs(means.index) <= BALANCED
    if near.all() or not near.any():
        return np.nan
    inside, outside = means[near].to_numpy().T, means[~near].to_numpy().T
    return inside[:, :, None] - outside[:, None, :]


@_of_means
def declines(means: pd.Series) -> np.ndarray:
    """Return the losses, in each metric, by every step of rho on the way from 0 to both ends."""
    means = means.unstack()
    sides = [[r for r in means.index if r >= 0], [r for r in means.index[::-1] if r <= 0]]
    return np.concatenate(
        [means.loc[a] - means.loc[b] for side in sides for a, b in pairwise(side)]
    )


@_of_means
def falls(means: pd.Series) -> np.ndarray:
    """Return by how much every cell is below 0."""
    return -means.to_numpy()
