"""Every claim's sign, on numbers made by hand."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from prslib import RunConfig, run
from prslib.report.claims import (
    CLAIMS,
    CONSISTENCY,
    HALF,
    IMBALANCED,
    METRICS,
    MORE,
    NETS,
    PLAIN,
    SCRATCH,
    Scores,
    by_seed,
    schedule_variance,
)
from prslib.report.observations import observe
from prslib.report.tables import scores_of

OTHERS = ("Finetune", "EWC", "GSS", "ExStream")
RNN, SCHEDULES = NETS["RNN-Attention"], {"0,3,1,2": "", "2,3,0,1": "schedule=2,3,0,1"}
POINTS = {  # of a method, of a setting, and of a method in a group or a setting
    **{"Multitask": 60, "PRS": 50, "CRS": 45, "ExStream": 44, "GSS": 43, "EWC": 30},
    **{HALF: -6, MORE: 2, SCRATCH: -20, IMBALANCED: 5, CONSISTENCY: -3, RNN: -3},
    **{f"{net};{IMBALANCED}": 2 for net in (PLAIN, CONSISTENCY, RNN)},
    **{f"rho=0.5;{IMBALANCED}": 5, "rho=-1.0": -10, "rho=0.5": -5, "rho=1.0": -10},
    **{("CRS", "majority"): 20, ("CRS", "minority"): -25},
    **{("PRS", "majority"): 10, ("PRS", "minority"): -10},
    **{(other, "minority"): -20 for other in OTHERS},
    **{(other, "schedule=2,3,0,1"): -4 for other in ("CRS", *OTHERS)},
}
SHARES = {
    "CRS": {"to stream": 5, "to equal": 30, "largest fifth": 60, "minority": 5}
    | {"largest fifth of stream": 65, "majority": 70, "moderate": 25},
    "PRS": {"to stream": 28, "to equal": 4, "largest fifth": 25, "minority": 30},
    "ExStream": {"to stream": 29, "to equal": 3},
    "GSS": {"moderate": 35, "minority": 8},
}
MEASURED = {  # by method or group
    **{name: {"minority": 50, "majority": 20} for name in ("forget", "lost")},
    **{name: {"overall": -0.5} for name in ("order", "order_lost")},
    "features": {"PRS": 60, "CRS": 50},
    "variance": {"PRS": 2, "CRS": 1, "GSS": 1, "ExStream": 1},
}


class PaperIsRight(Scores):
    """Scores, one seed, of a world in which every claim of the paper is true."""

    def __init__(self):
        self.seeds, self.rho = [0], 0.0

    def levels(self, name, *_methods):
        rhos = {rho: f"rho={rho}" for rho in ("-1.0", "0.5", "1.0")} | {"": ""}
        return SCHEDULES if name == "schedule" else rhos

    def times(self, _method):
        return [1, 2, 3, 4]

    def __call__(
        self, method, setting="", group="overall", measure="score", metric="", **more
    ):
        if measure == "score":
            keys = method, setting, (method, group), (method, setting)
            value = sum(POINTS.get(key, 0) for key in keys)
            value -= method == "CRS" and more.get("after") != 1
        elif measure == "share":
            value = 5.5 if setting == "rho=1.0" else SHARES[method][metric]
        else:
            value = MEASURED[measure].get(method) or MEASURED[measure][group]
        return np.array([float(value)])


@pytest.mark.parametrize("name", CLAIMS)
def test_every_claim_is_above_0_where_the_paper_is_right(name):
    row = CLAIMS[name].decide(PaperIsRight())
    assert row["effect"] > 0
    assert row["seeds"] == 1
    assert set(CLAIMS[name].words) >= {"statement", "source", "test"}


def rows_of(table, **columns):
    """Observations of {(method, seed): value} in all metrics, in the standard setting."""
    rows = [
        {"method": method, "seed": seed, "value": value, "metric": metric}
        for (method, seed), value in table.items()
        for metric in METRICS
    ]
    usual = {"setting": "", "rho": 0.0, "trained_tasks": 2, "task": "seen"}
    usual |= {"group": "overall", "measure": "score"}
    return pd.DataFrame(rows).assign(**usual | columns)


FIVE = {("PRS", seed): 50.0 + seed for seed in range(5)}
FIVE |= {("CRS", seed): 48.0 + seed for seed in range(5)}


def decide(rows, name="crs_majority"):
    return CLAIMS[name].decide(Scores(rows))


def test_the_weakest_cell_is_named_and_clear_ones_are_counted():
    rows = rows_of(FIVE)
    worse = (rows["metric"] == "O-F1") & (rows["method"] == "PRS")
    row = decide(rows.assign(value=rows["value"] - 5.0 * worse), "above_crs")
    assert (row["weakest"], row["effect"]) == ("over CRS O-F1", -3)
    assert (row["above"], row["below"], row["cells"]) == (2, 1, 3)
    assert [row[f"{metric} effect"] for metric in METRICS] == [2, -3, 2]
    assert row["alone"] == "does not hold"


def test_seeds_are_paired_and_what_is_missing_is_not_run():
    rows = rows_of(FIVE, group="majority")
    one = rows[(rows["method"] == "PRS") | (rows["seed"] == 3)]
    row = decide(one)
    assert (row["seeds"], row["effect"], row["alone"]) == (1, -2, "undecided")
    assert decide(rows[rows["method"] == "PRS"])["alone"] == "not run"
    assert decide(rows[rows["metric"] != "mAP"])["alone"] == "not run"


def test_a_row_whose_seeds_drop_out_is_not_decided():
    place = {"group": "majority"}
    rows = rows_of(FIVE | {("PRS", s): 20.0 for s in range(5)}, **place)
    assert decide(rows)["alone"] == "holds"
    lost = rows.assign(value=rows["value"].mask(rows["seed"].eq(4)))
    assert (decide(lost)["alone"], decide(lost)["seeds"]) == ("undecided", 4)
    one_more = rows_of({("PRS", 5): 1.0, ("CRS", 5): 20.0}, **place)
    row = decide(pd.concat([lost, one_more]))
    assert (row["alone"], row["seeds"], row["dropped"]) == ("undecided", 5, 1)
    assert np.isnan(row["p"])


def test_the_chance_of_the_test_images_widens_the_interval():
    """PRS moves by 10 points with the test images, CRS not at all."""
    rows = rows_of(FIVE)
    moves = 10.0 * np.outer(rows["method"] == "PRS", [-1, 0, 1])
    draws = list(rows["value"].to_numpy()[:, None] + moves)
    row = decide(rows.assign(draws=draws), "above_crs")
    assert decide(rows, "above_crs")["high"] == pytest.approx(2)
    assert row["high"] == pytest.approx(2 + 10 * stats.t.isf(0.025 / 3, 2))
    assert row["alone"] == "undecided"


def test_every_score_of_real_images_has_draws_forgetting_and_order_too():
    config = RunConfig(dataset="cocoseq-tiny", method="CRS", seed=0)
    done, cell = run(config), ["trained_tasks", "task", "group", "metric"]
    draws = scores_of([done]).set_index(cell)["draws"]
    stored = done.resampled.set_index(cell)["draws"]
    pooled, average = (4, "seen", "overall", "O-F1"), (4, "seen", "overall", "mAP")
    np.testing.assert_array_equal(draws[pooled], stored[pooled])
    assert np.std(draws[average]) != np.std(stored[average])
    rows = observe([done], [config]).dropna(subset="value")
    rows = rows[rows["measure"] != "share"]
    assert set(rows["measure"]) >= {"score", "forget", "lost", "order"}
    assert set(map(len, rows["draws"])) == {config.resolved["test_resamples"]}


def test_a_number_a_seed_of_the_variance_leaves_the_seeds_noise_out():
    """The product of different seeds, 1 * 3, where the mean's own variance is 2 * 2."""
    scores = np.array([[[-1.0, 0, 1]], [[-3.0, 0, 3]]])
    assert schedule_variance(scores) == 1 * 3
    assert schedule_variance(scores[:1]) == 1
    many = np.random.default_rng(0).normal(size=(6, 2, 4, 1))
    mean = by_seed(schedule_variance, many).mean(axis=0)
    np.testing.assert_allclose(mean, schedule_variance(many))
