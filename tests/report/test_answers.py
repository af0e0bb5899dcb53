"""The sentence in which a notebook answers its question."""

import numpy as np
import pandas as pd
import pytest

from prslib.report.answers import describe_difference, describe_range, say_points


@pytest.mark.parametrize(
    ("low", "high", "sentence"),
    [
        (
            1.0,
            3.0,
            "mAP is 2.0 points higher for PRS than for CRS (95 % CI 1.0 to 3.0).",
        ),
        (
            -3.0,
            -1.0,
            "mAP is 2.0 points lower for PRS than for CRS (95 % CI 1.0 to 3.0).",
        ),
        (
            -1.0,
            5.0,
            "mAP does not differ significantly: PRS minus CRS is +2.0 points ",
        ),
    ],
)
def test_a_difference_gets_the_sentence_of_its_sign(low, high, sentence):
    row = {"difference": (low + high) / 2, "low": low, "high": high}
    assert describe_difference(pd.Series(row), what="mAP").startswith(sentence)


def test_a_difference_of_one_seed_has_a_sign_and_no_interval():
    row = pd.Series({"difference": -2.0, "low": np.nan, "high": np.nan})
    assert describe_difference(row, what="mAP") == (
        "mAP is 2.0 points lower for PRS than for CRS"
        " (one seed, so that no interval is known)."
    )


def test_a_range_names_its_lowest_case_and_counts_those_on_either_side():
    place = {"group": "overall", "metric": "mAP", "test_set": "balanced"}
    rows = [
        {"dataset": "digits70seq", "network": "a", "difference": 9.0},
        {"dataset": "cocoseq-mini", "network": "a", "difference": 2.0},
        {"dataset": "cocoseq-mini", "network": "b", "difference": -1.0},
    ]
    gaps = pd.DataFrame([place | row for row in rows])
    gaps = gaps.assign(seeds=5, clearly=["above", "above", "below"])
    words = "With classes alike, PRS minus CRS in overall mAP is between -1.0 points"
    words += " (network: b) and +2.0 points (network: a)."
    assert describe_range(gaps.assign(seeds=3), "network") == words
    assert describe_range(gaps, "network") == (
        f"{words} It is significantly above 0 in 1 of 2 cases and significantly below 0"
        " in 1."
    )
    assert describe_range(gaps.assign(clearly=""), "network").endswith(
        "above 0 in none of 2 cases and significantly below 0 in none."
    )


def test_a_difference_is_said_with_its_interval_and_seeds():
    row = {"difference": 1.0, "low": -0.5, "high": 2.5, "seeds": 10}
    assert say_points(row) == "+1.0 points (95 % CI -0.5 to +2.5, 10 seeds)"
    assert say_points(row | {"seeds": 1}) == "+1.0 points (one seed)"
