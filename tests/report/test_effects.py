"""Every effect by hand, on one row of means."""

import numpy as np
import pandas as pd
import pytest

from prslib.report import effects


def means(cells):
    """Make one row of means of {(level, level, ...): value}."""
    columns = pd.MultiIndex.from_tuples(cells)
    return pd.DataFrame([list(cells.values())], columns=columns)


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
    assert effect(means(LEVEL)).tolist() == [pytest.approx(expected)]


def test_runner_up_takes_the_second_best_of_each_cell():
    lower = {**LEVEL, ("PRS", "C-F1"): 39.0}  # third in C-F1, where CRS and GSS are ahead
    found = effects.runner_up("PRS", "CRS", "GSS", "EWC")(means(lower))
    assert found.tolist() == [-1]


def test_groups():
    scores = {"PRS": (70.0, 60.0, 50.0), "CRS": (75.0, 56.0, 35.0)}
    groups = ("majority", "moderate", "minority")
    row = means({(m, groups[i], "mAP"): v[i] for m, v in scores.items() for i in range(3)})
    assert effects.gap_closes("PRS", "CRS", "majority", "minority")(row).tolist() == [40 - 20]
    assert effects.gains_most("PRS", "CRS", "minority")(row).tolist() == [15 - 4]
    assert effects.gains_most("PRS", "CRS", "majority")(row).tolist() == [-5 - 15]


def test_steadier_compares_standard_deviations_over_schedules():
    scores = {"CRS": (40.0, 50.0, 60.0), "PRS": (52.0, 54.0, 56.0)}
    cells = {
        (method, schedule, metric): value + shift
        for method, values in scores.items()
        for schedule, value in zip("abc", values, strict=True)
        for metric, shift in (("C-F1", -1.0), ("mAP", 1.0))
    }
    assert effects.steadier("PRS", "CRS")(means(cells)).tolist() == [pytest.approx(10 - 2)]


def test_lead_grows_and_flattens():
    cells = {("PRS", 1, "mAP"): 60.0, ("PRS", 2, "mAP"): 57.0, ("PRS", 4, "mAP"): 50.0}
    cells |= {("CRS", 1, "mAP"): 59.0, ("CRS", 2, "mAP"): 50.0, ("CRS", 4, "mAP"): 45.0}
    assert effects.lead_grows("PRS", "CRS")(means(cells)).tolist() == [5 - 1]
    sizes = {(0.5, "mAP"): 50.0, (1.0, "mAP"): 56.0, (1.5, "mAP"): 58.0}
    assert effects.flattens(0.5, 1.0, 1.5)(means(sizes)).tolist() == [6 - 2]


RHOS = {-1.0: (30.0, 40.0), -0.2: (45.0, 52.0), 0.0: (50.0, 55.0), 0.5: (48.0, 56.0)}


def test_rho():
    cells = {(rho, m): v for rho, row in RHOS.items() for m, v in zip("ab", row, strict=True)}
    assert effects.near_balance()(means(cells)).tolist() == [55 - 56]
    assert effects.declines()(means(cells)).tolist() == [55 - 56]
    cells[0.5, "b"] = 54.5
    assert effects.near_balance()(means(cells)).tolist() == [0.5]
    assert effects.declines()(means(cells)).tolist() == [0.5]


def test_the_first_task_can_be_left_out():
    cells = {(m, task, "mAP"): 0.0 for m in ("PRS", "CRS") for task in (1, 2, 3)}
    cells |= {("PRS", 1, "mAP"): -5.0, ("PRS", 2, "mAP"): 3.0, ("PRS", 3, "mAP"): 4.0}
    effect = effects.beats("PRS", "CRS")
    assert effect(means(cells)).tolist() == [-5]
    assert effects.after_the_first(effect)(means(cells)).tolist() == [3]


def test_near_balance_needs_values_on_both_sides():
    inside = {(rho, "mAP"): 1.0 for rho in (-0.1, 0.1)}
    assert np.isnan(effects.near_balance()(means(inside))[0])


def test_every_resample_is_measured_on_its_own():
    two = pd.concat([means(LEVEL), means(LEVEL) * 2], ignore_index=True)
    assert effects.beats("PRS", "CRS")(two).tolist() == [1, 2]
    assert effects.runner_up("PRS", "CRS", "GSS", "EWC")(two).tolist() == [1, 2]
