import numpy as np
import pandas as pd
import pytest

from prslib.published import TABLES, load, merge_published

COUNTS = {  # rows of numbers x numbers a row, counted in the paper
    "main": 2 * (1 + 6 * 2) * 12,
    "memory_and_schedules": 3 * 4 * 6,
    "mnist": 1 + 4 * 5,
    "svhn": 1 + 4 * 5,
    "architectures": 12 * 6,
    "imbalanced_test": 4 * 12,
    "coco_precision_recall": 7 * 12,
    "nus_precision_recall": 7 * 12,
    "attention_consistency": (1 + 5 * 2) * 12,
    "rnn_attention": (1 + 4 * 2) * 12,
    "nus_memory": 3 * 4 * 2 * 12,
    "nus_schedules": 4 * 4 * 2 * 12,
    "coco_memory": 3 * 4 * 12,
    "coco_schedules": 4 * 4 * 12,
    "coco_progression": (1 + 6 * (1 + 4 + 1)) * 3,
    "nus_progression": (1 + 6 * (1 + 6 + 1)) * 3,
}
CELL = ["dataset", "method", "architecture", "memory_size", "schedule", "epochs"]
CELL += ["test_set", "trained_tasks", "group", "measure", "metric"]


def cell(table, method, group, metric, measure="score", **filters):
    filters |= {"method": method, "group": group, "metric": metric, "measure": measure}
    cells = load(table)
    matches = [cells[column] == value for column, value in filters.items()]
    (value,) = cells.loc[np.logical_and.reduce(matches), "value"].unique()
    return value


def test_every_table_has_as_many_rows_as_the_paper_has_numbers():
    assert {table: len(load(table)) for table in TABLES} == COUNTS


FORGET = {"measure": "forget"}
PRINTED = [  # value, table, method, group, metric, and what else tells the cell
    (54.92, "main", "CRS", "minority", "O-F1", {"dataset": "COCOseq"} | FORGET),
    (53.4, "memory_and_schedules", "PRS", "overall", "O-F1", {"memory_size": 3000}),
    (69.86, "svhn", "PRS", "overall", "accuracy", {"trained_tasks": 5}),
    (27.3, "imbalanced_test", "PRS", "minority", "mAP", {}),
    (74.6, "coco_precision_recall", "EWC", "minority", "O-P", {}),
    (-24.9, "rnn_attention", "CRS", "minority", "C-F1", FORGET),
    (25.9, "nus_schedules", "PRS", "overall", "mAP", {"schedule": "5,2,0,3,1,4"}),
    (15.1, "coco_progression", "ExStream", "overall", "mAP", FORGET),
]


@pytest.mark.parametrize(
    ("expected", "table", "method", "group", "metric", "filters"), PRINTED
)
def test_spot_checks(expected, table, method, group, metric, filters):
    assert cell(table, method, group, metric, **filters) == expected


def test_a_cell_printed_twice_agrees_unless_noted():
    cells = load()
    offline = cells["method"] == "Multitask"  # neither memory nor schedule
    cells.loc[offline, "memory_size"] = pd.NA
    cells.loc[offline, "schedule"] = ""
    values = cells.groupby(CELL, dropna=False)["value"].transform("nunique")
    noted = cells["note"].str.contains("elsewhere")
    pd.testing.assert_series_equal(values > 1, noted, check_names=False)


def ours(**columns):
    cell = {"stands_for": "COCOseq", "measure": "score", "group": "overall"}
    return pd.DataFrame(cell | {"metric": "mAP"} | columns)


def test_beside_joins_ours_and_theirs_in_each_setting_when_asked_to():
    rows = ours(method=["CRS", "PRS", "OCDM", "PRS"], group="minority", mean=range(4))
    rows.loc[3, ["stands_for", "measure"]] = ["NUS-WIDEseq", "forget"]
    expected = rows.assign(published=[26.9, 39.7, np.nan, 15.5])
    pd.testing.assert_frame_equal(merge_published(rows, "main"), expected)
    rows = ours(method="CRS", memory_size=[3000, 1000])
    result = merge_published(rows, "nus_memory", "coco_memory", also=["memory_size"])
    assert result["published"].tolist() == [51.1, 47.1]
    # a cell that is printed twice, with one value
    rows = ours(method="PRS", trained_tasks=[4, 1])
    theirs = merge_published(rows, "coco_progression", "nus_progression")["published"]
    assert theirs.tolist() == [55.3, 65.4]
