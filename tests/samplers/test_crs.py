import numpy as np
import pytest
from prs_examples import held_items

from prslib.samplers import make_sampler


@pytest.mark.parametrize("batch", [1, 1000])
def test_every_labelled_item_is_kept_with_probability_m_over_n(batch):
    length, size, runs = 60, 12, 1000
    stream = np.ones((length, 1), bool)
    times = np.zeros(length)
    for seed in range(runs):
        sampler = make_sampler("crs", size, 1, seed)
        slots_of = [
            sampler.place(rows)
            for rows in np.split(stream, range(batch, length, batch))
        ]
        slots = np.concatenate(slots_of)
        assert slots[:size].tolist() == list(range(size))
        times[held_items(slots)] += 1
    assert times.sum() == runs * size
    # without replacement the variance of a count is smaller by 1 - m / n
    statistic = ((times - runs * size / length) ** 2).sum() / (runs * size / length)
    statistic /= (1 - size / length) * length / (length - 1)
    assert 30 < statistic < 110  # chi-square, 59 degrees: 1e-4 below 26, above 108
    for end in (times[:size], times[-size:]):
        expected = runs * size * size / length
        assert abs(end.sum() - expected) < 5 * np.sqrt(expected)
