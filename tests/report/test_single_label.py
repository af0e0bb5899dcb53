"""Tables of single_label."""

import numpy as np
import pandas as pd
import pytest
from cells import functions_of
from fake_runs import fake_run

from prslib.datasets.base import schedule_of
from prslib.report import measures
from prslib.report.asked import configs
from prslib.report.notebook import Settings

single_label = functions_of("single_label")

TINY = "imbal-digits-tiny"
ORDER = "1+2,3+4,5+6,7+8,0+9"


def test_runs_are_of_every_order_method_and_seed():
    settings = {"dataset": [TINY], "method": ["CRS", "PRS"], "seeds": [0, 1, 2]}
    both = Settings.of("quick", "single_label", **settings, orders=["drawn", ORDER])
    schedules = [config.schedule for config in single_label.runs(both)]
    assert schedules == [None] * 6 + [(1, 2, 3, 4, 5, 6, 7, 8, 0, 9)] * 6


def test_the_first_orders_of_the_study_stand_beside_the_papers_numbers():
    trained = single_label.order_scores(TINY, "random", 2)
    first = ["4+6,2+7,3+5,0+9,1+8", "2+9,3+6,0+4,7+8,1+5"]
    assert trained["schedule"].unique().tolist() == first
    prs = trained[trained["method"] == "PRS"].drop_duplicates("trained_tasks")
    assert prs["published"].tolist() == [21.46, 40.04, 31.3, 57.84, 68.45]
    with pytest.raises(ValueError, match=r"expected 20 orders .* got 10; ask for"):
        single_label.order_scores(TINY, "random", 20)


def test_distances_by_hand():
    rows = pd.DataFrame({"schedule": list("aaaabb"), "method": "CRS"})
    rows["trained_tasks"] = [1, 1, 2, 2, 1, 2]
    rows["value"] = [10.0, 14.0, 20.0, 20.0, 15.0, 24.0]
    rows["published"] = rows["trained_tasks"].map({1: 15.0, 2: 24.0})
    table = measures.distances(rows)
    assert table["schedule"].tolist() == ["b", "a"]
    assert table["rms"].tolist() == pytest.approx([0, np.sqrt((3**2 + 4**2) / 2)])
    assert table["largest"].tolist() == [0, 4]


def test_the_table_is_laid_out_as_the_papers():
    methods = ["Multitask", "CRS", "PRS"]
    grid = {"dataset": TINY, "method": methods, "seed": [0, 1]}
    asked = configs(**grid) + configs(**grid, schedule=schedule_of(ORDER))
    rng = np.random.default_rng(0)
    runs = [fake_run(config, lambda rows: rng.random(len(rows))) for config in asked]
    rows = measures.accuracies(asked, runs)
    table = single_label.accuracy_table(rows)
    orders = ("paper", measures.DRAWN, ORDER)
    assert list(table.index) == [(order, name) for order in orders for name in methods]
    theirs = ["21.46", "40.04", "31.30", "57.84", "68.45"]
    assert table.loc[("paper", "PRS")].tolist() == theirs
    assert table.loc[(ORDER, "Multitask")].tolist()[:4] == [""] * 4
    last = rows[(rows["order"] == ORDER) & (rows["trained_tasks"] == 5)]
    by_hand = last.pivot(index="seed", columns="method", values="value")
    mean, sd = by_hand["CRS"].mean(), by_hand["CRS"].std()
    assert table.loc[(ORDER, "CRS"), "after task 5"] == f"{mean:.1f} ± {sd:.1f}"
