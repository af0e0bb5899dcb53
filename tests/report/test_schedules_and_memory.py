"""Schedules and memory sizes: the paper's settings, and which numbers stand beside ours."""

import numpy as np
import pandas as pd
from cells import functions_of
from fake_runs import fake_run

from prslib.report import tables
from prslib.report.notebook import Settings
from prslib.train import RunConfig

topic = functions_of("schedules_and_memory")

COCO, NUS = "digits70seq", "digits49seq"  # stand for COCOseq and NUS-WIDEseq
ORDER = (0, 1, 3, 2)


def scores_of(value, dataset=COCO, method="PRS", tests=("balanced",), **fields):
    """Scores of a run, the same in every group and metric; each task falls from 0.8 to 0.6."""

    def scores(cells):
        end = cells["trained_tasks"] == cells["trained_tasks"].max()
        return np.where(cells["task"] == "seen", value, np.where(end, 0.6, 0.8))

    config = RunConfig(dataset, method, **fields)
    return tables.scores_of([fake_run(config, scores, tests)])


def cell(rows, measure="score", group="overall", metric="mAP", **where):
    for name, value in where.items():
        rows = rows[rows[name] == value]
    keys = ["measure", "group", "metric"]
    return rows.set_index(keys).loc[(measure, group, metric)]


def test_sizes_are_whole_and_find_the_papers():
    made = topic.runs(Settings.of("quick", "schedules_and_memory", dataset=[NUS]))
    assert {config.memory_size for config in made} == {None, 166, 500}
    sizes = [(NUS, size) for size in (500, 166, 333)]
    sizes += [("digits70tiny", size) for size in (75, 50, 25)]
    scores = [scores_of(0.5, name, memory_size=size) for name, size in sizes]
    rows = topic.scores_by_memory(pd.concat(scores))
    shown = rows.drop_duplicates(["dataset", "memory"])["memory"].tolist()
    assert shown[:3] == ["166 [1000]", "333 [2000]", "500 [3000]"]
    assert shown[3:] == ["25 [1000]", "50 [2000]", "75 [3000]"]
    half = topic.scores_by_memory(scores_of(0.5, "digits49tiny", memory_size=16))
    assert set(half["memory"]) == {"16 [1000]"}  # of 33: 970


def test_each_setting_stands_beside_its_own_numbers():
    scores = [scores_of(0.5), scores_of(0.5, schedule=ORDER)]
    scores += [scores_of(0.4, memory_size=250)]
    scores += [scores_of(0.5, method="Finetune")]  # has no size to vary
    schedules = topic.scores_by_schedule(pd.concat(scores))
    sizes = topic.scores_by_memory(pd.concat(scores))
    numbers, usual, order = ["published", "table_2"], "0,3,1,2", "0,1,3,2"
    assert cell(schedules, schedule=usual)[numbers].tolist() == [55.0, 55.3]
    assert cell(schedules, "forget", schedule=usual)["published"] == 10.2
    assert cell(schedules, schedule=order)[numbers].tolist() == [54.9, 55.2]
    assert cell(schedules, group="minority", schedule=order)["published"] == 38.7
    assert np.isnan(cell(schedules, "forget", schedule=order)["published"])
    small = cell(sizes, memory="250 [1000]")
    assert small[["value", *numbers]].tolist() == [40, 50.0, 51.2]
    assert set(sizes["schedule"]) == {usual} and set(sizes["method"]) == {"PRS"}
    assert set(schedules["memory_size"]) == {500}


def test_the_papers_numbers_are_of_classes_alike():
    rows = topic.scores_by_schedule(scores_of(0.5, tests=["imbalanced"]))
    assert rows[["published", "table_2"]].isna().all(axis=None)
    balanced, further = scores_of(0.5), scores_of(0.5, "digits49tiny")
    schedules = topic.scores_by_schedule(pd.concat([balanced, further]))
    sizes = topic.scores_by_memory(pd.concat([balanced, further]))
    table = topic.table_2(schedules, sizes)
    assert table["metric"].tolist() == ["C-F1", "O-F1", "mAP"]
    assert set(table["dataset"]) == {COCO}
    assert table["published"].iloc[2] == 55.3
