import math

import numpy as np
import pytest
from prs_examples import A, B, C, decide, filled, held_items, long_tailed

from prslib.samplers import PRS, make_sampler
from prslib.samplers.prs import partition


@pytest.mark.parametrize(
    ("rho", "share"), [(0, 1 / 2), (1, 0.9), (0.5, 3 / 4), (-1, 0.1)]
)
def test_partition_by_hand(rho, share):
    decision = decide(filled([A] * 8 + [B], 3, rho=rho), A)  # with it n = (9, 1)
    assert decision.partition == pytest.approx([share, 1 - share, 0])
    assert decision.quota == pytest.approx(9 * decision.partition)
    assert partition(np.array([9, 1, 0]), rho) == pytest.approx(decision.partition)


def test_acceptance_by_hand():
    sampler = filled([A] * 8 + [B], 3)
    assert decide(sampler, A).acceptance == pytest.approx(4.5 / 9)
    assert decide(sampler, B).acceptance == 1  # 4.5 / 2, cut
    assert decide(sampler, C).acceptance == 1  # 3 / 1, cut
    sampler = filled([A] * 20 + [B] * 10, size=4)
    w = 1 / (1 + math.exp(10))  # of A: n = (21, 11)
    expected = 2 / 21 * w + 2 / 11 * (1 - w)
    assert decide(sampler, A, B).acceptance == pytest.approx(expected)
    assert decide(sampler, A).acceptance == pytest.approx(2 / 21)
    sampler = filled([A] * 900 + [B] * 800, size=10)  # e^-n is 0 from n = 746
    assert decide(sampler, A, B).acceptance == pytest.approx(5 / 801)


def test_surplus_class_and_distance_by_hand():
    samples = [A, (A, B), (A, B), (A, B), C]
    decision = decide(filled(samples), A)
    # l = (4, 3, 1), p = 1/3
    assert decision.surplus == pytest.approx([4 / 3, 1 / 3, -5 / 3])
    first = math.e / (1 + math.e)
    assert decision.class_probability == pytest.approx([first, 1 - first, 0])
    assert decision.candidates[A].tolist() == [0, 1, 2, 3]
    assert decision.distance[A] == pytest.approx([8 / 3, 2, 2, 2])
    assert decision.leaving[A].tolist() == [1, 2, 3]
    assert decision.candidates[B].tolist() == decision.leaving[B].tolist() == [1, 2, 3]


def test_candidates_by_hand():
    decision = decide(filled([A, A, (A, B), (A, C), (A, B)]), A)
    assert decision.class_probability == pytest.approx([1, 0, 0])
    assert decision.candidates[A].tolist() == [0, 1]  # (not y).q = 2 2 1 1 1
    # l = (4, 2, 1) to 7/3 each
    assert decision.distance[A] == pytest.approx([10 / 3, 10 / 3])
    assert decision.leaving[A].tolist() == [0, 1]


def test_the_class_drawn_has_a_chance_where_the_sum_falls_short_of_1():
    chance = np.append(np.full(10, 0.1), 0.0)
    assert chance.cumsum()[-1] < 1
    sampler = filled([A] * 8 + [B], 3)
    for u, drawn in [(np.nextafter(1, 0), 9), (0.0, 0), (0.1, 1)]:
        assert sampler.draw_class(chance, u) == drawn


def test_a_surplus_of_rounding_is_none():
    """49 times 1 / 49 is less than 1."""
    sampler = make_sampler("prs", 49, 49, seed=0)
    sampler.place(np.eye(49, dtype=bool))
    decision = sampler.explain(np.zeros(49, bool))
    assert not decision.surplus.any()
    assert decision.scarce.all()


@pytest.mark.parametrize("rho", [-2.0, -0.03, 0.0, 1.0])
def test_what_explain_shows_is_what_is_decided(rho):
    sampler = make_sampler("prs", 40, 20, 3, rho=rho)
    for y in long_tailed(np.random.default_rng(0), 300, 20, 1.0):
        decision = sampler.explain(y)
        is_full = len(sampler) == 40
        u = np.random.default_rng(0).random((1, 3))
        enters = u[0, 0] < decision.acceptance
        (slot,) = sampler.choose_batch(y[None], u)
        assert (slot >= 0) == enters
        assert decision.class_freq.tolist() == sampler.class_freq.tolist()
        if enters and is_full:
            c = sampler.draw_class(decision.class_probability, u[0, 1])
            leaving = decision.leaving[c]
            assert slot == leaving[int(u[0, 2] * len(leaving))]
            least = decision.distance[c].min() + 1e-9
            assert (
                decision.candidates[c][decision.distance[c] <= least] == leaving
            ).all()


class TiesBySlot(PRS):
    """Overwrite the lowest of equally good slots, as the released code does."""

    def choose(self, y, u):
        return super().choose(y, np.append(u[:2], 0.0))


def shares_by_age(make, runs, length=1000, size=60):
    """Return the share of each tenth of the stream in what is kept of each class."""
    rng = np.random.default_rng(0)
    tenths = np.zeros((3, 10))
    for seed in range(runs):
        classes = rng.permutation(np.repeat([A, B, C], [600, 300, 100]))
        kept = held_items(make(size, 3, seed).place(classes))
        np.add.at(tenths, (classes[kept], kept * 10 // length), 1)
    return tenths / tenths.sum(axis=1, keepdims=True)


def test_within_a_class_early_and_late_samples_are_kept_alike():
    share = shares_by_age(PRS, 100)
    assert np.abs(share - 0.1).max() < 0.04  # s.d. 0.007
    by_slot = shares_by_age(TiesBySlot, 20)
    assert np.abs(by_slot - 0.1).max() > 0.1
