"""The paper's numbers: `tests/report/test_sums.py` guards their bytes."""

import numpy as np
import pandas as pd

from prslib.published import load, merge_published

CELL = ["dataset", "method", "architecture", "memory_size", "schedule", "epochs"]
CELL += ["test_set", "trained_tasks", "group", "measure", "metric"]


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
