import numpy as np
import pandas as pd
import pytest

from prslib.report.inter_task import task_scores
from prslib.report.tables import METRICS


def scores(method="CRS", seed=0, dataset="digits49tiny"):
    rows = []
    for trained in (1, 2):
        for task, value in [("3", 0.5 - 0.2 * trained), ("1", 0.6)][:trained]:
            for metric in (*METRICS, "C-P"):
                rows.append((trained, task, "overall", metric, value))
                rows.append((trained, task, "minority", metric, 0.0))
        rows.append((trained, "seen", "overall", "mAP", 0.9))
    cells = ["trained_tasks", "task", "group", "metric", "value"]
    frame = pd.DataFrame(rows, columns=cells)
    columns = {"dataset": dataset, "method": method, "rho": np.nan, "memory_size": 33}
    return frame.assign(**columns, schedule="3,1", seed=seed)


def test_scores_of_single_tasks_in_percent_the_largest_first():
    multitask = scores("Multitask").query("trained_tasks == 2").assign(schedule="")
    multitask = multitask.assign(trained_tasks=1)  # is scored once
    rows = task_scores(pd.concat([scores(), scores("PRS"), multitask]))
    assert rows["task"].unique().tolist() == ["1", "3"]
    assert set(rows["metric"]) == set(METRICS)
    assert set(rows["group"]) == {"overall"}
    assert set(rows.loc[rows["task"] == "3", "label"]) == {"task 3 (19)"}
    shown = rows[(rows["method"] == "PRS") & (rows["metric"] == "mAP")]
    shown = shown[shown["task"] == "3"]
    by_turn = shown.set_index("trained_tasks")
    assert by_turn["value"].to_dict() == pytest.approx({1: 30, 2: 10})
    assert by_turn["last"].to_dict() == {1: False, 2: True}
    assert rows["published"].isna().all()
    ends = rows[rows["last"]].groupby("method").size()
    assert ends.to_dict() == {"CRS": 6, "Multitask": 6, "PRS": 6}
