import pandas as pd
import pytest

from prslib.report.statistics import NEITHER, compared, over_seeds, spread


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


def test_the_mean_alone_makes_nothing_clear():
    # more than one standard deviation above 0, and yet one seed of three is below
    found = row(-0.1, 9, 10)
    assert found["difference"] > found["sd"]
    assert found["clearly"] == ""


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
