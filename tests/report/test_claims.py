"""Claims on scores made by hand, and on the paper's own numbers."""

import tomllib
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from prslib.paths import project_root
from prslib.report.claims import CLAIMS, Scores, read_claims
from prslib.report.claims.functions import by_seed, schedule_variance
from prslib.report.results import printed_rows
from prslib.report.tables import MAIN_METRICS

LEVELS = {"Finetune": 10, "EWC": 20, "GSS": 25, "ExStream": 30, "CRS": 35, "PRS": 40}
LEVELS |= {"Multitask": 60, "several classes": 38}
NET = {"model": "Attention Consistency", "frozen_stages": "other"}
RNN = {"model": "RNN-Attention"}
PRETRAINED = {"pretrained_stages": "other"}
VECTORS = {"vector_stages": "other"}
SETTINGS = [{}, {"memory_size": 0.5}, {"memory_size": 1.5}, {"schedule": "0,1,2,3"}]
SETTINGS += [NET, RNN, {"frozen_stages": "other"}, PRETRAINED]
SETTINGS += [PRETRAINED | {"frozen_stages": "other"}, VECTORS]
SETTINGS += [{"rho": rho} for rho in (-1.0, -0.5, 0.5, 1.0)]
EFFECTS = {  # what settings add to a score
    ("memory_size", 0.5): -10,
    ("memory_size", 1.5): 2,
    ("frozen_stages", "other"): 1,
    ("vector_stages", "other"): -1,
    ("model", "Attention Consistency"): -5,
    ("model", "RNN-Attention"): -8,
    ("rho", -1.0): -9,
    ("rho", -0.5): -2,
    ("rho", 0.5): -2,
    ("rho", 1.0): -8,
}
PLACES = [{"group": g} for g in ("overall", "majority", "moderate", "minority")]
PLACES += [{"task": task} for task in ("3", "1", "0", "5", "4", "2", "all")]
PLACES += [{"trained_tasks": 2}, {"trained_tasks": 1}]
HARDER = {"3": 0, "1": -1, "0": -2, "5": -3, "4": -4, "2": -5}
# of memories in percent, and by how much large classes are forgotten less
SMALL_FIRST = {"order": -0.6, "order_lost": -0.5}
BALANCED = {"to stream": 40, "to equal": 5}
MEASURES = {
    "CRS": {"to stream": 5, "to equal": 40, "largest fifth of stream": 51},
    "PRS": BALANCED | {"minority": 30, "largest fifth": 30},
    "GSS": {"moderate": 40, "minority": 2},
    "ExStream": BALANCED,
    "EWC": SMALL_FIRST,
}
MEASURES["CRS"] |= {"majority": 60, "moderate": 20, "minority": 3, "largest fifth": 60}
MEASURES["CRS"] |= SMALL_FIRST
USUAL = {"trained_tasks": 4, "task": "seen", "group": "overall", "measure": "score"}
USUAL |= {"test_set": "balanced", "standard_rho": 0.0, "seed": 0}
USUAL |= {"setting": frozenset()}
HALF = frozenset({("memory_size", 0.5)})
METRICS = {metric for claim in CLAIMS.values() for metric in claim.metrics}


def right_scores(method, place, setting):
    """Scores of a method, on both test sets, with which all claims are right."""
    value = LEVELS[method] + sum(EFFECTS.get(pair, 0) for pair in setting.items())
    value += HARDER.get(place.get("task"), 0)
    if method == "CRS" and place.get("group") == "majority":
        value += 20
    if method != "PRS" and "schedule" in setting:
        value -= 9
    if place.get("trained_tasks") == 1:
        value = 70  # the first task fits into the memory
    row = USUAL | place | {"method": method, "setting": frozenset(setting.items())}
    easier = {"test_set": "imbalanced", "value": value + 3}
    return [row | {"value": value}, row | easier]


def right_measures(method):
    """What else is measured of a method, with which all claims are right."""
    level = LEVELS[method]
    rows = [
        {"measure": "variance", "value": level},
        {"measure": "features", "group": "minority", "value": level},
    ]
    for measure in ("forget", "lost"):
        rows.append({"measure": measure, "group": "minority", "value": 40})
        rows.append({"measure": measure, "group": "majority", "value": 30})
    for measure, value in MEASURES.get(method, {}).items():
        rows += [
            {"measure": measure, "value": value},
            {"measure": measure, "value": value, "setting": HALF},
        ]
    if method == "PRS":
        rho_one = frozenset({("rho", 1.0)})
        rows.append({"measure": "to stream", "value": 6, "setting": rho_one})
    return [USUAL | {"method": method} | row for row in rows]


def in_metrics(rows, metrics=MAIN_METRICS):
    frames = [pd.DataFrame(rows).assign(metric=metric) for metric in metrics]
    return pd.concat(frames, ignore_index=True)


@pytest.fixture(scope="module")
def right():
    rows = []
    for method in LEVELS:
        rows += right_measures(method)
        for place, setting in product(PLACES, SETTINGS):
            rows += right_scores(method, place, setting)
    return in_metrics(rows, METRICS)


@pytest.fixture(scope="module")
def both(right):
    turned = right.assign(value=-right["value"])
    return Scores(right), Scores(turned)


@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_is_above_0_where_the_paper_is_right_and_below_where_all_is_turned(
    name, both
):
    right, turned = both
    assert CLAIMS[name].decide(right)["effect"] > 0
    # squares, a ratio and a distance that may be small in both directions
    if not name.startswith(("steadier", "variance", "rho_one")):
        assert CLAIMS[name].decide(turned)["effect"] < 0


def test_a_claim_reads_the_test_set_that_it_names(right):
    """Scores of groups have the paper's kind of test, scores of classes further images."""
    scores = right[right["trained_tasks"] == 4]
    on_open = scores[scores["test_set"] == "balanced"].assign(test_set="open")
    on_open = on_open.assign(value=on_open["value"] * 2)
    expected = {
        "above_crs": (5, "balanced"),
        "imbalanced_crs": (3, "imbalanced"),
        "balanced_is_harder": (3, "balanced"),
        "order_ewc_ap": (1.2, "open"),
    }
    with_open = Scores(pd.concat([scores, on_open]))
    for name, (effect, test_set) in expected.items():
        row = CLAIMS[name].decide(with_open)
        assert (row["effect"], row["test_set"]) == (effect, test_set)
    row = CLAIMS["order_ewc_ap"].decide(Scores(scores))
    assert (row["effect"], row["test_set"]) == (0.6, "balanced")
    only_open = CLAIMS["above_crs"].decide(Scores(on_open))
    assert (only_open["alone"], only_open["test_set"]) == ("not run", "")


def test_the_weakest_cell_is_named(right):
    worse = (right["metric"] == "O-F1") & (right["method"] == "PRS")
    scores = Scores(right.assign(value=right["value"] - 8.0 * worse))
    row = CLAIMS["above_crs"].decide(scores)
    assert (row["weakest"], row["effect"]) == ("O-F1, PRS minus CRS", -3)


def test_the_chance_of_the_test_images_widens_the_interval(right):
    """Five seeds are equal; PRS moves by 10 points with the test images, CRS not at all."""
    usual = right[right["setting"] == frozenset()]
    moves = 10.0 * np.outer(usual["method"] == "PRS", [-1, 0, 1])
    usual = usual.assign(draws=list(usual["value"].to_numpy()[:, None] + moves))
    rows = pd.concat([usual.assign(seed=seed) for seed in range(5)])
    row = CLAIMS["above_crs"].decide(Scores(rows))
    assert row["high"] == pytest.approx(5 + 10 * stats.t.isf(0.025 / 3, 2))


def test_a_fall_that_one_task_interrupts_is_a_smaller_correlation():
    """Spearman's of scipy, on the scores and on a resample."""
    drawn = np.array([[60, 20, 40, 30, 50, 10], [9, 8, 7, 6, 5, 4]])
    rows = [
        USUAL
        | {"method": "Multitask", "task": task, "value": a, "draws": np.array([b])}
        for task, a, b in zip("310542", *drawn, strict=True)
    ]
    claim = CLAIMS["harder_tasks"]
    _, values = claim.evaluate(Scores(in_metrics(rows, ["mAP"])))
    expected = [-stats.spearmanr(range(6), scores).statistic for scores in drawn]
    np.testing.assert_allclose(values[0, 0], expected)


def test_the_papers_own_numbers_decide_as_committed():
    file = project_root() / "figures" / "seeds" / "ledger_claims.csv"
    committed = pd.read_csv(file).drop_duplicates(["claim", "stands_for"])
    printed = printed_rows().groupby("stands_for")
    printed = {name: Scores(rows) for name, rows in printed}
    of_paper = committed[committed["stands_for"].isin(printed)]  # not another stream's
    for row in of_paper.to_dict("records"):
        claim = CLAIMS[row["claim"]]
        paper = row["stands_for"]
        effect = claim.decide(printed[paper])["effect"]
        effect = claim.printed.get(paper, effect)
        assert effect == pytest.approx(row["published"], 1e-5, nan_ok=True)


def test_two_claims_of_one_name_are_refused(monkeypatch):
    loads = tomllib.loads

    def twice(text):
        return {**loads(text), "more": loads(text)["forgetting"]}

    monkeypatch.setattr(tomllib, "loads", twice)
    with pytest.raises(ValueError, match="one claim of each name, got tail_crs"):
        read_claims()


def test_a_number_a_seed_of_the_variance_leaves_the_seeds_noise_out():
    """The product of different seeds, 1 * 3, where the mean's own variance is 2 * 2."""
    scores = np.array([[[-1.0, 0, 1]], [[-3.0, 0, 3]]])
    assert schedule_variance(scores) == 1 * 3
    assert schedule_variance(scores[:1]) == 1
    many = np.random.default_rng(0).normal(size=(6, 2, 4, 1))
    mean = by_seed(schedule_variance, many).mean(axis=0)
    np.testing.assert_allclose(mean, schedule_variance(many))
