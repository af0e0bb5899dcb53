"""What decides a claim: one number from the means of a few cells, above 0 where the claim is right.

Every function here returns an effect. An effect takes a frame with one row a resample and one
column a cell (a MultiIndex; its first level is what is compared) and returns a number a row.
"""

from itertools import pairwise

import numpy as np
import pandas as pd

from prslib.report.bootstrap import Effect, Least

BALANCED = 0.2  # the paper sets rho within [-0.2, 0.2]


def beats(first: str, *others: str) -> Effect:
    """Return the least lead of one over others in any cell: right only if it leads everywhere.

    Parameters
    ----------
    first : str
        What should be above, a value of the first column level.
    *others : str
        What it should be above.

    Returns
    -------
    callable
        An effect, in the unit of the cells.

    Examples
    --------
    >>> columns = pd.MultiIndex.from_product([["PRS", "CRS"], ["C-F1", "mAP"]])
    >>> beats("PRS", "CRS")(pd.DataFrame([[50.0, 60.0, 47.0, 59.0]], columns=columns)).tolist()
    [1.0]
    """
    return Least(lambda means: _leads(means, first, others))


def gains(first: str, *others: str) -> Effect:
    """Return the mean lead of one over others, over all cells; the arguments of `beats`."""
    return lambda means: _leads(means, first, others).mean(axis=1)


def _leads(means: pd.DataFrame, first: str, others: tuple[str, ...]) -> pd.DataFrame:
    return pd.concat([means[first] - means[other] for other in others], axis=1)


def times(first: str, other: str) -> Effect:
    """Return by how many percent one is larger than another, in the mean of the cells."""
    return lambda means: 100 * (means[first].mean(axis=1) / means[other].mean(axis=1) - 1)


def runner_up(first: str, *others: str) -> Effect:
    """Return the least lead, over cells, on the second best of the others."""

    def effect(means):
        rivals = np.stack([means[other].to_numpy() for other in others])  # (others, R, cells)
        return means[first] - np.sort(rivals, axis=0)[-2]

    return Least(effect)


def gap_closes(first: str, other: str, high: str, low: str) -> Effect:
    """Return how much smaller the gap between two groups is for one method than for another.

    The columns are method, group and metric; the mean over metrics counts.
    """

    def effect(means):
        gaps = [(means[m][high] - means[m][low]).mean(axis=1) for m in (other, first)]
        return gaps[0] - gaps[1]

    return effect


def gains_most(first: str, other: str, where: str) -> Effect:
    """Return how much larger the gain in one group is than the largest in any other group.

    The columns are method, group and metric; the mean over metrics counts.
    """

    def leads(means):
        gain = (means[first] - means[other]).T.groupby(level=0).mean().T
        return gain.drop(columns=where).rsub(gain[where], axis=0)

    return Least(leads)


def steadier(first: str, other: str) -> Effect:
    """Return how much less one method's score varies from schedule to schedule than another's.

    The columns are method, schedule and metric; the sample standard deviation over schedules of the
    mean over metrics counts.
    """

    def effect(means):
        spreads = [means[m].T.groupby(level=0).mean().std() for m in (other, first)]
        return spreads[0] - spreads[1]

    return effect


def lead_grows(first: str, other: str) -> Effect:
    """Return how much larger a lead is at the end than after the first task.

    The columns are method, trained_tasks and metric; the mean over metrics counts.
    """

    def effect(means):
        lead = (means[first] - means[other]).T.groupby(level=0).mean().T
        return lead[lead.columns.max()] - lead[lead.columns.min()]

    return effect


def after_the_first(effect: Least) -> Least:
    """Return an effect of all tasks but the first one that was trained.

    The columns are method, trained_tasks and more. A first task that fits into the memory leaves
    all methods that fill it alike with the same samples.
    """

    def parts(means):
        tasks = means.columns.get_level_values(1)
        return effect.parts(means.loc[:, tasks > tasks.min()])

    return Least(parts)


def flattens(low: float, middle: float, high: float) -> Effect:
    """Return how much less is gained by the second of two steps than by the first.

    The columns are the step's variable and metric; the mean over metrics counts.
    """

    def effect(means):
        at = [means[value].mean(axis=1) for value in (low, middle, high)]
        return (at[1] - at[0]) - (at[2] - at[1])

    return effect


def near_balance(means: pd.DataFrame) -> pd.DataFrame:
    """Return the lead, metric by metric, of the best rho within [-0.2, 0.2] on the best outside.

    The columns are rho and metric.
    """
    near = means.columns.get_level_values(0).map(abs) <= BALANCED
    inside, outside = (means.loc[:, part].T.groupby(level=1).max().T for part in (near, ~near))
    return inside - outside


def losses(means: pd.DataFrame) -> pd.DataFrame:
    """Return the loss in every metric by every step of rho on the way from 0 to both ends.

    The columns are rho and metric.
    """
    rhos = sorted(set(means.columns.get_level_values(0)))
    sides = [[r for r in rhos if r >= 0], [r for r in reversed(rhos) if r <= 0]]
    steps = [means[a] - means[b] for side in sides for a, b in pairwise(side)]
    return pd.concat(steps, axis=1)


def above_floor(floor: str, *others: str) -> Effect:
    """Return the least lead, over cells, of any of the others on the floor."""
    return Least(lambda means: -_leads(means, floor, others))
