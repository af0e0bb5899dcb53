"""Every effect by hand, on one seed."""

import numpy as np
import pandas as pd
import pytest

from prslib.report import effects
from prslib.report.statistics import interval


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
        (effects.beats("PRS", "CRS"), 1),
        (effects.beats("PRS", "CRS", "GSS"), -4),
        (effects.gains("PRS", "CRS"), 2),
        (effects.times("PRS", "EWC"), 120),
        (effects.runner_up("PRS", "CRS", "GSS", "EWC"), 1),
        (effects.runner_up("EWC", "CRS", "GSS", "PRS"), -30),
        (effects.above_floor("EWC", "CRS", "GSS"), 20),
        (effects.above_floor("CRS", "PRS", "GSS"), -7),
    ],
)
def test_leads(effect, expected):
    assert expected == value(effect, means(LEVEL))


def test_runner_up_takes_the_second_best_of_each_cell():
    lower = {**LEVEL, ("PRS", "C-F1"): 39.0}  # third in C-F1, where CRS and GSS are ahead
    assert value(effects.runner_up("PRS", "CRS", "GSS", "EWC"), means(lower)) == -1


def of_methods(levels, **scores):
    """Make the means of methods at some levels, alike in two metrics but for a shift."""
    cells = {(m, *at): v for m, row in scores.items() for at, v in zip(levels, row, strict=True)}
    shifts = {"C-F1": -1.0, "mAP": 1.0}
    return means(
        {(*at, name): v + shift for at, v in cells.items() for name, shift in shifts.items()}
    )


def test_groups():
    row = of_methods([("majority",), ("minority",)], PRS=(70.0, 50.0), CRS=(75.0, 35.0))
    assert value(effects.gap_closes("PRS", "CRS", "majority", "minority"), row) == 40 - 20


def test_steadier_compares_variances_over_schedules():
    row = of_methods(["a", "b", "c"], CRS=(40.0, 50.0, 60.0), PRS=(52.0, 54.0, 56.0))
    assert value(effects.steadier("PRS", "CRS"), row) == 10**2 - 2**2


def test_steadier_leaves_the_noise_of_the_seeds_out():
    """The mean product of different seeds: 1 * 3, where the mean's own variance is 2 * 2."""
    table = pd.concat([means({("CRS", s, "mAP"): v * s for s in (-1, 0, 1)}) for v in (1.0, 3.0)])
    steady = pd.concat([means({("PRS", s, "mAP"): 5.0 for s in (-1, 0, 1)})] * 2)
    both = pd.concat([table, steady], axis=1).reset_index(drop=True)
    assert value(effects.steadier("PRS", "CRS"), both) == 1 * 3


def test_two_that_differ_by_less_than_a_share_are_alike():
    assert value(effects.alike("PRS", "CRS", 0.1), means(LEVEL)) == 0.1 * 47 - 3
    assert value(effects.falls(), means({("a", "mAP"): 20.0, ("b", "mAP"): -5.0})) == -20


def test_lead_grows_and_flattens():
    row = of_methods([(1,), (2,), (4,)], PRS=(60.0, 57.0, 50.0), CRS=(59.0, 50.0, 45.0))
    assert value(effects.lead_grows("PRS", "CRS"), row) == 5 - 1
    sizes = {(0.5, "mAP"): 50.0, (1.0, "mAP"): 56.0, (1.5, "mAP"): 58.0}
    assert value(effects.flattens(0.5, 1.0, 1.5), means(sizes)) == 6 - 2


RHOS = {-1.0: (30.0, 40.0), -0.2: (45.0, 52.0), 0.0: (50.0, 55.0), 0.5: (48.0, 56.0)}


def test_rho():
    cells = {(rho, m): v for rho, row in RHOS.items() for m, v in zip("ab", row, strict=True)}
    assert value(effects.near_balance(), means(cells)) == 55 - 56
    assert value(effects.declines(), means(cells)) == 55 - 56
    cells[0.5, "b"] = 54.5
    assert value(effects.near_balance(), means(cells)) == 0.5
    assert value(effects.declines(), means(cells)) == 0.5


def test_the_first_task_can_be_left_out():
    row, effect = (
        of_methods("123", PRS=(-5.0, 3.0, 4.0), CRS=(0.0,) * 3),
        effects.beats("PRS", "CRS"),
    )
    assert value(effect, row) == -5
    assert value(effects.after_the_first(effect), row) == 3


def test_near_balance_needs_values_on_both_sides():
    inside = {(rho, "mAP"): 1.0 for rho in (-0.1, 0.1)}
    assert np.nan == value(effects.near_balance(), means(inside))
