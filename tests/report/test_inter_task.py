import numpy as np
import pandas as pd
import pytest

from prslib import report
from prslib.datasets import load_dataset
from prslib.report import inter_task


def scores(method="CRS", seed=0, dataset="digits49tiny"):
    rows = []
    for trained in (1, 2):
        for task, value in [("3", 0.5 - 0.2 * trained), ("1", 0.6)][:trained]:
            for metric in (*report.METRICS, "C-P"):
                rows.append((trained, task, "overall", metric, value))
                rows.append((trained, task, "minority", metric, 0.0))
        rows.append((trained, "seen", "overall", "mAP", 0.9))
    frame = pd.DataFrame(rows, columns=["trained_tasks", "task", "group", "metric", "value"])
    columns = {"dataset": dataset, "method": method, "rho": np.nan, "memory_size": 33}
    return frame.assign(**columns, schedule="3,1", seed=seed)


def test_sizes_are_those_of_the_stream():
    dataset = load_dataset("digits49tiny", images=False)
    sizes = inter_task.task_sizes(dataset)
    assert sizes.sum() == len(dataset.train)
    assert sizes[3] == (dataset.train.task == 3).sum()
    assert sizes.idxmin() == 3
    assert sizes.idxmax() == 1


def test_scores_of_single_tasks_in_percent_the_largest_first():
    rows = inter_task.task_scores(pd.concat([scores(), scores("PRS")]))
    assert rows["task"].unique().tolist() == ["1", "3"]
    assert set(rows["metric"]) == set(report.METRICS)
    assert set(rows["group"]) == {"overall"}
    least = inter_task.smallest(rows)
    assert set(least["label"]) == {"task 3 (19)"}
    shown = least[(least["method"] == "PRS") & (least["metric"] == "mAP")]
    by_turn = shown.set_index("trained_tasks")
    assert by_turn["value"].to_dict() == pytest.approx({1: 30, 2: 10})
    assert by_turn["last"].to_dict() == {1: False, 2: True}
    assert rows["published"].isna().all()


def test_the_end_is_each_runs_own():
    """A method that sees all tasks at once is scored once."""
    multitask = scores("Multitask").query("trained_tasks == 2").assign(schedule="")
    rows = inter_task.task_scores(pd.concat([scores(), multitask], ignore_index=True))
    assert rows[rows["last"]].groupby("method").size().to_dict() == {"CRS": 6, "Multitask": 6}


def test_contrasts_name_the_task():
    rows = inter_task.task_scores(pd.concat([scores(), scores("PRS")]))
    ends = inter_task.smallest(rows[rows["last"]])
    gaps = report.contrasts(ends, "PRS", "CRS", [("overall", "mAP")], by=["label"])
    assert gaps["sentence"].iloc[0].startswith("digits49tiny, task 3 (19), overall mAP: PRS is")
