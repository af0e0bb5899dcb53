import math
from functools import partial

import numpy as np
import prs_examples
import pytest
from ocdm_twin import kl
from prs_examples import A, B, C, rows
from scipy.stats import chisquare

from prslib.samplers import make_sampler

next_slots = partial(prs_examples.next_slots, "ocdm")


def test_the_distance_by_hand():
    freq = np.array([6, 2, 0])
    expected = 0.75 * math.log(1.5) - 0.25 * math.log(2)
    assert kl(np.array([3, 1, 0]), freq, 0.0) == pytest.approx(expected)
    assert kl(np.array([4, 0, 0]), freq, 0.0) == pytest.approx(math.log(2))
    assert kl(np.array([3, 1, 0]), freq, 1.0) == pytest.approx(0)  # p = (3/4, 1/4)


def test_the_most_frequent_class_gives_way_and_ties_are_uniform():
    slots = next_slots([A, A, A, B], B)  # 3 A and 2 B: one A goes
    assert chisquare(np.bincount(slots)).pvalue > 1e-4 and set(slots) == {0, 1, 2}
    slots = next_slots([A, A, A, B], A)  # 4 A, the new one among them
    seen = np.bincount(np.where(slots < 0, 4, slots), minlength=5)
    assert seen[3] == 0 and chisquare(seen[[0, 1, 2, 4]]).pvalue > 1e-4


def test_a_batch_is_decided_as_a_whole():
    batch = rows(*[A] * 6, B, B, C, C)
    for seed in range(20):
        sampler = make_sampler("ocdm", 6, 3, seed)
        slots = sampler.place(batch)
        assert slots[:6].tolist() == list(range(6))  # in order, then overwritten
        assert sorted(slots[6:]) == slots[6:].tolist() and len(set(slots[6:])) == 4
        assert sampler.class_counts.tolist() == [2, 2, 2]
    first = make_sampler("ocdm", 1, 3, 0, rho=1.0)
    assert first.place(rows(A, B, B, B)).tolist()[0] == 0
    # n = (1, 3) before the first deletion
    assert first.class_counts.tolist() == [0, 1, 0]
