import dataclasses
import math

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from prslib import RunConfig, published, run
from prslib.report import tables
from prslib.report.asked import Asked
from prslib.statistics import SMALL, compare, compared, ends, holm, interval, over_seeds


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
    said = "1.0 (95 % interval 1.0 to 1.0, 5 seeds; without the chance of the test imag"
    assert str(result).startswith(said)
    assert "50 % interval" in str(compare(seeds, seeds, level=0.5))
    with pytest.raises(ValueError, match=r"both methods, got shapes \(5,\) and \(4,\)"):
        compare(seeds, seeds[1:])


@pytest.mark.parametrize("level", [95, 1, 0, -1, True, math.nan])
def test_a_level_that_no_interval_has_is_refused(level):
    with pytest.raises(ValueError, match=r"level .*, got "):
        compare([3.0, 4.0], [1.0, 3.0], level=level)


def test_fractions_are_told():
    with pytest.warns(UserWarning, match="scores in percent, .* fractions by 100"):
        compare([0.52, 0.41], [0.47, 0.44])
    for first, second in (([52, 41], [0.47, 0.44]), ([-0.1, -0.2], [-0.3, 0.1])):
        with pytest.warns(UserWarning, match="scores in percent"):
            compare(first, second)
    compare([0.52, 1.41], [0.47, 0.44])
    compare([0.0, 0.0], [0.0, 0.0])
    compare([0.0, 0.0], [7.0, 5.0])


@pytest.mark.parametrize(
    ("scores", "error"),
    [
        (np.ma.array([50, 51], mask=[0, 1]), "first: expected an array, got a masked"),
        ([50, math.inf], "first: expected finite scores, or NaN, got inf"),
        ([50, 51j], "first: expected scores, got complex128"),
        (["50", "51"], "first: expected scores, got <U2"),
        (50.0, r"a score a seed for both methods, got shapes \(\)"),
        (None, "first: expected an array, .* got NoneType"),
        ({0: 50, 1: 51}, "got dict"),
    ],
)
def test_what_are_no_scores_is_refused(scores, error):
    with pytest.raises((ValueError, TypeError), match=error):
        compare(scores, [47, 48])


def test_series_are_not_paired_by_place_where_their_index_says_otherwise():
    first, second = pd.Series([50, 51, 52]), pd.Series([47, 48, 46], index=[2, 1, 0])
    with pytest.raises(ValueError, match=r"one order of the index .*reindex_like"):
        compare(first, second)
    aligned = second.reindex_like(first)
    assert str(compare(first, aligned)) == str(compare([50, 51, 52], [46, 48, 47]))


def test_scores_come_in_tensors_and_frames():
    ours = str(compare([50, None, 52], [47, 48, 46]))
    for scores in (
        pd.Series([50, pd.NA, 52], dtype="Int64"),
        torch.tensor([50, math.nan, 52], requires_grad=True),
    ):
        assert str(compare(scores, [47, 48, 46])) == ours


@pytest.fixture(scope="module")
def runs():
    """Two methods with three seeds each, the second in another order."""
    seeds = {"PRS": (0, 1, 2), "CRS": (2, 0, 1)}
    return {
        method: [
            run(Asked("cocoseq-tiny", method, seed=seed, test_resamples=20))
            for seed in order
        ]
        for method, order in seeds.items()
    }


def test_runs_are_compared_as_the_report_does(runs):
    scores = tables.scores_of([*runs["PRS"], *runs["CRS"]])
    rows = tables.merge_published(tables.final(scores), "main")
    place = [("minority", "mAP")]
    (theirs,) = tables.contrasts(rows, "PRS", "CRS", place).to_dict("records")
    ours = compare(runs["PRS"], runs["CRS"], group="minority")
    assert ours.effect == pytest.approx(theirs["difference"])
    assert (ours.low, ours.high) == pytest.approx(
        (theirs["low"], theirs["high"]), abs=1e-5
    )
    assert ours.images and "chance" not in str(ours)
    by_seed = [
        [
            100
            * one.scores.set_index(
                ["test_set", "trained_tasks", "task", "group", "metric"]
            )
            .sort_index()
            .loc[("both", 4, "seen", "minority", "mAP"), "value"]
            .item()
            for one in sorted(of_method, key=lambda one: one.config.seed)
        ]
        for of_method in (runs["PRS"], runs["CRS"])
    ]
    seeds_alone = compare(*by_seed)
    assert seeds_alone.effect == pytest.approx(ours.effect)
    assert not seeds_alone.images and seeds_alone.low != ours.low


def test_a_class_of_runs_is_compared_by_the_chance_of_the_seeds(runs):
    """Its score on all tasks is not resampled."""
    first, second = runs["PRS"], sorted(runs["CRS"], key=lambda one: one.config.seed)
    for name in ("both", "open"):
        places = {"trained_tasks": 4, "task": "seen", "group": "train"}
        places |= {"metric": "AP", "test_set": name}
        scores = [
            [
                100 * one.scores.set_index([*places]).value[*places.values()]
                for one in each
            ]
            for each in (first, second)
        ]
        result = compare(first, second, metric="AP", group="train", test_set=name)
        expected = compare(*scores)
        for field in ("effect", "low", "high", "p"):
            value = getattr(expected, field)
            assert getattr(result, field) == pytest.approx(value, nan_ok=True)
    assert compare(first, second) == compare(first, second, test_set="both")


def test_runs_that_do_not_fit_each_other_are_refused(runs):
    with pytest.raises(
        ValueError, match=r"same seeds, got seeds \[0, 1, 2\] and \[0, 2\]"
    ):
        compare(runs["PRS"], runs["CRS"][:2])
    twice = [*runs["PRS"], runs["PRS"][0]]
    for first, second in ((twice, twice), (twice, runs["PRS"]), (runs["PRS"], twice)):
        with pytest.raises(ValueError, match="one run per seed"):
            compare(first, second)
    config = RunConfig("digits70tiny", "CRS")
    others = [dataclasses.replace(one, config=config) for one in runs["CRS"]]
    with pytest.raises(ValueError, match="one data set, got "):
        compare(runs["PRS"], others)
    with pytest.raises(ValueError, match=r"unknown test_set 'all'; known .* open"):
        compare(runs["PRS"], runs["CRS"], test_set="all")
    with pytest.raises(ValueError, match="mAP50 of overall in the scores, got "):
        compare(runs["PRS"], runs["CRS"], metric="mAP50")
    with pytest.raises(TypeError, match="compare runs with runs"):
        compare(runs["PRS"], [1.0, 2.0, 3.0])


def test_the_margin_is_half_of_the_papers_smallest_gain_on_coco():
    cells = published.load().query(
        "table == 'main' and dataset == 'COCOseq' and group == 'overall'"
    )
    scores = cells[cells["measure"] == "score"]
    table = scores.pivot(index="metric", columns="method", values="value")
    smallest = (table["PRS"] - table["CRS"]).min()
    assert round(smallest / 2) == SMALL


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
    assert all(interval(cell).low > 0 for cell in cells)
    wide = interval(cells[2], level=1 - 0.05 / 3)
    assert result.high == pytest.approx(wide.high)
    assert interval(values[..., None]).effect == pytest.approx(values.mean())


def test_of_cells_without_doubt_the_lowest_is_the_weakest():
    certain = np.tile([3.0, -1.0, -2.0, 5.0], (5, 1))
    result = interval(certain[..., None], "every")
    assert (result.cell, result.effect, result.high) == (2, -2, -2)
    assert interval(certain[:1, :, None], "every").cell == 2  # of one seed


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
        low, high, p, _ = ends(values)
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


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ((6, 8, 10, 8, 8), "PRS is 8.0 points above CRS (95 % interval 6.2 to 9.8, 5"),
        ((-6, -8, -10, -8, -8), "PRS is 8.0 points below CRS (95 % interval 6.2 to"),
        ((-1, 3, 10, 4, 4), "PRS and CRS are not told apart: +4.0 points (95 % int"),
        ((-1, 1, 1, -1, 1), "PRS and CRS score about the same: +0.2 points (95 % i"),
        ((-1, 1, 4, -3, 1), "PRS and CRS are not told apart: +0.4 points (95 % in"),
        ((6, 8, 10), "PRS is 8.0 points ahead of CRS (95 % interval 3.0 to 13.0, 3"),
        ((-5,), "PRS is 5.0 points behind CRS (one seed)"),
        ((0.01, -0.02), "PRS is level with CRS (95 % interval -0.2 to 0.2, 2 seeds)"),
    ],
)
def test_words_say_what_the_interval_says(values, said):
    gaps = pd.DataFrame({"metric": "mAP", "value": values})
    (row,) = over_seeds(gaps, ["metric"]).to_dict("records")
    assert compared(row, "PRS", "CRS").startswith(said)


def test_every_difference_has_a_row_in_order_of_appearance():
    gaps = pd.DataFrame({"dataset": [*"bbaa"], "rho": [None, None, 0.5, 0.5]})
    result = over_seeds(gaps.assign(value=[1.0, 3.0, 2.0, 4.0]), ["dataset", "rho"])
    assert result["dataset"].tolist() == ["b", "a"]
    assert result["difference"].tolist() == [2, 3]
