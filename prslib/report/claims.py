"""List the claims that the paper makes in words, and the number that decides each.

A claim is a function of scores: `s("PRS", "mAP")` is PRS's overall mAP, a number a seed. It
returns a number a seed for each of its cells, above 0 where the claim is right.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd

from prslib.report.statistics import Interval, interval
from prslib.report.tables import METRICS
from prslib.training.methods import METHODS

COCO, NUS = "COCOseq", "NUS-WIDEseq"
MNIST, SVHN = "Imbal-MNISTseq", "Imbal-SVHNseq"
RIVALS = ("CRS", "GSS", "ExStream")  # that the text names where it says "all the baselines"
ALL = ("Finetune", "EWC", *RIVALS)
ATTENTION = {
    name: f"model={name}" for name in ("Attention Consistency", "RNN-Attention")
}
PLAIN = "frozen_stages"  # the architecture table freezes a stage of the plain network
BALANCED = 0.2  # the paper sets rho within [-0.2, 0.2]
ALIKE = 2.0  # points of memory by which two memories may differ and still be alike
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
        settings = [_setting(*row) for row in _columns(rows, "varied", *LEVELS.values())]
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
        """Return a score as (seeds, 1 + draws); LookupError where it was not measured."""
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
        """Return the values of a field that all methods were run with, and their settings."""
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


def _setting(varied: str, memory: float, schedule: str, power: str, network: str) -> str:
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

    statement: str
    source: str  # section, table or figure of the paper
    test: str  # what is measured, in words; above 0 speaks for the claim
    cells: Callable[[Scores, Sequence[str]], Cells]
    on: tuple[str, ...] = (COCO, NUS)  # the paper's data sets
    over: str = "every"  # cell, of which the weakest counts, or their "mean"
    metrics: tuple[str, ...] = METRICS
    unit: str = "points"

    def decide(self, scores: Scores, level: float = 0.95) -> dict:
        """Return the effect on one data set, its weakest cell and each metric by itself."""
        found, cells, dropped = self._of(scores, self.metrics, level)
        verdict = "undecided" if found.seeds and dropped else found.verdict
        row = vars(found) | {"alone": verdict, "dropped": dropped, "cells": len(cells)}
        means = {name: values[:, 0].mean() for name, values in cells.items()}
        clear = [interval([values], level=level).verdict for values in cells.values()]
        row |= {"above": clear.count("holds"), "below": clear.count("does not hold")}
        several = self.over == "every" and len(cells) > 1
        weakest = min(means, key=means.get) if several else ("", "")
        row["weakest"] = " ".join(filter(None, weakest))
        shown = METRICS if set(self.metrics) <= set(METRICS) else ()
        for metric in METRICS:
            one = self._of(scores, [metric], level)[0] if metric in shown else None
            for name in ("effect", "low", "high"):
                row[f"{metric} {name}"] = getattr(one, name, np.nan)
        return row

    def _of(
        self, scores: Scores, metrics: Sequence[str], level: float
    ) -> tuple[Interval, Cells, int]:
        try:
            cells, dropped = scores.evaluate(lambda s: self.cells(s, metrics))
        except LookupError:  # it was not run
            cells, dropped = {}, 0
        return interval(list(cells.values()), self.over, level), cells, dropped


# Places: what a claim about several looks at, a name and the keywords of `Scores` for each.


def _overall(_scores: Scores, *_methods: str) -> list[tuple[str, dict]]:
    return [("", {})]


def _schedules(scores: Scores, *methods: str) -> list[tuple[str, dict]]:
    levels = scores.levels("schedule", *methods)
    return [(f"schedule {n or 'of Table 1'}", {"setting": s}) for n, s in levels.items()]


def _sizes(_scores: Scores, *_methods: str) -> list[tuple[str, dict]]:
    sizes = {"half": "memory_size=0.5", "whole": "", "one and a half": "memory_size=1.5"}
    return [(f"{name} memory", {"setting": setting}) for name, setting in sizes.items()]


def _later(scores: Scores, first: str, *_others: str) -> list[tuple[str, dict]]:
    # all methods keep the same of a first task that fits into the memory
    return [(f"after {time} tasks", {"after": time}) for time in scores.times(first)[1:]]


def _networks(_scores: Scores, *_methods: str) -> list[tuple[str, dict]]:
    attentive = [(name, {"setting": setting}) for name, setting in ATTENTION.items()]
    return [("plain net", {}), *attentive]


def _at(**place: str) -> Callable:
    return lambda *_: [("", place)]


def _in(*groups: str) -> Callable:
    return lambda *_: [(group, {"group": group}) for group in groups]


IMBALANCED = {"setting": "test_set", "power": "0.5"}
ON_TEST_SET = {"metrics": ("accuracy",), "on": (MNIST, SVHN)}
MEMORY = {"metrics": ("memory",), "unit": "points of memory", "on": (COCO,)}


def leads(
    statement: str,
    source: str,
    first: str,
    *others: str,
    at: Callable = _overall,
    place: str = "overall",
    **fields: object,
) -> Claim:
    """Return the claim that one method is above others in every cell."""

    def cells(s: Scores, metrics: Sequence[str]) -> Cells:
        return {
            (" ".join(filter(None, [f"over {other}", name])), metric): (
                s(first, metric, **where) - s(other, metric, **where)
            )
            for name, where in at(s, first, *others)
            for other in others
            for metric in metrics
        }

    metrics = ", ".join(fields.get("metrics", METRICS))
    least = "mean" if fields.get("over") == "mean" else "least"
    test = f"{least} lead of {first} over {', '.join(others)} in {metrics}; {place}"
    return Claim(statement, source, test, cells, **fields)


def differs(
    statement: str, source: str, test: str, number: Callable, **fields: object
) -> Claim:
    """Return the claim that one number is above 0: `number(scores, metric)` for a metric."""

    def cells(s: Scores, metrics: Sequence[str]) -> Cells:
        return {("", metric): number(s, metric) for metric in metrics}

    return Claim(statement, source, test, cells, **{"over": "mean"} | fields)


def forgets_the_tail(method: str, measure: str) -> Claim:
    """Return the claim that a method forgets the rare classes more (Figure 1)."""
    words = {"forget": "as a share of what it knew", "lost": "in points"}[measure]
    return differs(
        f"{method} forgets the minority more than the majority, {words}",
        "Sec. 2, Fig. 1; Table 1",
        f"forgetting of mAP {words}, of the minority less that of the majority",
        lambda s, metric: (
            s(method, metric, group="minority", measure=measure)
            - s(method, metric, group="majority", measure=measure)
        ),
        metrics=("mAP",),
    )


def forgets_the_small(method: str, metric: str, measure: str) -> Claim:
    """Return the claim that a method forgets small classes more, task by task (Figure 1)."""
    words = {"order": "as a share of the best", "order lost": "in points"}[measure]
    setting = "memory_size=0.5" if METHODS[method].sampler else ""
    return differs(
        f"{method} forgets small classes more than large ones, in {metric}, {words}",
        "Sec. 2, Fig. 1",
        f"rank correlation of a class's size with its forgetting of {metric} {words}, mean "
        "over tasks, sign reversed; half the memory",
        lambda s, metric: -s(method, metric, measure=measure, setting=setting),
        on=(COCO,),
        metrics=(metric,),
        unit="rank correlation",
    )


def nearer_to(
    statement: str, source: str, method: str, aim: str, other: str, **fields: object
) -> Claim:
    """Return the claim that a memory is nearer to one mix than to another (Figure 5)."""
    return differs(
        statement,
        source,
        f"total variation distance of {method}'s memory {other} less that {aim}",
        lambda s, _: s(method, other, measure="share") - s(method, aim, measure="share"),
        **MEMORY | fields,
    )


def more_memory(statement: str, method: str, than: str, group: str) -> Claim:
    """Return the claim that a group has more of one method's memory than of another's."""
    return differs(
        statement,
        FIGURE_5,
        f"share of the memory that the {group} classes have, {method} less {than}",
        lambda s, metric: (
            s(method, metric, group=group, measure="share")
            - s(than, metric, group=group, measure="share")
        ),
        **MEMORY,
    )


def more_varied_than(method: str, on: tuple = (COCO, MNIST)) -> Claim:
    """Return the claim that PRS has a higher gradient variance than another method."""
    metric = "gradient variance"
    return differs(
        f"PRS keeps a higher {metric} than {method}",
        "Appendix, Gradient Variance",
        f"the memory's {metric} (geometric mean over the stream), PRS's over {method}'s, "
        "less 100 %",
        lambda s, _: 100 * (_variance(s, "PRS") / _variance(s, method) - 1),
        on=on,
        metrics=(metric,),
        unit="%",
    )


def _variance(s: Scores, method: str) -> np.ndarray:
    return s(method, "gradient variance", measure="variance")


def steadier_than(method: str) -> Claim:
    """Return the claim that PRS depends less on the schedule than another (Table 2)."""

    def number(s: Scores, metric: str) -> np.ndarray:
        settings = s.levels("schedule", "PRS", method).values()
        both = [
            np.stack([s(name, metric, setting=setting) for setting in settings], axis=1)
            for name in (method, "PRS")
        ]
        return by_seed(schedule_variance, both[0]) - by_seed(schedule_variance, both[1])

    return differs(
        f"PRS varies less from schedule to schedule than {method}",
        PERMUTED,
        f"variance over schedules of {method} less that of PRS, the seeds' noise left out "
        "of ours; mean of C-F1, O-F1 and mAP, overall",
        number,
        unit="square points",
    )


def schedule_variance(scores: np.ndarray) -> np.ndarray:
    """Average the covariances over schedules of all pairs of different seeds."""
    seeds, schedules = scores.shape[:2]  # (seeds, schedules, ...)
    scores = scores - scores.mean(axis=1, keepdims=True)
    total, pairs = (scores.sum(axis=0) ** 2).sum(axis=0), seeds**2
    if seeds > 1:  # the pairs of a seed and itself alone have the seeds' noise
        total = total - (scores**2).sum(axis=(0, 1))
        pairs = seeds * (seeds - 1)
    return total / pairs / (schedules - 1)


def by_seed(statistic: Callable[[np.ndarray], np.ndarray], scores: np.ndarray) -> np.ndarray:
    """Return a statistic of all seeds as a number a seed: the jackknife's pseudo-values."""
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
            s("PRS", metric, setting=settings[a]) - s("PRS", metric, setting=settings[b])
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


def plain_ahead(method: str, setting: str) -> Callable[[Scores, Sequence[str]], Cells]:
    """Return the leads of the plain network, in a setting, over both attention nets."""
    return lambda s, metrics: {
        (f"over {name}", metric): (
            s(method, metric, setting=setting) - s(method, metric, setting=network)
        )
        for name, network in ATTENTION.items()
        for metric in metrics
    }


def harder_when_balanced(
    **networks: str,
) -> Callable[[Scores, Sequence[str]], Cells]:
    """Return Multitask's leads on the imbalanced over the balanced test set."""
    return lambda s, metrics: {
        (name.replace("_", " "), metric): (
            s("Multitask", metric, setting=f"{network};test_set")
            - s("Multitask", metric, setting=network)
        )
        for name, network in networks.items()
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
    lead = [s("PRS", metric, after=t) - s("CRS", metric, after=t) for t in times]
    return lead[-1] - lead[0]


def _gain(s: Scores, metric: str, low: str, high: str) -> np.ndarray:
    return s("PRS", metric, setting=high) - s("PRS", metric, setting=low)


FIGURE_5 = "Sec. 6.2, Fig. 5"
INTRA_TASK = "Sec. 6.2, Intra-task Imbalance"
PERMUTED = "Sec. 6.2, Table 2; Appendix, permuted schedules"
SIZES = "Sec. 6.2, Table 2; Appendix, memory sizes"
NUS_SIZES = "Appendix, Different Memory Sizes"
PROGRESSION = "Appendix, Task Progression Results"
IMBALANCED_TEST = "Appendix, Imbalanced test-set"
NETWORKS = "Appendix, Base Architectures"
BASELINES = "Sec. 6.1, Baselines"
SINGLE = "Appendix, Single-Labeled Classification"
MEAN = "mean of C-F1, O-F1 and mAP"
TAIL = {"at": _in("moderate", "minority"), "place": "moderate and minority"}
SMALLEST = {"at": _at(task="3"), "place": "task 3 at the end", "on": (NUS,)}
PERMUTATIONS = {"at": _schedules, "place": "each schedule"}
MEMORIES = {"at": _sizes, "place": "half, whole and one and a half times the memory"}
LATER = {"at": _later, "place": "after each task but the first"}
EVERY_NETWORK = {"at": _networks, "place": "plain net, both attention nets", "on": (COCO,)}
UNBALANCED = {"at": _at(**IMBALANCED), "place": "overall", "on": (COCO,)}
TEST_SET = ON_TEST_SET | {"at": _at(task="all"), "place": "whole test set"}
AFTER_FOUR = {"at": _at(task="all", after=4), "place": "whole test set after task 4"}

# a claim, and the question that it and those after it in `CLAIMS` answer
QUESTIONS = {
    "tail_crs": "Are the rare classes forgotten first?",
    "crs_follows": "What is in the memory?",
    "best": "Who has the best scores?",
    "majority": "Who gains, and who pays?",
    "steadier_crs": "Does the order of the tasks matter?",
    "memory_crs": "Does the size of the memory matter?",
    "rho_ends": "Is balance best?",
    "features": "What do features and gradients show?",
    "single_crs": "Does it hold with one label an image?",
    "any_time_crs": "Does it hold at any time?",
    "imbalanced_crs": "Does it hold on unbalanced test images?",
    "architectures_crs": "Does it hold with other networks?",
}
CLAIMS: dict[str, Claim] = {
    "tail_crs": forgets_the_tail("CRS", "forget"),
    "tail_crs_lost": forgets_the_tail("CRS", "lost"),
    "tail_ewc": forgets_the_tail("EWC", "forget"),
    "tail_ewc_lost": forgets_the_tail("EWC", "lost"),
    "order_crs_ap": forgets_the_small("CRS", "AP", "order"),
    "order_crs_ap_lost": forgets_the_small("CRS", "AP", "order lost"),
    "order_crs_f1": forgets_the_small("CRS", "F1", "order"),
    "order_crs_f1_lost": forgets_the_small("CRS", "F1", "order lost"),
    "order_ewc_ap": forgets_the_small("EWC", "AP", "order"),
    "order_ewc_ap_lost": forgets_the_small("EWC", "AP", "order lost"),
    "order_ewc_f1": forgets_the_small("EWC", "F1", "order"),
    "order_ewc_f1_lost": forgets_the_small("EWC", "F1", "order lost"),
    "crs_follows": nearer_to(
        "CRS's memory is as long-tailed as the stream",
        "Sec. 3.2; Sec. 6.2, Fig. 5",
        *("CRS", "to stream", "to equal"),
        on=(COCO, NUS),
    ),
    "crs_head": differs(
        "CRS fills its memory with the majority",
        FIGURE_5,
        "share of CRS's memory that the majority has, less that of the minority",
        lambda s, metric: (
            s("CRS", metric, group="majority", measure="share")
            - s("CRS", metric, group="minority", measure="share")
        ),
        **MEMORY,
    ),
    "largest_fifth": differs(
        "The largest fifth of the classes has most of the data",
        "Sec. 5.2",
        "share of the stream's labels that they have, less 50 %",
        lambda s, _: s("CRS", "largest fifth of stream", measure="share") - 50,
        **MEMORY | {"unit": "points of the labels", "on": (COCO, NUS)},
    ),
    "largest_fifth_memory": differs(
        "PRS gives the largest fifth of the classes less of the memory than CRS",
        FIGURE_5,
        "share of the memory that they have, CRS less PRS",
        lambda s, _: (
            s("CRS", "largest fifth", measure="share")
            - s("PRS", "largest fifth", measure="share")
        ),
        **MEMORY,
    ),
    "rho_one": Claim(
        "With rho 1 PRS's memory is as near to the stream as CRS's",
        "Sec. 3.4",
        f"total variation distance to the stream: it differs by less than {ALIKE:g} points",
        same_memory,
        **MEMORY,
    ),
    "prs_balances": nearer_to(
        "PRS's memory is balanced without task information",
        *(FIGURE_5, "PRS", "to equal", "to stream"),
    ),
    "exstream_balances": nearer_to(
        "ExStream's memory is balanced, with the classes known in advance",
        *(FIGURE_5, "ExStream", "to equal", "to stream"),
    ),
    "gss_moderate": more_memory(
        "GSS keeps more of the moderate classes than CRS", "GSS", "CRS", "moderate"
    ),
    "gss_minority": more_memory(
        "GSS keeps too little of the minority, PRS enough", "PRS", "GSS", "minority"
    ),
    "best": leads("PRS is best of all", "Table 1", "PRS", *ALL),
    "above_crs": leads("PRS outperforms CRS", "Sec. 6.2, Table 1", "PRS", "CRS"),
    "above_gss": leads("PRS outperforms GSS", "Sec. 6.2, Table 1", "PRS", "GSS"),
    "above_exstream": leads(
        "PRS outperforms ExStream, which knows the classes",
        *("Sec. 6.2, Table 1", "PRS", "ExStream"),
    ),
    "lower_bound": Claim(
        "Finetune is the lower bound",
        BASELINES,
        "least lead of any other method over Finetune in C-F1, O-F1, mAP; overall",
        lambda s, metrics: {
            (f"of {other}", metric): s(other, metric) - s("Finetune", metric)
            for other in (*ALL[1:], "PRS")
            for metric in metrics
        },
    ),
    "ewc_frozen": differs(
        "EWC works poorly unless the network is frozen up to its last layer",
        BASELINES,
        "least lead of EWC with only the last layer in training over EWC with all layers "
        "in training, in C-F1, O-F1, mAP; overall; one strength of the penalty",
        lambda s, metric: (
            s("EWC", metric, setting="frozen_stages;pretrained_stages")
            - s("EWC", metric, setting="pretrained_stages")
        ),
        on=(COCO,),
        over="every",
    ),
    "upper_bound": leads(
        "Multitask is the upper bound", f"{BASELINES}; Table 1", "Multitask", "PRS"
    ),
    "majority": leads(
        "On the majority only CRS is ahead of PRS",
        *(INTRA_TASK, "PRS", "EWC", "GSS", "ExStream"),
        at=_in("majority"),
        place="majority",
    ),
    "crs_majority": leads(
        "CRS may be better than PRS on the majority",
        "Sec. 6.2, Memory Distribution; Table 1",
        *("CRS", "PRS"),
        at=_in("majority"),
        place="majority",
        over="mean",
    ),
    "crs_sacrifices": leads(
        "CRS pays for it on the moderate and minority classes",
        "Sec. 6.2, Memory Distribution",
        *("PRS", "CRS"),
        **TAIL,
    ),
    "best_on_tail": leads(
        "PRS is best on the moderate and the minority classes",
        *(INTRA_TASK, "PRS", *ALL),
        **TAIL,
    ),
    "head_and_tail": differs(
        "PRS keeps the knowledge of head and tail balanced",
        "Abstract; Sec. 7",
        f"majority less minority under CRS, less the same under PRS, {MEAN}",
        _head_and_tail,
    ),
    "smallest_task_crs": leads(
        "PRS is better than CRS on the smallest task",
        *("Sec. 6.2, Fig. 4", "PRS", "CRS"),
        **SMALLEST,
    ),
    "smallest_task": leads(
        "PRS is the best of all on the smallest task",
        *("Sec. 6.2, Fig. 4", "PRS", *ALL),
        **SMALLEST,
    ),
    "steadier_crs": steadier_than("CRS"),
    "steadier_gss": steadier_than("GSS"),
    "steadier_exstream": steadier_than("ExStream"),
    "schedules_crs": leads(
        "PRS outperforms CRS in every schedule", PERMUTED, "PRS", "CRS", **PERMUTATIONS
    ),
    "schedules": leads(
        "PRS outperforms all in every schedule", PERMUTED, "PRS", *RIVALS, **PERMUTATIONS
    ),
    "memory_crs": leads(
        "PRS outperforms CRS with every size of memory", SIZES, "PRS", "CRS", **MEMORIES
    ),
    "memory": leads(
        "PRS outperforms all with every size of memory", SIZES, "PRS", *RIVALS, **MEMORIES
    ),
    "memory_jump": differs(
        "From half to the whole memory PRS gains much",
        NUS_SIZES,
        f"PRS with the whole memory less PRS with half of it, {MEAN}; overall",
        lambda s, metric: _gain(s, metric, "memory_size=0.5", ""),
        on=(NUS,),
    ),
    "memory_flattens": differs(
        "More memory helps less and less",
        NUS_SIZES,
        "gain of PRS from half to the whole memory less that from there to one and a half, "
        f"{MEAN}; overall",
        lambda s, metric: (
            _gain(s, metric, "memory_size=0.5", "")
            - _gain(s, metric, "", "memory_size=1.5")
        ),
        on=(NUS,),
    ),
    "rho_ends": Claim(
        "rho near balance is better than rho far from it",
        "Sec. 6.1; Sec. 6.2, Fig. 6",
        "least lead, in C-F1, O-F1, mAP, of the mean over rho within [-0.2, 0.2] over the "
        "lowest and the highest rho",
        rho_ends,
        on=(COCO,),
    ),
    "rho_declines": Claim(
        "With each step away from balance the performance declines",
        "Sec. 6.2, Fig. 6",
        "least loss, in C-F1, O-F1, mAP, of any step of rho away from 0",
        rho_steps,
        on=(COCO,),
    ),
    "features": differs(
        "PRS's features tell the minority classes apart better than CRS's",
        "Sec. 6.2, Feature Analysis, Fig. 7",
        "k-nearest-neighbour accuracy on the minority's test images, PRS less CRS",
        lambda s, metric: (
            s("PRS", metric, group="minority", measure="features")
            - s("CRS", metric, group="minority", measure="features")
        ),
        on=(COCO, MNIST),
        metrics=("kNN accuracy",),
    ),
    "variance_crs": more_varied_than("CRS"),
    "variance_gss": more_varied_than("GSS"),
    "variance_exstream": more_varied_than("ExStream", on=(COCO,)),
    "single_crs": leads(
        "With one label an image PRS is above CRS too", SINGLE, "PRS", "CRS", **TEST_SET
    ),
    "single_gss": leads(
        "With one label an image PRS is above GSS too", SINGLE, "PRS", "GSS", **TEST_SET
    ),
    "after_four": leads(
        "With one label an image PRS is ahead of CRS after four tasks",
        *(PROGRESSION, "PRS", "CRS"),
        **ON_TEST_SET | AFTER_FOUR,
    ),
    "any_time_crs": leads(
        "PRS is ahead of CRS at any point of the training",
        *(PROGRESSION, "PRS", "CRS"),
        **LATER,
    ),
    "any_time": leads(
        "PRS is ahead of all at any point of the training",
        *(PROGRESSION, "PRS", *ALL),
        **LATER,
    ),
    "lead_grows": differs(
        "PRS becomes more effective with the number of tasks",
        PROGRESSION,
        f"lead of PRS over CRS at the end less that after the first task, {MEAN}",
        _lead_grows,
    ),
    "imbalanced_crs": leads(
        "With rho 0.5 PRS is above CRS on the imbalanced test set",
        *(IMBALANCED_TEST, "PRS", "CRS"),
        **UNBALANCED,
    ),
    "imbalanced": leads(
        "With rho 0.5 PRS is above all on the imbalanced test set",
        *(IMBALANCED_TEST, "PRS", *RIVALS),
        **UNBALANCED,
    ),
    "imbalanced_majority": leads(
        "With rho 0.5 only CRS is ahead of PRS on the majority",
        *(IMBALANCED_TEST, "PRS", "GSS", "ExStream"),
        at=_at(**IMBALANCED, group="majority"),
        place="majority",
        on=(COCO,),
    ),
    "architectures_crs": leads(
        "PRS is above CRS on every architecture", NETWORKS, "PRS", "CRS", **EVERY_NETWORK
    ),
    "architectures": leads(
        "PRS is above ExStream on every architecture",
        *(NETWORKS, "PRS", "ExStream"),
        **EVERY_NETWORK,
    ),
    "architectures_gss": leads(
        "PRS is above GSS with Attention Consistency",
        *(NETWORKS, "PRS", "GSS"),
        at=_at(setting=ATTENTION["Attention Consistency"]),
        on=(COCO,),
    ),
    "plain_multitask": Claim(
        "In one offline epoch the plain network is the best architecture",
        NETWORKS,
        "least lead of the plain network over both attention nets in C-F1, O-F1, mAP; "
        "Multitask",
        plain_ahead("Multitask", PLAIN),
    ),
    "plain_online": Claim(
        "In the online stream the plain network is the best architecture",
        NETWORKS,
        "least lead of the plain network over both attention nets in C-F1, O-F1, mAP; PRS",
        plain_ahead("PRS", ""),
        on=(COCO,),
    ),
    "balanced_is_harder": Claim(
        "After one epoch a balanced test set is harder than one as it comes, for the plain "
        "network",
        NETWORKS,
        "Multitask on the imbalanced less on the balanced test set, least of C-F1, O-F1, mAP",
        harder_when_balanced(plain_net=PLAIN),
    ),
    "balanced_is_harder_for_all": Claim(
        "After one epoch a balanced test set is harder than one as it comes, for all "
        "architectures",
        NETWORKS,
        "Multitask on the imbalanced less on the balanced test set, least of C-F1, O-F1, mAP",
        harder_when_balanced(
            plain_net=PLAIN,
            **{name.replace(" ", "_"): setting for name, setting in ATTENTION.items()},
        ),
    ),
}
