"""Forgetting by class, and its correlation with the size of the class."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from cells import functions_of
from fake_runs import fake_run
from scipy.stats import spearmanr

from prslib.datasets import load_dataset
from prslib.report import measures, results
from prslib.report.tables import scores_of
from prslib.train import RunConfig

tail = functions_of("tail_forgetting")

DATA = load_dataset("cocoseq-mini", images=False)
SIZES = dict(zip(DATA.class_names, DATA.class_freq, strict=True))
TASKS = dict(zip(DATA.class_names, DATA.class_task.astype(str), strict=True))


def run_of(loss):
    """A run whose classes have an AP of 0.8 at first and lose ``loss(class size)`` by the end."""

    def scores(cells):
        lost = loss(cells["group"].map(SIZES)) * (cells["trained_tasks"] == 4)
        return (0.8 - lost).where(cells["group"].map(TASKS) == cells["task"])

    config = RunConfig("cocoseq-mini", "CRS")
    return fake_run(config, scores, ["open"], with_classes=True)


def test_correlations_are_spearmans_on_every_resample_without_absent_classes():
    rows = measures.run_forgetting(run_of(lambda size: 0.4 / size**0.5))
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(len(rows), 2))
    draws[::5, 1] = np.nan  # no positive in the second resample
    rows["draws"] = list(draws)
    for place, correlations in measures.size_correlations(rows).iterrows():
        _, measure, _, task = place
        cells = rows[(rows["task"] == task) & (rows["measure"] == measure)]
        theirs = [spearmanr(cells["images"], cells["value"]).statistic]
        for drawn in np.stack(cells["draws"]).T:
            pair = cells["images"].to_numpy(), drawn
            theirs.append(spearmanr(*pair, nan_policy="omit").statistic)
        assert correlations.to_list() == pytest.approx(theirs)


def test_groups_are_compared_on_one_test_and_with_the_paper_on_its_kind():
    def scores(cells):
        """The minority falls from 0.5 to 0.3, the majority from 0.5 to 0.4."""
        lost = cells["group"].map({"minority": 0.2, "majority": 0.1}).fillna(0)
        return 0.5 - lost * (cells["trained_tasks"] == 4)

    config = RunConfig("cocoseq-mini", "CRS")
    run = fake_run(config, scores, ["balanced", "imbalanced"])
    rows = tail.minority_minus_majority(scores_of([run]))
    gaps = rows.set_index(["test_set", "lost"])
    assert gaps["difference"].to_dict() == pytest.approx(
        {
            ("balanced", "share of the best mAP"): 20,
            ("imbalanced", "share of the best mAP"): 20,
            ("balanced", "points of mAP"): 10,
            ("imbalanced", "points of mAP"): 10,
        }
    )
    (printed,) = gaps["published"].dropna().items()
    assert printed == (("balanced", "share of the best mAP"), pytest.approx(14.3))


def test_the_correlations_of_a_run_are_means_over_the_tasks_that_have_one(monkeypatch):
    place = "balanced", "plain", "AP"
    columns = {"value": [0.2, 0.6, np.nan], 0: [0.1, 0.5, 9], 1: [0.3, np.nan, 9]}
    index = pd.MultiIndex.from_tuples([(*place, str(task)) for task in range(3)])
    monkeypatch.setattr(results, "run_forgetting", lambda run: run)
    frame = pd.DataFrame(columns, index)
    monkeypatch.setattr(results, "size_correlations", lambda rows: frame)
    monkeypatch.setattr(results, "ORDERS", {"plain": "order"})
    run = SimpleNamespace(config=RunConfig("cocoseq-tiny", results.FIGURE_1[0]))
    (row,) = results._orders(run)
    assert row["value"] == pytest.approx(0.4)
    assert row["draws"] == pytest.approx([0.3, 0.3])
