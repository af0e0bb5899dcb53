import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from prslib.report.statistics import (
    NEITHER,
    Interval,
    Least,
    compared,
    over_seeds,
    paired_bootstrap,
    spread,
)


def first(means):
    return means.iloc[:, 0]


def gap(means):
    return means["PRS"] - means["CRS"]


worst = Least(lambda means: means)


def test_three_seeds_by_hand():
    """The 27 means of 0, 3, 9 are 0, 1 (3 times), 2 (3), 3 (4), 4 (6), 5 (3), 6 (3), 7 (3), 9."""
    table = pd.DataFrame({"gap": [0.0, 3.0, 9.0]})
    found = paired_bootstrap(table, first, level=0.8)
    assert (found.effect, found.low, found.high) == (4, 1, 7)  # the 3rd and the 25th of the 27
    assert (found.seeds, found.resamples) == (3, 27)
    found = paired_bootstrap(table, first)
    assert (found.low, found.high) == (0, 9)


def test_few_seeds_agree_with_scipy_at_many_resamples():
    rng = np.random.default_rng(1)
    table = pd.DataFrame(rng.normal(0.5, 1, (6, 3)), columns=list("abc"))
    ours = paired_bootstrap(table, worst, level=0.9)

    def statistic(*cells, axis):
        return np.min([cell.mean(axis=axis) for cell in cells], axis=0)

    theirs = stats.bootstrap(
        [table[name].to_numpy() for name in table],
        statistic,
        paired=True,
        vectorized=True,
        confidence_level=0.9,
        method="percentile",
        n_resamples=20_000,
        rng=2,
    ).confidence_interval
    assert ours.resamples == 6**6
    assert ours.low == pytest.approx(theirs.low, abs=0.02)
    # the high end is that of one column alone, at a level that allows for three
    highs = [paired_bootstrap(table[[name]], first, level=1 - 0.1 / 3).high for name in table]
    assert ours.high == min(highs) > theirs.high


def test_a_true_claim_about_many_cells_is_seldom_refuted():
    """Every cell has a lead of a fifth of its spread; the least of 18 means is below 0 at once."""
    rng, refuted = np.random.default_rng(5), 0
    for _ in range(30):
        common = rng.normal(size=(10, 1))
        noise = rng.normal(size=(10, 18))
        table = pd.DataFrame(0.2 + 0.55 * common + 0.84 * noise)
        found = paired_bootstrap(table, worst)
        assert found.low <= found.effect <= found.high
        refuted += found.verdict == "does not hold"
    assert refuted <= 5  # the percentiles of the least itself refute more than half of them


def test_one_cell_by_itself_can_refute():
    table = pd.DataFrame({"a": [5.0, 6.0, 5.5, 6.5], "b": [-1.0, -2.0, -1.5, -1.2]})
    found = paired_bootstrap(table, worst)
    assert found.verdict == "does not hold"
    assert found.high == paired_bootstrap(table[["b"]], first, level=1 - 0.05 / 2).high


def test_many_seeds_are_drawn_and_agree_with_resampling_by_hand():
    rng = np.random.default_rng(3)
    table = pd.DataFrame(rng.normal(0, 1, (9, 2)), columns=["PRS", "CRS"])
    found = paired_bootstrap(table, gap)
    chosen = rng.integers(9, size=(40_000, 9))
    means = (table["PRS"] - table["CRS"]).to_numpy()[chosen].mean(axis=1)
    assert found.resamples == 9999
    assert found.low == pytest.approx(np.quantile(means, 0.025), abs=0.05)
    assert found.high == pytest.approx(np.quantile(means, 0.975), abs=0.05)
    assert found == paired_bootstrap(table, gap)


@pytest.mark.parametrize("seeds", [3, 9])
def test_the_cells_of_a_seed_stay_together(seeds):
    """The seeds differ by hundreds of points, the methods by exactly one: no doubt is left."""
    values = 100.0 * np.arange(seeds)
    found = paired_bootstrap(pd.DataFrame({"PRS": values + 1, "CRS": values}), gap)
    assert found.low == pytest.approx(1)
    assert found.high == pytest.approx(1)


@pytest.mark.parametrize(
    ("gaps", "verdict", "seeds"),
    [
        ([1.0, 2.0, 3.0], "holds", 3),
        ([-1.0, -2.0, -3.0], "does not hold", 3),
        ([-1.0, 5.0, 5.0], "undecided", 3),
        ([0.0, 5.0, 5.0], "undecided", 3),
        ([0.0, -5.0, -5.0], "undecided", 3),
        ([2.0, 2.0, 2.0], "holds", 3),
        ([0.0, 0.0, 0.0], "undecided", 3),
        ([7.0], "undecided", 1),
        ([7.0, np.nan, 8.0], "undecided", 2),
        ([7.0, np.nan, 8.0, 9.0], "holds", 3),
        ([7.0, np.nan], "undecided", 1),
        ([np.nan, np.nan], "not run", 0),
        ([], "not run", 0),
    ],
)
def test_verdicts(gaps, verdict, seeds):
    found = paired_bootstrap(pd.DataFrame({"gap": np.array(gaps, float)}), first)
    assert (found.verdict, found.seeds) == (verdict, seeds)
    assert math.isnan(found.low) == math.isnan(found.high) == (seeds < 2)
    assert math.isnan(found.effect) == (seeds == 0)


def test_an_effect_that_cannot_be_measured_is_not_run():
    found = paired_bootstrap(pd.DataFrame({"gap": [1.0, 2.0]}), lambda means: means["gap"] * np.nan)
    assert found.verdict == "not run"


def test_few_seeds_promise_little():
    def promise(seeds, level=0.95):
        return Interval(1.0, 0.5, 1.5, seeds, 1, level).coverage

    assert promise(2) == 0.5
    assert promise(3) == 0.75
    assert promise(5) == 0.9375
    assert promise(9) == 0.95
    assert math.isnan(promise(1))


@pytest.mark.parametrize("level", [0.0, 1.0, 95])
def test_a_level_is_a_share(level):
    with pytest.raises(ValueError, match="level must be between 0 and 1"):
        paired_bootstrap(pd.DataFrame({"gap": [1.0]}), first, level)


def row(*values):
    (found,) = over_seeds(pd.DataFrame({"metric": "mAP", "value": values}), ["metric"]).iloc
    return found


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ((6, 8, 10), "PRS is above CRS, by +8.0 points (75 % interval +6.0 to +10.0 over 3 seeds)"),
        (
            (-6, -8, -10),
            "PRS is below CRS, by -8.0 points (75 % interval -10.0 to -6.0 over 3 seeds",
        ),
        ((-1, 3, 10), f"PRS is {NEITHER} CRS, by +4.0 points (75 % interval -1.0 to +10.0 over 3"),
        ((5, 6), "PRS is ahead of CRS, by +5.5 points (+5.0 to +6.0 over 2 seeds)"),
        ((-5,), "PRS is behind CRS, by -5.0 points (one seed)"),
        ((0.01, -0.02), "PRS is level with CRS (-0.0 to +0.0 over 2 seeds)"),
        ((1,) * 10, "PRS is above CRS, by +1.0 points (95 % interval +1.0 to +1.0 over 10 seeds)"),
    ],
)
def test_words_say_what_the_interval_says(values, said):
    assert compared(row(*values), "PRS", "CRS").startswith(said)


def test_every_difference_has_a_row_in_order_of_appearance():
    gaps = pd.DataFrame(
        {
            "dataset": ["b", "b", "a", "a"],
            "rho": [None, None, 0.5, 0.5],
            "value": [1.0, 3.0, 2.0, 4.0],
        }
    )
    found = over_seeds(gaps, ["dataset", "rho"])
    assert found["dataset"].tolist() == ["b", "a"]
    assert found["difference"].tolist() == [2, 3]
    assert found["seeds"].tolist() == [2, 2]
    assert over_seeds(gaps.iloc[:0], ["dataset"]).columns.tolist()[:2] == ["dataset", "difference"]


def test_digits_are_those_asked_for():
    assert spread(row(0.123, 0.456, 0.789), digits=2).startswith("75 % interval +0.12 to +0.79")
