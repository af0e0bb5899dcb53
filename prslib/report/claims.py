"""List the claims that the paper makes in words, and the number that decides each.

A claim is a function of a seed's scores: `s("PRS")` is PRS's overall score. It returns
a number, or some by name, above 0 where the claim is right. The words of the claims,
`CLAIM_WORDS`, are in `claims.toml`.
"""

import re
import tomllib
from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Self

import numpy as np
import pandas as pd

from prslib.metrics import values_and_draws
from prslib.report.tables import MAIN_METRICS
from prslib.statistics import LEVEL, SMALL, interval

COCO = "COCOseq"
NUS = "NUS-WIDEseq"
MNIST = "Imbal-MNISTseq"
SVHN = "Imbal-SVHNseq"
# that the text names where it says "all the baselines"
RIVALS = ("CRS", "GSS", "ExStream")
ALL = ("Finetune", "EWC", *RIVALS)
# settings; the architecture tables freeze a stage of these two networks
PLAIN = "frozen_stages=some"
CONSISTENCY = f"{PLAIN};model=Attention Consistency"
NETS = {"Attention Consistency": CONSISTENCY, "RNN-Attention": "model=RNN-Attention"}
HALF = "memory_size=0.5"
MORE = "memory_size=1.5"
SCRATCH = "pretrained_stages=some"
IMBALANCED = "test_set=imbalanced"
BALANCED = 0.2  # the paper sets rho within [-0.2, 0.2]
# differences so small that an interval within them says "no difference"
MARGINS = {"points": SMALL, "points of memory": SMALL, "rank correlation": 0.1}

Cells = dict[str, np.ndarray]  # by name: (1 + draws,)
Places = dict[str, dict[str, str | int]]  # by name: keywords of `Scores`
At = Places | Callable[..., Places]  # of the scores and the methods
ANYWHERE: Places = {"": {}}


class Scores:
    """The scores of one data set; a claim reads them `at` one seed and metric."""

    def __init__(self, rows: pd.DataFrame):
        self.cells: dict[tuple, np.ndarray] = {}
        self.seeds = sorted(rows["seed"].unique())
        columns = rows[["method", "setting", "trained_tasks"]]
        self.rows = set(columns.itertuples(index=False, name=None))
        self.end = rows["trained_tasks"].max()
        standard = rows[(rows["method"] == "PRS") & (rows["setting"] == "")]
        self.rho = standard["rho"].max()
        values = values_and_draws(rows).to_numpy()
        for row, value in zip(rows.itertuples(), values, strict=True):
            place = row.method, row.setting, row.group, row.measure
            cell = row.metric, row.task, row.trained_tasks
            self.cells.setdefault((row.seed, *place, *cell), value)

    def at(self, seed: int, metric: str) -> Self:
        """Return the scores of one seed and metric."""
        scores = copy(self)
        scores.seed = seed
        scores.metric = metric
        return scores

    def __call__(
        self,
        method: str,
        setting: str = "",  # how it differs from the standard, "memory_size=0.5"
        group: str = "overall",
        measure: str = "score",
        task: str = "seen",
        after: int = 0,  # trained tasks, 0 for all
    ) -> np.ndarray:
        """Return a score as (1 + draws,); raise KeyError where there is none."""
        place = method, setting, group, measure
        cell = self.metric, task, after or self.end
        return self.cells[self.seed, *place, *cell]

    def levels(self, name: str, *methods: str) -> dict[str, str]:
        """Return a field's values that all methods were run with, and their settings."""
        of_methods = [{s for m, s, _ in self.rows if m == one} for one in methods]
        common = sorted(set.intersection(*of_methods))
        settings = [s for s in common if re.fullmatch(f"({name}=[^;]*)?", s)]
        if len(settings) < 2:
            raise LookupError(f"no runs of {methods} with several {name}")
        return {setting.removeprefix(f"{name}="): setting for setting in settings}

    def times(self, method: str) -> list[int]:
        """Return after how many tasks a method was scored, in order."""
        return sorted(time for m, s, time in self.rows if (m, s) == (method, ""))

    def evaluate(self, claim: "Claim", metrics: Sequence[str]) -> tuple:
        """Return names and values (seeds, cells, 1 + draws), of seeds that have all rows."""
        names = []
        values = []
        for seed in self.seeds:
            cells = {}
            with suppress(LookupError):  # it was not run
                for metric in metrics:
                    of_metric = claim.of(self.at(seed, metric))
                    for name, value in of_metric.items():
                        cells[f"{name} {metric}".strip()] = value
                values.append(list(cells.values()))
                names = list(cells)
        if not names:
            return [], np.empty((0, 1, 1))
        values = np.array(values)
        return names, by_seed(claim.across, values) if claim.across else values


@dataclass(frozen=True)
class Claim:
    """A claim, and the numbers that decide it."""

    of: Callable[[Scores], Cells]
    over: str = "every"  # cell, of which the weakest counts, or their "mean"
    on: tuple[str, ...] = (COCO, NUS)  # the paper's data sets
    metrics: tuple[str, ...] = MAIN_METRICS
    unit: str = "points"
    across: Callable[[np.ndarray], np.ndarray] | None = None  # a number of all seeds

    def decide(self, scores: Scores, level: float = LEVEL) -> dict:
        """Return the effect on one data set, its weakest cell and each metric by itself."""
        names, values = scores.evaluate(self, self.metrics)
        whole = interval(values, self.over, level)
        row = vars(whole) | {"alone": whole.verdict_within(MARGINS.get(self.unit, 0))}
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
            row["weakest"] = names[np.argmin([one.effect for one in each])]
        for metric in MAIN_METRICS:
            _, values = scores.evaluate(self, [metric])
            one = interval(values, self.over, level)
            for end in ("effect", "low", "high"):
                number = getattr(one, end) if one.seeds == len(values) else np.nan
                row[f"{metric} {end}"] = number
        return row


def leads(first: str, *others: str, at: At = ANYWHERE, **fields: object) -> Claim:
    """Return the claim that one method is above others in every place that counts."""

    def of(s: Scores) -> Cells:
        places = at(s, first, *others) if callable(at) else at
        return {
            f"over {other} {name}".strip(): s(first, **place) - s(other, **place)
            for name, place in places.items()
            for other in others
        }

    return Claim(of, **fields)


def in_settings(settings: dict[str, str]) -> Places:
    """Return the standard place in several settings."""
    return {name: {"setting": setting} for name, setting in settings.items()}


def schedules(s: Scores, *methods: str) -> Places:
    """Return every schedule that all methods were run with."""
    levels = s.levels("schedule", *methods)
    return in_settings({f"schedule {n or 'of Table 1'}": levels[n] for n in levels})


def later(s: Scores, first: str, *_others: str) -> Places:
    """Return the times after each task but the first."""
    # all methods keep the same of a first task that fits into the memory
    return {f"after {time} tasks": {"after": time} for time in s.times(first)[1:]}


def difference(first: dict, second: dict, **fields: object) -> Claim:
    """Return the claim that a score is above another, as keywords of `Scores`."""
    return Claim(lambda s: {"": s(**first) - s(**second)}, "mean", **fields)


def tail(method: str, measure: str) -> Claim:
    """Return the claim that a method forgets the rare classes more."""
    rare = {"method": method, "group": "minority", "measure": measure}
    return difference(rare, rare | {"group": "majority"}, metrics=("mAP",))


def small(method: str, metric: str, measure: str) -> Claim:
    """Return the claim that a method forgets small classes more, task by task."""
    setting = HALF if method == "CRS" else ""

    def of(s: Scores) -> Cells:
        return {"": -s(method, setting, measure=measure)}

    return Claim(of, "mean", (COCO,), (metric,), "rank correlation")


def shares(first: tuple, second: tuple, on: tuple = (COCO,)) -> Claim:
    """Return the claim that a share of a memory, (method, measure), is above another."""
    pair = [{"method": name, "measure": measure} for name, measure in (first, second)]
    return difference(*pair, on=on, **MEMORY)


def same_memory(s: Scores) -> Cells:
    """Return how far inside the margin the memories of CRS and of PRS with rho 1 differ."""
    prs = s("PRS", "rho=1.0", measure="to stream")
    gap = prs - s("CRS", measure="to stream")
    margin = MARGINS["points of memory"]
    return {"no more": margin - gap, "no less": margin + gap}


def head_and_tail(s: Scores) -> Cells:
    """Return how much closer majority and minority are with PRS than with CRS."""
    crs = s("CRS", group="majority") - s("CRS", group="minority")
    return {"": crs - (s("PRS", group="majority") - s("PRS", group="minority"))}


def lead_grows(s: Scores) -> Cells:
    """Return how much PRS's lead over CRS grows from the first task to the last."""
    lead = [s("PRS", after=time) - s("CRS", after=time) for time in s.times("PRS")]
    return {"": lead[-1] - lead[0]} if len(lead) > 1 else {}


def varied(method: str, on: tuple = (COCO, MNIST)) -> Claim:
    """Return the claim that PRS has a higher gradient variance, in percent."""

    def of(s: Scores) -> Cells:
        ours = s("PRS", measure="variance")
        return {"": 100 * (ours / s(method, measure="variance") - 1)}

    return Claim(of, "mean", on, ("gradient variance",), "%")


def steadier(method: str) -> Claim:
    """Return the claim that PRS depends less on the schedule than another (Table 2)."""

    def of(s: Scores) -> Cells:
        settings = s.levels("schedule", "PRS", method).values()
        return {"": np.array([[s(method, text), s("PRS", text)] for text in settings])}

    def across(scores: np.ndarray) -> np.ndarray:
        variances = schedule_variance(scores)  # (metrics, methods, 1 + draws)
        return variances[:, 0] - variances[:, 1]

    return Claim(of, "mean", unit="square points", across=across)


def schedule_variance(scores: np.ndarray) -> np.ndarray:
    """Average the covariances over schedules of all pairs of different seeds."""
    seeds, _, schedules = scores.shape[:3]  # (seeds, metrics, schedules, ...)
    scores = scores - scores.mean(axis=2, keepdims=True)
    total = (scores.sum(axis=0) ** 2).sum(axis=1)
    pairs = seeds**2
    if seeds > 1:  # the pairs of a seed and itself alone have the seeds' noise
        total = total - (scores**2).sum(axis=(0, 2))
        pairs = seeds * (seeds - 1)
    return total / pairs / (schedules - 1)


def by_seed(statistic: Callable, scores: np.ndarray) -> np.ndarray:
    """Return a statistic as a number a seed: the jackknife's pseudo-values."""
    count = len(scores)
    whole = statistic(scores)
    if count == 1:
        return whole[None]
    without = [statistic(np.delete(scores, seed, axis=0)) for seed in range(count)]
    return count * whole - (count - 1) * np.stack(without)


def of_rhos(s: Scores) -> dict[float, np.ndarray]:
    """Return PRS's scores by rho, from the lowest to the highest."""
    levels = s.levels("rho", "PRS").items()
    scores = {float(rho or s.rho): s("PRS", setting) for rho, setting in levels}
    return dict(sorted(scores.items()))


def rho_steps(s: Scores) -> Cells:
    """Return the leads of every rho over the next on the way from 0 to both ends."""
    scores = of_rhos(s)
    up = [rho for rho in scores if rho >= 0]
    down = [rho for rho in reversed(scores) if rho <= 0]
    steps = [*pairwise(up), *pairwise(down)]
    return {f"rho {a:g} to {b:g}": scores[a] - scores[b] for a, b in steps}


def rho_ends(s: Scores) -> Cells:
    """Return the leads of rho near 0, on average, over the lowest and the highest rho."""
    scores = of_rhos(s)
    near = [scores[rho] for rho in scores if abs(rho) <= BALANCED]
    ends = [*scores][:1] + [*scores][-1:]
    far = [rho for rho in ends if abs(rho) > BALANCED and near]
    return {f"over rho {rho:g}": np.mean(near, axis=0) - scores[rho] for rho in far}


def on_imbalanced(*others: str, group: str = "overall") -> Claim:
    """Return the claim that PRS with rho 0.5 leads on the imbalanced test set."""

    def of(s: Scores) -> Cells:
        ours = s("PRS", f"rho=0.5;{IMBALANCED}", group)
        return {f"over {name}": ours - s(name, IMBALANCED, group) for name in others}

    return Claim(of, on=(COCO,))


def plain_ahead(s: Scores, method: str, plain: str = "") -> Cells:
    """Return how far the plain network is above both attention nets."""
    return {f"over {name}": s(method, plain) - s(method, NETS[name]) for name in NETS}


def harder(s: Scores, nets: dict[str, str]) -> Cells:
    """Return how much lower Multitask scores on the balanced test set."""

    def lost(net: str) -> np.ndarray:
        return s("Multitask", f"{net};{IMBALANCED}") - s("Multitask", net)

    return {name: lost(net) for name, net in nets.items()}


NEIGHBOURS = {"metrics": ("kNN accuracy",), "on": (COCO, MNIST), "over": "mean"}
FEATURES = {"": {"group": "minority", "measure": "features"}}
MEMORY = {"metrics": ("memory",), "unit": "points of memory"}
LABELS = {"over": "mean", "metrics": ("memory",), "unit": "points of the labels"}
TAIL = {group: {"group": group} for group in ("moderate", "minority")}
MAJORITY = {"majority": {"group": "majority"}}
SIZES = {"half memory": HALF, "whole memory": "", "one and a half memory": MORE}
NETWORKS = in_settings({"plain net": ""} | NETS)
FROZEN = {"plain net": PLAIN}
AC_ALONE = in_settings({"": CONSISTENCY})
SMALLEST = {"at": {"": {"task": "3"}}, "on": (NUS,)}
ACCURACY = {"metrics": ("accuracy",), "on": (MNIST, SVHN)}
WHOLE_TEST_SET = {"": {"task": "all"}}
AFTER_FOUR = {"": {"task": "all", "after": 4}}

CLAIMS: dict[str, Claim] = {
    "tail_crs": tail("CRS", "forget"),
    "tail_crs_lost": tail("CRS", "lost"),
    "tail_ewc": tail("EWC", "forget"),
    "tail_ewc_lost": tail("EWC", "lost"),
    **{
        f"order_{method}_{metric}{lost}".lower(): small(method, metric, f"order{lost}")
        for method in ("CRS", "EWC")
        for metric in ("AP", "F1")
        for lost in ("", "_lost")
    },
    "crs_follows": shares(("CRS", "to equal"), ("CRS", "to stream"), on=(COCO, NUS)),
    "crs_head": shares(("CRS", "majority"), ("CRS", "minority")),
    "largest_fifth": Claim(
        lambda s: {"": s("CRS", measure="largest fifth of stream") - 50}, **LABELS
    ),
    "largest_fifth_memory": shares(("CRS", "largest fifth"), ("PRS", "largest fifth")),
    "rho_one": Claim(same_memory, on=(COCO,), **MEMORY),
    "prs_balances": shares(("PRS", "to stream"), ("PRS", "to equal")),
    "exstream_balances": shares(("ExStream", "to stream"), ("ExStream", "to equal")),
    "gss_moderate": shares(("GSS", "moderate"), ("CRS", "moderate")),
    "gss_minority": shares(("PRS", "minority"), ("GSS", "minority")),
    "best": leads("PRS", *ALL),
    **{f"above_{name}".lower(): leads("PRS", name) for name in RIVALS},
    "lower_bound": Claim(
        lambda s: {f"of {m}": s(m) - s("Finetune") for m in (*ALL[1:], "PRS")}
    ),
    "ewc_frozen": Claim(
        lambda s: {"": s("EWC", f"{PLAIN};{SCRATCH}") - s("EWC", SCRATCH)}, on=(COCO,)
    ),
    "upper_bound": leads("Multitask", "PRS"),
    "majority": leads("PRS", "EWC", "GSS", "ExStream", at=MAJORITY),
    "crs_majority": leads("CRS", "PRS", at=MAJORITY, over="mean"),
    "crs_sacrifices": leads("PRS", "CRS", at=TAIL),
    "best_on_tail": leads("PRS", *ALL, at=TAIL),
    "head_and_tail": Claim(head_and_tail, "mean"),
    "smallest_task_crs": leads("PRS", "CRS", **SMALLEST),
    "smallest_task": leads("PRS", *ALL, **SMALLEST),
    **{f"steadier_{name}".lower(): steadier(name) for name in RIVALS},
    "schedules_crs": leads("PRS", "CRS", at=schedules),
    "schedules": leads("PRS", *RIVALS, at=schedules),
    "memory_crs": leads("PRS", "CRS", at=in_settings(SIZES)),
    "memory": leads("PRS", *RIVALS, at=in_settings(SIZES)),
    "memory_jump": Claim(lambda s: {"": s("PRS") - s("PRS", HALF)}, "mean", (NUS,)),
    "memory_flattens": Claim(
        lambda s: {"": 2 * s("PRS") - s("PRS", HALF) - s("PRS", MORE)}, "mean", (NUS,)
    ),
    "rho_ends": Claim(rho_ends, on=(COCO,)),
    "rho_declines": Claim(rho_steps, on=(COCO,)),
    "features": leads("PRS", "CRS", at=FEATURES, **NEIGHBOURS),
    "variance_crs": varied("CRS"),
    "variance_gss": varied("GSS"),
    "variance_exstream": varied("ExStream", on=(COCO,)),
    "single_crs": leads("PRS", "CRS", at=WHOLE_TEST_SET, **ACCURACY),
    "single_gss": leads("PRS", "GSS", at=WHOLE_TEST_SET, **ACCURACY),
    "after_four": leads("PRS", "CRS", at=AFTER_FOUR, **ACCURACY),
    "any_time_crs": leads("PRS", "CRS", at=later),
    "any_time": leads("PRS", *ALL, at=later),
    "lead_grows": Claim(lead_grows, "mean"),
    "imbalanced_crs": on_imbalanced("CRS"),
    "imbalanced": on_imbalanced(*RIVALS),
    "imbalanced_majority": on_imbalanced("GSS", "ExStream", group="majority"),
    "architectures_crs": leads("PRS", "CRS", at=NETWORKS, on=(COCO,)),
    "architectures": leads("PRS", "ExStream", at=NETWORKS, on=(COCO,)),
    "architectures_gss": leads("PRS", "GSS", at=AC_ALONE, on=(COCO,)),
    "plain_multitask": Claim(lambda s: plain_ahead(s, "Multitask", PLAIN)),
    "plain_online": Claim(lambda s: plain_ahead(s, "PRS"), on=(COCO,)),
    "balanced_is_harder": Claim(lambda s: harder(s, FROZEN)),
    "balanced_is_harder_for_all": Claim(lambda s: harder(s, FROZEN | NETS)),
}
CLAIM_WORDS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
