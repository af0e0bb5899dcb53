"""The study of class orders: which orders are possible, and what is committed."""

import importlib.util
import itertools

import numpy as np
import pandas as pd
import pytest

from prslib.datasets import SequentialDataset, Split, load_dataset
from prslib.datasets.base import schedule_of
from prslib.paths import project_root
from prslib.report import single_label

TINY = "imbal-digits-tiny"
FILE = project_root() / "studies" / "class_orders.py"
FREQ = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]  # MNIST's test set


@pytest.fixture(scope="module")
def study():
    spec = importlib.util.spec_from_file_location("class_orders", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def mnist_labels():
    """A data set with the test counts of MNIST, no files needed."""
    digits = np.repeat(np.arange(10), FREQ)
    split = Split(None, digits[:, None] == np.arange(10), digits)
    names = tuple(map(str, range(10)))
    return SequentialDataset(
        "m", split, {"full": split}, names, np.arange(10), ("moderate",) * 10
    )


def test_only_two_pairs_are_large_enough_for_the_first_column(
    study, mnist_labels, monkeypatch
):
    row = study.published_row(load_dataset(TINY, images=False))
    monkeypatch.setattr(study, "published_row", lambda _: row)
    shares = study.pair_shares(mnist_labels)
    assert len(shares) == 45
    first = {(1, 2): 21.67, (1, 7): 21.63, (1, 3): 21.45}
    assert shares.iloc[:3].round(2).to_dict() == first
    assert shares[0, 1] == pytest.approx(21.15)  # below Finetune's 21.47
    orders = study.possible_orders(mnist_labels)
    by_hand = {
        start
        + tuple(itertools.chain(*map(sorted, zip(rest[::2], rest[1::2], strict=True))))
        for start in ((1, 2), (1, 7))
        for rest in itertools.permutations(sorted(set(range(10)) - set(start)))
    }
    assert len(orders) == 2 * 2520
    assert set(orders) == by_hand


def test_random_orders_are_different_and_those_that_are_committed(study):
    orders = study.random_orders(load_dataset(TINY, images=False), 10)
    assert len(set(orders)) == 10
    rows = single_label.order_scores(TINY, "random", 10)
    assert list(map(schedule_of, rows["schedule"].unique())) == orders


def test_a_stand_in_cannot_be_searched(study):
    with pytest.raises(ValueError, match=r"got at most 20.00 %; only the data set of"):
        study.search(TINY, (2, 1))


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
