"""Look up the scores of a data set by the names that claims use."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from prslib.checks import one_of
from prslib.metrics import values_and_draws

# how a run can differ from the standard
SETTINGS = {
    "memory_size",  # as a share of the standard memory
    "schedule",  # "0,3,1,2"
    "model",  # as the paper calls it
    "epochs",
    "frozen_stages",  # OTHER than the standard's
    "pretrained_stages",  # OTHER than the standard's
    "vector_stages",  # OTHER than the standard's
    "rho",
}
OTHER = "other"  # any other number of stages, which depends on the network
# For each kind of test set that a claim names, the first one that a data set has is used.
# Micro averages and groups are read on one of the first two kinds; scores of single
# classes are read on further images if there are any.
TESTS = {
    "balanced test": ("balanced", "full"),
    "imbalanced test": ("imbalanced",),
    "single classes": ("open", "balanced"),
}
# what identifies a number of a data set; `report.results` describes the columns
KEY = ["seed", "metric", "method", "group", "measure", "task", "trained_tasks"]
KEY += ["test_set", "setting"]


class Scores:
    """The scores of one data set by `KEY`; if several share a key, the first counts."""

    def __init__(self, rows: pd.DataFrame):
        rows = rows.drop_duplicates(KEY)
        self.seeds = sorted(rows["seed"].unique())
        self.last = rows["trained_tasks"].max()
        self.rho = rows["standard_rho"].max()
        present = set(rows["test_set"])
        self.tests = {
            kind: next((name for name in names if name in present), "")
            for kind, names in TESTS.items()
        }
        keys = rows[KEY].itertuples(index=False, name=None)
        # each (1 + draws,)
        self.values = dict(zip(keys, values_and_draws(rows).to_numpy(), strict=True))
        runs = rows[["method", "setting", "trained_tasks", "test_set"]]
        self.runs = set(runs.itertuples(index=False, name=None))


@dataclass(frozen=True)
class Seed:
    """The scores of one seed in one metric, as claims read them."""

    scores: Scores
    number: int
    metric: str
    test_set: str  # a kind of `TESTS`

    def settings(self, method: str) -> list[tuple[dict[str, Any], int]]:
        """Return pairs of a method's setting and a number of tasks after which it was scored."""
        test_set = self.scores.tests[self.test_set]
        return [
            (dict(setting), time)
            for who, setting, time, name in self.scores.runs
            if who == method and name == test_set
        ]

    def levels(self, name: str, *methods: str) -> list:
        """Return the values of a setting that all methods have; None for the standard."""
        levels = []
        for method in methods:
            settings = [setting for setting, _ in self.settings(method)]
            levels.append({s.get(name) for s in settings if s.keys() <= {name}})
        common = set.intersection(*levels)
        if len(common) < 2:
            raise LookupError(f"no runs of {methods} with several {name}")
        return sorted(common, key=lambda value: (value is not None, value))

    def times(self, method: str) -> list[int]:
        """Return after how many tasks a method was scored in the standard setting."""
        return sorted(time for setting, time in self.settings(method) if not setting)

    def score(
        self,
        method: str,
        group: str = "overall",
        measure: str = "score",
        task: str = "seen",
        after: int = 0,  # trained tasks, 0 for all
        test_set: str = "",  # a kind of `TESTS`, other than the claim's
        **setting: Any,  # a name of `SETTINGS`; None for the standard
    ) -> np.ndarray:
        """Return a score as (1 + draws,); raise KeyError if there is none."""
        for name in setting:
            one_of("setting", name, SETTINGS)
        varied = {name: value for name, value in setting.items() if value is not None}
        place = self.number, self.metric, method, group, measure, task
        after = after or self.scores.last
        name = self.scores.tests[test_set or self.test_set]
        return self.scores.values[*place, after, name, frozenset(varied.items())]
