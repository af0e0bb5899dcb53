"""The scores of single tasks, the largest first."""

import pandas as pd
import pytest

from prslib.report.inter_task import task_scores
from prslib.report.tables import MAIN_METRICS


def scores(method, schedule="3,1"):
    rows = []
    for trained in (1, 2):
        for task, value in [("3", 0.5 - 0.2 * trained), ("1", 0.6)][:trained]:
            for metric in (*MAIN_METRICS, "C-P"):
                rows.append((trained, task, "overall", metric, value))
                rows.append((trained, task, "minority", metric, 0.0))
        rows.append((trained, "seen", "overall", "mAP", 0.9))
    cells = ["trained_tasks", "task", "group", "metric", "value"]
    frame = pd.DataFrame(rows, columns=cells)
    fields = {"dataset": "digits49tiny", "method": method, "schedule": schedule}
    return frame.assign(**fields, seed=0)


def test_scores_of_single_tasks_in_percent_the_largest_first():
    multitask = scores("Multitask", schedule="").query("trained_tasks == 2")
    multitask = multitask.assign(trained_tasks=1)  # is scored once
    rows = task_scores(pd.concat([scores("CRS"), scores("PRS"), multitask]))
    assert rows["label"].unique().tolist() == ["task 1 (304)", "task 3 (19)"]
    assert set(rows["metric"]) == set(MAIN_METRICS) and set(rows["group"]) == {
        "overall"
    }
    cells = rows[(rows["method"] == "PRS") & (rows["metric"] == "mAP")]
    small = cells[cells["task"] == "3"].set_index("trained_tasks")
    assert small["value"].to_dict() == pytest.approx({1: 30, 2: 10})
    assert small["last"].to_dict() == {1: False, 2: True}
    ends = rows[rows["last"]].groupby("method").size()
    assert ends.to_dict() == {"CRS": 6, "Multitask": 6, "PRS": 6}
