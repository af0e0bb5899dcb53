"""Scores on resampled test images: those of a test set made of them, with its spread."""

import numpy as np
import pytest

from prslib.metrics import best_thresholds, evaluate_draws, score, top_classes
from prslib.resamples import image_draws, resampled, resampled_mean
from prslib.statistics import interval

GROUPS = ("majority", "moderate", "minority")
DRAWS = [[1, 0, 2, 2, 1, 0], [2, 1, 3, 0, 0, 0]]


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
    draws = resampled(probabilities, labels, groups, weights).T
    absent = weights[:, 7] == 0
    assert 0 < absent.sum() < 20
    for values, times in zip(draws, weights.astype(int), strict=True):
        images = np.repeat(np.arange(40), times)
        by_hand = score(probabilities[images], labels[images], groups)
        np.testing.assert_allclose(values, [value for *_, value in by_hand])
    minority = draws[:, -1]
    assert (np.isnan(minority) == absent).all()


def test_the_draws_are_those_of_all_stored_results():
    assert image_draws(6, 2).tolist() == DRAWS


def test_all_draws_are_of_as_many_images_and_the_same_for_every_run():
    weights = image_draws(300, 50)
    assert (weights.sum(axis=1) == 300).all()
    assert weights.var() == pytest.approx(1, abs=0.05)
    image_draws.cache_clear()
    np.testing.assert_array_equal(image_draws(300, 50), weights)


def test_means_of_some_images_follow_the_resamples_of_all():
    values = np.array([3.0, 9.0])
    weights = image_draws(5, 30)[:, [4, 1]]
    means = resampled_mean(values, np.array([4, 1]), 5, 30)
    for mean, (first, second) in zip(means, weights, strict=True):
        if first + second == 0:
            assert np.isnan(mean)
        else:
            assert mean == pytest.approx((3 * first + 9 * second) / (first + second))
    assert np.isnan(means).any()


def test_further_decisions_are_scored_as_if_they_were_the_prediction(predictions):
    probabilities, labels, groups = predictions
    top = top_classes(probabilities)
    assert (top.sum(axis=1) == 3).all()
    kept = np.where(top, probabilities, np.inf).min(axis=1)
    assert (kept >= np.where(top, -np.inf, probabilities).max(axis=1)).all()
    names = [f"class {c}" for c in range(6)]
    decisions = [("C-F1", "top 3", top), ("O-F1", "top 3", top)]
    rows = evaluate_draws(probabilities, labels, names, groups, None, decisions)
    values = rows.set_index(["group", "metric"])["draws"]
    as_scores = {(g, m): v for g, m, v in score(top.astype(float), labels, groups)}
    for group in ("overall", "minority"):
        for metric in ("C-F1", "O-F1"):
            expected = as_scores[group, metric]
            assert values[group, f"{metric} (top 3)"][0] == pytest.approx(expected)


def test_top_classes_are_of_those_seen_and_the_first_of_equal_ones():
    probabilities = np.array([[0.9, 0.2, 0.2, 0.2, 0.8]])
    assert top_classes(probabilities).tolist() == [[True, True, False, False, True]]
    seen = np.array([False, True, True, True, True])
    assert top_classes(probabilities, seen).tolist() == [
        [False, True, True, False, True]
    ]
    assert top_classes(probabilities, np.arange(5) == 2).sum() == 1
    nothing = np.zeros((1, 3))
    assert top_classes(nothing, np.arange(3) == 2, 1).tolist() == [[False, False, True]]


def test_the_threshold_is_the_lowest_with_the_best_score():
    rng = np.random.default_rng(1)
    labels = rng.random((200, 4)) < 0.3
    probabilities = np.clip(0.2 * labels + 0.4 * rng.random(labels.shape), 0, 1)
    chosen = best_thresholds(probabilities, labels)
    for metric, number in (("C-F1", 2), ("O-F1", 5)):
        grid = [round(0.01 * k, 2) for k in range(1, 100)]
        scores = [
            score(probabilities > t, labels, ["majority"] * 4)[number][2] for t in grid
        ]
        assert chosen[metric] == grid[int(np.argmax(scores))] < 0.5


@pytest.mark.parametrize(
    ("positive", "negative", "threshold"),
    [(0.995, 0.985, 0.99), (0.31, 0.3, 0.3)],  # the highest; equal is not above
)
def test_the_threshold_tells_a_positive_from_a_negative(positive, negative, threshold):
    best = best_thresholds([[positive], [negative]], [[1], [0]])
    assert best == {"C-F1": threshold, "O-F1": threshold}


def test_intervals_hold_the_true_difference():
    """Two scorers on 200 test sets of 300 images: 95 % intervals of the images alone.

    Six frequent classes and two with about six positives each; `interval_coverage` in
    `studies/` has the same on real images.
    """
    rng = np.random.default_rng(2)
    shares = np.array([0.3, 0.2, 0.2, 0.1, 0.1, 0.1, 0.02, 0.02])
    groups = ["majority"] * 6 + ["minority"] * 2
    rows = [(g, m) for g in ("overall", *GROUPS) for m in ("C-F1", "O-F1", "mAP")]
    numbers = [7 * ("overall", *GROUPS).index(g) for g, _ in rows]
    offset = {"C-F1": 2, "O-F1": 5, "mAP": 6}
    numbers = [n + offset[m] for n, (_, m) in zip(numbers, rows, strict=True)]
    weights = image_draws(300, 100)

    def difference(count):
        labels = rng.random((count, 8)) < shares
        shared = rng.normal(size=labels.shape)
        return labels, [
            1 / (1 + np.exp(1 - gain * labels - shared - rng.normal(size=labels.shape)))
            for gain in (1.2, 2.0)
        ]

    def scores(probabilities, labels):
        values = [value for *_, value in score(probabilities, labels, groups)]
        return np.array(values)[numbers]

    shown = [row for row, (group, _) in enumerate(rows) if group != "moderate"]
    numbers = [numbers[row] for row in shown]  # no class is moderate
    gaps = []
    ends = []
    for _ in range(200):
        labels, pair = difference(300)
        one, two = (scores(p, labels) for p in pair)
        drawn = [resampled(p, labels, groups, weights)[numbers] for p in pair]
        gaps.append(two - one)
        error = np.nanstd(drawn[1] - drawn[0], axis=1, ddof=1)
        ends.append([gaps[-1] - 1.98 * error, gaps[-1] + 1.98 * error])
    low, high = np.array(ends).transpose(1, 0, 2)
    truth = np.mean(gaps, axis=0)
    covered = ((low <= truth) & (truth <= high)).mean(axis=0)
    assert covered.min() > 0.9
    assert covered.mean() < 0.99


def test_resamples_without_a_group_do_not_enter_the_interval():
    values = np.array([[0.0, -1, np.nan, 1], [1, 0, np.nan, 2], [2, 1, np.nan, 3]])
    with_gap = interval(values[:, None])
    without = interval(values[:, None, [0, 1, 3]])
    assert with_gap == without
    assert with_gap.images and not interval(values[:, None, :1]).images
