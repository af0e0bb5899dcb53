"""Schedules and memory sizes: the paper's settings, and which numbers stand beside ours."""

import numpy as np
import pandas as pd
import pytest
from fake_runs import fake_run

from prslib.report import schedules_and_memory as settings
from prslib.training.config import RunConfig


def scores_of(dataset, method, value, schedule=None, memory=None, seed=0):
    """Scores of a run, the same in every group and metric; each task falls from 0.8 to 0.6."""
    fields = {"schedule": schedule, "memory_size": memory, "seed": seed}
    config = RunConfig(dataset=dataset, method=method, **fields)

    def scores(cells):
        end = cells["trained_tasks"] == cells["trained_tasks"].max()
        return np.where(cells["task"] == "seen", value, np.where(end, 0.6, 0.8))

    return fake_run(config, scores).scores


def cell(rows, measure="score", group="overall", metric="mAP", **where):
    where |= {"measure": measure, "group": group, "metric": metric}
    for name, value in where.items():
        rows = rows[rows[name] == value]
    assert len(rows) == 1
    return rows.iloc[0]


def test_the_papers_schedules_without_the_standard_one():
    coco = settings.permuted_schedules("digits70seq", 9)  # Table 2's first
    assert coco == [(0, 1, 3, 2), (2, 3, 0, 1), (3, 1, 0, 2), (1, 0, 3, 2)]
    nus = settings.permuted_schedules("digits49seq", 9)
    assert nus == [(0, 1, 2, 3, 4, 5), (1, 2, 0, 5, 3, 4), (5, 2, 0, 3, 1, 4)]
    assert settings.permuted_schedules("digits70tiny", 0) == []


def test_sizes_are_whole_and_find_the_papers():
    assert settings.memory_sizes("digits49seq", [0.5, 1.5]) == [166, 500]
    sizes = {"digits49seq": (500, 166, 333), "digits70tiny": (75, 50, 25)}
    scores = [
        scores_of(name, "PRS", 0.5, memory=size)
        for name in sizes
        for size in sizes[name]
    ]
    rows = settings.scores_by_memory(pd.concat(scores))
    shown = rows.drop_duplicates(["dataset", "memory"])["memory"].tolist()
    assert shown[:3] == ["166 [1000]", "333 [2000]", "500 [3000]"]
    assert shown[3:] == ["25 [1000]", "50 [2000]", "75 [3000]"]
    assert rows["memory_size"].dtype == "int64"


def test_each_setting_stands_beside_its_own_numbers():
    runs = [
        scores_of("digits70seq", "PRS", 0.5, schedule=o) for o in (None, (0, 1, 3, 2))
    ]
    runs += [scores_of("digits70seq", "PRS", 0.4, memory=250)]
    runs += [scores_of("digits70seq", "Finetune", 0.5)]  # has no size to vary
    schedules = settings.scores_by_schedule(pd.concat(runs))
    sizes = settings.scores_by_memory(pd.concat(runs))
    standard = cell(schedules, schedule="0,3,1,2")
    assert (standard["published"], standard["table_2"]) == (55.0, 55.3)
    assert cell(schedules, measure="forget", schedule="0,3,1,2")["published"] == 10.2
    permuted = cell(schedules, schedule="0,1,3,2")
    assert (permuted["published"], permuted["table_2"]) == (54.9, 55.2)
    assert cell(schedules, group="minority", schedule="0,1,3,2")["published"] == 38.7
    assert np.isnan(cell(schedules, measure="forget", schedule="0,1,3,2")["published"])
    small = cell(sizes, memory="250 [1000]")
    assert (small["value"], small["published"], small["table_2"]) == (40, 50.0, 51.2)
    assert set(sizes["schedule"]) == {"0,3,1,2"} and set(sizes["method"]) == {"PRS"}
    assert set(schedules["memory_size"]) == {500}


def test_the_standard_setting_of_the_second_set_differs_between_the_tables():
    """The paper prints three values for CRS; its tables of schedules and of sizes differ."""
    scores = scores_of("digits49seq", "CRS", 0.3)
    by_schedule = settings.scores_by_schedule(scores)
    by_memory = settings.scores_by_memory(scores)
    assert cell(by_schedule, metric="C-F1")["published"] == 16.6
    assert cell(by_memory, metric="C-F1")["published"] == 17.5
    assert cell(by_schedule, measure="forget", metric="C-F1")["published"] == 61.1


def test_the_spread_compares_seeds_that_every_schedule_has():
    order = (0, 1, 3, 2)
    values = [(None, 0, 0.50), (None, 1, 0.60), (order, 0, 0.52)]
    runs = [
        scores_of("digits70seq", "PRS", value, schedule=schedule, seed=seed)
        for schedule, seed, value in values
    ]
    spread = settings.schedule_spread(settings.scores_by_schedule(pd.concat(runs)))
    prs = spread.set_index("metric").loc["mAP"]
    assert prs["sd"] == pytest.approx(np.std([50, 52], ddof=1))
    assert (prs["lowest"], prs["highest"], prs["schedules"]) == (50, 52, 2)
    assert prs["seed_sd"] == pytest.approx(np.std([50, 60], ddof=1))
    assert prs["published_sd"] == pytest.approx(np.std([55.0, 54.9], ddof=1))


def test_gains_are_taken_from_size_to_size():
    values = [(250, 0, 0.40), (500, 0, 0.50), (500, 1, 0.90), (750, 0, 0.52)]
    runs = [scores_of("digits70seq", "PRS", v, memory=m, seed=s) for m, s, v in values]
    gains = settings.memory_gains(settings.scores_by_memory(pd.concat(runs)))
    shown = gains[gains["metric"] == "mAP"]
    np.testing.assert_allclose(shown["gain"], [10, 2])
    np.testing.assert_allclose(shown["published_gain"], [5.0, 1.1])
    assert shown["seeds"].tolist() == [1, 1]
