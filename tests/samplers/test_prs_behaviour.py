import math

import numpy as np
import pytest
from prs_examples import A, B, C, decide, filled, long_tailed, rows
from scipy.stats import chisquare

from prslib.samplers import make_sampler

# Distributions --------------------------------------------------------------------------------


def test_ties_fall_uniformly_in_the_paper_and_on_the_first_slot_for_the_authors():
    stream = rows(*[A] * 4000, num_classes=1)
    slots = make_sampler("prs", 20, 1, 3).place(stream)[20:]
    replaced = np.bincount(slots[slots >= 0], minlength=20)
    assert replaced.sum() > 80 and (replaced > 0).sum() >= 18
    slots = make_sampler("prs", 20, 1, 3, variant="authors").place(stream)[20:]
    assert set(slots[slots >= 0]) == {0}


def test_ties_are_uniform_over_seeds():
    stream = rows(*[A] * 11, num_classes=1)
    slots = np.array([make_sampler("prs", 10, 1, s).place(stream)[-1] for s in range(3000)])
    assert chisquare(np.bincount(slots[slots >= 0], minlength=10)).pvalue > 1e-4


def test_class_and_tie_are_drawn_apart():
    stream = rows(*[A] * 6, *[B] * 6, num_classes=3)
    new = rows(C, num_classes=3)
    taken = []
    for seed in range(1200):  # both classes are as likely to be shrunk, each has six ties
        sampler = make_sampler("prs", 12, 3, seed)
        sampler.place(stream)
        taken.append(sampler.place(new)[0])
    assert min(taken) >= 0
    assert chisquare(np.bincount(taken, minlength=12)).pvalue > 1e-4


@pytest.mark.parametrize("variant", ["paper", "authors"])
def test_before_the_first_sample_nothing_is_asked_of_the_memory(variant):
    sampler = make_sampler("prs", 4, 3, 0, variant=variant)
    decision = sampler.explain(np.zeros(3, bool))
    assert not decision.partition.any() and not decision.quota.any()
    assert not decision.surplus.any() and decision.acceptance == 0


@pytest.mark.parametrize("variant", ["paper", "authors"])
@pytest.mark.parametrize("rho", [0.0, 1.0])
def test_a_long_single_label_stream_ends_on_target(rho, variant):
    rng = np.random.default_rng(5)
    chance = np.array([0.5, 0.25, 0.15, 0.1])
    stream = np.eye(4, dtype=bool)[rng.choice(4, 6000, p=chance)]
    sampler = make_sampler("prs", 200, 4, 1, rho=rho, variant=variant)
    sampler.place(stream)
    target = stream.mean(0) if rho else np.full(4, 0.25)
    assert np.abs(sampler.class_counts / 200 - target).sum() / 2 < 0.02


# Edges ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", ["paper", "authors"])
@pytest.mark.parametrize("rho", [-1e6, -2.0, 0.0, 2.0, 1e6])
@pytest.mark.parametrize("size", [1, 7])
def test_any_finite_rho_gives_finite_decisions(rho, size, variant):
    stream = long_tailed(np.random.default_rng(0), 1500, 12)
    sampler = make_sampler("prs", size, 12, 0, rho=rho, variant=variant)
    for start in range(0, 1500, 100):
        sampler.place(stream[start : start + 100])
        decision = sampler.explain(stream[start])
        assert np.isfinite(decision.partition).all() and 0 <= decision.acceptance <= 1
        assert decision.class_probability.sum() == pytest.approx(1)
        if variant == "paper":
            assert decision.partition.sum() == pytest.approx(1)


def test_counts_above_746_do_not_underflow():
    sampler = filled([A] * 900 + [B] * 800, size=10)
    assert decide(sampler, A, B).acceptance == pytest.approx(5 / 801)
    assert math.exp(-801) == 0


def test_negative_rho_favours_the_rare_class():
    sampler = filled([A] * 30 + [B] * 3, size=8, rho=-1)
    decision = decide(sampler, B)
    assert decision.partition[B] > decision.partition[A]


def test_an_absent_class_is_no_candidate():
    sampler = filled([A] * 4 + [B] * 4, 3, size=4)
    decision = decide(sampler, C)
    assert decision.surplus[C] < 0 and C not in decision.candidates


def test_explain_changes_nothing():
    stream = long_tailed(np.random.default_rng(2), 300, 9)
    asked, quiet = (make_sampler("prs", 20, 9, 4, rho=-0.5) for _ in range(2))
    slots = []
    for row in stream:
        asked.explain(row)
        slots.append(asked.place(row[None])[0])
    assert slots == quiet.place(stream).tolist()


def test_explain_while_the_memory_fills():
    decision = decide(filled([A, B], size=5), C)
    assert decision.acceptance == 1 and not decision.candidates
    assert decision.partition == pytest.approx([1 / 3] * 3)
    assert decision.surplus == pytest.approx([1 / 3, 1 / 3, -2 / 3])
    assert not decision.class_probability.any()
    assert decide(filled([A, B], size=5)).acceptance == 0  # no label
