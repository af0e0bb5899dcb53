"""How sure a difference over a few seeds is: a paired bootstrap, exact where all can be listed."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

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
