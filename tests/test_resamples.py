"""Scores under resamples: right weights and the right spread."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, precision_recall_fscore_support

from prslib.metrics import evaluate, score
from prslib.resamples import class_draws, class_weights, image_weights, resampled

GROUPS = ("majority", "moderate", "minority")


def test_weighted_scores_are_those_of_scikit_learn_and_plain_with_equal_weights():
    rng = np.random.default_rng(0)
    labels = rng.random((30, 5)) < 0.3
    probabilities = rng.random((30, 5)).round(1)  # with ties
    groups, weights = ["majority"] * 2 + ["moderate"] * 3, image_weights(30, 4)
    plain = [value for _, _, value in score(probabilities, labels, groups)]
    equal = resampled(probabilities, labels, groups, np.full((1, 30), 0.2))[:, 0]
    np.testing.assert_allclose(equal, plain, atol=1e-12)
    draws = resampled(probabilities, labels, groups, weights).T
    for values, weight in zip(draws, weights, strict=True):
        kinds = {"average": "micro", "sample_weight": weight}
        pooled = precision_recall_fscore_support(labels, probabilities > 0.5, **kinds)
        np.testing.assert_allclose(values[3:6], pooled[:3])
        kinds["average"] = "macro"
        area = average_precision_score(labels, probabilities, **kinds)
        np.testing.assert_allclose(values[6], area)
        assert np.isnan(values[-7:]).all()  # no minority


def test_class_weights_give_a_mean_its_variance():
    """Of 3 and of 12 values: s^2 / n, where a plain Bayesian bootstrap has half for 3."""
    rng = np.random.default_rng(1)
    for count in (3, 12):
        values = rng.normal(size=count)
        weights = class_weights(["minority"] * count, 20_000)
        np.testing.assert_allclose(weights.mean(axis=1), 1)
        drawn = (weights @ values / count).var()
        assert drawn == pytest.approx(values.var(ddof=1) / count, rel=0.05)


def test_class_draws_are_the_scores_of_classes_that_are_repeated(monkeypatch):
    rng = np.random.default_rng(2)
    labels = rng.random((200, 9)) < rng.uniform(0.02, 0.4, 9)
    labels[0] = True
    probabilities = rng.random((200, 9)).round(1)
    probabilities[:, 0] *= 0.5  # a class that is never predicted
    probabilities[labels[:, 8], 8] = 0.1  # one that is never right
    groups = [GROUPS[c % 3] for c in range(9)]
    names = [f"class {c}" for c in range(9)]
    rows = evaluate(probabilities, labels, names, groups)
    rows = rows.assign(trained_tasks=1, task="seen")
    # the mean of every group is 1, and so is what the false alarms of class 8 count
    weights = np.array([[1] * 9, [2, 0, 0, 1, 0, 2, 0, 3, 1]])
    monkeypatch.setattr("prslib.resamples.class_weights", lambda *_: weights)
    draws = class_draws(rows, names, groups, labels.sum(axis=0), 2)
    for number, times in enumerate(weights):
        classes = np.repeat(np.arange(9), times)
        of_groups = [groups[c] for c in classes]
        expected = score(probabilities[:, classes], labels[:, classes], of_groups)
        ours = [values[number] for values in draws["draws"]]
        np.testing.assert_allclose(ours, [value for *_, value in expected])
