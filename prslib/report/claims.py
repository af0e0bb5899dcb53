"""List the claims that the paper makes in words, and the number that decides each.

A claim is a function of scores: `s("PRS", "mAP")` is PRS's overall mAP, a number a
seed. It returns a number a seed for each of its cells, above 0 where the claim is
right. The words of the claims are in `claims.toml`.
"""

import re
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd

from prslib.report.statistics import SMALL, Interval, interval
from prslib.report.tables import METRICS
from prslib.training.methods import METHODS

COCO, NUS = "COCOseq", "NUS-WIDEseq"
MNIST, SVHN = "Imbal-MNISTseq", "Imbal-SVHNseq"
RIVALS = (
    "CRS",
    "GSS",
    "ExStream",
)  # that the text names where it says "all the baselines"
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
LEVELS = {"memory_size": "memory", "schedule": "schedule", "rho": "power"} | {
    "model": "architecture"
}

Cells = dict[tuple[str, str], np.ndarray]  # (name, metric): (seeds, 1 + draws)


class Scores:
    """The scores of one data set, a number a seed for each method, metric and place."""

    def __init__(self, rows: pd.DataFrame):
        rows = rows.dropna(subset=["metric"])
        self.cells: dict[tuple, dict[int, np.ndarray]] = defaultdict(dict)
        self.rho: dict[str, float] = {}
        draws = rows["draws"] if "draws" in rows else [np.nan] * len(rows)
        settings = [
            _setting(*row) for row in _columns(rows, "varied", *LEVELS.values())
        ]
        names = ["method", "trained_tasks", "task", "group", "measure", "metric"]
        for key, setting, last, seed, value, drawn in zip(
            _columns(rows, *names),
            settings,
            *(rows[name] for name in ("last", "seed", "value")),
            draws,
            strict=True,
        ):
            drawn = drawn if isinstance(drawn, np.ndarray) else []
            found = np.array([value, *drawn], float)
            method, trained, *rest = key
            for after in (trained, "end") if last else (trained,):
                self.cells[method, setting, after, *rest].setdefault(seed, found)
        own = rows[rows["method"] == "PRS"] if "rho" in rows else rows.iloc[:0]
        for power, rho in _columns(own.dropna(subset="rho"), "power", "rho"):
            self.rho["" if power == "own" else f"rho={power}"] = rho
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
        found = self.cells[key]
        self.asked.append(found)
        width = None if self.drawn else 1
        empty = np.array([np.nan])
        return np.stack([found.get(seed, empty)[:width] for seed in self.seeds])

    def levels(self, name: str, *methods: str) -> dict[str, str]:
        """Return the values of a field that all methods were run with."""
        of_methods = [
            {key[1] for key in self.cells if key[0] == method} for method in methods
        ]
        common = set.intersection(*of_methods)
        found = {s: s for s in sorted(common) if re.fullmatch(rf"({name}=[^=;]*)?", s)}
        if len(found) < 2:
            raise LookupError(f"no runs of {methods} with several {name}")
        return {setting.removeprefix(f"{name}="): setting for setting in found}

    def times(self, method: str) -> list[int]:
        """Return after how many tasks a method was scored, in order."""
        standard = {key[2] for key in self.cells if key[:2] == (method, "")}
        return sorted(standard - {"end"})

    def evaluate(self, cells: Callable[["Scores"], Cells]) -> tuple[Cells, int]:
        """Return the cells of seeds that have all, and how many dropped out as NaN."""
        self.seeds, self.asked, self.drawn = self.every_seed, [], False
        cells(self)
        run = [seed for seed in self.seeds if all(seed in cell for cell in self.asked)]
        asked = self.asked
        self.seeds = [s for s in run if not any(np.isnan(cell[s][0]) for cell in asked)]
        self.drawn = all(len(cell[s]) > 1 for cell in asked for s in self.seeds)
        dropped = len(run) - len(self.seeds)
        return (cells(self) if self.seeds else {}), dropped


def _columns(rows: pd.DataFrame, *names: str) -> Iterable[tuple]:
    return zip(*(rows[name] for name in names), strict=True)


def _setting(
    varied: str, memory: float, schedule: str, power: str, network: str
) -> str:
    """Name how a run differs from the standard: "memory_size=0.5", "rho=0.5;test_set"."""
    names = set(filter(None, varied.split(",")))
    if "model" in names:  # which may come with a step size and frozen stages
        names -= {"learning_rate", "frozen_stages"}
    values = {"schedule": schedule, "rho": power, "model": network}
    values["memory_size"] = f"{memory:g}"
    return ";".join(f"{n}={values[n]}" if n in values else n for n in sorted(names))


@dataclass(frozen=True)
class Claim:
    """A claim, its place in the paper, and the numbers that decide it."""

    cells: Callable[[Scores, Sequence[str]], Cells]
    on: tuple[str, ...] = (COCO, NUS)  # the paper's data sets
    over: str = "every"  # cell, of which the weakest counts, or their "mean"
    metrics: tuple[str, ...] = METRICS
    unit: str = "points"
    statement: str = ""
    source: str = ""  # section, table or figure of the paper
    test: str = ""  # what is measured, in words; above 0 speaks for the claim
    question: str = ""  # that it and those after it answer
    printed: dict[str, float] = field(
        default_factory=dict
    )  # effects in the paper's text

    def decide(self, scores: Scores, level: float = 0.95) -> dict:
        """Return the effect on one data set, its weakest cell and each metric by itself."""
        found, cells, dropped = self._of(scores, self.metrics, level)
        row = vars(found) | {"alone": found.verdict_within(MARGINS.get(self.unit, 0))}
        row |= {"dropped": dropped, "cells": len(cells)}
        if dropped:  # those seeds were not like the others
            row |= {"alone": "undecided", "p": np.nan}
        means = {name: values[:, 0].mean() for name, values in cells.items()}
        clear = [interval([values], level=level).verdict for values in cells.values()]
        row |= {"above": clear.count("holds"), "below": clear.count("does not hold")}
        several = self.over == "every" and len(cells) > 1
        weakest = min(means, key=means.get) if several else ("", "")
        row["weakest"] = " ".join(filter(None, weakest))
        shown = METRICS if set(self.metrics) <= set(METRICS) else ()
        unknown = (None, {}, 0)
        for metric in METRICS:
            one, _, gone = (
                self._of(scores, [metric], level) if metric in shown else unknown
            )
            for name in ("effect", "low", "high"):
                row[f"{metric} {name}"] = np.nan if gone else getattr(one, name, np.nan)
        return row

    def _of(
        self, scores: Scores, metrics: Sequence[str], level: float
    ) -> tuple[Interval, Cells, int]:
        try:
            cells, dropped = scores.evaluate(lambda s: self.cells(s, metrics))
        except LookupError:  # it was not run
            cells, dropped = {}, 0
        return interval(list(cells.values()), self.over, level), cells, dropped


# Places: what a claim about several looks at, a name and the keywords of `Scores` for
# each.


def _overall(_scores: Scores, *_methods: str) -> list[tuple[str, dict]]:
    return [("", {})]


def _schedules(scores: Scores, *methods: str) -> list[tuple[str, dict]]:
    levels = scores.levels("schedule", *methods)
    return [
        (f"schedule {n or 'of Table 1'}", {"setting": s}) for n, s in levels.items()
    ]


def _sizes(_scores: Scores, *_methods: str) -> list[tuple[str, dict]]:
    sizes = {"half": HALF, "whole": "", "one and a half": MORE}
    return [(f"{name} memory", {"setting": setting}) for name, setting in sizes.items()]


def _later(scores: Scores, first: str, *_others: str) -> list[tuple[str, dict]]:
    # all methods keep the same of a first task that fits into the memory
    return [
        (f"after {time} tasks", {"after": time}) for time in scores.times(first)[1:]
    ]


def _networks(_scores: Scores, *_methods: str) -> list[tuple[str, dict]]:
    attentive = [(name, {"setting": setting}) for name, setting in ATTENTION.items()]
    return [("plain net", {}), *attentive]


def _at(**place: str) -> Callable:
    return lambda *_: [("", place)]


def _in(*groups: str) -> Callable:
    return lambda *_: [(group, {"group": group}) for group in groups]


IMBALANCED = {"setting": "test_set", "power": "0.5"}


def leads(first: str, *others: str, at: Callable = _overall, **fields: object) -> Claim:
    """Return the claim that one method is above others in every cell that counts."""

    def cells(s: Scores, metrics: Sequence[str]) -> Cells:
        return {
            (" ".join(filter(None, [f"over {other}", name])), metric): (
                s(first, metric, **where) - s(other, metric, **where)
            )
            for name, where in at(s, first, *others)
            for other in others
            for metric in metrics
        }

    return Claim(cells, **fields)


def number(of: Callable[[Scores, str], np.ndarray], **fields: object) -> Claim:
    """Return the claim that one number a metric, averaged over metrics, is above 0."""
    cells = lambda s, metrics: {("", metric): of(s, metric) for metric in metrics}  # noqa: E731
    return Claim(cells, **{"over": "mean"} | fields)


def less(first: dict, second: dict, **fields: object) -> Claim:
    """Return the claim that the score of one place is above that of another."""
    return number(
        lambda s, metric: s(metric=metric, **first) - s(metric=metric, **second),
        **fields,
    )


def tail(method: str, measure: str) -> Claim:
    """Return the claim that a method forgets the rare classes more, in mAP."""
    place = {"method": method, "measure": measure}
    return less(
        place | {"group": "minority"}, place | {"group": "majority"}, metrics=("mAP",)
    )


def small(method: str, metric: str, measure: str) -> Claim:
    """Return the claim that a method forgets small classes more, task by task."""
    setting = "memory_size=0.5" if METHODS[method].sampler else ""
    of = lambda s, metric: -s(method, metric, measure=measure, setting=setting)  # noqa: E731
    return number(of, on=(COCO,), metrics=(metric,), unit="rank correlation")


def nearer(method: str, aim: str, other: str, on: tuple = (COCO,)) -> Claim:
    """Return the claim that a memory is nearer to one mix than to another."""
    return number(
        lambda s, _: _share(s, method, other) - _share(s, method, aim),
        **MEMORY | {"on": on},
    )


def more_memory(first: str, group: str, second: str, other: str) -> Claim:
    """Claim that a group has more of a memory than a group of another memory."""
    place = {"measure": "share"}
    return less(
        place | {"method": first, "group": group},
        place | {"method": second, "group": other},
        **MEMORY,
    )


def _share(s: Scores, method: str, metric: str, **place: str) -> np.ndarray:
    return s(method, metric, measure="share", **place)


def varied(method: str, on: tuple = (COCO, MNIST)) -> Claim:
    """Return the claim that PRS has a higher gradient variance, in percent."""

    def of(s: Scores, metric: str) -> np.ndarray:
        pair = [s(name, metric, measure="variance") for name in ("PRS", method)]
        return 100 * (pair[0] / pair[1] - 1)

    return number(of, on=on, metrics=("gradient variance",), unit="%")


def steadier(method: str) -> Claim:
    """Return the claim that PRS depends less on the schedule than another (Table 2)."""

    def of(s: Scores, metric: str) -> np.ndarray:
        settings = s.levels("schedule", "PRS", method).values()
        both = [
            np.stack([s(name, metric, setting=setting) for setting in settings], axis=1)
            for name in (method, "PRS")
        ]
        return by_seed(schedule_variance, both[0]) - by_seed(schedule_variance, both[1])

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


def rho_steps(s: Scores, metrics: Sequence[str]) -> Cells:
    """Return the losses by every step of rho on the way from 0 to both ends."""
    settings = {s.rho[setting]: setting for setting in s.levels("rho", "PRS").values()}
    sides = [sorted(r for r in settings if r >= 0)]
    sides.append(sorted((r for r in settings if r <= 0), reverse=True))
    return {
        (f"rho {a:g} to {b:g}", metric): (
            s("PRS", metric, setting=settings[a])
            - s("PRS", metric, setting=settings[b])
        )
        for side in sides
        for a, b in pairwise(side)
        for metric in metrics
    }


def rho_ends(s: Scores, metrics: Sequence[str]) -> Cells:
    """Return the leads of rho near 0, on average, over the lowest and the highest rho."""
    settings = {s.rho[setting]: setting for setting in s.levels("rho", "PRS").values()}
    near = [setting for rho, setting in settings.items() if abs(rho) <= BALANCED]
    far = [rho for rho in (min(settings), max(settings)) if abs(rho) > BALANCED]
    if not near or not far:
        raise LookupError("no rho near 0, or none far from it")
    return {
        (f"over rho {rho:g}", metric): (
            np.mean([s("PRS", metric, setting=setting) for setting in near], axis=0)
            - s("PRS", metric, setting=settings[rho])
        )
        for rho in far
        for metric in metrics
    }


def same_memory(s: Scores, _metrics: Sequence[str]) -> Cells:
    """Return how far inside `ALIKE` the memories of CRS and of PRS with rho 1 differ."""
    gap = s("PRS", "to stream", measure="share", setting="rho=1")
    gap = gap - s("CRS", "to stream", measure="share")
    return {("no more", "memory"): ALIKE - gap, ("no less", "memory"): ALIKE + gap}


def plain_ahead(method: str, setting: str, on: tuple = (COCO, NUS)) -> Claim:
    """Return the claim that the plain network is above both attention nets."""

    def cells(s: Scores, metrics: Sequence[str]) -> Cells:
        return {
            (f"over {name}", metric): (
                s(method, metric, setting=setting) - s(method, metric, setting=network)
            )
            for name, network in ATTENTION.items()
            for metric in metrics
        }

    return Claim(cells, on=on)


def harder_when_balanced(networks: dict[str, str]) -> Claim:
    """Claim that Multitask is above its balanced score on the other test set."""

    def cells(s: Scores, metrics: Sequence[str]) -> Cells:
        return {
            (name, metric): (
                s("Multitask", metric, setting=f"{network};test_set")
                - s("Multitask", metric, setting=network)
            )
            for name, network in networks.items()
            for metric in metrics
        }

    return Claim(cells)


def above_floor(s: Scores, metrics: Sequence[str]) -> Cells:
    """Return the leads of all other methods over Finetune."""
    return {
        (f"of {other}", metric): s(other, metric) - s("Finetune", metric)
        for other in (*ALL[1:], "PRS")
        for metric in metrics
    }


def _head_and_tail(s: Scores, metric: str) -> np.ndarray:
    gaps = [
        s(method, metric, group="majority") - s(method, metric, group="minority")
        for method in ("CRS", "PRS")
    ]
    return gaps[0] - gaps[1]


def _lead_grows(s: Scores, metric: str) -> np.ndarray:
    times = s.times("PRS")
    if len(times) < 2:
        raise LookupError("no run was scored after more than one task")
    lead = [s("PRS", metric, after=t) - s("CRS", metric, after=t) for t in times]
    return lead[-1] - lead[0]


def _gain(s: Scores, metric: str, low: str, high: str) -> np.ndarray:
    return s("PRS", metric, setting=high) - s("PRS", metric, setting=low)


MEMORY = {"metrics": ("memory",), "unit": "points of memory", "on": (COCO,)}
LABELS = {"metrics": ("memory",), "unit": "points of the labels"}
ACCURACY = {"metrics": ("accuracy",), "on": (MNIST, SVHN)}
TAIL = {"at": _in("moderate", "minority")}
SMALLEST = {"at": _at(task="3"), "on": (NUS,)}
NETWORKS = {"at": _networks, "on": (COCO,)}
UNBALANCED = {"at": _at(**IMBALANCED), "on": (COCO,)}
UNBALANCED_MAJORITY = {"at": _at(**IMBALANCED, group="majority"), "on": (COCO,)}
WITH_AC = {"at": _at(setting=ATTENTION["Attention Consistency"]), "on": (COCO,)}
WHOLE_TEST_SET = ACCURACY | {"at": _at(task="all")}
AFTER_FOUR = ACCURACY | {"at": _at(task="all", after=4)}
FEATURES = {"group": "minority", "measure": "features"}
NEAREST = {"metrics": ("kNN accuracy",), "on": (COCO, MNIST)}
FROZEN, FREE = "frozen_stages;pretrained_stages", "pretrained_stages"

_CLAIMS: dict[str, Claim] = {
    "tail_crs": tail("CRS", "forget"),
    "tail_crs_lost": tail("CRS", "lost"),
    "tail_ewc": tail("EWC", "forget"),
    "tail_ewc_lost": tail("EWC", "lost"),
    "order_crs_ap": small("CRS", "AP", "order"),
    "order_crs_ap_lost": small("CRS", "AP", "order lost"),
    "order_crs_f1": small("CRS", "F1", "order"),
    "order_crs_f1_lost": small("CRS", "F1", "order lost"),
    "order_ewc_ap": small("EWC", "AP", "order"),
    "order_ewc_ap_lost": small("EWC", "AP", "order lost"),
    "order_ewc_f1": small("EWC", "F1", "order"),
    "order_ewc_f1_lost": small("EWC", "F1", "order lost"),
    "crs_follows": nearer("CRS", "to stream", "to equal", on=(COCO, NUS)),
    "crs_head": more_memory("CRS", "majority", "CRS", "minority"),
    "largest_fifth": number(
        lambda s, _: _share(s, "CRS", "largest fifth of stream") - 50, **LABELS
    ),
    "largest_fifth_memory": number(
        lambda s, _: (
            _share(s, "CRS", "largest fifth") - _share(s, "PRS", "largest fifth")
        ),
        **MEMORY,
    ),
    "rho_one": Claim(same_memory, **MEMORY),
    "prs_balances": nearer("PRS", "to equal", "to stream"),
    "exstream_balances": nearer("ExStream", "to equal", "to stream"),
    "gss_moderate": more_memory("GSS", "moderate", "CRS", "moderate"),
    "gss_minority": more_memory("PRS", "minority", "GSS", "minority"),
    "best": leads("PRS", *ALL),
    "above_crs": leads("PRS", "CRS"),
    "above_gss": leads("PRS", "GSS"),
    "above_exstream": leads("PRS", "ExStream"),
    "lower_bound": Claim(above_floor),
    "ewc_frozen": less(
        {"method": "EWC", "setting": FROZEN},
        {"method": "EWC", "setting": FREE},
        on=(COCO,),
        over="every",
    ),
    "upper_bound": leads("Multitask", "PRS"),
    "majority": leads("PRS", "EWC", "GSS", "ExStream", at=_in("majority")),
    "crs_majority": leads("CRS", "PRS", at=_in("majority"), over="mean"),
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
    "memory_crs": leads("PRS", "CRS", at=_sizes),
    "memory": leads("PRS", *RIVALS, at=_sizes),
    "memory_jump": number(lambda s, m: _gain(s, m, HALF, ""), on=(NUS,)),
    "memory_flattens": number(
        lambda s, m: _gain(s, m, HALF, "") - _gain(s, m, "", MORE), on=(NUS,)
    ),
    "rho_ends": Claim(rho_ends, on=(COCO,)),
    "rho_declines": Claim(rho_steps, on=(COCO,)),
    "features": less(
        {"method": "PRS"} | FEATURES, {"method": "CRS"} | FEATURES, **NEAREST
    ),
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
