import numpy as np
import pandas as pd
import pytest

from prslib.metrics import forgetting

NAN = float("nan")


def frame(cells, **run):
    """Build a scores frame from {(trained_tasks, task): value}."""
    run = {"method": "PRS", "rho": 0.0, "schedule": "2,0,1", "seed": 0} | run
    rows = [
        {**run, "trained_tasks": trained, "task": task, "group": "overall", "metric": "mAP"}
        | {"value": value}
        for (trained, task), value in cells.items()
    ]
    return pd.DataFrame(rows)


def three_tasks(first, second, last=0.5):
    """Give task "2" the values of `first` after 1, 2, 3 tasks, task "0" those of `second`."""
    cells = {(i + 1, "2"): value for i, value in enumerate(first)}
    cells |= {(i + 2, "0"): value for i, value in enumerate(second)}
    return cells | {(3, "1"): last}


def only(result):
    (value,) = result["value"]
    return value


def test_worked_example():
    # task 2: best 0.8, end 0.4: 1/2; task 0: 0.5 to 0.6: -1/5; the last task does not count
    cells = three_tasks([0.6, 0.8, 0.4], [0.5, 0.6])
    assert only(forgetting(frame(cells))) == pytest.approx((0.5 - 0.2) / 2)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ([0, 0, 0], [0.5, 0.5], (1 + 0) / 2),  # best and end both 0
        ([0, 0, 0.3], [0.5, 0.25], (-0.3 + 0.5) / 2),  # only the best is 0
        ([NAN, NAN, NAN], [0.5, 0.2], 0.6),  # the group is absent from one task
        ([0.5, 0.5, 0], [0.5, 0], 1.0),
    ],
)
def test_edge_rules(first, second, expected):
    assert only(forgetting(frame(three_tasks(first, second)))) == pytest.approx(expected)


def test_a_group_absent_from_every_earlier_task_is_nan():
    assert np.isnan(only(forgetting(frame(three_tasks([NAN] * 3, [NAN] * 2)))))


def test_values_before_a_task_was_trained_and_at_the_end_are_not_the_best():
    cells = three_tasks([0.5, 0.5, 0.9], [0.4, 0.2])
    cells |= {(1, "0"): 0.8, (1, "1"): 0.9, (2, "1"): 0.9}
    assert only(forgetting(frame(cells))) == pytest.approx((-0.8 + 0.5) / 2)


def test_the_joined_test_sets_do_not_enter():
    cells = three_tasks([0.6, 0.8, 0.4], [0.5, 0.6])
    joined = {(k, "seen"): 0.9 for k in (1, 2, 3)}
    assert only(forgetting(frame(cells | joined))) == pytest.approx(0.15)


def test_runs_groups_and_metrics_are_kept_apart_and_nan_rho_keeps_its_rows():
    cells = three_tasks([0.8, 0.8, 0.4], [0.8, 0.4])
    other = three_tasks([0.8, 0.8, 0.2], [0.8, 0.2])
    scores = pd.concat(
        [
            frame(cells, method="PRS", rho=0.0),
            frame(other, method="CRS", rho=NAN),
            frame(other, method="CRS", rho=NAN, seed=1),
            frame(other, rho=0.0).assign(group="minority"),
            frame(cells, rho=0.0).assign(metric="O-F1"),
        ]
    )
    result = forgetting(scores.sample(frac=1, random_state=0))
    assert list(result.columns) == [
        *("method", "rho", "schedule", "seed", "group", "metric", "value")
    ]
    values = result.set_index(["method", "seed", "group", "metric"])["value"].to_dict()
    assert values == pytest.approx(
        {
            ("PRS", 0, "overall", "mAP"): 0.5,
            ("CRS", 0, "overall", "mAP"): 0.75,
            ("CRS", 1, "overall", "mAP"): 0.75,
            ("PRS", 0, "minority", "mAP"): 0.75,
            ("PRS", 0, "overall", "O-F1"): 0.5,
        }
    )
    assert result.loc[result["method"] == "CRS", "rho"].isna().all()


def test_the_absolute_measure_is_a_difference():
    """Chaudhry et al.: the best before the end minus the end, in the unit of the values."""
    first, second = {1: 0.5, 2: 0.8, 3: 0.2}, {2: 0.0, 3: 0.1}
    cells = three_tasks(list(first.values()), list(second.values()))
    assert only(forgetting(frame(cells), normalised=False)) == pytest.approx((0.6 - 0.1) / 2)


def test_a_run_evaluated_once_has_no_forgetting():
    cells = {(3, task): 0.5 for task in ("seen", "2", "0", "1")}
    assert np.isnan(only(forgetting(frame(cells, method="Multitask"))))


def test_it_agrees_with_a_plain_loop():
    rng = np.random.default_rng(0)
    schedule = ["3", "1", "0", "2"]
    table = np.round(rng.random((4, 4)), 1)  # trained tasks x position
    cells = {(k + 1, schedule[j]): table[k, j] for k in range(4) for j in range(k + 1)}
    terms = []
    for j in range(3):
        best, end = max(table[k, j] for k in range(j, 3)), table[3, j]
        terms.append((best - end) / best if best else (-end if end else 1))
    result = forgetting(frame(cells, schedule="3,1,0,2"))
    assert only(result) == pytest.approx(np.mean(terms))


def test_the_frame_is_left_as_it_was():
    scores = frame(three_tasks([0.6, 0.8, 0.4], [0.5, 0.6]))
    before = scores.copy()
    forgetting(scores)
    pd.testing.assert_frame_equal(scores, before)


def test_bad_frames_are_refused():
    scores = frame(three_tasks([0.6, 0.8, 0.4], [0.5, 0.6]))
    with pytest.raises(ValueError, match=r"\['value'\] missing"):
        forgetting(scores.drop(columns="value"))
    with pytest.raises(ValueError, match="'seen' alone"):
        forgetting(scores.assign(task="seen"))
    with pytest.raises(ValueError, match="add a column that tells the runs apart"):
        forgetting(pd.concat([scores, scores]))
    with pytest.raises(ValueError, match="expected a task of the schedule '2,0,1', got '7'"):
        forgetting(scores.replace({"task": {"0": "7"}}))
    with pytest.raises(ValueError, match="every task of the schedule"):
        forgetting(scores[scores["task"] != "0"])
    for trained in (2, 3):
        gap = scores[~((scores["task"] == "0") & (scores["trained_tasks"] == trained))]
        with pytest.raises(ValueError, match="evaluate all tasks seen so far"):
            forgetting(gap)
