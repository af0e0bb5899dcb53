"""Decide the claims that the paper makes in words by the numbers of `claims.toml`.

A claim is a function of a seed's scores: `s("PRS")` is PRS's overall score. It returns
a number, or some by name, above 0 where the claim is right.
"""

import re
import tomllib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pandas as pd

from prslib.report.statistics import LEVEL, SMALL, interval
from prslib.report.tables import MAIN_METRICS

# settings; the architecture tables freeze a stage of these two networks
PLAIN = {"plain net": "frozen_stages=some"}
NETS = PLAIN | {
    "Attention Consistency": "frozen_stages=some;model=Attention Consistency",
    "RNN-Attention": "model=RNN-Attention",
}
BALANCED = 0.2  # the paper sets rho within [-0.2, 0.2]
# differences so small that an interval within them says "no difference"
MARGINS = {"points": SMALL, "points of memory": SMALL, "rank correlation": 0.1}

Cells = dict[str, np.ndarray]  # by name: (1 + draws,)
Places = dict[str, dict[str, str | int]]  # by name: keywords of `Scores`
ANYWHERE: Places = {"": {}}


class Scores:
    """The scores of one data set; `evaluate` asks for one seed and metric at a time."""

    def __init__(self, rows: pd.DataFrame):
        # printed rows have neither rho nor draws
        rows = rows.reindex(columns=rows.columns.union(["rho", "draws"]))
        self.cells: dict[tuple, np.ndarray] = {}
        self.seeds = sorted(rows["seed"].unique())
        self.end = rows["trained_tasks"].max()
        standard = rows.loc[(rows["method"] == "PRS") & (rows["setting"] == ""), "rho"]
        self.rho = standard.max()
        draws = max(map(np.size, rows["draws"]), default=1)
        for row in rows.itertuples():
            place = row.method, row.setting, row.group, row.measure
            cell = row.metric, row.task, row.trained_tasks
            value = np.append(row.value, np.broadcast_to(row.draws, draws))
            self.cells.setdefault((row.seed, *place, *cell), value)

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
        of_methods = [{key[2] for key in self.cells if key[1] == m} for m in methods]
        common = sorted(set.intersection(*of_methods))
        settings = [s for s in common if re.fullmatch(f"({name}=[^;]*)?", s)]
        if len(settings) < 2:
            raise LookupError(f"no runs of {methods} with several {name}")
        return {setting.removeprefix(f"{name}="): setting for setting in settings}

    def times(self, method: str) -> list[int]:
        """Return after how many tasks a method was scored, in order."""
        return sorted({key[-1] for key in self.cells if key[1:3] == (method, "")})

    def evaluate(self, claim: "Claim", metrics: Sequence[str]) -> tuple:
        """Return names and values (seeds, cells, 1 + draws), of seeds that have all rows."""
        names, values = [], []
        for seed in self.seeds:
            cells = {}
            with suppress(LookupError):  # it was not run
                for metric in metrics:
                    self.seed, self.metric = seed, metric
                    of_metric = claim.of(self)
                    cells |= {f"{n} {metric}".strip(): of_metric[n] for n in of_metric}
                values.append(list(cells.values()))
                names = list(cells)
        if not names:
            return [], np.empty((0, 1, 1))
        values = np.array(values)
        if values.ndim > 3:  # of methods in schedules
            values = by_seed(steadiness, values)
        return names, values


@dataclass(frozen=True)
class Claim:
    """A claim, and the numbers that decide it."""

    of: Callable[[Scores], Cells]
    over: str = "every"  # cell, of which the weakest counts, or their "mean"
    on: Sequence[str] = ("COCOseq", "NUS-WIDEseq")  # the paper's data sets
    metrics: Sequence[str] = MAIN_METRICS
    unit: str = "points"

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


def compared(
    s: Scores,
    score: dict,
    less: Places | list[str] | None = None,
    at: Places | str = ANYWHERE,
) -> Cells:
    """Return how far a score is above others in every place, by name, or above 0."""
    if less is None:
        return {"": s(**score)}
    if isinstance(less, list):
        less = {f"over {method}": {"method": method} for method in less}
    if isinstance(at, str):
        others = [other["method"] for other in less.values()]
        at = PLACES[at](s, score["method"], *others)
    cells = {}
    for (place, change), (name, other) in product(at.items(), less.items()):
        first = score | change
        cells[f"{name} {place}".strip()] = s(**first) - s(**first | other)
    return cells


def schedules(s: Scores, *methods: str) -> Places:
    """Return every schedule that all methods were run with."""
    levels = s.levels("schedule", *methods)
    return {f"schedule {n or 'of Table 1'}": {"setting": levels[n]} for n in levels}


def later(s: Scores, first: str, *_others: str) -> Places:
    """Return the times after each task but the first."""
    # all methods keep the same of a first task that fits into the memory
    return {f"after {time} tasks": {"after": time} for time in s.times(first)[1:]}


PLACES = {"schedules": schedules, "later": later}


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


def varied(s: Scores, method: str) -> Cells:
    """Return how much higher PRS's gradient variance is than another's, in percent."""
    ours = s("PRS", measure="variance")
    return {"": 100 * (ours / s(method, measure="variance") - 1)}


def steadier(s: Scores, method: str) -> Cells:
    """Return the scores of a method and of PRS in each schedule (Table 2)."""
    settings = s.levels("schedule", "PRS", method).values()
    return {"": np.array([[s(method, text), s("PRS", text)] for text in settings])}


def steadiness(scores: np.ndarray) -> np.ndarray:
    """Return how much less PRS depends on the schedule than another method."""
    variances = schedule_variance(scores)  # (metrics, methods, 1 + draws)
    return variances[:, 0] - variances[:, 1]


def schedule_variance(scores: np.ndarray) -> np.ndarray:
    """Average the covariances over schedules of all pairs of different seeds."""
    seeds, _, schedules = scores.shape[:3]  # (seeds, metrics, schedules, ...)
    scores = scores - scores.mean(axis=2, keepdims=True)
    total, pairs = (scores.sum(axis=0) ** 2).sum(axis=1), seeds**2
    if seeds > 1:  # the pairs of a seed and itself alone have the seeds' noise
        total = total - (scores**2).sum(axis=(0, 2))
        pairs = seeds * (seeds - 1)
    return total / pairs / (schedules - 1)


def by_seed(statistic: Callable, scores: np.ndarray) -> np.ndarray:
    """Return a statistic as a number a seed: the jackknife's pseudo-values."""
    count, whole = len(scores), statistic(scores)
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


def memory_flattens(s: Scores) -> Cells:
    """Return how much more PRS gains up to the whole memory than from there on."""
    ends = s("PRS", "memory_size=0.5") + s("PRS", "memory_size=1.5")
    return {"": 2 * s("PRS") - ends}


def harder(s: Scores, nets: dict[str, str]) -> Cells:
    """Return how much lower Multitask scores on the balanced test set."""

    def lost(net: str) -> np.ndarray:
        imbalanced = s("Multitask", f"{net};test_set=imbalanced")
        return imbalanced - s("Multitask", net)

    return {name: lost(net) for name, net in nets.items()}


# of the claims that compare more than scores
NUMBERS = {
    "largest_fifth": lambda s: {"": s("CRS", measure="largest fifth of stream") - 50},
    "rho_one": same_memory,
    "head_and_tail": head_and_tail,
    "steadier_crs": partial(steadier, method="CRS"),
    "steadier_gss": partial(steadier, method="GSS"),
    "steadier_exstream": partial(steadier, method="ExStream"),
    "memory_flattens": memory_flattens,
    "rho_ends": rho_ends,
    "rho_declines": rho_steps,
    "variance_crs": partial(varied, method="CRS"),
    "variance_gss": partial(varied, method="GSS"),
    "variance_exstream": partial(varied, method="ExStream"),
    "lead_grows": lead_grows,
    "balanced_is_harder": partial(harder, nets=PLAIN),
    "balanced_is_harder_for_all": partial(harder, nets=NETS),
}


def claim(name: str, entry: dict) -> Claim:
    """Return a claim as its entry in `claims.toml` describes it."""
    terms = {key: entry[key] for key in ("score", "less", "at") if key in entry}
    number = partial(compared, **terms) if terms else NUMBERS[name]
    fields = entry.keys() & {"over", "on", "metrics", "unit"}
    return Claim(number, **{field: entry[field] for field in fields})


CLAIM_WORDS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
CLAIMS = {name: claim(name, entry) for name, entry in CLAIM_WORDS.items()}
