"""The sentence in which a notebook answers its question."""

import numpy as np
import pandas as pd
import pytest

from prslib.report.answers import (
    describe_difference,
)


@pytest.mark.parametrize(
    ("low", "high", "sentence"),
    [
        (
            1.0,
            3.0,
            "PRS scores 2.0 points higher than CRS in mAP (95 % CI 1.0 to 3.0).",
        ),
        (
            -3.0,
            -1.0,
            "PRS scores 2.0 points lower than CRS in mAP (95 % CI 1.0 to 3.0).",
        ),
        (-1.0, 5.0, "PRS and CRS do not differ significantly in mAP: +2.0 points "),
    ],
)
def test_a_difference_gets_the_sentence_of_its_sign(low, high, sentence):
    row = {"difference": (low + high) / 2, "low": low, "high": high}
    assert describe_difference(pd.Series(row), what="mAP").startswith(sentence)


def test_a_difference_of_one_seed_has_a_sign_and_no_interval():
    row = pd.Series({"difference": -2.0, "low": np.nan, "high": np.nan})
    assert describe_difference(row, what="mAP") == (
        "PRS scores 2.0 points lower than CRS in mAP"
        " (one seed, so that no interval is known)."
    )
