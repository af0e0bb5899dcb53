"""The claims that the paper makes in words, and the numbers that test them.

``claims.toml`` lists the claims; ``functions.py`` defines the functions that it names.
"""

import tomllib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from prslib.checks import expected, one_of
from prslib.report.claims import functions
from prslib.report.claims.functions import STATISTICS, Cells
from prslib.report.claims.scores import TESTS, Scores, Seed
from prslib.report.tables import MAIN_METRICS
from prslib.statistics import LEVEL, SMALL, Interval, interval

COCO = "COCOseq"
NUS = "NUS-WIDEseq"
# kinds of claims; the last two also replace a verdict
PRIMARY, SENSITIVITY, FACT = KINDS = ("primary", "sensitivity", "fact")
WITHOUT_TEST = {"memory", "gradient variance"}  # metrics that use no test images
# units in which intervals within `SMALL` are "no difference"; in others, no interval is
POINTS = ("points", "points of memory")


@dataclass(frozen=True)
class Claim:
    """A row of ``claims.toml``, where the fields are explained."""

    name: str
    function: Callable[..., Cells]
    arguments: dict[str, Any]
    question: str
    statement: str
    source: str
    test: str
    kind: str = PRIMARY
    test_set: str = next(iter(TESTS))
    second_test_set: str = ""
    on: Sequence[str] = (COCO, NUS)
    stand_ins: bool = True
    metrics: Sequence[str] = MAIN_METRICS
    over: str = "every"
    unit: str = "points"
    printed: dict[str, float] = field(default_factory=dict)
    headline: bool = False

    def evaluate(self, scores: Scores) -> tuple:
        """Return the names of cells, and values (seeds, cells, 1 + draws) of complete seeds."""
        names = []
        values = []
        for number in scores.seeds:
            cells = {}
            with suppress(LookupError):  # it was not run
                for metric in self.metrics:
                    seed = Seed(scores, number, metric, self.test_set)
                    of_metric = self.function(seed, **self.arguments)
                    for name, value in of_metric.items():
                        cells[f"{metric}, {name}".strip(", ")] = value
                values.append(list(cells.values()))
                names = list(cells)
        if not names:
            return [], np.empty((0, 1, 1))
        stacked = np.array(values)
        if statistic := STATISTICS.get(self.function):
            stacked = statistic(stacked)
        return names, stacked

    def decide(self, scores: Scores, level: float = LEVEL) -> dict:
        """Return the effect on one data set, its weakest cell and its verdict."""
        names, values = self.evaluate(scores)
        effect = interval(values, self.over, level)
        row = vars(effect) | {"alone": self.verdict(effect)}
        weakest = row.pop("cell")
        if row["alone"] == FACT:
            row |= dict.fromkeys(["low", "high", "p", "reach"], np.nan)
        if effect.seeds < len(values):
            # the claim is about all seeds
            row |= {"alone": "undecided", "p": np.nan}
        has_test = not set(self.metrics) <= WITHOUT_TEST
        row["test_set"] = scores.tests[self.test_set] if has_test else ""
        row["weakest"] = ""
        if self.over == "every" and len(names) > 1:
            row["weakest"] = names[weakest]
        return row

    def verdict(self, effect: Interval) -> str:
        """Return the verdict on one data set, not corrected for the number of claims."""
        if self.kind == FACT and effect.seeds:
            return FACT
        return effect.verdict_within(SMALL if self.unit in POINTS else np.nan)


def read_claims() -> dict[str, Claim]:
    """Read ``claims.toml``."""
    file = Path(__file__).with_name("claims.toml")
    claims = {}
    for topic in tomllib.loads(file.read_text(encoding="utf-8")).values():
        rows = {name: row for name, row in topic.items() if isinstance(row, dict)}
        shared = {name: value for name, value in topic.items() if name not in rows}
        for name, row in rows.items():
            (function,) = row.keys() - Claim.__dataclass_fields__.keys()
            arguments = row.pop(function)
            function = getattr(functions, function)
            claim = Claim(name, function, arguments, **shared | row)
            one_of("kind", claim.kind, KINDS)
            one_of("over", claim.over, ("every", "mean"))
            one_of("test_set", claim.test_set, TESTS)
            if name in claims:
                raise ValueError(expected("one claim of each name", name))
            claims[name] = claim
    return claims


CLAIMS = read_claims()

__all__ = ["CLAIMS", "COCO", "FACT", "PRIMARY", "SENSITIVITY", "Claim", "Scores"]
