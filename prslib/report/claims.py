"""List the claims that the paper makes in words, and the number that decides each.

A claim is a function of scores: `s("PRS", "mAP")` is PRS's overall mAP, a number a
seed. It returns a number a seed for each of its cells, above 0 where the claim is
right. The words of the claims are in `claims.toml`.
"""

import re
import tomllib
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd

from prslib.datasets import GROUPS
from prslib.report.statistics import SMALL, interval
from prslib.report.tables import METRICS
from prslib.training.methods import METHODS

COCO, NUS = "COCOseq", "NUS-WIDEseq"
MNIST, SVHN = "Imbal-MNISTseq", "Imbal-SVHNseq"
# that the text names where it says "all the baselines"
RIVALS = ("CRS", "GSS", "ExStream")
ALL = ("Finetune", "EWC", *RIVALS)
ATTENTION = {
    name: f"model={name}" for name in ("Attention Consistency", "RNN-Attention")
}
PLAIN = "frozen_stages"  # the architecture table freezes a stage of the plain network
HALF, MORE = "memory_size=0.5", "memory_size=1.5"
BALANCED = 0.2  # the paper sets rho within [-0.2, 0.2]
# differences so small that an interval within them says "no difference"
MARGINS = {"points": SMALL, "points of memory": SMALL, "rank correlation": 0.1}
ALIKE = MARGINS["points of memory"]  # of two memories
# of the rows that `Scores` reads; printed ones have neither rho nor draws
COLUMNS = ["method", "trained_tasks", "last", "task", "group", "measure", "metric"]
COLUMNS += ["varied", "memory", "schedule", "power", "architecture", "rho"]
COLUMNS += ["seed", "value", "draws"]

Place = dict[str, str | int]  # keywords of `Scores`
Places = dict[str, Place]
ANYWHERE: Places = {"": {}}
Cells = dict[str, np.ndarray]  # of one metric, by name: (seeds, 1 + draws)


class Scores:
    """The scores of one data set, a number a seed for each method, metric and place."""

    def __init__(self, rows: pd.DataFrame):
        rows = rows.dropna(subset=["metric"]).reindex(columns=COLUMNS)
        self.cells: dict[tuple, dict[int, np.ndarray]] = defaultdict(dict)
        self.rho: dict[str, float] = {}
        for row in rows.itertuples(index=False):
            draws = row.draws if isinstance(row.draws, np.ndarray) else []
            scores = np.append(row.value, draws)
            run = row.method, _setting(row)
            cell = row.task, row.group, row.measure, row.metric
            times = [row.trained_tasks, "end"] if row.last else [row.trained_tasks]
            for after in times:
                self.cells[*run, after, *cell].setdefault(row.seed, scores)
            if row.method == "PRS" and not np.isnan(row.rho):
                self.rho["" if row.power == "own" else f"rho={row.power}"] = row.rho
        self.seeds = self.every_seed = sorted(rows["seed"].unique())
        self.asked: list[dict[int, np.ndarray]] = []
        self.drawn = False

    def __call__(
        self,
        method: str,
        metric: str,
        group: str = "overall",
        setting: str = "",  # how it differs from the standard, "memory_size=0.5"
        measure: str = "score",
        task: str = "seen",
        after: int | str = "end",  # trained tasks
        power: str = "",  # of a method with one
    ) -> np.ndarray:
        """Return a score as (seeds, 1 + draws)."""
        if power and "rho" in METHODS[method].reads:
            setting = ";".join(sorted([f"rho={power}", *filter(None, [setting])]))
        key = (method, setting, after, task, group, measure, metric)
        if key not in self.cells:
            raise LookupError(f"no run has {key}")
        scores = self.cells[key]
        self.asked.append(scores)
        width = None if self.drawn else 1
        empty = np.array([np.nan])
        return np.stack([scores.get(seed, empty)[:width] for seed in self.seeds])

    def levels(self, name: str, *methods: str) -> dict[str, str]:
        """Return the values of a field that all methods were run with."""
        of_methods = [
            {key[1] for key in self.cells if key[0] == method} for method in methods
        ]
        common = set.intersection(*of_methods)
        settings = [s for s in sorted(common) if re.fullmatch(rf"({name}=[^=;]*)?", s)]
        if len(settings) < 2:
            raise LookupError(f"no runs of {methods} with several {name}")
        return {setting.removeprefix(f"{name}="): setting for setting in settings}

    def times(self, method: str) -> list[int]:
        """Return after how many tasks a method was scored, in order."""
        standard = {key[2] for key in self.cells if key[:2] == (method, "")}
        return sorted(standard - {"end"})

    def evaluate(
        self, of: Callable[["Scores", str], Cells], metrics: Sequence[str]
    ) -> tuple[dict[tuple[str, str], np.ndarray], int]:
        """Return the cells of seeds that have all, and how many dropped out as NaN."""

        def cells() -> dict[tuple[str, str], np.ndarray]:
            of_metrics = {metric: of(self, metric) for metric in metrics}
            return {(n, m): v for m, c in of_metrics.items() for n, v in c.items()}

        self.seeds, self.asked, self.drawn = self.every_seed, [], False
        try:
            cells()
        except LookupError:  # it was not run
            return {}, 0
        asked = self.asked
        run = [seed for seed in self.seeds if all(seed in cell for cell in asked)]
        self.seeds = [s for s in run if not any(np.isnan(cell[s][0]) for cell in asked)]
        self.drawn = all(len(cell[s]) > 1 for cell in asked for s in self.seeds)
        return (cells() if self.seeds else {}), len(run) - len(self.seeds)


def _setting(row: tuple) -> str:
    """Name how a run differs from the standard: "memory_size=0.5", "rho=0.5;test_set"."""
    names = set(filter(None, row.varied.split(",")))
    if "model" in names:  # which may come with a step size and frozen stages
        names -= {"learning_rate", "frozen_stages"}
    values = {"schedule": row.schedule, "rho": row.power, "model": row.architecture}
    values["memory_size"] = f"{row.memory:g}"
    return ";".join(f"{n}={values[n]}" if n in values else n for n in sorted(names))


@dataclass(frozen=True)
class Claim:
    """A claim, its place in the paper, and the numbers that decide it."""

    of: Callable[[Scores, str], Cells]  # a metric
    on: tuple[str, ...] = (COCO, NUS)  # the paper's data sets
    over: str = "every"  # cell, of which the weakest counts, or their "mean"
    metrics: tuple[str, ...] = METRICS
    unit: str = "points"
    statement: str = ""
    source: str = ""  # section, table or figure of the paper
    test: str = ""  # what is measured, in words; above 0 speaks for the claim
    question: str = ""  # that it and those after it answer
    printed: dict[str, float] = field(default_factory=dict)  # in the paper's text

    def decide(self, scores: Scores, level: float = 0.95) -> dict:
        """Return the effect on one data set, its weakest cell and each metric by itself."""
        cells, dropped = scores.evaluate(self.of, self.metrics)
        whole = interval(list(cells.values()), self.over, level)
        row = vars(whole) | {"alone": whole.verdict_within(MARGINS.get(self.unit, 0))}
        row |= {"dropped": dropped, "cells": len(cells)}
        if dropped:  # those seeds were not like the others
            row |= {"alone": "undecided", "p": np.nan}
        means = {name: values[:, 0].mean() for name, values in cells.items()}
        clear = [interval([values], level=level).verdict for values in cells.values()]
        row |= {"above": clear.count("holds"), "below": clear.count("does not hold")}
        several = self.over == "every" and len(cells) > 1
        weakest = min(means, key=means.get) if several else ()
        row["weakest"] = " ".join(filter(None, weakest))
        scored = set(self.metrics) <= set(METRICS)
        for metric in METRICS:
            cells, dropped = scores.evaluate(self.of, [metric] if scored else [])
            usable = [] if dropped else list(cells.values())
            one = interval(usable, self.over, level)
            row |= {f"{metric} {n}": getattr(one, n) for n in ("effect", "low", "high")}
        return row


def above(pairs: dict[str, tuple[Place, Place]], **fields: object) -> Claim:
    """Return the claim that the first place scores above the second in every pair."""

    def of(s: Scores, metric: str) -> Cells:
        return {
            name: s(**{"metric": metric} | first) - s(**{"metric": metric} | second)
            for name, (first, second) in pairs.items()
        }

    return Claim(of, **fields)


def leads(
    first: str,
    *others: str,
    at: Places | Callable[..., Places] = ANYWHERE,
    **fields: object,
) -> Claim:
    """Return the claim that one method is above others in every cell that counts."""

    def of(s: Scores, metric: str) -> Cells:
        places = at(s, first, *others) if callable(at) else at
        return {
            f"over {other} {name}".strip(): (
                s(first, metric, **place) - s(other, metric, **place)
            )
            for name, place in places.items()
            for other in others
        }

    return Claim(of, **fields)


def _schedules(scores: Scores, *methods: str) -> Places:
    levels = scores.levels("schedule", *methods)
    return {f"schedule {n or 'of Table 1'}": {"setting": s} for n, s in levels.items()}


def _later(scores: Scores, first: str, *_others: str) -> Places:
    # all methods keep the same of a first task that fits into the memory
    return {f"after {time} tasks": {"after": time} for time in scores.times(first)[1:]}


def _settings(settings: dict[str, str]) -> Places:
    return {name: {"setting": setting} for name, setting in settings.items()}


def number(of: Callable[[Scores, str], np.ndarray], **fields: object) -> Claim:
    """Return the claim that one number a metric, averaged over metrics, is above 0."""
    return Claim(lambda s, metric: {"": of(s, metric)}, **{"over": "mean"} | fields)


def tail(method: str, measure: str) -> Claim:
    """Return the claim that a method forgets the rare classes more, in mAP."""
    lost = {"method": method, "measure": measure}
    pair = lost | {"group": "minority"}, lost | {"group": "majority"}
    return above({"": pair}, over="mean", metrics=("mAP",))


def small(method: str, metric: str, measure: str) -> Claim:
    """Return the claim that a method forgets small classes more, task by task."""
    setting = HALF if METHODS[method].sampler else ""
    place = {"measure": measure, "setting": setting}
    fields = {"on": (COCO,), "metrics": (metric,), "unit": "rank correlation"}
    return number(lambda s, metric: -s(method, metric, **place), **fields)


def shares(first: tuple[str, str], second: tuple[str, str], **fields: object) -> Claim:
    """Return the claim that a share of a memory, (method, name), is above another."""
    pair = _share(*first), _share(*second)
    return above({"": pair}, **{"over": "mean"} | MEMORY | fields)


def _share(method: str, name: str, setting: str = "") -> Place:
    """Return where the share of a group is, or a number of all classes by name."""
    place = {"method": method, "measure": "share", "setting": setting}
    return place | ({"group": name} if name in GROUPS else {"metric": name})


def varied(method: str, on: tuple = (COCO, MNIST)) -> Claim:
    """Return the claim that PRS has a higher gradient variance, in percent."""

    def of(s: Scores, metric: str) -> np.ndarray:
        ours = s("PRS", metric, measure="variance")
        return 100 * (ours / s(method, metric, measure="variance") - 1)

    return number(of, on=on, metrics=("gradient variance",), unit="%")


def steadier(method: str) -> Claim:
    """Return the claim that PRS depends less on the schedule than another (Table 2)."""

    def of(s: Scores, metric: str) -> np.ndarray:
        settings = s.levels("schedule", "PRS", method).values()

        def variance(name: str) -> np.ndarray:
            scores = [s(name, metric, setting=setting) for setting in settings]
            return by_seed(schedule_variance, np.stack(scores, axis=1))

        return variance(method) - variance("PRS")

    return number(of, unit="square points")


def schedule_variance(scores: np.ndarray) -> np.ndarray:
    """Average the covariances over schedules of all pairs of different seeds."""
    seeds, schedules = scores.shape[:2]  # (seeds, schedules, ...)
    scores = scores - scores.mean(axis=1, keepdims=True)
    total, pairs = (scores.sum(axis=0) ** 2).sum(axis=0), seeds**2
    if seeds > 1:  # the pairs of a seed and itself alone have the seeds' noise
        total = total - (scores**2).sum(axis=(0, 1))
        pairs = seeds * (seeds - 1)
    return total / pairs / (schedules - 1)


def by_seed(
    statistic: Callable[[np.ndarray], np.ndarray], scores: np.ndarray
) -> np.ndarray:
    """Return a statistic as a number a seed: the jackknife's pseudo-values."""
    count, whole = len(scores), statistic(scores)
    if count == 1:
        return whole[None]
    without = [statistic(np.delete(scores, seed, axis=0)) for seed in range(count)]
    return count * whole - (count - 1) * np.stack(without)


def _rhos(s: Scores) -> dict[float, str]:
    return {s.rho[setting]: setting for setting in s.levels("rho", "PRS").values()}


def rho_steps(s: Scores, metric: str) -> Cells:
    """Return the leads of every rho over the next on the way from 0 to both ends."""
    settings = _rhos(s)
    up = sorted(rho for rho in settings if rho >= 0)
    down = sorted((rho for rho in settings if rho <= 0), reverse=True)
    scores = {rho: s("PRS", metric, setting=settings[rho]) for rho in settings}
    return {
        f"rho {a:g} to {b:g}": scores[a] - scores[b]
        for a, b in [*pairwise(up), *pairwise(down)]
    }


def rho_ends(s: Scores, metric: str) -> Cells:
    """Return the leads of rho near 0, on average, over the lowest and the highest rho."""
    settings = _rhos(s)
    near = [setting for rho, setting in settings.items() if abs(rho) <= BALANCED]
    far = [rho for rho in (min(settings), max(settings)) if abs(rho) > BALANCED]
    if not near or not far:
        raise LookupError("no rho near 0, or none far from it")
    mean = np.mean([s("PRS", metric, setting=setting) for setting in near], axis=0)
    return {
        f"over rho {rho:g}": mean - s("PRS", metric, setting=settings[rho])
        for rho in far
    }


def same_memory(s: Scores, _metric: str) -> Cells:
    """Return how far inside `ALIKE` the memories of CRS and of PRS with rho 1 differ."""
    gap = s(**_share("PRS", "to stream", "rho=1")) - s(**_share("CRS", "to stream"))
    return {"no more": ALIKE - gap, "no less": ALIKE + gap}


def plain_ahead(method: str, setting: str, on: tuple = (COCO, NUS)) -> Claim:
    """Return the claim that the plain network is above both attention nets."""
    plain = {"method": method, "setting": setting}
    others = {name: plain | {"setting": net} for name, net in ATTENTION.items()}
    return above({f"over {name}": (plain, net) for name, net in others.items()}, on=on)


def harder_when_balanced(networks: dict[str, str]) -> Claim:
    """Claim that Multitask is above its balanced score on the other test set."""
    place = {"method": "Multitask"}
    pairs = {
        name: (place | {"setting": f"{net};test_set"}, place | {"setting": net})
        for name, net in networks.items()
    }
    return above(pairs)


def above_floor() -> Claim:
    """Return the claim that all other methods are above Finetune."""
    floor, others = {"method": "Finetune"}, (*ALL[1:], "PRS")
    return above({f"of {name}": ({"method": name}, floor) for name in others})


def ewc_frozen() -> Claim:
    """Return the claim that EWC gains from frozen stages."""
    free = {"method": "EWC", "setting": "pretrained_stages"}
    frozen = free | {"setting": "frozen_stages;pretrained_stages"}
    return above({"": (frozen, free)}, on=(COCO,))


def _head_and_tail(s: Scores, metric: str) -> np.ndarray:
    gaps = [
        s(method, metric, "majority") - s(method, metric, "minority")
        for method in ("CRS", "PRS")
    ]
    return gaps[0] - gaps[1]


def _lead_grows(s: Scores, metric: str) -> np.ndarray:
    times = s.times("PRS")
    if len(times) < 2:
        raise LookupError("no run was scored after more than one task")
    lead = [s("PRS", metric, after=t) - s("CRS", metric, after=t) for t in times]
    return lead[-1] - lead[0]


def _grows(s: Scores, metric: str) -> np.ndarray:
    return s("PRS", metric) - s("PRS", metric, setting=HALF)


def _flattens(s: Scores, metric: str) -> np.ndarray:
    later = s("PRS", metric, setting=MORE) - s("PRS", metric)
    return _grows(s, metric) - later


def _separates(s: Scores, metric: str) -> np.ndarray:
    place = {"metric": metric, "group": "minority", "measure": "features"}
    return s("PRS", **place) - s("CRS", **place)


MEMORY = {"metrics": ("memory",), "unit": "points of memory", "on": (COCO,)}
LABELS = {"metrics": ("memory",), "unit": "points of the labels"}
ACCURACY = {"metrics": ("accuracy",), "on": (MNIST, SVHN)}
MEMORIES = {"half memory": HALF, "whole memory": "", "one and a half memory": MORE}
TAIL = {"at": {group: {"group": group} for group in ("moderate", "minority")}}
MAJORITY = {"at": {"majority": {"group": "majority"}}}
SMALLEST = {"at": {"": {"task": "3"}}, "on": (NUS,)}
NETWORKS = {"at": _settings({"plain net": ""} | ATTENTION), "on": (COCO,)}
IMBALANCED = {"setting": "test_set", "power": "0.5"}
UNBALANCED = {"at": {"": IMBALANCED}, "on": (COCO,)}
UNBALANCED_MAJORITY = {"at": {"": IMBALANCED | {"group": "majority"}}, "on": (COCO,)}
WITH_AC = {"at": _settings({"": ATTENTION["Attention Consistency"]}), "on": (COCO,)}
WHOLE_TEST_SET = ACCURACY | {"at": {"": {"task": "all"}}}
AFTER_FOUR = ACCURACY | {"at": {"": {"task": "all", "after": 4}}}
NEAREST = {"metrics": ("kNN accuracy",), "on": (COCO, MNIST)}

_CLAIMS: dict[str, Claim] = {
    "tail_crs": tail("CRS", "forget"),
    "tail_crs_lost": tail("CRS", "lost"),
    "tail_ewc": tail("EWC", "forget"),
    "tail_ewc_lost": tail("EWC", "lost"),
    **{
        f"order_{method.lower()}_{metric.lower()}{lost.replace(' ', '_')}": small(
            method, metric, f"order{lost}"
        )
        for method in ("CRS", "EWC")
        for metric in ("AP", "F1")
        for lost in ("", " lost")
    },
    "crs_follows": shares(("CRS", "to equal"), ("CRS", "to stream"), on=(COCO, NUS)),
    "crs_head": shares(("CRS", "majority"), ("CRS", "minority")),
    "largest_fifth": number(
        lambda s, _: s(**_share("CRS", "largest fifth of stream")) - 50, **LABELS
    ),
    "largest_fifth_memory": shares(("CRS", "largest fifth"), ("PRS", "largest fifth")),
    "rho_one": Claim(same_memory, **MEMORY),
    "prs_balances": shares(("PRS", "to stream"), ("PRS", "to equal")),
    "exstream_balances": shares(("ExStream", "to stream"), ("ExStream", "to equal")),
    "gss_moderate": shares(("GSS", "moderate"), ("CRS", "moderate")),
    "gss_minority": shares(("PRS", "minority"), ("GSS", "minority")),
    "best": leads("PRS", *ALL),
    "above_crs": leads("PRS", "CRS"),
    "above_gss": leads("PRS", "GSS"),
    "above_exstream": leads("PRS", "ExStream"),
    "lower_bound": above_floor(),
    "ewc_frozen": ewc_frozen(),
    "upper_bound": leads("Multitask", "PRS"),
    "majority": leads("PRS", "EWC", "GSS", "ExStream", **MAJORITY),
    "crs_majority": leads("CRS", "PRS", **MAJORITY, over="mean"),
    "crs_sacrifices": leads("PRS", "CRS", **TAIL),
    "best_on_tail": leads("PRS", *ALL, **TAIL),
    "head_and_tail": number(_head_and_tail),
    "smallest_task_crs": leads("PRS", "CRS", **SMALLEST),
    "smallest_task": leads("PRS", *ALL, **SMALLEST),
    "steadier_crs": steadier("CRS"),
    "steadier_gss": steadier("GSS"),
    "steadier_exstream": steadier("ExStream"),
    "schedules_crs": leads("PRS", "CRS", at=_schedules),
    "schedules": leads("PRS", *RIVALS, at=_schedules),
    "memory_crs": leads("PRS", "CRS", at=_settings(MEMORIES)),
    "memory": leads("PRS", *RIVALS, at=_settings(MEMORIES)),
    "memory_jump": number(_grows, on=(NUS,)),
    "memory_flattens": number(_flattens, on=(NUS,)),
    "rho_ends": Claim(rho_ends, on=(COCO,)),
    "rho_declines": Claim(rho_steps, on=(COCO,)),
    "features": number(_separates, **NEAREST),
    "variance_crs": varied("CRS"),
    "variance_gss": varied("GSS"),
    "variance_exstream": varied("ExStream", on=(COCO,)),
    "single_crs": leads("PRS", "CRS", **WHOLE_TEST_SET),
    "single_gss": leads("PRS", "GSS", **WHOLE_TEST_SET),
    "after_four": leads("PRS", "CRS", **AFTER_FOUR),
    "any_time_crs": leads("PRS", "CRS", at=_later),
    "any_time": leads("PRS", *ALL, at=_later),
    "lead_grows": number(_lead_grows),
    "imbalanced_crs": leads("PRS", "CRS", **UNBALANCED),
    "imbalanced": leads("PRS", *RIVALS, **UNBALANCED),
    "imbalanced_majority": leads("PRS", "GSS", "ExStream", **UNBALANCED_MAJORITY),
    "architectures_crs": leads("PRS", "CRS", **NETWORKS),
    "architectures": leads("PRS", "ExStream", **NETWORKS),
    "architectures_gss": leads("PRS", "GSS", **WITH_AC),
    "plain_multitask": plain_ahead("Multitask", PLAIN),
    "plain_online": plain_ahead("PRS", "", on=(COCO,)),
    "balanced_is_harder": harder_when_balanced({"plain net": PLAIN}),
    "balanced_is_harder_for_all": harder_when_balanced(
        {"plain net": PLAIN} | ATTENTION
    ),
}
_WORDS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
CLAIMS = {name: replace(claim, **_WORDS[name]) for name, claim in _CLAIMS.items()}
