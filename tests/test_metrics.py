import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import average_precision_score, precision_recall_fscore_support

from prslib.metrics import best_thresholds, evaluate, forgetting

GROUPS = ("majority", "moderate", "minority")
NAN = float("nan")


def scores(probabilities, labels, class_group=None):
    """Scores by group or class, and metric; classes are "0", "1", ..."""
    count = len(labels[0])
    class_group = class_group or ["majority"] * count
    frame = evaluate(probabilities, labels, [str(c) for c in range(count)], class_group)
    return frame.set_index(["group", "metric"])["value"]


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
    ours = scores(probabilities, labels, class_group)
    predicted = probabilities > 0.5
    theirs = precision_recall_fscore_support(
        labels, predicted, average=None, zero_division=0
    )
    by_class = ours.unstack().loc[[str(c) for c in range(9)]]
    np.testing.assert_allclose(by_class[["P", "R", "F1"]], np.transpose(theirs[:3]))
    areas = average_precision_score(labels, probabilities, average=None)
    np.testing.assert_allclose(by_class["AP"], areas)
    for group in ("overall", *GROUPS):
        mask = np.array([group in ("overall", name) for name in class_group])
        truth, guess = labels[:, mask], predicted[:, mask]
        for average, letter in (("macro", "C"), ("micro", "O")):
            precision, recall, f1, _ = precision_recall_fscore_support(
                truth, guess, average=average, zero_division=0
            )
            if letter == "C":  # the harmonic mean of the means, not the mean of F1
                f1 = 2 * precision * recall / (precision + recall)
            values = [ours[group, f"{letter}-{metric}"] for metric in ("P", "R", "F1")]
            assert values == pytest.approx([precision, recall, f1])
        area = average_precision_score(truth, probabilities[:, mask], average="macro")
        assert ours[group, "mAP"] == pytest.approx(area)


@pytest.mark.parametrize(
    ("probabilities", "labels", "expected"),
    [
        # one half is no prediction
        ([[0.5], [np.nextafter(0.5, 1)]], [[1], [1]], {"O-R": 0.5}),
        # a class that is never predicted has precision 0
        ([[0.9, 0.1], [0.1, 0.2]], [[1, 0], [0, 1]], {"C-P": 0.5, "O-P": 1}),
        # a class without positives is left out, its false alarms included
        ([[0.9, 0.9], [0.1, 0.9]], [[1, 0], [0, 0]], {"C-P": 1, "O-P": 1, "mAP": 1}),
        ([[0.9]], [[0]], {"C-P": NAN, "O-F1": NAN, "mAP": NAN}),
    ],
)
def test_what_the_paper_leaves_open(probabilities, labels, expected):
    ours = scores(probabilities, labels)["overall"]
    assert ours[[*expected]].to_dict() == pytest.approx(expected, nan_ok=True)


def test_labels_that_are_not_known_count_nowhere():
    probabilities, labels, class_group = random_case(1)
    is_known = np.random.default_rng(2).random(labels.shape) > 0.3
    partial = np.where(is_known, labels, np.nan)
    ours = scores(probabilities, partial, class_group)
    for c in range(9):  # each class as if it had the known images alone
        rows = is_known[:, c]
        alone = scores(probabilities[rows, c, None], labels[rows, c, None])
        assert ours[str(c)].to_dict() == pytest.approx(alone["0"].to_dict())
    hits = ((probabilities > 0.5) & is_known & labels).sum()
    counted = ((probabilities > 0.5) & is_known).sum()
    assert ours["overall", "O-P"] == hits / counted


@pytest.mark.parametrize(
    ("probabilities", "labels", "names", "message"),
    [
        ([[0.1, 0.2]], [[1]], ["a"], r"one shape .* \(1, 2\) and \(1, 1\)"),
        ([[1.2]], [[1]], ["a"], r"in \[0, 1\], got 1.2"),
        ([[0.2]], [[255]], ["a"], "unknown labels, got 255"),
        ([[0.2]], [[1]], ["overall"], "none of them a group's"),
        ([[0.2, 0.3]], [[1, 0]], ["a", "a"], "2 distinct class names"),
    ],
)
def test_bad_input_is_refused(probabilities, labels, names, message):
    with pytest.raises(ValueError, match=message):
        evaluate(probabilities, labels, names, ["majority"])


def test_other_bad_input_is_refused():
    with pytest.raises(ValueError, match="unknown group 'rare'; known: "):
        evaluate([[0.2]], [[1]], ["a"], ["rare"])
    with pytest.raises(ValueError, match="expected an image with a label, got none"):
        best_thresholds([[0.2]], [[0]])
    probabilities = pd.DataFrame([[0.9, 0.2], [0.6, 0.7]], columns=["cat", "dog"])
    for other in (probabilities[["dog", "cat"]], probabilities[::-1]):
        with pytest.raises(ValueError, match=r"same order of the (index|columns)"):
            evaluate(probabilities, other > 0.5, ["cat", "dog"], ["majority"] * 2)
    scores = pd.concat([frame({(1, "2"): 0.5})] * 2)
    with pytest.raises(ValueError, match=r"one row per run, .* add a column"):
        forgetting(scores)


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


def test_forgetting_of_a_worked_example():
    # task 2: best 0.8, end 0.4: 1/2; task 0: 0.5 to 0.6: -1/5; the last task: none
    cells = three_tasks([0.6, 0.8, 0.4], [0.5, 0.6])
    cells |= {(k, "seen"): 0.9 for k in (1, 2, 3)}  # does not enter
    # nor what comes before the training
    cells |= {(1, "0"): 0.8, (1, "1"): 0.9, (2, "1"): 0.9}
    (value,) = forgetting(frame(cells))["value"]
    assert value == pytest.approx((0.5 - 0.2) / 2)
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
    nothing = forgetting(pd.concat(frames)[:0])
    assert nothing.empty and set(nothing) == set(result)
