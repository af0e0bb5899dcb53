"""GSS-Greedy on gradients in the plane, where the right victim is known by hand."""

from collections import Counter

import numpy as np
import pytest

from prslib.samplers import make_sampler

E0, E1 = (1.0, 0.0), (0.0, 1.0)
CLASS = np.eye(2, dtype=bool)


class Player:
    """Feed a sampler with gradients and keep those of its memory."""

    def __init__(self, size, seed=0, **options):
        self.sampler = make_sampler("gss", size, 2, seed, **options)
        self.memory = np.full((size, 2), np.nan)
        self.asked = []

    def place(self, classes, gradients):
        gradients = np.array(gradients, float)

        def products(subsets):
            self.asked.append(subsets)
            rows = np.concatenate([self.memory[subsets].mean(1), gradients])
            return rows @ rows.T

        slots = self.sampler.place(CLASS[classes], gradient_products=products)
        stored = slots >= 0
        self.memory[slots[stored]] = gradients[stored]  # of equal slots the last
        return slots.tolist()


def full(seed=0, **options):
    """Three samples: two of class 0 with one and the same gradient, one of class 1 across."""
    player = Player(3, seed, **options)
    for c, gradient in ((0, E0), (0, E0), (1, E1)):
        player.place([c], [gradient])
    return player


def test_scores_are_the_largest_cosine_plus_one():
    # an empty memory; e0 beside e0; e1 across the mean of the two
    np.testing.assert_allclose(full().sampler.scores, [0.1, 2, 1])
    # beside the nearest of several subsets, not their mean
    np.testing.assert_allclose(full(subset_size=1).sampler.scores, [0.1, 2, 1])
    player = Player(4, subset_size=1)
    for gradient in (E0, E1, (3.0, 4.0)):
        player.place([0], [gradient])
    np.testing.assert_allclose(player.sampler.scores, [0.1, 1, 1.8, 0])


def test_the_sample_that_resembles_the_others_is_the_likely_victim():
    new = 1 - 2 / np.sqrt(5)  # the cosine to the memory's mean gradient, (2, 1) / 3
    old = np.array([0.1, 2, 1])
    chance = old / old.sum() * old / (old + new)
    found = Counter(full(seed).place([1], [(-1.0, 0.0)])[0] for seed in range(1500))
    for slot, expected in zip([0, 1, 2, -1], [*chance, 1 - chance.sum()], strict=True):
        assert found[slot] / 1500 == pytest.approx(expected, abs=0.04)
    assert found.most_common(1)[0][0] == 1


def test_a_batch_is_considered_as_a_whole_and_judged_sample_by_sample():
    entered = np.zeros(2)
    for seed in range(300):
        slots = full(seed).place([1, 1], [(-3.0, 0.0), (2.0, 0.0)])
        entered += np.array(slots) >= 0
    assert entered[0] > 1.5 * entered[1] > 0
    for seed in range(20):
        # -e0 alone would be; its batch's mean gradient is not below 0
        assert full(seed).place([1, 1], [(-1.0, 0.0), (2.0, 0.0)]) == [-1, -1]
        # below 0 for the mean of the memory, above it for one of the single gradients
        assert full(seed, subset_size=1).place([1], [(-1.0, 0.1)]) == [-1]


def test_the_subsets_are_disjoint_and_ten_by_ten():
    player = Player(250)
    for _ in range(10):
        player.place([0] * 25, [E0] * 25)
    shapes = [subsets.shape for subsets in player.asked]
    assert shapes == [(2, 10), (5, 10), (7, 10), *[(10, 10)] * 6]
    assert all(len(np.unique(subsets)) == subsets.size for subsets in player.asked)
    assert [subsets.shape for subsets in full().asked] == [(1, 1), (1, 2)]


def test_a_zero_gradient_resembles_nothing():
    assert full().place([0, 0], [(0.0, 0.0), (0.0, 0.0)]) == [-1, -1]
    player = Player(3)
    for gradient in (E0, (0.0, 0.0), E0):
        player.place([0], [gradient])
    np.testing.assert_allclose(player.sampler.scores, [0.1, 1, 2])


def test_a_refused_batch_adds_no_class():
    sampler = make_sampler("gss", 3, None, 0)
    sampler.place([0], gradient_products=None)
    with pytest.raises(ValueError, match="finite float64 numbers"):
        sampler.place([4], gradient_products=lambda subsets: np.full((2, 2), np.nan))
    assert sampler.num_classes == 1
    sampler.place([2], gradient_products=lambda subsets: np.eye(2))
    assert sampler.class_counts.tolist() == [1, 0, 1]
