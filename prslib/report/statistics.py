"""Measure the effects that decide claims, with t intervals over seeds, and say them in words."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd
from scipy.stats import t as student

DECIDING = 5  # seeds; with fewer nothing is decided
EXACT = 9  # decimals; what lies below is rounding
VERDICTS = ("holds", "does not hold", "undecided", "not run")
WORDS = {"holds": "above", "does not hold": "below"}  # of the verdict that a difference is above 0
NEITHER = "not clearly apart from"
BALANCED = 0.2  # the paper sets rho within [-0.2, 0.2]

# Of a table (seeds, cells) to its parts: a number, (A,) numbers of which the least counts, or
# (A, B, C): the claim is right if for every a there is a b at which all c are above 0.
Effect = Callable[[pd.DataFrame], object]


@dataclass(frozen=True)
class Interval:
    """An effect, and how far it moves when other seeds, and other test images, are drawn."""

    effect: float  # over all seeds; NaN where there is nothing to measure
    low: float  # NaN, as `high`, for fewer than two seeds
    high: float
    p: float  # two-sided, of an effect of 0; NaN for fewer than `DECIDING` seeds
    seeds: int  # that have all the cells the effect needs
    level: float  # of the interval

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


def interval(
    table: pd.DataFrame,
    effect: Effect,
    level: float = 0.95,
    draws: pd.DataFrame | None = None,  # a row a resample of the test images, means over seeds
) -> Interval:
    """Return an effect on a table (seeds, cells) with Student's t interval over complete seeds."""
    complete = table.dropna()
    seeds, unknown = len(complete), (math.nan,) * 3
    if seeds == 0:
        return Interval(math.nan, *unknown, 0, level)
    whole = _parts(effect, complete)
    if seeds == 1:
        return Interval(float(worth(whole)), *unknown, 1, level)
    # the jackknife, with all cells of a seed together: they share stream and initial weights
    left = np.stack([_parts(effect, complete.drop(index=seed)) for seed in complete.index])
    images = None
    if draws is not None:
        images = np.stack([_parts(effect, draws.iloc[[row]]) for row in range(len(draws))])
    low, high, p = ends(whole, seeds * whole - (seeds - 1) * left, images, level)
    p = float(p) if seeds >= DECIDING else math.nan
    return Interval(float(worth(whole)), float(low), float(high), p, seeds, level)


def _parts(effect: Effect, table: pd.DataFrame) -> np.ndarray:
    """Return an effect's parts as (A, B, C)."""
    found = np.asarray(effect(table), float)
    return found.reshape(found.shape + (1,) * (3 - found.ndim))


def worth(parts: np.ndarray) -> np.ndarray:
    """Return the least over A of the largest over B of the least over C, of (..., A, B, C)."""
    return parts.min(axis=-1).max(axis=-1).min(axis=-1)


def ends(
    whole: np.ndarray, seeds: np.ndarray, images: np.ndarray | None = None, level: float = 0.95
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return both ends of an interval, and the two-sided p value of an effect of 0."""
    every, some, all_ = whole.shape[-3:]  # (..., A, B, C); seeds, images: with an axis in front
    whole, count = np.round(whole, EXACT), len(seeds)
    own = np.round(seeds, EXACT).var(axis=0, ddof=1) / count
    freedom, variance = np.full(whole.shape, count - 1.0), own
    if images is not None:  # Satterthwaite's degrees of freedom
        other = images.var(axis=0, ddof=1)
        variance = own + other
        parts = own**2 / (count - 1) + other**2 / (len(images) - 1)
        np.divide(variance**2, parts, out=freedom, where=parts > 0)
    # "every" needs no correction, as each of its parts must pass (intersection-union); "some" is
    # tested at a share of the level (Bonferroni): a claim fails at some a of A and some c of C
    error, tail = np.sqrt(variance), (1 - level) / 2
    low = worth(whole - error * student.isf(tail / some, freedom))
    high = worth(whole + error * student.isf(tail / (every * all_), freedom))
    with np.errstate(divide="ignore", invalid="ignore"):  # all seeds alike: certain, or 0
        size = np.where(whole == 0, 0.0, whole / error)
    # a part far above 0 has a small p value: the order is turned round
    above = some * -worth(-student.sf(size, freedom))
    below = every * all_ * worth(student.cdf(size, freedom))
    return low, high, np.minimum(1, 2 * np.minimum(above, below))


def holm(p: pd.Series) -> pd.Series:
    """Return p values corrected for their number, by Holm's step-down procedure; NaN stays."""
    order = p.dropna().sort_values(kind="stable")
    return (order * np.arange(len(order), 0, -1)).cummax().clip(upper=1).reindex(p.index)


def over_seeds(gaps: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """Average the column `value`, a row a seed, over the seeds of each combination of `keys`."""
    rows = []
    for key, part in gaps.groupby(list(keys), sort=False, dropna=False):
        values = part["value"].dropna()
        draws = pd.DataFrame({"value": mean_draws(part)}) if has_draws(part) else None
        table = values.to_frame().reset_index(drop=True)
        found = interval(table, lambda table: table["value"].mean(), draws=draws)
        clearly = WORDS.get(found.verdict, "")
        sd = part["value"].std()
        rows.append((*key, found.effect, sd, found.low, found.high, found.seeds, clearly))
    # sd of the sample; clearly "above" or "below" where the whole interval is, else ""
    columns = ["difference", "sd", "low", "high", "seeds", "clearly"]
    return pd.DataFrame(rows, columns=[*keys, *columns])


def has_draws(rows: pd.DataFrame) -> bool:
    """Tell whether every row has scores under resamples of the test images, in `draws`."""
    return "draws" in rows and len(rows) > 0 and rows["draws"].notna().all()


def mean_draws(rows: pd.DataFrame) -> np.ndarray:
    """Average `draws`, arrays of (B,), over rows that were resampled alike."""
    return np.stack(list(rows["draws"])).mean(axis=0, dtype=np.float64)


def spread(row: pd.Series | dict, digits: int = 1) -> str:
    """Say the interval of a row of `over_seeds`: "95 % interval +1.2 to +3.4 over 10 seeds"."""
    if row["seeds"] == 1:
        return "one seed"
    low, high = (f"{row[name]:+.{digits}f}" for name in ("low", "high"))
    return f"95 % interval {low} to {high} over {row['seeds']} seeds"


def compared(row: pd.Series | dict, method: str, than: str) -> str:
    """Say a row of `over_seeds`: "PRS is above CRS, by +3.1 points (...)"."""
    by = f", by {row['difference']:+.1f} points"
    word = row["clearly"] or NEITHER
    if row["seeds"] < DECIDING:  # only who is ahead
        word = "ahead of" if row["difference"] > 0 else "behind"
        if round(row["difference"], 1) == 0:
            word, by = "level with", ""
    return f"{method} is {word} {than}{by} ({spread(row)})"


# The statistics. Each is called with what it compares and then with a table (seeds, cells), and
# returns parts above 0 where a claim is right. The columns are what is compared (methods, sizes,
# values of rho), perhaps a group or a task, and the metric.


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
    """Return how much less one method's score varies from schedule to schedule than another's."""

    def effect(table):
        schedules = table[first].columns.unique(0)
        values = [np.stack([table[m][s] for s in schedules], axis=1) for m in (other, first)]
        return schedule_variance(values[0]) - schedule_variance(values[1])

    return effect


def schedule_variance(scores: np.ndarray) -> np.ndarray:
    """Average the covariances over schedules of all pairs of different seeds, and the metrics."""
    seeds, schedules = scores.shape[:2]  # (seeds, schedules, ..., metrics)
    scores = scores - scores.mean(axis=1, keepdims=True)
    total, pairs = (scores.sum(axis=0) ** 2).sum(axis=0), seeds**2
    if seeds > 1:  # without the pairs of a seed and itself, which alone hold the seeds' noise
        total, pairs = total - (scores**2).sum(axis=(0, 1)), seeds * (seeds - 1)
    return (total / pairs / (schedules - 1)).mean(axis=-1)


@_of_means
def lead_grows(means: pd.Series, first: str, other: str) -> float:
    """Return how much larger a lead is after the last task than after the first."""
    lead = (means[first] - means[other]).groupby(level=0).mean()  # over metrics
    return lead[lead.index.max()] - lead[lead.index.min()]


def after_the_first(effect: Effect) -> Effect:
    """Return an effect on all trained tasks but the first."""
    # all methods keep the same of a first task that fits into the memory
    return lambda table: effect(table.drop(columns=table.columns.unique(1).min(), level=1))


@_of_means
def flattens(means: pd.Series, low: float, middle: float, high: float) -> float:
    """Return how much less is gained by the second of two steps than by the first."""
    at = [means[value].mean() for value in (low, middle, high)]
    return (at[1] - at[0]) - (at[2] - at[1])


@_of_means
def near_balance(means: pd.Series) -> np.ndarray | float:
    """Return the leads of each rho near 0 on each other: (metrics, within, outside)."""
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
