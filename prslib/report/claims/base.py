"""Read scores for a claim, and decide it.

A claim is a function of one seed's scores in one metric. It returns a number, or some by
name, above 0 where the claim is right; `declare` sets the claim's words beside it.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import FunctionType
from typing import Any, TypedDict, Unpack

import numpy as np
import pandas as pd

from prslib.checks import one_of
from prslib.metrics import values_and_draws
from prslib.report.tables import MAIN_METRICS, at_own_threshold
from prslib.statistics import LEVEL, SMALL, interval

COCO = "COCOseq"
NUS = "NUS-WIDEseq"
MNIST = "Imbal-MNISTseq"
SVHN = "Imbal-SVHNseq"
# that the text names where it says "all the baselines"
RIVALS = ("CRS", "GSS", "ExStream")
ALL = ("Finetune", "EWC", *RIVALS)
# columns that say how a run differs from the standard; missing where it does not
SETTINGS = {
    "memory_size": float,  # as a share of the standard memory
    "schedule": object,  # "0,3,1,2"
    "test_set": object,
    "model": object,  # as the paper calls it
    "epochs": float,
    "frozen_stages": object,  # OTHER than the standard's
    "pretrained_stages": object,  # OTHER than the standard's
    "rho": float,
}
OTHER = "other"  # number of stages, as networks have different numbers of them
# differences so small that an interval within them says "no difference": of memory as of
# scores, and of a correlation what is called a small one (Cohen 1988); in other units
# half of the paper's own effect, from which `SMALL` comes, too
MARGINS = {"points": SMALL, "points of memory": SMALL, "rank correlation": 0.1}

FACT = "fact"  # in place of a verdict, of a constant

Cells = dict[str, np.ndarray]  # by name: (1 + draws,)
Pairs = frozenset[tuple[str, object]]  # names and values of `SETTINGS`
STANDARD: Pairs = frozenset()


class Setting(TypedDict, total=False):
    """The settings in which a run differs from the standard: the names in `SETTINGS`."""

    memory_size: float | None
    schedule: str | None
    test_set: str | None
    model: str | None
    epochs: float | None
    frozen_stages: str | None
    pretrained_stages: str | None
    rho: float | None


class Place(Setting, total=False):
    """The row of a score: the arguments of `Seed.score` but the method."""

    group: str
    measure: str
    task: str
    after: int


class Scores:
    """The scores of one data set, with or without `SETTINGS` as columns."""

    def __init__(self, rows: pd.DataFrame):
        self.seeds = sorted(rows["seed"].unique())
        self.last = rows["trained_tasks"].max()
        settings = settings_of(rows)
        usual = np.array([setting == STANDARD for setting in settings], bool)
        standard = rows["method"].eq("PRS") & usual
        self.rho = np.nan  # the standard's
        if "standard_rho" in rows:
            self.rho = rows.loc[standard, "standard_rho"].max()
        self.runs = set(
            zip(rows["method"], settings, rows["trained_tasks"], strict=True)
        )
        self.values: dict[tuple, np.ndarray] = {}
        names = ["seed", "metric", "method", "group", "measure", "task"]
        keys = rows[[*names, "trained_tasks"]].itertuples(index=False, name=None)
        values = values_and_draws(rows).to_numpy()
        for key, setting, value in zip(keys, settings, values, strict=True):
            self.values.setdefault((*key, setting), value)

    def levels(self, name: str, *methods: str) -> list:
        """Return a setting's values that all methods were run with, None for the standard."""
        common = []
        for method in methods:
            settings = {setting for who, setting, _ in self.runs if who == method}
            alone = [dict(setting) for setting in settings if len(setting) < 2]
            common.append({s.get(name) for s in alone if not s or name in s})
        values = set.intersection(*common)
        if len(values) < 2:
            raise LookupError(f"no runs of {methods} with several {name}")
        usual = [None] if None in values else []
        return usual + sorted(values - {None})

    def times(self, method: str) -> list[int]:
        """Return after how many tasks a method was scored in the standard setting."""
        return sorted(
            time
            for who, setting, time in self.runs
            if (who, setting) == (method, STANDARD)
        )


def settings_of(rows: pd.DataFrame) -> list[Pairs]:
    """Return how the run of each row differs from the standard."""
    table = rows.reindex(columns=list(SETTINGS)).astype(object)
    return [
        frozenset(pair for pair in zip(SETTINGS, row, strict=True) if pd.notna(pair[1]))
        for row in table.itertuples(index=False, name=None)
    ]


@dataclass(frozen=True)
class Seed:
    """The scores of one seed in one metric, as claims read them."""

    scores: Scores
    number: int
    metric: str

    def score(
        self,
        method: str,
        group: str = "overall",
        measure: str = "score",
        task: str = "seen",
        after: int = 0,  # trained tasks, 0 for all
        **setting: Unpack[Setting],  # how it differs from the standard
    ) -> np.ndarray:
        """Return a score as (1 + draws,); raise KeyError where there is none."""
        for name in setting:
            one_of("setting", name, SETTINGS)
        pairs = frozenset(pair for pair in setting.items() if pair[1] is not None)
        place = method, group, measure, task, after or self.scores.last
        return self.scores.values[self.number, self.metric, *place, pairs]

    def lead(self, first: str, others: Iterable[str], **place: Unpack[Place]) -> Cells:
        """Return how far one method is above each of others."""
        ours = self.score(first, **place)
        return {f"over {other}": ours - self.score(other, **place) for other in others}


@dataclass(frozen=True)
class Claim:
    """A claim in words, and the numbers that decide it."""

    name: str
    of: Callable[[Seed], Cells]
    statement: str
    source: str  # section, figure or table of the paper
    test: str  # what is measured
    question: str
    over: str = "every"  # cell, of which the weakest counts, or their "mean"
    on: tuple[str, ...] = (COCO, NUS)  # the paper's data sets
    metrics: tuple[str, ...] = MAIN_METRICS
    unit: str = "points"
    headline: bool = False  # in the README and in the short picture
    across: Callable[[np.ndarray], np.ndarray] | None = None  # a number of all seeds
    printed: tuple[tuple[str, float], ...] = ()  # effects that the text states
    margin: float | None = None  # of "no difference"; None for that of the unit
    of_images: bool = False  # nothing that other streams than the paper's could show
    implies: tuple[str, ...] = ()  # claims whose cells it has among its own
    fact: bool = False  # a constant of the data: no run and no seed changes it

    def evaluate(self, scores: Scores, metrics: Sequence[str]) -> tuple:
        """Return names and values (seeds, cells, 1 + draws), of seeds that have all rows."""
        names = []
        values = []
        for number in scores.seeds:
            cells = {}
            with suppress(LookupError):  # it was not run
                for metric in metrics:
                    of_metric = self.of(Seed(scores, number, metric))
                    for name, value in of_metric.items():
                        cells[f"{name} {metric}".strip()] = value
                values.append(list(cells.values()))
                names = list(cells)
        if not names:
            return [], np.empty((0, 1, 1))
        stacked = np.array(values)
        if self.across:
            stacked = by_seed(self.across, stacked)
        return names, stacked

    def decide(
        self, scores: Scores, level: float = LEVEL, published: float = np.nan
    ) -> dict:
        """Return the effect on one data set, its weakest cell and each metric by itself.

        `published` is the paper's own effect, NaN where it prints none.
        """
        names, values = self.evaluate(scores, self.metrics)
        whole = interval(values, self.over, level)
        margin = MARGINS.get(self.unit, np.nan_to_num(abs(published) / 2))
        if self.margin is not None:
            margin = self.margin
        row = vars(whole) | {"alone": whole.verdict_within(margin)}
        weakest = row.pop("cell")
        if self.fact and whole.seeds:
            row |= {"alone": FACT, "low": np.nan, "high": np.nan, "p": np.nan}
        row["dropped"] = len(values) - whole.seeds
        if row["dropped"]:  # a seed that never learned a task is not like the others
            row |= {"alone": "undecided", "p": np.nan}
        complete = values[~np.isnan(values[..., 0]).any(axis=1)]
        each = [interval(complete[:, [k]], level=level) for k in range(len(names))]
        verdicts = [one.verdict for one in each]
        row["cells"] = len(names) if len(complete) else 0
        row["above"] = verdicts.count("holds")
        row["below"] = verdicts.count("does not hold")
        row["weakest"] = ""
        if self.over == "every" and len(names) > 1:
            row["weakest"] = names[weakest]
        for metric in (*MAIN_METRICS, *map(at_own_threshold, MAIN_METRICS[:2])):
            _, values = self.evaluate(scores, [metric])
            one = interval(values, self.over, level)
            for end in ("effect", "low", "high"):
                number = getattr(one, end) if one.seeds == len(values) else np.nan
                row[f"{metric} {end}"] = number
        return row


def declare(claims: dict[str, Claim], *, name: str = "", **fields: Any) -> Callable:
    """Make a claim of a function of `Seed`, under its own name or another."""

    def add(function: FunctionType) -> FunctionType:
        claim = Claim(name or function.__name__, function, **fields)
        claims[claim.name] = claim
        return function

    return add


def named(places: dict[str, Place], cells: Callable[[Place], Cells]) -> Cells:
    """Return the cells of several places, under the names of both."""
    return {
        f"{name} {place}".strip(): value
        for place, keywords in places.items()
        for name, value in cells(keywords).items()
    }


def by_seed(statistic: Callable, scores: np.ndarray) -> np.ndarray:
    """Return a statistic as a number a seed: the jackknife's pseudo-values."""
    count = len(scores)
    whole = statistic(scores)
    if count == 1:
        return whole[None]
    without = [statistic(np.delete(scores, seed, axis=0)) for seed in range(count)]
    return count * whole - (count - 1) * np.stack(without)
