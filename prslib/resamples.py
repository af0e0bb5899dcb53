"""Draw bootstrap resamples of test sets, for intervals.

All scores, differences and forgetting in the report use the same bootstrap: of the N
images in a test set, N are drawn with replacement. If images belong to groups, such as
an icon and its outline, whole groups are drawn instead. Runs on the same test set share
the draws, so that differences between these runs are paired.
"""

from functools import lru_cache

import numpy as np

from prslib.datasets import Split
from prslib.metrics import ratio

# seed of the draws, the same for every run
SEED = 20200825


@lru_cache(maxsize=4)
def image_draws(images: int, draws: int) -> np.ndarray:
    """Draw test images with replacement; count how often each image is drawn.

    Parameters
    ----------
    images : int
        Number N of test images, which is also the number of images in each resample.
    draws : int
        Number of resamples.

    Returns
    -------
    ndarray of float, (draws, N)
        How often each image is in each resample: whole numbers that sum to N in every
        row. The array is read-only.

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


def draw_weights(test: Split, draws: int) -> np.ndarray:
    """Return a row of ones, then each draw's counts of test images, (1 + draws, N)."""
    once = np.ones((1, len(test)))
    units = test.units
    return np.concatenate([once, image_draws(units.max() + 1, draws)[:, units]])


def weighted_mean(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Average values (K,) with each row of weights (draws, K); NaN if they sum to 0."""
    total = weights.sum(axis=1)
    return np.where(total > 0, ratio(weights @ values, total), np.nan)
