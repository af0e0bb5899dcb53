"""Compute the quantities that decide the paper's claims: above 0 where a claim is right.

Each takes means over seeds, a row a resample, and returns a number a row. The columns are what is
compared (methods, sizes, values of rho), perhaps a group or a task, and the metric.
"""

from itertools import pairwise

import numpy as np
import pandas as pd

from prslib.report.statistics import Effect, Least

BALANCED = 0.2  # the paper sets rho within [-0.2, 0.2]


def _leads(means: pd.DataFrame, first: str, others: tuple[str, ...]) -> pd.DataFrame:
    return pd.concat([means[first] - means[other] for other in others], axis=1)


def _over_metrics(means: pd.DataFrame) -> pd.DataFrame:
    """Average over metrics, the last level of two; the first stays."""
    return means.T.groupby(level=0).mean().T


def beats(first: str, *others: str) -> Effect:
    """Return the least lead of one over others in any cell: right only if it leads everywhere."""
    return Least(lambda means: _leads(means, first, others))


def gains(first: str, other: str) -> Effect:
    """Return the mean lead of one over another, over all cells."""
    return lambda means: _leads(means, first, (other,)).mean(axis=1)


def times(first: str, other: str) -> Effect:
    """Return by how many percent one is larger than another, in the mean of the cells."""
    return lambda means: 100 * (means[first].mean(axis=1) / means[other].mean(axis=1) - 1)


def runner_up(first: str, *others: str) -> Effect:
    """Return the least lead, over cells, on the second best of the others."""

    def leads(means):
        rivals = np.stack([means[other].to_numpy() for other in others])  # (others, R, cells)
        return means[first] - np.sort(rivals, axis=0)[-2]

    return Least(leads)


def above_floor(floor: str, *others: str) -> Effect:
    """Return the least lead, over cells, of any of the others on the floor."""
    return Least(lambda means: -_leads(means, floor, others))


def gap_closes(first: str, other: str, high: str, low: str) -> Effect:
    """Return how much smaller the gap between two groups is for one method than for another."""

    def effect(means):
        gaps = [(means[m][high] - means[m][low]).mean(axis=1) for m in (other, first)]
        return gaps[0] - gaps[1]

    return effect


def gains_most(first: str, other: str, where: str) -> Effect:
    """Return how much larger the gain in one group is than the largest in any other group."""

    def leads(means):
        gain = _over_metrics(means[first] - means[other])
        return gain.drop(columns=where).rsub(gain[where], axis=0)

    return Least(leads)


def steadier(first: str, other: str) -> Effect:
    """Return how much less one method's score varies from schedule to schedule than another's."""

    def effect(means):
        spreads = [_over_metrics(means[m]).T.std() for m in (other, first)]
        return spreads[0] - spreads[1]

    return effect


def lead_grows(first: str, other: str) -> Effect:
    """Return how much larger a lead is after the last task than after the first."""

    def effect(means):
        lead = _over_metrics(means[first] - means[other])
        return lead[lead.columns.max()] - lead[lead.columns.min()]

    return effect


def after_the_first(effect: Least) -> Least:
    """Return an effect on all trained tasks but the first.

    A first task that fits into the memory leaves the same samples to all methods that fill it.
    """

    def parts(means):
        tasks = means.columns.get_level_values(1)
        return effect.parts(means.loc[:, tasks > tasks.min()])

    return Least(parts)


def flattens(low: float, middle: float, high: float) -> Effect:
    """Return how much less is gained by the second of two steps than by the first."""

    def effect(means):
        at = [means[value].mean(axis=1) for value in (low, middle, high)]
        return (at[1] - at[0]) - (at[2] - at[1])

    return effect


def near_balance() -> Effect:
    """Return the least lead, over metrics, of the best rho within [-0.2, 0.2] on the best outside.

    The first level of the columns is rho.
    """

    def leads(means):
        near = means.columns.get_level_values(0).map(abs) <= BALANCED
        inside, outside = (means.loc[:, part].T.groupby(level=1).max().T for part in (near, ~near))
        return inside - outside

    return Least(leads)


def declines() -> Effect:
    """Return the least loss, over metrics, by any step of rho on the way from 0 to both ends."""

    def losses(means):
        rhos = sorted(set(means.columns.get_level_values(0)))
        sides = [[r for r in rhos if r >= 0], [r for r in reversed(rhos) if r <= 0]]
        steps = [means[a] - means[b] for side in sides for a, b in pairwise(side)]
        return pd.concat(steps, axis=1)

    return Least(losses)
