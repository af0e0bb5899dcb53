import numpy as np
import pytest
from prs_examples import held_items

from prslib.samplers import make_sampler


@pytest.mark.parametrize("batch", [1, 1000])
def test_every_item_is_kept_with_probability_m_over_n(batch):
    length, size, runs = 60, 12, 3000
    stream = np.ones((length, 1), bool)
    kept = np.zeros(length)
    for seed in range(runs):
        sampler = make_sampler("crs", size, 1, seed)
        parts = [sampler.place(stream[i : i + batch]) for i in range(0, length, batch)]
        kept[held_items(np.concatenate(parts))] += 1
    assert kept.sum() == runs * size
    # without replacement the variance of a count is smaller by 1 - m / n
    statistic = ((kept - runs * size / length) ** 2).sum() / (runs * size / length)
    statistic /= (1 - size / length) * length / (length - 1)
    assert 30 < statistic < 110  # chi-square, 59 degrees: 1e-4 below 26, above 108
    for part in (kept[:size], kept[-size:]):
        expected = runs * size * size / length
        assert abs(part.sum() - expected) < 5 * np.sqrt(expected)


def test_unlabelled_items_do_not_age_the_memory():
    stream = np.zeros((4000, 1), bool)
    stream[::2] = True
    slots = make_sampler("crs", 50, 1, 1).place(stream)[::2]
    expected = 50 * (1 + np.log(2000 / 50))
    assert abs((slots >= 0).sum() - expected) < 5 * np.sqrt(expected)
