"""The scores of single tasks, the largest first."""

import pytest
from cells import functions_of
from fake_runs import fake_run

from prslib import configs
from prslib.report.tables import MAIN_METRICS, scores_of

inter_task = functions_of("inter_task")


def test_scores_of_single_tasks_in_percent_the_largest_first():
    asked = configs(dataset="digits49tiny", method=["CRS", "Multitask"])
    runs = [fake_run(one, lambda cells: 0.1 * cells["trained_tasks"]) for one in asked]
    rows = inter_task.task_scores(scores_of(runs))
    labels = rows["label"].unique().tolist()
    assert (labels[0], labels[-1]) == ("task 1 (304)", "task 3 (19)")
    assert set(rows["metric"]) == set(MAIN_METRICS)
    assert set(rows["group"]) == {"overall"}
    smallest = inter_task.pick_smallest(rows)
    assert set(smallest["label"]) == {"task 3 (19)"}
    assert smallest["value"].tolist() == pytest.approx([60] * 6)
    assert rows.groupby("method").size().to_dict() == {"CRS": 18, "Multitask": 18}
