"""The search for the order of the classes, and tables, sentences and pictures of single_label."""

import itertools

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from fake_runs import fake_run

from prslib import configs
from prslib.datasets import SequentialDataset, Split, load_dataset
from prslib.datasets.base import schedule_of
from prslib.datasets.single_label import MNIST
from prslib.experiments import mlp_loop
from prslib.report import single_label

TINY = "imbal-digits-tiny"
ORDER = "1+2,3+4,5+6,7+8,0+9"


@pytest.fixture(scope="module")
def mnist_labels():
    """A data set with the test counts of MNIST, no files needed."""
    digits = np.repeat(np.arange(10), MNIST.test_freq)
    split = Split(None, digits[:, None] == np.arange(10), digits)
    names = tuple(map(str, range(10)))
    groups = ("moderate",) * 10
    return SequentialDataset(
        "m", split, {"full": split}, names, np.arange(10), groups, "Imbal-MNISTseq"
    )


@pytest.fixture(scope="module")
def trained():
    orders = [schedule_of(ORDER), (0, 1, 2, 3, 4, 5, 6, 7, 8, 9)]
    return single_label.train_orders(TINY, orders, ["Finetune", "CRS", "PRS"], [0, 1], workers=1)


def test_only_two_pairs_are_large_enough_for_the_first_column(mnist_labels):
    shares = single_label.pair_shares(mnist_labels)
    assert len(shares) == 45
    assert shares.iloc[:3].round(2).to_dict() == {(1, 2): 21.67, (1, 7): 21.63, (1, 3): 21.45}
    assert shares[0, 1] == pytest.approx(21.15)  # below Finetune's 21.47
    orders = single_label.possible_orders(mnist_labels)
    by_hand = {
        start + tuple(itertools.chain(*map(sorted, zip(rest[::2], rest[1::2], strict=True))))
        for start in ((1, 2), (1, 7))
        for rest in itertools.permutations(sorted(set(range(10)) - set(start)))
    }
    assert len(orders) == 2 * 2520
    assert set(orders) == by_hand
    assert orders == sorted(orders)


def test_a_stand_in_cannot_be_searched():
    with pytest.raises(ValueError, match=r"largest makes up 20.00 % of the test set"):
        single_label.search(TINY, ["CRS"], (2, 1), [0])


def test_search_narrows_down_look_by_look(monkeypatch):
    orders = single_label.random_orders(load_dataset(TINY, images=False), 4)
    monkeypatch.setattr(single_label, "possible_orders", lambda dataset: sorted(orders))
    second, third = single_label.search(TINY, ["CRS"], (2, 1), [0, 1], workers=1)
    assert (second["schedule"].nunique(), third["schedule"].nunique()) == (2, 1)
    assert (set(second["seed"]), set(third["seed"])) == ({0}, {0, 1})
    assert set(third["method"]) == {"Finetune", "CRS"}
    nearest = single_label.distances(second)["schedule"][:1]
    assert set(nearest) == set(third["schedule"])


def test_distances_by_hand():
    rows = pd.DataFrame({"schedule": ["a"] * 4 + ["b"] * 2, "trained_tasks": [1, 1, 2, 2, 1, 2]})
    rows = rows.assign(method="CRS", value=[10.0, 14.0, 20.0, 20.0, 15.0, 24.0])
    rows["published"] = [15.0, 15.0, 24.0, 24.0, 15.0, 24.0]
    found = single_label.distances(rows)
    assert found["schedule"].tolist() == ["b", "a"]
    assert found["rms"].tolist() == pytest.approx([0, np.sqrt((3**2 + 4**2) / 2)])
    assert found["largest"].tolist() == [0, 4]
    assert single_label.search_sentences(found, within=3)[0].startswith("1 of these 2 orders")


def test_random_orders_are_different_and_repeatable():
    dataset = load_dataset(TINY, images=False)
    orders = single_label.random_orders(dataset, 30)
    assert len(set(orders)) == 30
    assert all(sorted(order) == list(range(10)) for order in orders)
    assert single_label.random_orders(dataset, 30) == orders
    assert single_label.random_orders(dataset, 30, seed=1) != orders


def test_orders_read_from_text():
    assert schedule_of(ORDER) == (1, 2, 3, 4, 5, 6, 7, 8, 0, 9)
    with pytest.raises(ValueError, match="expected an order of classes such as"):
        schedule_of("one+two")


def test_the_papers_numbers_stand_beside_ours(trained):
    prs = trained[trained["method"] == "PRS"].drop_duplicates("trained_tasks")
    assert prs["published"].tolist() == [21.46, 40.04, 31.3, 57.84, 68.45]


def test_table_and_sentences():
    grid = {"dataset": TINY, "method": ["Multitask", "CRS", "PRS"], "seed": [0, 1]}
    orders = [None, schedule_of(ORDER)]
    wanted = [config for order in orders for config in configs(**grid, schedule=order)]
    rng = np.random.default_rng(0)
    runs = [fake_run(config, lambda rows: rng.random(len(rows))) for config in wanted]
    rows = single_label.accuracies(wanted, runs)
    table = single_label.accuracy_table(rows)
    drawn = single_label.DRAWN
    methods = ["Multitask", "CRS", "PRS"]
    assert list(table.index) == [(o, m) for o in ("paper", drawn, ORDER) for m in methods]
    assert table.loc[("paper", "PRS")].tolist() == ["21.46", "40.04", "31.30", "57.84", "68.45"]
    assert table.loc[(ORDER, "Multitask")].tolist()[:4] == [""] * 4
    ours = rows[(rows["order"] == ORDER) & (rows["method"] == "CRS")]
    last = ours[ours["trained_tasks"] == 5]["value"]
    assert table.loc[(ORDER, "CRS"), "after task 5"] == f"{last.mean():.1f} ± {last.std():.1f}"
    gaps = single_label.task_contrasts(rows, "PRS", "CRS")
    assert len(gaps) == 10
    by_hand = rows.pivot_table(
        index=["order", "trained_tasks", "seed"], columns="method", values="value"
    )
    difference = (by_hand["PRS"] - by_hand["CRS"])[ORDER, 5].mean()
    row = gaps[(gaps["order"] == ORDER) & (gaps["trained_tasks"] == 5)].iloc[0]
    assert row["difference"] == pytest.approx(difference)
    assert row["published"] == pytest.approx(68.45 - 52.57)
    assert "in the paper by +15.9." in row["sentence"]


def test_spread_and_variants_in_sentences(trained):
    one_seed = trained[trained["seed"] == 0]
    last = one_seed[one_seed["trained_tasks"] == 5].pivot(
        index="schedule", columns="method", values="value"
    )
    better = (last["PRS"] > last["CRS"]).sum()
    assert f"PRS is above CRS in {better} of 2 orders" in single_label.lead_sentence(one_seed)
    prs = trained[trained["method"] == "PRS"]
    more = prs.assign(value=prs["value"] + 2 * (prs["trained_tasks"] == 5))
    assert "is +2.0 points" in single_label.variant_sentence(prs, more)


def test_pictures(trained):
    last = trained[(trained["trained_tasks"] == 5) & (trained["seed"] == 0)]
    axes = plt.figure().subplots(1, 2)
    single_label.plot_order_spread(last, axes[0])
    single_label.plot_order_pairs(last, axes[1], "CRS", "PRS")
    dots = [c.get_offsets() for c in axes[0].collections if len(c.get_offsets()) == 2]
    assert sorted(np.concatenate(dots)[:, 1]) == pytest.approx(sorted(last["value"]))
    assert {round(x, 6) for x, _ in dots[0]} == {-0.3, 0.3}
    dashes = [c.get_segments()[0][0][1] for c in axes[0].collections if hasattr(c, "get_segments")]
    assert sorted(dashes) == [9.82, 52.57, 68.45]
    star = axes[1].collections[-1].get_offsets()
    assert star.tolist() == [[52.57, 68.45]]
    plt.close()


def test_drawing_again_trains_nothing(trained, monkeypatch):
    orders = [schedule_of(ORDER), (0, 1, 2, 3, 4, 5, 6, 7, 8, 9)]
    monkeypatch.setattr(mlp_loop, "progressions", None)
    again = single_label.train_orders(TINY, orders, ["Finetune", "CRS", "PRS"], [0, 1])
    pd.testing.assert_frame_equal(again, trained, check_exact=True)
