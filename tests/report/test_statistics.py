import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from prslib.report import statistics
from prslib.report.statistics import NEITHER, compared, ends, holm, interval, over_seeds, spread


def first(table):
    return table.iloc[:, 0].mean()


def worst(table):
    return table.mean()


def test_the_interval_of_a_mean_is_students():
    values = np.array([0.0, 3.0, 9.0, 4.0, 2.0])
    found = interval(pd.DataFrame({"gap": values}), first, level=0.8)
    theirs = stats.ttest_1samp(values, 0)
    ends = theirs.confidence_interval(0.8)
    assert (found.effect, found.seeds) == (values.mean(), 5)
    assert (found.low, found.high) == pytest.approx((ends.low, ends.high))
    assert found.p == pytest.approx(theirs.pvalue)


def test_the_least_of_several_is_tested_part_by_part():
    """Its low end is the parts' lowest, its high end that of one part at a corrected level."""
    table = pd.DataFrame(np.random.default_rng(1).normal(0.5, 1, (6, 3)), columns=list("abc"))
    found = interval(table, worst)
    assert found.low == pytest.approx(min(interval(table[[name]], first).low for name in table))
    wide = [interval(table[[name]], first, level=1 - 0.05 / 3).high for name in table]
    assert found.high == pytest.approx(min(wide))
    assert found.effect == pytest.approx(table.mean().min())


@pytest.mark.parametrize("effect", [statistics.runner_up("PRS", "a", "b", "c"), worst])
def test_p_says_what_the_interval_says(effect):
    rng = np.random.default_rng(7)
    columns = pd.MultiIndex.from_product([["PRS", "a", "b", "c"], ["mAP", "C-F1"]])
    verdicts = set()
    for shift in np.repeat([-2.0, 0.0, 2.0], 8):
        table = pd.DataFrame(rng.normal(size=(6, 8)), columns=columns)
        table["PRS"] += shift
        table += shift * (effect is worst)
        found = interval(table, effect)
        assert (found.verdict == "undecided") == (found.p > 0.05)
        assert found.low < found.effect < found.high
        verdicts.add(found.verdict)
    assert verdicts == {"holds", "does not hold", "undecided"}


def test_the_chance_of_the_test_images_is_added():
    """By hand: variances 0.5 over 5 seeds' mean and 2 over 3 draws; Satterthwaite's 3.03."""
    table = pd.DataFrame({"gap": np.array([7.0, 8.0, 9.0, 10.0, 11.0])})
    draws = pd.DataFrame({"gap": [9 - np.sqrt(2), 9.0, 9 + np.sqrt(2)]})
    freedom = 2.5**2 / (0.5**2 / 4 + 2**2 / 2)
    found = interval(table, first, draws=draws)
    assert found.high == pytest.approx(9 + math.sqrt(2.5) * stats.t.isf(0.025, freedom))
    gaps = table.rename(columns={"gap": "value"}).assign(dataset="a")
    gaps["draws"] = [draws["gap"].to_numpy() + shift for shift in (-2, -1, 0, 1, 2)]
    (row_,) = over_seeds(gaps, ["dataset"]).to_dict("records")
    assert (row_["low"], row_["high"]) == pytest.approx((found.low, found.high))
    gaps.loc[0, "draws"] = np.nan  # of one seed they are not known
    assert over_seeds(gaps, ["dataset"])["high"].item() == interval(table, first).high


def test_the_cells_of_a_seed_stay_together():
    """The seeds differ by hundreds of points, the methods by exactly one: no doubt is left."""
    values = 100.0 * np.arange(5)
    table = pd.DataFrame({("PRS", "mAP"): values + 1, ("CRS", "mAP"): values})
    found = interval(table, statistics.gains("PRS", "CRS"))
    assert (found.low, found.high, found.p) == pytest.approx((1, 1, 0))


@pytest.mark.parametrize(
    ("gaps", "verdict", "seeds"),
    [
        ([1.0, 2.0, 3.0, 2.0, 1.5], "holds", 5),
        ([-1.0, -2.0, -3.0, -2.0, -1.5], "does not hold", 5),
        ([-2.0, 5.0, 5.0, 5.0, 5.0], "undecided", 5),
        ([2.0] * 5, "holds", 5),
        ([2.0] * 4, "undecided", 4),
        ([0.0] * 5, "undecided", 5),
        ([7.0], "undecided", 1),
        ([7.0, np.nan, 8.0], "undecided", 2),
        ([np.nan, np.nan], "not run", 0),
        ([], "not run", 0),
    ],
)
def test_verdicts(gaps, verdict, seeds):
    found = interval(pd.DataFrame({"gap": np.array(gaps, float)}), first)
    assert (found.verdict, found.seeds) == (verdict, seeds)
    assert math.isnan(found.low) == math.isnan(found.high) == (seeds < 2)
    assert math.isnan(found.p) == (seeds < 5)
    assert math.isnan(found.effect) == (seeds == 0)
    nothing = interval(pd.DataFrame({"gap": [1.0, 2.0]}), lambda table: np.nan)
    assert nothing.verdict == "not run"


def test_holm_by_hand():
    p = pd.Series([0.01, np.nan, 0.04, 0.03, 0.5])
    assert holm(p).tolist() == pytest.approx([0.04, np.nan, 0.09, 0.09, 0.5], nan_ok=True)


REPEATS = 4000
CHANCE = 0.0085  # 3.5 standard errors of a rate of 2.5 % over so many repetitions


def rates(values, shape):
    """Return the shares of false "holds" and "does not hold" of (seeds, repeats, cells)."""
    values = values.reshape(*values.shape[:2], *shape)
    low, high, p = ends(values.mean(axis=0), values)
    assert ((p < 0.05) == ((low > 0) | (high < 0))).all()
    return (low > 0).mean(), (high < 0).mean()


@pytest.mark.parametrize("seeds", [3, 5, 10])
@pytest.mark.parametrize("cells", [1, 3, 15, 36])
@pytest.mark.parametrize("common", [0.0, 0.9])
def test_verdicts_are_false_as_seldom_as_they_say(seeds, cells, common):
    """Every true effect is 0: neither verdict is right; each may come in one of 40 cases.

    Also where one cell alone is 0 and all others are far above, the least favourable case of
    "holds", and where the claim is that some of three leads by itself.
    """
    rng = np.random.default_rng(seeds * cells)
    shared, own = rng.normal(size=(seeds, REPEATS, 1)), rng.normal(size=(seeds, REPEATS, cells))
    values = math.sqrt(common) * shared + math.sqrt(1 - common) * own
    shapes = [(cells, 1, 1), (1, 1, cells)] + ([(cells // 3, 3, 1)] if cells > 1 else [])
    for shape in shapes:
        assert max(rates(values, shape)) < 0.025 + CHANCE
    held, refuted = rates(values + 99 * (np.arange(cells) > 0), (cells, 1, 1))
    assert abs(held - 0.025) < CHANCE
    assert refuted < 0.025 + CHANCE
    if cells == 1:  # the interval of a mean holds the true one in 95 of 100 cases
        assert abs(rates(values, (1, 1, 1))[1] - 0.025) < CHANCE


@pytest.mark.parametrize("seeds", [5, 10])
@pytest.mark.parametrize("noises", [(1, 1), (3, 1), (1, 3)])
@pytest.mark.parametrize("schedules", [0, 1, 3])
def test_steadier_is_false_as_seldom_as_it_says(seeds, noises, schedules):
    """Both methods vary alike from schedule to schedule, whatever the noise of their seeds.

    The jackknife of a variance misses by a little more than its level where one is noisier.
    """
    rng, true = np.random.default_rng(seeds), schedules * np.array([-1.0, 1.0, -0.5, 0.5])
    size = (seeds, 4, REPEATS, 2)
    crs, prs = (true[:, None, None] + noise * rng.normal(size=size) for noise in noises)

    def effect(*left_out):
        scores = (np.delete(scores, left_out, axis=0) for scores in (crs, prs))
        return np.subtract(*map(statistics.schedule_variance, scores)).reshape(REPEATS, 1, 1, 1)

    whole, left = effect(), np.stack([effect(seed) for seed in range(seeds)])
    assert abs(whole.mean()) < 4 * whole.std() / math.sqrt(REPEATS)  # no bias
    low, high, _ = ends(whole, seeds * whole - (seeds - 1) * left)
    assert max((low > 0).mean(), (high < 0).mean()) < 0.04


def test_draws_of_the_test_images_keep_the_level():
    rng, seeds = np.random.default_rng(3), 5
    found = []
    for _ in range(REPEATS // 8):
        image = rng.normal()  # of this test set, common to all seeds and resamples
        values = (image + rng.normal(size=seeds)).reshape(seeds, 1, 1, 1)
        draws = (values.mean() + rng.normal(size=100)).reshape(100, 1, 1, 1)
        found.append(ends(values.mean(axis=0), values, draws))
    missed = [low > 0 or high < 0 for low, high, _ in found]
    assert 0.02 < np.mean(missed) < 0.085
    assert statistics.worth(np.zeros((2, 3, 4))) == 0


def row(*values):
    (found,) = over_seeds(pd.DataFrame({"metric": "mAP", "value": values}), ["metric"]).iloc
    return found


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ((6, 8, 10, 8, 8), "PRS is above CRS, by +8.0 points (95 % interval +6.2 to +9.8 over 5"),
        ((-6, -8, -10, -8, -8), "PRS is below CRS, by -8.0 points (95 % interval -9.8 to -6.2 ov"),
        ((-1, 3, 10, 4, 4), f"PRS is {NEITHER} CRS, by +4.0 points (95 % interval -0.9 to +8.9"),
        ((6, 8, 10), "PRS is ahead of CRS, by +8.0 points (95 % interval +3.0 to +13.0 over 3 se"),
        ((-5,), "PRS is behind CRS, by -5.0 points (one seed)"),
        ((0.01, -0.02), "PRS is level with CRS (95 % interval -0.2 to +0.2 over 2 seeds)"),
        ((1,) * 10, "PRS is above CRS, by +1.0 points (95 % interval +1.0 to +1.0 over 10 seeds)"),
    ],
)
def test_words_say_what_the_interval_says(values, said):
    assert compared(row(*values), "PRS", "CRS").startswith(said)
    digits = spread(row(0.123, 0.456, 0.789), digits=2)
    assert digits.startswith("95 % interval -0.37 to +1.28")


def test_every_difference_has_a_row_in_order_of_appearance():
    gaps = pd.DataFrame({"dataset": [*"bbaa"], "rho": [None, None, 0.5, 0.5]})
    gaps["value"] = [1.0, 3.0, 2.0, 4.0]
    found = over_seeds(gaps, ["dataset", "rho"])
    assert found["dataset"].tolist() == ["b", "a"]
    assert found["difference"].tolist() == [2, 3]
    assert found["seeds"].tolist() == [2, 2]
    assert over_seeds(gaps.iloc[:0], ["dataset"]).columns.tolist()[:2] == ["dataset", "difference"]


# every effect by hand, on one seed


def means(cells):
    """Make one row of means of {(level, level, ...): value}."""
    columns = pd.MultiIndex.from_tuples(cells)
    return pd.DataFrame([list(cells.values())], columns=columns)


def value(effect, table):
    """Return the one number that the parts of an effect make."""
    return pytest.approx(interval(table, effect).effect, nan_ok=True)


SCORES = {"PRS": (50.0, 60.0), "CRS": (47.0, 59.0), "GSS": (40.0, 64.0), "EWC": (20.0, 30.0)}
LEVEL = {(m, metric): v[i] for m, v in SCORES.items() for i, metric in enumerate(["C-F1", "mAP"])}


@pytest.mark.parametrize(
    ("effect", "expected"),
    [
        (statistics.beats("PRS", "CRS"), 1),
        (statistics.beats("PRS", "CRS", "GSS"), -4),
        (statistics.gains("PRS", "CRS"), 2),
        (statistics.times("PRS", "EWC"), 120),
        (statistics.runner_up("PRS", "CRS", "GSS", "EWC"), 1),
        (statistics.runner_up("EWC", "CRS", "GSS", "PRS"), -30),
        (statistics.above_floor("EWC", "CRS", "GSS"), 20),
        (statistics.above_floor("CRS", "PRS", "GSS"), -7),
    ],
)
def test_leads(effect, expected):
    assert expected == value(effect, means(LEVEL))


def test_leads_at_the_edges():
    assert value(statistics.alike("PRS", "CRS", 0.1), means(LEVEL)) == 0.1 * 47 - 3
    lower = {**LEVEL, ("PRS", "C-F1"): 39.0}  # third in C-F1, where CRS and GSS are ahead
    assert value(statistics.runner_up("PRS", "CRS", "GSS", "EWC"), means(lower)) == -1


def of_methods(levels, **scores):
    """Make the means of methods at some levels, alike in two metrics but for a shift."""
    cells = {(m, *at): v for m, row in scores.items() for at, v in zip(levels, row, strict=True)}
    shifts = {"C-F1": -1.0, "mAP": 1.0}
    return means(
        {(*at, name): v + shift for at, v in cells.items() for name, shift in shifts.items()}
    )


def test_effects_over_groups_schedules_tasks_and_sizes():
    row = of_methods([("majority",), ("minority",)], PRS=(70.0, 50.0), CRS=(75.0, 35.0))
    assert value(statistics.gap_closes("PRS", "CRS", "majority", "minority"), row) == 40 - 20
    row = of_methods(["a", "b", "c"], CRS=(40.0, 50.0, 60.0), PRS=(52.0, 54.0, 56.0))
    assert value(statistics.steadier("PRS", "CRS"), row) == 10**2 - 2**2
    row = of_methods([(1,), (2,), (4,)], PRS=(60.0, 57.0, 50.0), CRS=(59.0, 50.0, 45.0))
    assert value(statistics.lead_grows("PRS", "CRS"), row) == 5 - 1
    sizes = {(0.5, "mAP"): 50.0, (1.0, "mAP"): 56.0, (1.5, "mAP"): 58.0}
    assert value(statistics.flattens(0.5, 1.0, 1.5), means(sizes)) == 6 - 2
    assert value(statistics.falls(), means({("a", "mAP"): 20.0, ("b", "mAP"): -5.0})) == -20
    row = of_methods("123", PRS=(-5.0, 3.0, 4.0), CRS=(0.0,) * 3)
    effect = statistics.beats("PRS", "CRS")
    assert value(effect, row) == -5
    assert value(statistics.after_the_first(effect), row) == 3


def test_steadier_leaves_the_noise_of_the_seeds_out():
    """The mean product of different seeds: 1 * 3, where the mean's own variance is 2 * 2."""
    table = pd.concat([means({("CRS", s, "mAP"): v * s for s in (-1, 0, 1)}) for v in (1.0, 3.0)])
    steady = pd.concat([means({("PRS", s, "mAP"): 5.0 for s in (-1, 0, 1)})] * 2)
    both = pd.concat([table, steady], axis=1).reset_index(drop=True)
    assert value(statistics.steadier("PRS", "CRS"), both) == 1 * 3


RHOS = {-1.0: (30.0, 40.0), -0.2: (45.0, 52.0), 0.0: (50.0, 55.0), 0.5: (48.0, 56.0)}


def test_rho():
    cells = {(rho, m): v for rho, row in RHOS.items() for m, v in zip("ab", row, strict=True)}
    assert value(statistics.near_balance(), means(cells)) == 55 - 56
    assert value(statistics.declines(), means(cells)) == 55 - 56
    cells[0.5, "b"] = 54.5
    assert value(statistics.near_balance(), means(cells)) == 0.5
    assert value(statistics.declines(), means(cells)) == 0.5
    inside = {(rho, "mAP"): 1.0 for rho in (-0.1, 0.1)}  # no powers outside
    assert np.nan == value(statistics.near_balance(), means(inside))
