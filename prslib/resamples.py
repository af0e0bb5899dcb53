"""Score again on test sets that are drawn anew from the test images, for intervals.

One bootstrap serves every score, forgetting and difference of the report: as many test
images as there are, drawn with replacement. Runs on test sets of one size share the
draws, so that differences between them are paired.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from prslib.metrics import ratio, score_rows

# of the draws, the same for every run
SEED = 20200825


@lru_cache(maxsize=4)
def image_draws(images: int, draws: int) -> np.ndarray:
    """Draw test images with replacement: how often each is in each resample.

    Parameters
    ----------
    images : int
        Test images N, as many as each resample has.
    draws : int
        How many resamples.

    Returns
    -------
    ndarray of float, (draws, N)
        Whole numbers that sum to N in every row, read-only.

    Examples
    --------
    >>> image_draws(images=5, draws=3).sum(axis=1)
    array([5., 5., 5.])
    """
    drawn = np.random.default_rng(SEED).integers(images, size=(draws, images))
    counts = [np.bincount(row, minlength=images) for row in drawn]
    weights = np.array(counts, dtype=float).reshape(draws, images)
    weights.setflags(write=False)
    return weights


def resampled(
    probabilities: ArrayLike,
    labels: ArrayLike,
    class_group: Sequence[str],
    weights: np.ndarray,
) -> np.ndarray:
    """Score predictions as `prslib.metrics.score` does, on resamples of the images.

    Parameters
    ----------
    probabilities, labels, class_group
        As in `prslib.metrics.score`, with its errors.
    weights : ndarray of float, (draws, N)
        How often each image is in each resample, as `image_draws` counts.

    Returns
    -------
    ndarray of float, (rows of `prslib.metrics.score`, draws)
        In [0, 1]. Column b is `score` of resample b: a class without a positive in it
        is left out, and a group without such a class is NaN.

    Examples
    --------
    >>> truth = np.array([[1], [1], [0]])
    >>> twice = np.array([[2.0, 0.0, 1.0]])
    >>> resampled([[0.9], [0.2], [0.6]], truth, ["minority"], twice)[1]
    array([1.])
    """
    rows, _ = score_rows(probabilities, labels, class_group, weights)
    return np.array([values for *_, values in rows])


def resampled_mean(
    values: np.ndarray, rows: np.ndarray, images: int, draws: int
) -> np.ndarray:
    """Average values of some test images, ``rows`` (K,) of N, in each resample of all."""
    return weighted_mean(values, image_draws(images, draws)[:, rows])


def weighted_mean(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Average values (K,) under each of the weights (draws, K); NaN without any."""
    total = weights.sum(axis=1)
    return np.where(total > 0, ratio(weights @ values, total), np.nan)
