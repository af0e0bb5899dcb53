import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from sklearn.metrics import average_precision_score, precision_recall_fscore_support

from prslib.metrics import (
    accuracy,
    best_thresholds,
    class_scores,
    evaluate,
    forgetting,
    score,
)

GROUPS = ("majority", "moderate", "minority")


def as_dict(rows):
    return {(group, metric): value for group, metric, value in rows}


def random_case(seed, levels=None):
    rng = np.random.default_rng(seed)
    probabilities = rng.random((200, 9))
    if levels:
        probabilities = np.round(probabilities * levels) / levels
    labels = rng.random((200, 9)) < rng.uniform(0.02, 0.4, 9)
    labels[0] = True
    return probabilities, labels, [GROUPS[c % 3] for c in range(9)]


@pytest.mark.parametrize("levels", [None, 4, 20])
@pytest.mark.parametrize("seed", range(3))
def test_scores_equal_scikit_learn(seed, levels):
    probabilities, labels, class_group = random_case(seed, levels=levels)
    got = as_dict(score(probabilities, labels, class_group))
    per_class = class_scores(probabilities, labels)
    predicted = probabilities > 0.5
    expected = precision_recall_fscore_support(
        labels, predicted, average=None, zero_division=0
    )
    for metric, values in zip(("P", "R", "F1"), expected, strict=False):
        np.testing.assert_allclose(per_class[metric], values)
    expected = average_precision_score(labels, probabilities, average=None)
    np.testing.assert_allclose(per_class["AP"], expected)
    for group in ("overall", *GROUPS):
        mask = np.array([group in ("overall", name) for name in class_group])
        truth, guess = labels[:, mask], predicted[:, mask]
        for average, letter in (("macro", "C"), ("micro", "O")):
            precision, recall, f1, _ = precision_recall_fscore_support(
                truth, guess, average=average, zero_division=0
            )
            if letter == "C":  # the harmonic mean of the means, not the mean of F1
                f1 = 2 * precision * recall / (precision + recall)
            ours = [got[group, f"{letter}-{metric}"] for metric in ("P", "R", "F1")]
            assert ours == pytest.approx([precision, recall, f1])
        area = average_precision_score(truth, probabilities[:, mask], average="macro")
        assert got[group, "mAP"] == pytest.approx(area)


@pytest.mark.parametrize(
    ("probabilities", "labels", "expected"),
    [
        # one half is no prediction
        ([[0.5], [np.nextafter(0.5, 1)]], [[1], [1]], {"O-R": 0.5}),
        # a class that is never predicted has precision 0
        ([[0.9, 0.1], [0.1, 0.2]], [[1, 0], [0, 1]], {"C-P": 0.5, "O-P": 1}),
        # a class without positives is left out, its false alarms included
        ([[0.9, 0.9], [0.1, 0.9]], [[1, 0], [0, 0]], {"C-P": 1, "O-P": 1, "mAP": 1}),
    ],
)
def test_what_the_paper_leaves_open(probabilities, labels, expected):
    ours = as_dict(score(probabilities, labels, ["majority"] * len(labels[0])))
    assert {name: ours["overall", name] for name in expected} == expected


def test_a_group_with_no_class_present_is_nan():
    assert np.isnan([value for *_, value in score([[0.9]], [[0]], ["majority"])]).all()
    # moderate has no class at all, minority has one without a positive
    got = as_dict(score([[0.9, 0.9]], [[1, 0]], ["majority", "minority"]))
    for group in ("moderate", "minority"):
        assert np.isnan([got[group, metric] for metric in ("C-P", "O-F1", "mAP")]).all()
    assert got["majority", "mAP"] == 1
    per_class = class_scores([[0.9, 0.9]], [[1, 0]])
    assert all(np.isnan(values[1]) and values[0] == 1 for values in per_class.values())


def test_labels_that_are_not_known_count_nowhere():
    probabilities, labels, class_group = random_case(1)
    partial = np.where(
        np.random.default_rng(2).random(labels.shape) < 0.3, np.nan, labels
    )
    values = class_scores(probabilities, partial)
    for c in range(labels.shape[1]):  # each class as if it had the known images alone
        is_known = ~np.isnan(partial[:, [c]])
        alone = class_scores(
            probabilities[:, [c]][is_known, None], labels[:, [c]][is_known, None]
        )
        assert {name: values[name][c] for name in values} == {
            name: pytest.approx(alone[name][0], nan_ok=True) for name in alone
        }
    ours = as_dict(score(probabilities, partial, class_group))
    is_known = ~np.isnan(partial)
    hits = ((probabilities > 0.5) & is_known & (labels == 1)).sum(0)
    counted = ((probabilities > 0.5) & is_known).sum(0)
    used = ((labels == 1) & is_known).any(0)
    assert ours["overall", "O-P"] == hits[used].sum() / counted[used].sum()
    names = [f"class {c}" for c in range(labels.shape[1])]
    frame = evaluate(probabilities, partial, names, class_group)
    assert frame["value"].iloc[0] == ours["overall", "C-P"]
    for coded in (np.nan_to_num(partial, nan=-1).astype(int), pd.DataFrame(partial)):
        assert as_dict(score(probabilities, coded, class_group)) == ours
    with pytest.raises(ValueError, match="one label an image"):
        accuracy([[0.2, 0.9]], [[1, np.nan]])


def test_minus_one_without_zero_may_mean_no():
    with pytest.raises(ValueError, match="-1 without 0; write labels == 1 if -1 means"):
        class_scores([[0.9, 0.2]], [[1, -1]])
    precisions = [
        class_scores([[0.9, 0.8], [0.95, 0.1]], [[1, 1], [value, 0]])["P"].tolist()
        for value in (0, -1)
    ]
    assert precisions == [[0.5, 1], [1, 1]]


@pytest.mark.parametrize(
    "of", [torch.tensor, sparse.csr_array, pd.DataFrame, np.ma.array]
)
def test_scores_take_what_arrays_come_in(of):
    probabilities, labels, _ = random_case(0)
    ours = class_scores(of(probabilities), of(labels.astype(int)))
    for name, values in class_scores(probabilities, labels).items():
        np.testing.assert_array_equal(ours[name], values)


def test_evaluate_joins_groups_and_classes_in_order():
    probabilities, labels, class_group = random_case(0)
    names = [f"class {c}" for c in range(9)]
    frame = evaluate(probabilities, labels, names, class_group)
    rows = list(frame.itertuples(index=False, name=None))
    assert rows[:28] == score(probabilities, labels, class_group)
    per_class = class_scores(probabilities, labels)
    assert rows[28:] == [
        (n, m, per_class[m][c]) for c, n in enumerate(names) for m in per_class
    ]


@pytest.mark.parametrize(
    ("probabilities", "labels", "names", "message"),
    [
        ([[0.1, 0.2]], [[1]], ["a"], r"one shape .* \(1, 2\) and \(1, 1\)"),
        (np.empty((0, 1)), np.empty((0, 1)), ["a"], "neither zero"),
        ([[1.2]], [[1]], ["a"], r"in \[0, 1\], got 1.2; apply the sigmoid"),
        ([[-0.1]], [[1]], ["a"], r"in \[0, 1\], got -0.1; apply the sigmoid"),
        ([[np.nan]], [[1]], ["a"], "got NaN; has the network diverged"),
        (np.ma.masked_less([[0.2]], 1), [[1]], ["a"], "masked ones"),
        ([[0.2]], [[255]], ["a"], "labels of 0 and 1, got 255; pass multi-hot rows"),
        ([[0.2]], [[-1]], ["a"], "got -1 without 0; .* NaN for unknown labels"),
        ([[0.2]], [["yes"]], ["a"], "labels: expected numbers, got <U3"),
        ([[0.2]], [[1]], ["overall"], "none of them a group's"),
        ([[0.2, 0.3]], [[1, 0]], ["a", "a"], "2 distinct class names"),
        ([[0.2, 0.3]], [[1, 0]], ["a", "b"], "a group for 2 classes, got 1"),
    ],
)
def test_bad_input_is_refused(probabilities, labels, names, message):
    with pytest.raises(ValueError, match=message):
        evaluate(probabilities, labels, names, ["majority"])
    with pytest.raises(ValueError, match="unknown group 'rare'; known groups: "):
        score([[0.2]], [[1]], ["rare"])
    with pytest.raises(ValueError, match="expected an image with a label, got none"):
        best_thresholds([[0.2]], [[0]])


def test_frames_are_never_joined_by_place_where_their_names_say_otherwise():
    probabilities = pd.DataFrame([[0.9, 0.2], [0.6, 0.7]], columns=["cat", "dog"])
    labels = pd.DataFrame([[1, 0], [1, 1]], columns=["cat", "dog"])
    right = class_scores(probabilities, labels)["P"].tolist()
    for other in (labels[["dog", "cat"]], labels[::-1]):
        with pytest.raises(ValueError, match=r"one order of the (index|columns)"):
            class_scores(probabilities, other)
        again = other.reindex_like(probabilities)
        assert class_scores(probabilities, again)["P"].tolist() == right
    # other names say nothing about the order
    for names in (["a", "b"], [0, 1]):
        renamed = labels.set_axis(names, axis=1)
        assert class_scores(probabilities, renamed)["P"].tolist() == right


NAN = float("nan")


def frame(cells, **run):
    """Build a scores frame from {(trained_tasks, task): value}."""
    rows = [(*cell, value) for cell, value in cells.items()]
    columns = {"method": "PRS", "rho": 0.0, "schedule": "2,0,1", "seed": 0}
    columns |= {"group": "overall", "metric": "mAP"} | run
    scores = pd.DataFrame(rows, columns=["trained_tasks", "task", "value"])
    return scores.assign(**columns)


def three_tasks(first, second, last=0.5):
    """Give task "2" the values of `first` after 1, 2, 3 tasks, task "0" those of `second`."""
    cells = {(i + 1, "2"): value for i, value in enumerate(first)}
    cells |= {(i + 2, "0"): value for i, value in enumerate(second)}
    return cells | {(3, "1"): last}


def only(result):
    (value,) = result["value"]
    return value


def test_forgetting_of_a_worked_example():
    # task 2: best 0.8, end 0.4: 1/2; task 0: 0.5 to 0.6: -1/5; the last task: none
    cells = three_tasks([0.6, 0.8, 0.4], [0.5, 0.6])
    cells |= {(k, "seen"): 0.9 for k in (1, 2, 3)}  # does not enter
    # nor what comes before the training
    cells |= {(1, "0"): 0.8, (1, "1"): 0.9, (2, "1"): 0.9}
    assert only(forgetting(frame(cells))) == pytest.approx((0.5 - 0.2) / 2)
    scores = frame(cells)
    scores["draws"] = [np.array([value, value / 2, 0.3]) for value in scores["value"]]
    (row,) = forgetting(scores, normalised=False).itertuples()
    assert row.value == pytest.approx((0.4 - 0.1) / 2)
    np.testing.assert_allclose(row.draws, [0.15, 0.075, 0], atol=1e-12)


@pytest.mark.parametrize(
    ("cells", "expected", "unlearned"),
    [
        (three_tasks([0, 0, 0.3], [0.5, 0.2]), 0.6, 0.5),  # learned by others' training
        (three_tasks([0, 0, 0], [0, 0]), NAN, 1),
        (three_tasks([0.5, 0.5, 0], [0.5, 0]), 1, 0),
        # the group is absent from one task, and from every earlier one
        (three_tasks([NAN, NAN, NAN], [0.5, 0.2]), 0.6, 0),
        (three_tasks([NAN] * 3, [NAN] * 2), NAN, NAN),
        # a run that is evaluated once
        ({(3, task): 0.5 for task in ("seen", "2", "0", "1")}, NAN, NAN),
    ],
)
def test_forgetting_at_the_edges(cells, expected, unlearned):
    values = forgetting(frame(cells))[["value", "unlearned"]].to_numpy()
    np.testing.assert_allclose(values, [[expected, unlearned]])


def test_runs_groups_and_metrics_are_kept_apart_and_nan_rho_keeps_its_rows():
    cells = three_tasks([0.8, 0.8, 0.4], [0.8, 0.4])
    other = three_tasks([0.8, 0.8, 0.2], [0.8, 0.2])
    frames = [frame(other, method="CRS", rho=NAN, seed=seed) for seed in (0, 1)]
    frames += [frame(cells), frame(other, group="minority")]
    frames += [frame(cells, metric="O-F1")]
    result = forgetting(pd.concat(frames).sample(frac=1, random_state=0))
    result = result.sort_values(["method", "seed", "group", "metric"])
    assert result["value"].tolist() == pytest.approx([0.75, 0.75, 0.75, 0.5, 0.5])
    assert result["rho"].isna().tolist() == [True, True, False, False, False]


def test_bad_frames_are_refused():
    scores = frame(three_tasks([0.6, 0.8, 0.4], [0.5, 0.6]))
    with pytest.raises(ValueError, match="add a column that tells the runs apart"):
        forgetting(pd.concat([scores, scores]))
    with pytest.raises(ValueError, match="a task of the schedule '2,0,1', got '7'"):
        forgetting(scores.replace("0", "7"))
    with pytest.raises(ValueError, match=r"columns schedule, .*, got none called task"):
        forgetting(scores.drop(columns="task"))
