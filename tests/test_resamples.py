"""Scores under resamples: right weights, right spread, intervals that cover."""

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


def test_class_draws_with_equal_weights_are_the_scores(monkeypatch):
    rng = np.random.default_rng(2)
    probabilities = rng.random((200, 9)).round(1)
    probabilities[:, 0] *= 0.5  # a class that is never predicted
    labels = rng.random((200, 9)) < rng.uniform(0.02, 0.4, 9)
    labels[0] = True
    groups = [GROUPS[c % 3] for c in range(9)]
    names = [f"class {c}" for c in range(9)]
    rows = evaluate(probabilities, labels, names, groups)
    rows = rows.assign(trained_tasks=1, task="seen")
    monkeypatch.setattr("prslib.resamples.class_weights", lambda g, n: np.ones((n, 9)))
    draws = class_draws(rows, names, groups, labels.sum(axis=0), 2)
    both = draws.merge(rows, on=["trained_tasks", "task", "group", "metric"])
    assert len(both) == 28
    for row in both.itertuples():
        np.testing.assert_allclose(row.draws, row.value)


def test_intervals_cover_with_three_test_images_a_class():
    """Two methods on redrawn test sets: the true difference lies inside in 95 of 100."""
    rng, classes, sets = np.random.default_rng(0), 45, 80
    names = [f"class {c}" for c in range(classes)]
    groups = [GROUPS[c % 3] for c in range(classes)]
    labels = np.repeat(np.eye(classes, dtype=bool), 3, axis=0)
    quality = rng.normal(1.0, 0.7, (2, classes))
    gaps, spreads = [], []
    for _ in range(sets):
        noise = rng.normal(size=labels.shape)  # of the images: common to both methods
        values, drawn = [], []
        for level in quality:
            own_noise = 0.5 * rng.normal(size=labels.shape)
            logits = 2.5 * labels * level + noise + own_noise - 1.5
            probabilities = 1 / (1 + np.exp(-logits))
            rows = evaluate(probabilities, labels, names, groups)
            rows = rows.assign(trained_tasks=1, task="seen")
            values.append(rows["value"].to_numpy()[[2, 6]])  # overall C-F1 and mAP
            draws = class_draws(rows, names, groups, labels.sum(axis=0), 100)["draws"]
            drawn.append([draws[2], draws[6]])
        gaps.append(values[1] - values[0])
        spreads.append(np.std(np.subtract(drawn[1], drawn[0]), axis=1, ddof=1))
    off = np.abs(gaps - np.mean(gaps, axis=0))
    assert ((off < 1.96 * np.array(spreads)).mean(axis=0) > 0.92).all()
