"""Gather the final scores of runs, and measure differences with t intervals."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd
from scipy import special

from prslib.checks import check_order, expected, one_of
from prslib.datasets import DATASETS
from prslib.metrics import values_and_draws

if TYPE_CHECKING:  # torch is not needed for scores
    from prslib.train import Run, RunConfig

LEVEL = 0.95  # of all intervals; pages and notebooks name it in their prose
DECIDING = 5  # seeds; with fewer, the verdict is "undecided"
EXACT = 9  # decimals; smaller differences are due to rounding
# In points: "no difference" means an interval that lies between -SMALL and SMALL. SMALL is
# half the paper's smallest overall gain of PRS over CRS on COCOseq (Table 1: 3.7, in O-F1),
# rounded to a whole point: a smaller effect would not be the one that the paper reports.
SMALL = 2.0
# the two kinds of test sets, further images for scores of single classes, and samples of
# the stream that are predicted before the network is trained on them
TEST_WORDS = {
    "balanced": "balanced test",
    "full": "balanced test",
    "imbalanced": "imbalanced test",
    "open": "further images",
    "prequential": "tested, then trained",
}
# fields of a run that change no score, but add scores or measurements
MEASURED = {"tuned_threshold", "test_resamples", "features_per_class"}
MEASURED |= {"predictions", "variance_points", "prequential"}
Scores = Sequence[float] | Sequence["Run"] | np.ndarray
VERDICTS = ("holds", "does not hold", "no difference", "undecided", "not run")
WORDS = {"holds": "above", "does not hold": "below"}  # an interval's side of 0


@dataclass(frozen=True)
class Interval:
    """Effect with a confidence interval, as `compare` returns it.

    Its text is "+3.3 (95 % CI +1.7 to +4.9, 10 seeds)".

    Parameters
    ----------
    effect : float
        Mean over seeds, such as a difference in points; NaN if there is no seed.
    low, high : float
        Bounds of the interval; NaN for fewer than two seeds.
    p : float
        Two-sided p value for the null hypothesis that the effect is 0; NaN for fewer
        than five seeds. If the effect was selected from several effects, p is small if
        all of them are above 0, or if one of them is below 0.
    seeds : int
        Number of seeds in the mean.
    level : float
        Level of the interval, such as 0.95.
    images : bool
        Whether the interval also reflects the sampling error of the test set.
    cell : int
        Index of the effect among several effects, such as one per class group, if it
        was selected from them.
    reach : float
        Largest distance from 0 in the intervals of all these effects.

    Examples
    --------
    >>> result = Interval(3.3, 1.7, 4.9, p=0.001, seeds=10, level=0.95)
    >>> print(result, result.verdict)
    +3.3 (95 % CI +1.7 to +4.9, 10 seeds) holds
    """

    effect: float
    low: float
    high: float
    p: float
    seeds: int
    level: float
    images: bool = True
    cell: int = 0
    reach: float = 0.0

    @property
    def verdict(self) -> str:
        """Verdict on the claim that the effect is above 0.

        The verdict is "holds" if the interval is above 0, "does not hold" if it is
        below 0, and "no difference" if it contains 0 and lies between -2 and +2 points.
        For "no difference", the intervals of all effects from which this effect was
        selected must also lie between -2 and +2 points. In all other cases, and with
        fewer than five seeds, the verdict is "undecided". Without a seed, it is "not
        run".
        """
        return self.verdict_within(SMALL)

    def verdict_within(self, small: float) -> str:
        """Return the verdict with ``small`` points as the margin of "no difference"."""
        if not self.seeds:
            return "not run"
        if self.seeds < DECIDING:
            return "undecided"
        if self.low > 0:
            return "holds"
        if self.high < 0:
            return "does not hold"
        is_small = within(self.low, self.high, small) and self.reach <= small
        return "no difference" if is_small else "undecided"

    def __str__(self) -> str:
        """Return "+3.3 (95 % CI +1.7 to +4.9, 10 seeds)", and what is not included."""
        lacks = "" if self.images else "; test sampling not included"
        return f"{self.effect:+.1f} ({say_interval(vars(self))}{lacks})"


def within(low: Any, high: Any, small: float = SMALL) -> Any:
    """Return whether an interval, or each of many, shows no difference larger than `small`."""
    return (low >= -small) & (high <= small)


def scores(runs: "Run | Sequence[Run]") -> pd.DataFrame:
    """Return the final scores of runs in one tidy frame (Table 1).

    Parameters
    ----------
    runs : Run or sequence of Run
        Runs on any data sets with any methods.

    Returns
    -------
    DataFrame
        Columns ``dataset``, ``test_set``, ``method``, ``seed``, ``group``, ``metric``
        and ``value``. The value is in percent and was measured on the test samples of
        all tasks after training on the last task. A group is "overall", a class group
        or a single class. Each field of `RunConfig` that differs between the runs, such
        as ``rho``, has a column after the method. If a method does not read the field,
        the entry is 0 in the column ``memory_size``, "" in the column ``schedule``, and
        NaN in all other columns.

    Raises
    ------
    ValueError
        If there is no run.

    See Also
    --------
    compare : Difference of two methods with its interval.
    prslib.metrics.forgetting : How much scores have decreased by the end of a run.

    Examples
    --------
    >>> from prslib import RunConfig, run
    >>> runs = [run(RunConfig("digits70tiny", "PRS", rho=rho)) for rho in (0.0, 1.0)]
    >>> table = scores(runs)
    >>> table.columns.tolist()
    ['dataset', 'test_set', 'method', 'rho', 'seed', 'group', 'metric', 'value']
    >>> by_rho = table.pivot_table("value", ["test_set", "group", "metric"], "rho")
    >>> bool(by_rho.loc[("balanced", "minority", "mAP")].idxmax() == 0.0)
    True
    """
    several: list[Any] = [runs] if hasattr(runs, "scores") else list(runs)
    if not several:
        raise ValueError(expected("at least one run", "none"))
    varied = list_varied([run.config for run in several])
    frames = []
    for run in several:
        rows = at_end(run.scores)
        others = [name for name in varied if name not in rows]
        settings: dict[str, Any] = {n: setting_of(run.config, n) for n in others}
        frames.append(rows.assign(**settings))
    columns = ["dataset", "test_set", "method", *varied, "seed", "group", "metric"]
    table = pd.concat(frames)
    table = table[columns].assign(value=100 * table["value"])
    return table.drop_duplicates(ignore_index=True)


def at_end(scores: pd.DataFrame) -> pd.DataFrame:
    """Select a run's scores on all tasks, measured after the last task."""
    is_last = scores["trained_tasks"] == scores["trained_tasks"].max()
    return scores[is_last & (scores["task"] == "seen")]


def list_varied(configs: Sequence["RunConfig"]) -> list[str]:
    """List the fields, except data set, method and seed, in which runs differ."""
    from prslib.train import RunConfig  # imports torch, which scores do not need

    left_out = {"dataset", "method", "seed", *MEASURED}
    names = [row.name for row in fields(RunConfig) if row.name not in left_out]
    return [
        name
        for name in names
        if any(getattr(each, name) != getattr(configs[0], name) for each in configs)
    ]


def label_powers(rows: pd.DataFrame, powers: Sequence[float]) -> pd.DataFrame:
    """Rename PRS, for example to "PRS, rho 0.5", in rows with a power in `powers`."""
    is_other = (rows["method"] == "PRS") & rows["rho"].isin(powers)
    names = "PRS, rho " + rows["rho"].map("{:g}".format)
    return rows.assign(method=rows["method"].mask(is_other, names))


def setting_of(config: "RunConfig", name: str) -> Any:
    """Return a run's field as a table cell, or NaN if its method does not read it."""
    if name not in config.identity:
        return math.nan
    value = config.resolved[name]
    return str(value) if isinstance(value, dict | tuple) else value


def compare(
    first: Scores,
    second: Scores,
    level: float = LEVEL,
    metric: str = "mAP",
    group: str = "overall",
    test_set: str | None = None,
) -> Interval:
    """Compare two methods on the same seeds, with a t interval of the difference.

    For runs, the interval is computed as in the report: it reflects the variance over
    seeds and, if the test sets were resampled, the variance over test samples. For
    plain scores, it is Student's t interval over seeds.

    Parameters
    ----------
    first, second : sequence of Run or array_like of float of shape (n_seeds,)
        Either runs on the same data, which are matched by seed, or scores in percent.
        For scores, ``first[i]`` and ``second[i]`` must come from the same seed.
    level : float
        Level of the interval, between 0 and 1.
    metric, group : str
        Metric and group of the scores that are compared, which are measured on all
        tasks after training on the last task. Scores in percent need neither parameter.
    test_set : str or None
        Test set on which the runs were scored; by default, the test set in the data
        set's recipe.

    Returns
    -------
    Interval
        Mean of first minus second, in points, with its interval, p value and verdict.

    Raises
    ------
    ValueError
        If the numbers of scores differ, or if the scores are series with the same index
        in different orders; if a seed is missing or occurs twice; if the runs are on
        different data sets, or do not contain the score; or if ``level`` is not between
        0 and 1.

    Warns
    -----
    UserWarning
        If all scores are within [-1, 1], because scores in percent are expected.

    See Also
    --------
    scores : Final scores of runs in one frame.
    prslib.statistics.Interval : Class of the result.

    Notes
    -----
    The variance of a difference is the variance over seeds, divided by their number,
    plus the variance over resampled test images (`prslib.resamples.image_draws`). Both
    terms contain the interaction of seeds and images, so that intervals are slightly too
    wide. Satterthwaite's formula gives the degrees of freedom.

    Examples
    --------
    >>> print(compare([50.2, 51.0, 49.5, 52.1, 50.8], [47.9, 48.0, 47.1, 48.8, 48.3]))
    +2.7 (95 % CI +2.2 to +3.2, 5 seeds; test sampling not included)
    """
    if not 0 < level < 1:
        raise ValueError(expected("level between 0 and 1", level))
    if any(hasattr(run, "scores") for run in first):
        gaps = _paired_gaps(list(first), list(second), metric, group, test_set)
        return interval(gaps[:, None], level=level)
    check_order(first, second)
    scores = np.asarray(first, float)
    others = np.asarray(second, float)
    if scores.ndim != 1 or scores.shape != others.shape:
        what = "one score per seed for both methods"
        raise ValueError(expected(what, f"shapes {scores.shape} and {others.shape}"))
    largest = np.nanmax(np.abs([scores, others]), initial=0)
    if 0 < largest <= 1:
        warnings.warn(expected("scores in percent", "none above 1"), stacklevel=2)
    return interval((scores - others)[:, None, None], level=level)


def _paired_gaps(
    first: list, second: list, metric: str, group: str, test_set: str | None
) -> np.ndarray:
    """Return the difference of two runs for each seed, in points, (S, 1 + draws)."""
    runs = [*first, *second]
    datasets = {run.config.dataset for run in runs}
    if len(datasets) > 1:
        raise ValueError(expected("runs of one data set", sorted(datasets)))
    name = test_set or DATASETS[datasets.pop()].recipe.test_set
    seeds = [run.config.seed for run in first]
    others = [run.config.seed for run in second]
    if sorted(seeds) != sorted(others) or len(set(seeds)) < len(seeds):
        got = f"seeds {sorted(seeds)} and {sorted(others)}"
        raise ValueError(expected("one run per seed of both methods", got))
    scores = [_last_score(run, metric, group, name) for run in first]
    theirs = [_last_score(run, metric, group, name) for run in second]
    resamples = {len(values) - 1 for values in [*scores, *theirs]}
    if len(resamples) > 1:
        raise ValueError(expected("runs with one test_resamples", sorted(resamples)))
    scores, theirs = np.array(scores), np.array(theirs)
    return 100 * (scores[np.argsort(seeds)] - theirs[np.argsort(others)])


def _last_score(run: "Run", metric: str, group: str, test_set: str) -> np.ndarray:
    """Return a run's final score, followed by its resamples, (1 + draws,)."""
    rows = at_end(run.scores)
    place = {"test_set": test_set, "group": group, "metric": metric}
    for name, value in place.items():
        rows = rows[rows[name] == one_of(name, value, rows[name].unique())]
    draws = np.array([])
    if run.resampled is not None:
        # NaN for a class's score, which is not resampled on all tasks
        draws = run.resampled.reindex(rows.index).to_numpy(float)[0]
    return np.concatenate([rows["value"], draws])


def interval(values: np.ndarray, over: str = "mean", level: float = LEVEL) -> Interval:
    """Return the mean effect of some cells, or the weakest one if `over` is "every".

    `values` are (seeds, cells, 1 + draws): for each seed and cell, the value, followed
    by its values on resampled test images. Seeds and resamples that lack the value of a
    cell are left out.
    """
    values = values[~np.isnan(values[..., 0]).any(axis=1)]
    if over == "mean":
        values = values.mean(axis=1, keepdims=True)
    seeds = values[..., 0]
    count = len(values)
    if count < 2:
        cell = int(seeds.argmin()) if count else 0
        effect = float(seeds[0, cell]) if count else math.nan
        unknown = math.nan, math.nan, math.nan
        last = {"images": False, "cell": cell, "reach": math.nan}
        return Interval(effect, *unknown, count, level, **last)
    images = values[..., 1:].mean(axis=0).T  # (draws, cells)
    images = images[~np.isnan(images).any(axis=1)]  # some may lack a class group
    has_images = len(images) > 1
    low, high, p, cell, reach = ends(seeds, images if has_images else None, level)
    return Interval(
        effect=float(seeds.mean(axis=0)[cell]),
        low=float(low),
        high=float(high),
        p=float(p) if count >= DECIDING else math.nan,
        seeds=count,
        level=level,
        images=has_images,
        cell=int(cell),
        reach=float(reach),
    )


def ends(
    seeds: np.ndarray, images: np.ndarray | None = None, level: float = LEVEL
) -> tuple[np.ndarray, ...]:
    """Return the weakest cell's interval ends, p value and index, and the reach.

    `seeds` are the values (S, ..., K) of K cells, and `images` are the means under
    resamples (B, ..., K). The weakest cell has the least evidence of being above 0. Its
    interval is therefore above 0 only if the intervals of all cells are. The reach is
    the largest distance from 0 in the intervals of all cells.
    """
    count = len(seeds)
    cells = seeds.shape[-1]
    mean = np.round(seeds.mean(axis=0), EXACT)
    of_seeds = np.round(seeds, EXACT).var(axis=0, ddof=1) / count
    variance = of_seeds
    freedom = np.full(mean.shape, count - 1.0)
    if images is not None:  # Satterthwaite's degrees of freedom
        of_images = images.var(axis=0, ddof=1)
        variance = of_seeds + of_images
        terms = of_seeds**2 / (count - 1) + of_images**2 / (len(images) - 1)
        freedom = np.divide(variance**2, terms, out=freedom, where=terms > 0)
    # "every" needs no correction, because each cell must pass (intersection-union test);
    # whether any of the K cells is below 0 is tested with Bonferroni's correction
    error = np.sqrt(variance)
    with np.errstate(divide="ignore", invalid="ignore"):  # an error of 0
        size = np.where(mean == 0, 0.0, mean / error)
    above = special.stdtr(freedom, -size)
    below = special.stdtr(freedom, size)
    # cells with an error of 0 have the same evidence; the lowest mean is the weakest
    weakest = np.lexsort((mean, -above, below), axis=-1)[..., :1]

    def of_weakest(values: np.ndarray) -> np.ndarray:
        return np.take_along_axis(values, weakest, axis=-1)[..., 0]

    tail = (1 - level) / 2
    width = -error * special.stdtrit(freedom, tail)
    low = of_weakest(mean - width)
    high = of_weakest(mean - error * special.stdtrit(freedom, tail / cells))
    p = 2 * np.minimum(of_weakest(above), cells * of_weakest(below))
    reach = (abs(mean) + width).max(axis=-1)
    return low, high, np.minimum(1, p), weakest[..., 0], reach


def holm(p: pd.Series) -> pd.Series:
    """Return p values corrected for their number (Holm's step-down); NaN stays."""
    order = p.dropna().sort_values(kind="stable")
    corrected = (order * np.arange(len(order), 0, -1)).cummax()
    return corrected.clip(upper=1).reindex(p.index)


def over_seeds(gaps: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """Average `value`, one row per seed, over the seeds of each combination of `keys`."""
    rows = []
    for key, seeds in gaps.groupby(list(keys), sort=False, dropna=False):
        gap = interval(values_and_draws(seeds).to_numpy()[:, None])
        numbers = gap.effect, seeds["value"].std(), gap.low, gap.high, gap.seeds
        rows.append((*cast(tuple, key), *numbers, WORDS.get(gap.verdict, "")))
    # sd is the sample standard deviation; clearly is "above" or "below" if the interval
    # of enough seeds excludes 0, and "" otherwise
    columns = ["difference", "sd", "low", "high", "seeds", "clearly"]
    return pd.DataFrame(rows, columns=[*keys, *columns])


def say_interval(row: pd.Series | dict) -> str:
    """Write the interval of a row of `over_seeds`: "95 % CI +1.2 to +3.4, 10 seeds"."""
    if row["seeds"] == 1:
        return "one seed"
    low, high = (f"{row[name]:+.1f}" for name in ("low", "high"))
    level = row.get("level", LEVEL)
    return f"{100 * level:g} % CI {low} to {high}, {row['seeds']} seeds"


def say_difference(row: pd.Series | dict, method: str, than: str) -> str:
    """Write a row of `over_seeds`: "PRS minus CRS: +3.1 (95 % CI +1.2 to +5.0, 10 seeds)"."""
    return f"{method} minus {than}: {row['difference']:+.1f} ({say_interval(row)})"
