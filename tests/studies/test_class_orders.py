"""The study of class orders: which orders are possible, and what is committed."""

import pandas as pd
import pytest

from prslib.datasets import load_dataset
from prslib.datasets.base import schedule_of
from prslib.report import single_label

TINY = "imbal-digits-tiny"


@pytest.fixture
def study(program):
    return program("class_orders")


def test_random_orders_are_different_and_those_that_are_committed(study):
    orders = study.random_orders(load_dataset(TINY, images=False), 10)
    assert len(set(orders)) == 10
    rows = single_label.order_scores(TINY, "random", 10)
    assert list(map(schedule_of, rows["schedule"].unique())) == orders


def test_what_is_committed_is_what_runs_give_but_for_rounding(study):
    """One test image of 200 is half a percent."""
    committed = pd.read_csv(study.FILE, keep_default_na=False)
    row = committed[committed["dataset"] == TINY].iloc[0]
    order = schedule_of(row["schedule"])
    grid = {"dataset": TINY, "method": row["method"], "seed": 0, "schedule": [order]}
    (made,) = study.train("random", study.configs(**grid)).to_dict("records")
    gaps = [abs(made[f"task {t}"] - float(row[f"task {t}"])) for t in range(1, 6)]
    assert made["schedule"] == row["schedule"]
    assert max(gaps) <= 1.0
