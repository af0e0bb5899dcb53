"""The sentence in which a notebook answers its question."""

import pandas as pd
import pytest

from prslib.report.answers import (
    describe_difference,
    find_smallest,
    join_words,
    write_answer,
)
from prslib.report.notebook import Settings


@pytest.mark.parametrize(
    ("low", "high", "sentence"),
    [
        (1.0, 3.0, "PRS gains 2.0 points of mAP over CRS (95 % CI 1.0 to 3.0)."),
        (
            -3.0,
            -1.0,
            "PRS loses 2.0 points of mAP against CRS (95 % CI 1.0 to 3.0).",
        ),
        (-1.0, 5.0, "PRS and CRS do not differ clearly in mAP: +2.0 points "),
    ],
)
def test_a_difference_gets_the_sentence_of_its_sign(low, high, sentence):
    row = {"difference": (low + high) / 2, "low": low, "high": high}
    assert describe_difference(pd.Series(row), what="mAP").startswith(sentence)


def test_a_difference_of_one_seed_has_no_interval():
    row = pd.Series({"difference": 2.0, "low": float("nan"), "high": float("nan")})
    assert describe_difference(row, what="mAP").endswith("mAP: +2.0 points (one seed).")


def test_the_smallest_difference_is_looked_for_on_real_data():
    columns = ["dataset", "metric", "difference"]
    rows = [
        ("digits70seq", "mAP", -9.0),
        ("cocoseq-mini", "mAP", 3.0),
        ("cocoseq-mini", "mAP", 2.0),
        ("cocoseq-mini", "C-F1", 1.0),
    ]
    gaps = pd.DataFrame(rows, columns=columns)
    assert find_smallest(gaps, metric="mAP")["difference"] == 2.0
    assert find_smallest(gaps.head(1))["difference"] == -9.0


@pytest.mark.parametrize(
    ("dataset", "shown", "data"),
    [
        ("cocoseq-mini", "**PRS gains on COCO.**", "part"),
        ("digits70seq", "handwritten digits.**", "stand-in"),
    ],
)
def test_an_answer_is_shown_and_written(dataset, shown, data, tmp_path):
    settings = Settings.of("smoke", "rho_sweep", save=str(tmp_path))
    answer = write_answer(settings, f"PRS gains on {dataset}.", dataset)
    assert answer.data.endswith(shown)
    table = pd.read_csv(tmp_path / "rho_sweep_sentence.csv")
    assert table["data"].tolist() == [data]


def test_words_are_joined():
    assert join_words(["mAP"]) == "mAP"
    assert join_words(["C-F1", "O-F1", "mAP"]) == "C-F1, O-F1 and mAP"
