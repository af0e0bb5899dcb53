"""The sentence in which a notebook answers its question."""

import numpy as np
import pandas as pd
import pytest

from prslib.report.answers import describe_difference, describe_range


@pytest.mark.parametrize(
    ("low", "high", "sentence"),
    [
        (1.0, 3.0, "2.0 points higher for PRS than for CRS (95 % CI 1.0 to 3.0)."),
        (-3.0, -1.0, "2.0 points lower for PRS than for CRS (95 % CI 1.0 to 3.0)."),
        (-1.0, 5.0, "does not differ significantly: PRS minus CRS is +2.0 points"),
        (np.nan, np.nan, "2.0 points lower for PRS than for CRS (one seed"),
    ],
)
def test_a_difference_gets_the_sentence_of_its_sign(low, high, sentence):
    difference = -2.0 if np.isnan(low) else (low + high) / 2
    row = {"difference": difference, "low": low, "high": high, "seeds": 5}
    assert sentence in describe_difference(pd.Series(row, dtype=object), what="mAP")
    few = describe_difference(pd.Series(row | {"seeds": 2}, dtype=object), what="mAP")
    assert ("2 seeds are too few for a test" in few) == (not np.isnan(low))


def test_a_range_names_its_lowest_case_and_counts_those_on_either_side():
    place = {"group": "overall", "metric": "mAP", "test_set": "balanced"}
    rows = [
        {"dataset": "digits70seq", "network": "a", "difference": 9.0},
        {"dataset": "cocoseq-mini", "network": "a", "difference": 2.0},
        {"dataset": "cocoseq-mini", "network": "b", "difference": -1.0},
    ]
    gaps = pd.DataFrame([place | row for row in rows])
    gaps = gaps.assign(seeds=5, clearly=["below", "above", "above"])
    words = "On the balanced test, PRS minus CRS in overall mAP is between -1.0 points"
    words += " (network: b) and +2.0 points (network: a)."
    assert describe_range(gaps.assign(seeds=3), "network") == words
    counts = describe_range(gaps, "network").removeprefix(words)
    assert "above 0 in 2 of 2" in counts and "below 0 in none." in counts
    alone = describe_range(gaps[:2].assign(seeds=3), "network")
    assert alone.endswith("is +2.0 points (network: a).")
