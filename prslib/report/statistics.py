"""How sure a difference over a few seeds is: a paired bootstrap, exact where all can be listed."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np
import pandas as pd

LISTED = 6  # seeds up to which every resample is listed; 6 ** 6 of them are 46656
DRAWN = 9999  # resamples drawn where there are more seeds
DECIDING = 3  # seeds; the range of two holds the median of all with a chance of one half
VERDICTS = ("holds", "does not hold", "undecided", "not run")

Effect = Callable[[pd.DataFrame], pd.Series]  # of means, a row a resample, to a number a row


@dataclass(frozen=True)
class Least:
    """An effect that is the least of several quantities: above 0 only if all of them are.

    Parameters
    ----------
    parts : callable
        Takes the mean of every cell, one row a resample, and returns a frame with a column for each
        quantity.
    """

    parts: Callable[[pd.DataFrame], pd.DataFrame]

    def __call__(self, means: pd.DataFrame) -> pd.Series:
        """Return the least quantity of each resample."""
        return self.parts(means).min(axis=1, skipna=False)


@dataclass(frozen=True)
class Interval:
    """An effect and how far it moves when other seeds are drawn; our own choice.

    Parameters
    ----------
    effect : float
        Of the mean over all seeds, in the effect's unit; NaN where there is nothing to measure.
    low, high : float
        Ends of the interval, in the same unit; NaN for fewer than two seeds.
    seeds : int
        Seeds that have all the cells the effect needs.
    resamples : int
        Resamples behind the interval, 0 for fewer than two seeds.
    level : float
        Share of the resamples that the interval holds.
    """

    effect: float
    low: float
    high: float
    seeds: int
    resamples: int
    level: float

    @property
    def coverage(self) -> float:
        """Return the most that the interval of a mean can promise, whatever its nominal level.

        The range of n seeds holds the median of all seeds with probability 1 - 2 ** (1 - n), and
        no resample's mean leaves the range: 50 % for two seeds, 75 % for three, 94 % for five.
        """
        return min(self.level, 1 - 2.0 ** (1 - self.seeds)) if self.seeds > 1 else math.nan

    @property
    def verdict(self) -> str:
        """Return one of `VERDICTS`; an effect above 0 speaks for the claim.

        Decided is what has an interval on one side of 0. Fewer than `DECIDING` seeds decide
        nothing.
        """
        if self.seeds == 0 or math.isnan(self.effect):
            return "not run"
        if self.seeds < DECIDING:
            return "undecided"
        if self.low > 0:
            return "holds"
        return "does not hold" if self.high < 0 else "undecided"


def paired_bootstrap(table: pd.DataFrame, effect: Effect, level: float = 0.95) -> Interval:
    """Resample the seeds of a table and measure the effect of each resample; our own choice.

    All cells of a seed stay together: they share the order of the stream and the initial weights.

    Parameters
    ----------
    table : DataFrame
        One row a seed, one column a cell. Rows with a gap are left out.
    effect : callable
        Takes the mean of every cell, one row a resample, and returns one number a row.
    level : float
        Share of the resamples that the interval holds, between 0 and 1.

    Returns
    -------
    Interval
        Percentile interval.

    Raises
    ------
    ValueError
        If `level` is not between 0 and 1.

    Notes
    -----
    Up to six seeds all n ** n resamples are listed, which draws nothing and gives the bootstrap
    distribution itself. At level 0.95 three seeds or fewer give the range of a mean from the worst
    seed to the best.

    The least of several noisy quantities is lower than the least of their true values, the more so
    the more there are, and so is its whole distribution. Of a `Least` effect the low end is
    therefore cautious, and the high end is taken elsewhere: the least of the quantities' own high
    ends, each at a level corrected for their number (Bonferroni), below which the true least one
    lies with the level asked for. Such a claim does not hold where one quantity by itself shows it.

    Examples
    --------
    >>> table = pd.DataFrame({"PRS": [60.0, 61.0, 62.0], "CRS": [50.0, 53.0, 56.0]})
    >>> found = paired_bootstrap(table, lambda means: means["PRS"] - means["CRS"])
    >>> found.effect, found.low, found.high, found.resamples, found.verdict
    (8.0, 6.0, 10.0, 27, 'holds')
    """
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1, got {level}; 0.95 is usual")
    complete = table.dropna()
    seeds = len(complete)
    if seeds == 0:
        return Interval(math.nan, math.nan, math.nan, 0, 0, level)
    whole = effect(complete.mean().to_frame().T).iloc[0]
    if seeds == 1:
        return Interval(float(whole), math.nan, math.nan, 1, 0, level)
    chosen = _resamples(seeds)
    means = pd.DataFrame(complete.to_numpy()[chosen].mean(axis=1), columns=complete.columns)
    parts = effect.parts(means) if isinstance(effect, Least) else effect(means).to_frame()
    tail = (1 - level) / 2
    low = np.quantile(parts.min(axis=1), tail, method="inverted_cdf")
    highs = np.quantile(parts, 1 - tail / parts.shape[1], axis=0, method="inverted_cdf")
    return Interval(float(whole), float(low), float(highs.min()), seeds, len(chosen), level)


def _resamples(seeds: int) -> np.ndarray:
    """Return the rows of each resample, (resamples, seeds): all there are, or some drawn."""
    if seeds <= LISTED:
        return np.array(list(product(range(seeds), repeat=seeds)))
    return np.random.default_rng(0).integers(seeds, size=(DRAWN, seeds))


NEITHER = "not clearly apart from"
WORDS = {"holds": "above", "does not hold": "below"}  # of the verdict that a difference is above 0


def over_seeds(gaps: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """Average differences over seeds, with an interval; our own choice.

    Parameters
    ----------
    gaps : DataFrame
        The columns of ``keys``, and value: the difference of one seed, a row each, without gaps.
    keys : sequence of str
        Columns whose values belong to one difference.

    Returns
    -------
    DataFrame
        A row for each of them, in order of appearance: the columns of ``keys``; difference (mean
        over seeds), sd (sample standard deviation), low and high (ends of the interval of
        `prslib.report.statistics.paired_bootstrap`), all in the values' unit; seeds; coverage (the
        most that an interval of so few seeds can promise); clearly: "above" or "below" where the
        interval is, else empty, and empty for fewer than three seeds.

    Examples
    --------
    >>> gaps = pd.DataFrame({"metric": "mAP", "value": [6.0, 8.0, 10.0]})
    >>> over_seeds(gaps, ["metric"]).values.tolist()
    [['mAP', 8.0, 2.0, 6.0, 10.0, 3, 0.75, 'above']]
    """
    rows = []
    for key, part in gaps.groupby(list(keys), sort=False, dropna=False):
        found = paired_bootstrap(part[["value"]], lambda means: means["value"])
        rows.append(
            dict(zip(keys, key, strict=True))
            | {"difference": found.effect, "sd": part["value"].std()}
            | {"low": found.low, "high": found.high, "seeds": found.seeds}
            | {"coverage": found.coverage, "clearly": WORDS.get(found.verdict, "")}
        )
    columns = ["difference", "sd", "low", "high", "seeds", "coverage", "clearly"]
    return pd.DataFrame(rows, columns=[*keys, *columns])


def spread(row: pd.Series | dict, digits: int = 1) -> str:
    """Say how far a difference moves when other seeds are drawn.

    Parameters
    ----------
    row : Series or dict
        Of what `over_seeds` gives.
    digits : int
        After the point.

    Returns
    -------
    str
        Such as "95 % interval +1.2 to +3.4 over 10 seeds".
    """
    if row["seeds"] == 1:
        return "one seed"
    ends = f"{row['low']:+.{digits}f} to {row['high']:+.{digits}f} over {row['seeds']} seeds"
    return ends if row["seeds"] < DECIDING else f"{100 * row['coverage']:.0f} % interval {ends}"


def compared(row: pd.Series | dict, method: str, than: str) -> str:
    """Say which of two methods is above the other, and by how much.

    Parameters
    ----------
    row : Series or dict
        Of what `over_seeds` gives, in points.
    method, than : str
        The difference is ``method`` minus ``than``.

    Returns
    -------
    str
        "PRS is above CRS, by +3.1 points (...)"; of fewer than three seeds only who is ahead.
    """
    by = f", by {row['difference']:+.1f} points"
    word = row["clearly"] or NEITHER
    if row["seeds"] < DECIDING:
        word = "ahead of" if row["difference"] > 0 else "behind"
        if round(row["difference"], 1) == 0:
            word, by = "level with", ""
    return f"{method} is {word} {than}{by} ({spread(row)})"


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
