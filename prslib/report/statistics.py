"""Compute intervals of differences over seeds by a paired bootstrap, and put them into words."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd

LISTED = 6  # seeds up to which every resample is listed; 6 ** 6 of them are 46656
DRAWN = 9999  # resamples drawn where there are more seeds
DECIDING = 3  # seeds; the range of two holds the median of all with a chance of one half
VERDICTS = ("holds", "does not hold", "undecided", "not run")
WORDS = {"holds": "above", "does not hold": "below"}  # of the verdict that a difference is above 0
NEITHER = "not clearly apart from"

Effect = Callable[[pd.DataFrame], pd.Series]  # of means, a row a resample, to a number a row


@dataclass(frozen=True)
class Least:
    """An effect that is the least of several quantities: above 0 only if all of them are."""

    parts: Callable[[pd.DataFrame], pd.DataFrame]  # of means, to a column for each quantity

    def __call__(self, means: pd.DataFrame) -> pd.Series:
        """Return the least quantity of each resample."""
        return self.parts(means).min(axis=1, skipna=False)


@dataclass(frozen=True)
class Interval:
    """An effect, and how far it moves when other seeds are drawn."""

    effect: float  # of the mean over all seeds; NaN where there is nothing to measure
    low: float  # NaN, as `high`, for fewer than two seeds
    high: float
    seeds: int  # that have all the cells the effect needs
    resamples: int
    level: float  # share of the resamples between `low` and `high`

    @property
    def coverage(self) -> float:
        """Return the most that the interval of a mean can promise, whatever its nominal level.

        The range of n seeds holds the median of all seeds with probability 1 - 2 ** (1 - n), and
        no resample's mean leaves the range: 50 % for two seeds, 75 % for three, 94 % for five.
        """
        return min(self.level, 1 - 2.0 ** (1 - self.seeds)) if self.seeds > 1 else math.nan

    @property
    def verdict(self) -> str:
        """Return one of `VERDICTS`; an interval above 0 speaks for the claim."""
        if self.seeds == 0 or math.isnan(self.effect):
            return "not run"
        if self.seeds < DECIDING:
            return "undecided"
        if self.low > 0:
            return "holds"
        return "does not hold" if self.high < 0 else "undecided"


def paired_bootstrap(table: pd.DataFrame, effect: Effect, level: float = 0.95) -> Interval:
    """Resample the seeds of a table (seeds, cells) and return the effect's percentile interval.

    All cells of a seed stay together: they share the order of the stream and the initial weights.
    Rows with a gap are left out. Up to six seeds all n ** n resamples are listed; at level 0.95
    three seeds or fewer give the range from the worst seed to the best.
    """
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1, got {level}; 0.95 is usual")
    complete = table.dropna()
    seeds = len(complete)
    if seeds == 0:
        return Interval(math.nan, math.nan, math.nan, 0, 0, level)
    whole = float(effect(complete.mean().to_frame().T).iloc[0])
    if seeds == 1:
        return Interval(whole, math.nan, math.nan, 1, 0, level)
    chosen = _resamples(seeds)
    means = pd.DataFrame(complete.to_numpy()[chosen].mean(axis=1), columns=complete.columns)
    parts = effect.parts(means) if isinstance(effect, Least) else effect(means).to_frame()
    tail = (1 - level) / 2
    # the least of several noisy quantities lies below the least of their true values, the more so
    # the more there are: its low end is cautious. Its high end is the lowest of the quantities'
    # own high ends, at a level corrected for their number (Bonferroni).
    low = np.quantile(parts.min(axis=1), tail, method="inverted_cdf")
    highs = np.quantile(parts, 1 - tail / parts.shape[1], axis=0, method="inverted_cdf")
    return Interval(whole, float(low), float(highs.min()), seeds, len(chosen), level)


def _resamples(seeds: int) -> np.ndarray:
    """Return the rows of each resample, (resamples, seeds): all there are, or some drawn."""
    if seeds <= LISTED:
        return np.array(list(product(range(seeds), repeat=seeds)))
    return np.random.default_rng(0).integers(seeds, size=(DRAWN, seeds))


def over_seeds(gaps: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """Average the column `value`, a row a seed, over the seeds of each combination of `keys`.

    Returns these in order of appearance with difference (the mean), sd (of the sample), low and
    high (of `paired_bootstrap`), seeds, coverage, and clearly: "above" or "below" where the whole
    interval is, else "".
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
    """Say the interval of a row of `over_seeds`: "95 % interval +1.2 to +3.4 over 10 seeds"."""
    if row["seeds"] == 1:
        return "one seed"
    ends = f"{row['low']:+.{digits}f} to {row['high']:+.{digits}f} over {row['seeds']} seeds"
    return ends if row["seeds"] < DECIDING else f"{100 * row['coverage']:.0f} % interval {ends}"


def compared(row: pd.Series | dict, method: str, than: str) -> str:
    """Say a row of `over_seeds` in points: "PRS is above CRS, by +3.1 points (...)".

    Of fewer than three seeds it says only who is ahead.
    """
    by = f", by {row['difference']:+.1f} points"
    word = row["clearly"] or NEITHER
    if row["seeds"] < DECIDING:
        word = "ahead of" if row["difference"] > 0 else "behind"
        if round(row["difference"], 1) == 0:
            word, by = "level with", ""
    return f"{method} is {word} {than}{by} ({spread(row)})"
