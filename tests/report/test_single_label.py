"""Tables, sentences and pictures of single_label."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from fake_runs import fake_run

from prslib import configs
from prslib.datasets import load_dataset
from prslib.datasets.base import schedule_of
from prslib.paths import project_root
from prslib.report import single_label

TINY = "imbal-digits-tiny"
ORDER = "1+2,3+4,5+6,7+8,0+9"


@pytest.fixture(scope="module")
def trained():
    orders = single_label.random_orders(load_dataset(TINY, images=False), 2)
    return single_label.order_scores(TINY, orders, ["Finetune", "CRS", "PRS"], [0])


def test_more_orders_than_the_study_has_are_refused():
    orders = single_label.random_orders(load_dataset(TINY, images=False), 20)
    with pytest.raises(ValueError, match=r"got 10; .*class_orders.py .* --orders 20"):
        single_label.order_scores(TINY, orders, ["PRS"], [0])
    with pytest.raises(ValueError, match=r"keeps \[4, 2\] orders .*--search 4 2"):
        single_label.searched_orders(TINY, [4, 2])


def test_the_search_is_the_one_that_the_paper_profile_shows(monkeypatch):
    theirs = single_label.published_row(load_dataset(TINY, images=False))
    monkeypatch.setattr(single_label, "load_dataset", lambda *_, **__: None)
    monkeypatch.setattr(single_label, "published_row", lambda _: theirs)
    second, third = single_label.searched_orders("imbal-mnistseq", [400, 10])
    folder = project_root() / "figures/paper"
    drawn = pd.read_csv(folder / "single_label_imbal-mnistseq_search.csv")
    pd.testing.assert_frame_equal(third.round(6), drawn.fillna({"variant": ""}))
    assert set(third["schedule"]) <= set(second["schedule"])


def test_distances_by_hand():
    rows = pd.DataFrame({"schedule": list("aaaabb")})
    rows = rows.assign(
        trained_tasks=[1, 1, 2, 2, 1, 2],
        method="CRS",
        value=[10.0, 14.0, 20.0, 20.0, 15.0, 24.0],
    )
    rows["published"] = rows["trained_tasks"].map({1: 15.0, 2: 24.0})
    table = single_label.distances(rows)
    assert table["schedule"].tolist() == ["b", "a"]
    assert table["rms"].tolist() == pytest.approx([0, np.sqrt((3**2 + 4**2) / 2)])
    assert table["largest"].tolist() == [0, 4]
    said = single_label.search_sentences(table, within=3)
    assert said[0].startswith("1 of these 2 orders")


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
    methods = ["Multitask", "CRS", "PRS"]
    grid = {"dataset": TINY, "method": methods, "seed": [0, 1]}
    asked = configs(**grid) + configs(**grid, schedule=schedule_of(ORDER))
    rng = np.random.default_rng(0)
    runs = [fake_run(config, lambda rows: rng.random(len(rows))) for config in asked]
    rows = single_label.accuracies(asked, runs)
    table = single_label.accuracy_table(rows)
    orders = ("paper", single_label.DRAWN, ORDER)
    assert list(table.index) == [(order, name) for order in orders for name in methods]
    theirs = ["21.46", "40.04", "31.30", "57.84", "68.45"]
    assert table.loc[("paper", "PRS")].tolist() == theirs
    assert table.loc[(ORDER, "Multitask")].tolist()[:4] == [""] * 4
    last = rows[(rows["order"] == ORDER) & (rows["trained_tasks"] == 5)]
    by_hand = last.pivot(index="seed", columns="method", values="value")
    crs = by_hand["CRS"]
    shown = f"{crs.mean():.1f} ± {crs.std():.1f}"
    assert table.loc[(ORDER, "CRS"), "after task 5"] == shown
    gaps = single_label.task_contrasts(rows, "PRS", "CRS")
    assert len(gaps) == 10
    gap = gaps.set_index(["order", "trained_tasks"]).loc[(ORDER, 5)]
    assert gap["difference"] == pytest.approx((by_hand["PRS"] - crs).mean())
    assert gap["published"] == pytest.approx(68.45 - 52.57)
    assert "in the paper by +15.9." in gap["sentence"]


def test_spread_and_variants_in_sentences(trained):
    last = trained[trained["trained_tasks"] == 5]
    accuracy = last.pivot(index="schedule", columns="method", values="value")
    better = (accuracy["PRS"] > accuracy["CRS"]).sum()
    said = single_label.lead_sentence(trained)
    assert f"PRS is above CRS in {better} of 2 orders" in said
    prs = trained[trained["method"] == "PRS"]
    more = prs.assign(value=prs["value"] + 2 * (prs["trained_tasks"] == 5))
    assert "is +2.0 points" in single_label.variant_sentence(prs, more)


def test_pictures(trained):
    last = trained[(trained["trained_tasks"] == 5) & (trained["seed"] == 0)]
    axes = plt.figure().subplots(1, 2)
    single_label.plot_order_spread(last, axes[0])
    single_label.plot_order_pairs(last, axes[1], "CRS", "PRS")
    *dots, stars = [c.get_offsets() for c in axes[0].collections]
    assert sorted(np.concatenate(dots)[:, 1]) == pytest.approx(sorted(last["value"]))
    assert {round(x, 6) for x, _ in dots[0]} == {-0.3, 0.3}
    assert sorted(stars[:, 1]) == [9.82, 52.57, 68.45]
    star = axes[1].collections[-1].get_offsets()
    assert star.tolist() == [[52.57, 68.45]]
    plt.close()
