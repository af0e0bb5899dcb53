"""Scores on resampled test images: those of a test set made of them, with its spread."""

import numpy as np
import pytest

from prslib.metrics import best_thresholds, evaluate_draws
from prslib.resamples import image_draws
from prslib.statistics import interval

DRAWS = [[1, 0, 2, 2, 1, 0], [2, 1, 3, 0, 0, 0]]


def score(probabilities, labels, groups, weights=None):
    """All scores of groups, (rows, draws)."""
    names = [str(c) for c in range(len(groups))]
    rows = evaluate_draws(probabilities, labels, names, groups, weights)
    return np.stack([draws for group, _, draws in rows if group not in names])


@pytest.fixture
def predictions():
    """Probabilities with ties and labels; the last class has one positive."""
    rng = np.random.default_rng(0)
    labels = rng.random((40, 6)) < 0.2
    labels[:, 5] = np.arange(40) == 7
    return rng.random((40, 6)).round(1), labels, ["majority"] * 5 + ["minority"]


def test_each_resample_is_scored_as_the_test_set_that_it_is(predictions):
    """Also where the one positive of a class, and with it a group, is left out."""
    probabilities, labels, groups = predictions
    weights = image_draws(40, 20)
    draws = score(probabilities, labels, groups, weights).T
    absent = weights[:, 7] == 0
    assert 0 < absent.sum() < 20
    for values, times in zip(draws, weights.astype(int), strict=True):
        images = np.repeat(np.arange(40), times)
        (by_hand,) = score(probabilities[images], labels[images], groups).T
        np.testing.assert_allclose(values, by_hand)
    assert (np.isnan(draws[:, -1]) == absent).all()


def test_draws_are_of_as_many_images_and_those_of_all_stored_results():
    assert image_draws(6, 2).tolist() == DRAWS
    weights = image_draws(300, 50)
    assert (weights.sum(axis=1) == 300).all()
    assert weights.var() == pytest.approx(1, abs=0.05)


def test_the_threshold_is_the_lowest_with_the_best_score():
    rng = np.random.default_rng(1)
    labels = rng.random((200, 4)) < 0.3
    probabilities = np.clip(0.2 * labels + 0.4 * rng.random(labels.shape), 0, 1)
    grid = np.arange(1, 100) / 100
    groups = ["majority"] * 4
    scores = np.hstack([score(probabilities > t, labels, groups) for t in grid])
    chosen = best_thresholds(probabilities, labels)
    for metric, row in (("C-F1", 2), ("O-F1", 5)):
        assert chosen[metric] == grid[scores[row].argmax()] < 0.5


@pytest.mark.parametrize(
    ("positive", "negative", "threshold"),
    [(0.995, 0.985, 0.99), (0.31, 0.3, 0.3)],  # the highest; equal is not above
)
def test_the_threshold_tells_a_positive_from_a_negative(positive, negative, threshold):
    best = best_thresholds([[positive], [negative]], [[1], [0]])
    assert best == {"C-F1": threshold, "O-F1": threshold}


def test_intervals_hold_the_true_difference():
    """Two scorers on 200 test sets of 300 images: 95 % intervals of the images alone.

    Six frequent classes and two with about six positives each.
    """
    rng = np.random.default_rng(2)
    shares = np.array([0.3, 0.2, 0.2, 0.1, 0.1, 0.1, 0.02, 0.02])
    groups = ["majority"] * 6 + ["minority"] * 2
    weights = np.vstack([np.ones((1, 300)), image_draws(300, 100)])
    # F1 and mAP of all groups but moderate, which no class is in
    shown = [row for row in range(28) if row // 7 != 2 and row % 7 in (2, 5, 6)]
    gaps = []
    errors = []
    for _ in range(200):
        labels = rng.random((300, 8)) < shares
        shared = 1 - rng.normal(size=labels.shape)
        scores = []
        for gain in (1.2, 2.0):
            logits = gain * labels - shared - rng.normal(size=labels.shape)
            scores.append(score(1 / (1 + np.exp(-logits)), labels, groups, weights))
        difference = (scores[1] - scores[0])[shown]  # (rows, 1 + draws)
        gaps.append(difference[:, 0])
        errors.append(np.nanstd(difference[:, 1:], axis=1, ddof=1))
    misses = np.abs(gaps - np.mean(gaps, axis=0))
    covered = (misses <= 1.98 * np.array(errors)).mean(axis=0)
    assert covered.min() > 0.9
    assert covered.mean() < 0.99


def test_resamples_without_a_group_do_not_enter_the_interval():
    values = np.array([[0.0, -1, np.nan, 1], [1, 0, np.nan, 2], [2, 1, np.nan, 3]])
    with_gap = interval(values[:, None])
    without = interval(values[:, None, [0, 1, 3]])
    assert with_gap == without
    assert with_gap.images and not interval(values[:, None, :1]).images
