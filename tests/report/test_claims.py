"""Every claim's sign, on numbers made by hand."""

from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from prslib import RunConfig, run
from prslib.datasets import GROUPS, load_dataset
from prslib.report.claims import CLAIMS, METRICS, Scores, by_seed, schedule_variance
from prslib.report.observations import observe
from prslib.report.tables import scores_of

LEVEL = {"Multitask": 60, "PRS": 50, "CRS": 45, "ExStream": 44, "GSS": 43, "EWC": 30}
GROUP = {  # how far a group is from the overall score
    "CRS": {"majority": 20, "moderate": 0, "minority": -25},
    "PRS": {"majority": 10, "moderate": 0, "minority": -10},
}
SHARES = {
    ("CRS", "to stream"): 5,
    ("CRS", "to equal"): 30,
    ("PRS", "to stream"): 28,
    ("PRS", "to equal"): 4,
    ("ExStream", "to stream"): 29,
    ("ExStream", "to equal"): 3,
    ("CRS", "largest fifth"): 60,
    ("PRS", "largest fifth"): 25,
    ("CRS", "largest fifth of stream"): 65,
    ("CRS", "majority"): 70,
    ("CRS", "moderate"): 25,
    ("CRS", "minority"): 5,
    ("GSS", "moderate"): 35,
    ("GSS", "minority"): 8,
    ("PRS", "minority"): 30,
}
SETTINGS = {"memory_size=0.5": -6, "memory_size=1.5": 2, "pretrained_stages": -20}
SETTINGS |= {"test_set": 5, "frozen_stages;test_set": 5}
SETTINGS |= {f"model={name}": -3 for name in ("Attention Consistency", "RNN-Attention")}
SETTINGS |= {f"{name};test_set": 2 for name in SETTINGS if name.startswith("model")}
SCHEDULES = {
    "0,3,1,2": "",
    "0,1,3,2": "schedule=0,1,3,2",
    "2,3,0,1": "schedule=2,3,0,1",
}


class PaperIsRight:
    """Scores, one seed, of a world in which every claim of the paper is true."""

    rho: ClassVar = {"rho=-1": -1.0, "": 0.0, "rho=0.5": 0.5, "rho=1": 1.0}

    def levels(self, name, *_methods):
        return SCHEDULES if name == "schedule" else {s: s for s in self.rho}

    def times(self, _method):
        return [1, 2, 3, 4]

    def __call__(
        self,
        method,
        metric,
        group="overall",
        setting="",
        measure="score",
        after="end",
        **_,
    ):
        return np.array([[self.value(method, metric, group, setting, measure, after)]])

    def value(self, method, metric, group, setting, measure, after):
        if measure in ("forget", "lost"):
            return {"minority": 50.0, "majority": 20.0}[group]
        if measure.startswith("order"):
            return -0.5
        if measure == "share":
            if setting == "rho=1":
                return 5.5
            return float(SHARES[method, group if metric == "memory" else metric])
        if measure == "features":
            return {"PRS": 60.0, "CRS": 50.0}[method]
        if measure == "variance":
            return {"PRS": 2.0}.get(method, 1.0)
        value = LEVEL.get(method, 10) + GROUP.get(method, {"minority": -20}).get(
            group, 0
        )
        value += SETTINGS.get(setting, 0) - 10 * abs(self.rho.get(setting, 0))
        if setting.startswith("schedule"):
            value += (1 if method == "PRS" else 4) * (-1) ** len(setting.split("0")[0])
        if method == "CRS" and after != 1:
            value -= 1
        return float(value)


@pytest.mark.parametrize("name", CLAIMS)
def test_every_claim_is_above_0_where_the_paper_is_right(name):
    claim = CLAIMS[name]
    cells = claim.cells(PaperIsRight(), claim.metrics)
    assert cells
    for cell, values in cells.items():
        assert values.min() > 0, cell


def test_every_claim_says_what_it_is():
    for claim in CLAIMS.values():
        assert claim.statement and claim.source and claim.test
    assert CLAIMS["tail_crs"].question


def rows_of(table, **columns):
    """Observations of {(method, seed): value}, in the standard setting."""
    usual = {"varied": "", "memory": 1.0, "schedule": "0,1", "power": "own", "rho": 0.0}
    usual |= {
        "architecture": "ResNet101",
        "trained_tasks": 2,
        "last": True,
        "task": "seen",
    }
    usual |= {"group": "overall", "measure": "score", "metric": "mAP"} | columns
    rows = [{"method": m, "seed": s, "value": v} | usual for (m, s), v in table.items()]
    return pd.DataFrame(rows)


FIVE = {("PRS", s): 50.0 + s for s in range(5)} | {
    ("CRS", s): 48.0 + s for s in range(5)
}


def decide(rows, name="crs_majority"):
    return CLAIMS[name].decide(Scores(rows))


def in_all_metrics(table, **columns):
    return pd.concat([rows_of(table, metric=m, **columns) for m in METRICS])


def test_the_weakest_cell_is_named_and_clear_ones_are_counted():
    rows = in_all_metrics(FIVE)
    worse = (rows["metric"] == "O-F1") & (rows["method"] == "PRS")
    found = decide(rows.assign(value=rows["value"] - 5.0 * worse), "above_crs")
    assert (found["weakest"], found["effect"]) == ("over CRS O-F1", -3)
    assert (found["above"], found["below"], found["cells"]) == (2, 1, 3)
    assert [found[f"{metric} effect"] for metric in METRICS] == [2, -3, 2]
    assert found["alone"] == "does not hold"


def test_seeds_are_paired_and_what_is_missing_is_not_run():
    rows = in_all_metrics(FIVE, group="majority")
    one = rows[(rows["method"] == "PRS") | (rows["seed"] == 3)]
    found = decide(one)
    assert (found["seeds"], found["effect"], found["alone"]) == (1, -2, "undecided")
    assert decide(rows[rows["method"] == "PRS"])["alone"] == "not run"
    assert decide(rows[rows["metric"] != "mAP"])["alone"] == "not run"


def test_a_row_whose_seeds_drop_out_is_not_decided():
    rows = in_all_metrics(FIVE | {("PRS", s): 20.0 for s in range(5)}, group="majority")
    assert decide(rows)["alone"] == "holds"
    lost = rows.assign(value=rows["value"].mask(rows["seed"].eq(4)))
    assert (decide(lost)["alone"], decide(lost)["seeds"]) == ("undecided", 4)
    more = pd.concat(
        [lost, in_all_metrics({("PRS", 5): 1.0, ("CRS", 5): 20.0}, group="majority")]
    )
    found = decide(more)
    assert (found["alone"], found["seeds"], found["dropped"]) == ("undecided", 5, 1)
    assert np.isnan(found["p"])


def test_the_chance_of_the_test_images_widens_the_interval():
    """PRS moves by 10 points with the test images, CRS not at all."""
    rows = in_all_metrics(FIVE)
    moves = [10.0 * (method == "PRS") for method in rows["method"]]
    draws = [
        v + m * np.array([-1, 0, 1]) for v, m in zip(rows["value"], moves, strict=True)
    ]
    found = decide(rows.assign(draws=draws), "above_crs")
    assert decide(rows, "above_crs")["high"] == pytest.approx(2)
    assert found["high"] == pytest.approx(2 + 10 * stats.t.isf(0.025 / 3, 2))
    assert found["alone"] == "undecided"


def test_every_score_of_real_images_has_draws_forgetting_and_order_too():
    config = RunConfig(dataset="cocoseq-tiny", method="CRS", seed=0)
    done = run(config)
    count = config.resolved["test_resamples"]
    rows = scores_of([done]).set_index(["trained_tasks", "task", "group", "metric"])
    stored = done.resampled.set_index(["trained_tasks", "task", "group", "metric"])
    pooled, average = (4, "seen", "overall", "O-F1"), (4, "seen", "overall", "mAP")
    np.testing.assert_array_equal(
        rows.loc[pooled, "draws"], stored.loc[pooled, "draws"]
    )
    assert np.std(rows.loc[average, "draws"]) != np.std(stored.loc[average, "draws"])
    found = observe([done], [config])
    found = found[
        found["value"].notna() & ~found["measure"].isin(["share", "unlearned"])
    ]
    assert set(found["measure"]) >= {"score", "forget", "lost", "order"}
    assert all(len(draws) == count for draws in found["draws"])


def test_a_number_a_seed_of_the_variance_leaves_the_seeds_noise_out():
    """The product of different seeds, 1 * 3, where the mean's own variance is 2 * 2."""
    scores = np.array([[-1.0, 0, 1], [-3.0, 0, 3]])
    assert schedule_variance(scores) == 1 * 3
    assert schedule_variance(scores[:1]) == 1
    many = np.random.default_rng(0).normal(size=(6, 4, 1))
    assert by_seed(schedule_variance, many).mean() == pytest.approx(
        schedule_variance(many)[0]
    )


def test_majority_classes_of_real_images_are_the_large_ones():
    data = load_dataset("cocoseq-mini", images=False)
    sizes = pd.Series(data.class_freq).groupby(pd.Series(data.class_group))
    majority, moderate, minority = sizes.median()[list(GROUPS)]
    assert majority > 2 * moderate > 4 * minority
