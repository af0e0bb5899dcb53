import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from prslib import RunConfig, run
from prslib.report import tables
from prslib.statistics import (
    compare,
    ends,
    holm,
    interval,
    over_seeds,
    scores,
)


def column(values):
    return np.array(values, float)[:, None, None]


def test_the_interval_of_a_mean_is_students():
    values = np.array([0.0, 3.0, 9.0, 4.0, 2.0])
    result = interval(column(values), level=0.8)
    theirs = stats.ttest_1samp(values, 0)
    limits = theirs.confidence_interval(0.8)
    assert (result.effect, result.seeds) == (values.mean(), 5)
    assert (result.low, result.high) == pytest.approx((limits.low, limits.high))
    assert result.p == pytest.approx(theirs.pvalue)


def test_two_methods_are_compared_seed_by_seed():
    """The seeds differ by hundreds of points, the methods by 1: no doubt is left."""
    seeds = 100.0 * np.arange(5)
    result = compare(seeds + 1, seeds)
    assert (result.low, result.high, result.p) == pytest.approx((1, 1, 0))
    assert result.verdict == "holds"
    assert compare(seeds, seeds + 1).verdict == "does not hold"
    without = compare([50, math.nan, 52], [47, 48, 46])
    assert (without.effect, without.seeds) == (4.5, 2)


def test_what_would_be_compared_wrongly_is_refused():
    scores = pd.Series([50, 51, 52])
    with pytest.raises(ValueError, match=r"both methods, got shapes \(3,\) and \(2,\)"):
        compare(scores, [47, 48])
    with pytest.raises(ValueError, match="the same order of the index"):
        compare(scores, scores[::-1])
    for level in (95, 1, 0, -1, True, math.nan):
        with pytest.raises(ValueError, match="level between 0 and 1, got "):
            compare(scores, scores, level=level)
    with pytest.warns(UserWarning, match="scores in percent"):
        compare([0.52, 0.41], [0.47, 0.44])
    compare([0.0, 0.0], [0.0, 0.0])


@pytest.fixture(scope="module")
def runs():
    """Two methods with two seeds each, the second in another order."""
    fixed = {"dataset": "cocoseq-tiny", "test_resamples": 5}
    prs = [run(RunConfig(method="PRS", seed=seed, **fixed)) for seed in (0, 1)]
    crs = [run(RunConfig(method="CRS", seed=seed, **fixed)) for seed in (1, 0)]
    return {"PRS": prs, "CRS": crs}


def test_final_scores_are_one_frame_of_what_the_report_reads(runs):
    every = [*runs["PRS"], *runs["CRS"]]
    table = scores(every)
    place = ["dataset", "test_set", "method", "seed", "group", "metric"]
    assert [*table] == [*place, "value"]
    assert not table.duplicated(place).any()
    report = tables.final(tables.scores_of(every)).query("measure == 'score'")
    both = report.merge(table, on=place, validate="one_to_one")
    assert len(both) == len(report)
    np.testing.assert_allclose(both["value_x"], both["value_y"])
    assert {"train", "overall"} <= set(table["group"])  # classes, too


def test_runs_in_a_frame_are_told_apart_by_what_they_were_asked_for(runs):
    (prs, *_), (crs, *_) = runs.values()
    plain = RunConfig("cocoseq-tiny", "PRS", rho=0.5, tuned_threshold=True)
    other = replace(prs, config=plain, scores=prs.scores.assign(rho=0.5))
    table = scores([prs, other, crs, crs])
    assert [*table][:5] == ["dataset", "test_set", "method", "rho", "seed"]
    rho = table.groupby(["method", "test_set"])["rho"].unique()
    assert sorted(rho["PRS", "balanced"]) == [-0.03, 0.5]
    assert np.isnan(rho["CRS", "balanced"]).all()  # it has none
    assert sorted(rho["PRS", "imbalanced"]) == [-0.03, 0.5]
    counts = table.groupby(["method", "test_set"]).size()
    assert counts["PRS", "balanced"] == 2 * counts["CRS", "balanced"]
    options = [{"gamma": 1.0}, {"gamma": 2.0}]
    focal = [replace(plain, loss="focal", loss_options=each) for each in options]
    table = scores([replace(prs, config=each) for each in focal])
    assert table["loss_options"].unique().tolist() == list(map(str, options))
    assert "rho" not in scores(crs)
    with pytest.raises(ValueError, match="at least one run, got none"):
        scores([])


def test_runs_are_compared_as_the_report_does(runs):
    scores = tables.scores_of([*runs["PRS"], *runs["CRS"]])
    rows = tables.merge_published(tables.final(scores), "main")
    gaps = tables.contrasts(rows, "PRS", "CRS", ["minority"])
    gaps = gaps.query("test_set == 'balanced' and metric == 'mAP'")
    (theirs,) = gaps.to_dict("records")
    ours = compare(runs["PRS"], runs["CRS"], group="minority")
    assert ours.effect == pytest.approx(theirs["difference"])
    assert [ours.low, ours.high] == pytest.approx([theirs["low"], theirs["high"]], 1e-4)
    assert ours.images
    assert compare(*runs.values()) == compare(*runs.values(), test_set="balanced")
    alone = [replace(run, resampled=None) for run in runs["CRS"]]
    with pytest.raises(ValueError, match=r"one test_resamples, got \[0, 5\]"):
        compare(runs["PRS"], alone)
    with pytest.raises(ValueError, match=r"one run per seed .* got seeds \[0, 0\]"):
        compare(runs["PRS"][:1] * 2, runs["CRS"][1:] * 2)
    elsewhere = replace(alone[0], config=RunConfig("digits70tiny"))
    with pytest.raises(ValueError, match="runs of one data set, got"):
        compare(runs["PRS"], [elsewhere])


@pytest.mark.parametrize("test_set", ["imbalanced", "open"])
def test_a_class_of_runs_is_compared_by_the_chance_of_the_seeds(runs, test_set):
    """Its score on all tasks is not resampled."""
    of_class = f"group == 'train' and metric == 'AP' and test_set == '{test_set}'"
    frames = [scores(each).query(of_class) for each in runs.values()]
    theirs = compare(
        *(frame.set_index("seed")["value"].sort_index() for frame in frames)
    )
    ours = compare(*runs.values(), group="train", metric="AP", test_set=test_set)
    for field in ("effect", "low", "high"):
        assert getattr(ours, field) == pytest.approx(getattr(theirs, field))
    assert not ours.images


def test_the_weakest_of_several_has_its_own_interval():
    """The one with the least evidence; its upper end is at a corrected level."""
    rng = np.random.default_rng(1)
    # the lowest mean is certain, the highest is not
    values = rng.normal([1.0, 1.5, 2.0], [0.01, 0.1, 3.0], (6, 3))
    cells = [column(values[:, k]) for k in range(3)]
    result = interval(values[..., None], "every")
    own = interval(cells[2])
    assert result.cell == 2
    assert (result.effect, result.low) == pytest.approx((own.effect, own.low))
    wide = interval(cells[2], level=1 - 0.05 / 3)
    assert result.high == pytest.approx(wide.high)
    assert interval(values[..., None]).effect == pytest.approx(values.mean())


def test_the_chance_of_the_test_images_is_added():
    """By hand: variances 0.5 of 5 seeds' mean and 2 of 3 draws; Satterthwaite's 3.03."""
    shifts = np.array([-2.0, -1, 0, 1, 2])
    draws = 9 + np.array([-math.sqrt(2), 0, math.sqrt(2)])
    freedom = 2.5**2 / (0.5**2 / 4 + 2**2 / 2)
    gaps = pd.DataFrame({"value": 9 + shifts, "dataset": "a"})
    gaps["draws"] = [draws + shift for shift in shifts]
    high = over_seeds(gaps, ["dataset"])["high"].item()
    assert high == pytest.approx(9 + math.sqrt(2.5) * stats.t.isf(0.025, freedom))
    gaps.loc[0, "draws"] = np.nan  # of one seed they are not known
    without = interval(column(9 + shifts))
    assert over_seeds(gaps, ["dataset"])["high"].item() == without.high


@pytest.mark.parametrize(
    ("gaps", "verdict", "seeds"),
    [
        ([1.0, 2.0, 3.0, 2.0, 1.5], "holds", 5),
        ([-1.0, -2.0, -3.0, -2.0, -1.5], "does not hold", 5),
        ([-9.0, 5.0, 5.0, 5.0, 5.0], "undecided", 5),
        ([-0.5, 1.0, -1.0, 0.5, 1.0], "no difference", 5),
        ([0.0] * 5, "no difference", 5),  # certain
        ([2.0] * 4, "undecided", 4),
        ([7.0, np.nan, np.nan], "undecided", 1),
        ([np.nan, np.nan], "not run", 0),
    ],
)
def test_verdicts(gaps, verdict, seeds):
    result = interval(column(gaps))
    assert (result.verdict, result.seeds) == (verdict, seeds)
    assert math.isnan(result.low) == math.isnan(result.high) == (seeds < 2)
    assert math.isnan(result.p) == (seeds < 5)
    assert math.isnan(result.effect) == (seeds == 0)


def test_holm_by_hand():
    p = pd.Series([0.01, np.nan, 0.04, 0.03, 0.5])
    expected = [0.04, np.nan, 0.09, 0.09, 0.5]
    assert holm(p).tolist() == pytest.approx(expected, nan_ok=True)


def test_no_difference_needs_every_effect_within_the_margin():
    near, far = np.linspace(-1, 1.4, 10), np.linspace(-20, 28, 10)
    both = np.stack([near, far], axis=1)[:, :, None]
    alone = interval(both[:, :1], "every")
    assert alone.verdict == "no difference"
    assert alone.reach == pytest.approx(max(-alone.low, alone.high))
    assert interval(both, "every").verdict == "undecided"
    assert interval(np.add(both, [[[0], [90]]]), "every").verdict == "undecided"


REPEATS = 4000
CHANCE = 0.0085  # 3.5 standard errors of a rate of 2.5 % over so many repetitions


@pytest.mark.parametrize(
    ("seeds", "cells", "common"), [(3, 1, 0.0), (3, 36, 0.9), (10, 3, 0.0)]
)
def test_verdicts_are_false_as_seldom_as_they_say(seeds, cells, common):
    """Every true effect is 0: each verdict is false, and may come in one of 40 cases.

    Also where one cell alone is 0 and all others are far above: the worst for "holds".
    """

    def rates(values):
        low, high, p, *_ = ends(values)
        assert ((p < 0.05) == ((low > 0) | (high < 0))).all()
        return (low > 0).mean(), (high < 0).mean()

    rng = np.random.default_rng(seeds * cells)
    shared = rng.normal(size=(seeds, REPEATS, 1))
    values = math.sqrt(1 - common) * rng.normal(size=(seeds, REPEATS, cells))
    values += math.sqrt(common) * shared
    assert max(rates(values)) < 0.025 + CHANCE
    holds, fails = rates(values + 99 * (np.arange(cells) > 0))
    assert abs(holds - 0.025) < CHANCE
    assert fails < 0.025 + CHANCE
