import math
from functools import partial

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from prs_examples import A, B, C, D, decide, filled, long_tailed
from released_prs import ReleasedPRS

from prslib.samplers import make_sampler, prs
from prslib.samplers.reference import ReferencePRS


@pytest.mark.parametrize(
    ("rho", "share"), [(0, 1 / 2), (1, 0.9), (0.5, 3 / 4), (-1, 0.1)]
)
def test_partition_by_hand(rho, share):
    decision = decide(filled([A] * 8 + [B], 3, rho=rho), A)  # with it n = (9, 1)
    assert decision.partition == pytest.approx([share, 1 - share, 0])
    assert decision.quota == pytest.approx(9 * decision.partition)


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
    authors = decide(filled(samples, variant="authors"), A)
    assert authors.leaving[A].tolist() == authors.leaving[B].tolist() == [1]
    assert authors.class_probability[C] > 0


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
    plain = filled([A] * 8 + [B], 3)
    for u, drawn in [(np.nextafter(1, 0), 9), (0.0, 0), (0.1, 1)]:
        assert prs.draw_class(chance, u) == plain.draw_class(chance, u) == drawn


def test_authors_take_the_first_candidate_when_all_are_far():
    sampler = filled([D, (A, B, C, D), (B, D)], 4, rho=-1, variant="authors")
    decision = decide(sampler, D)
    # n = (1, 2, 1, 3)
    assert decision.partition == pytest.approx(np.array([6, 3, 6, 2]) / 17)
    assert decision.candidates[D].tolist() == [0, 2]
    assert decision.distance[D] == pytest.approx([76 / 17, 52 / 17])  # both above m = 3
    assert decision.leaving[D].tolist() == [0]


def test_memory_on_target_shrinks_any_class_with_the_largest_surplus():
    decision = decide(filled([A, B, C, A, B, C]), A)
    assert decision.surplus.tolist() == [0, 0, 0]
    assert decision.class_probability == pytest.approx([1 / 3] * 3)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    num_classes=st.integers(1, 90),
    size=st.integers(1, 60),
    rho=st.one_of(st.sampled_from([-1.0, 0.0, 1.0]), st.floats(-2, 2)),
    extra_labels=st.sampled_from([0.0, 0.3, 2.0, 8.0, 40.0]),
    preload=st.sampled_from([0, 0, 800]),
    variant=st.sampled_from(["paper", "authors"]),
)
@example(0, 90, 50, 1.0, 40.0, 800, "paper")  # many labels, few scarce
def test_every_decision_equals_the_reference(
    seed, num_classes, size, rho, extra_labels, preload, variant
):
    rng = np.random.default_rng(seed)
    stream = long_tailed(rng, size + 25, num_classes, extra_labels)
    head = np.zeros((preload, num_classes), bool)
    head[:, rng.integers(num_classes)] = True
    sampler = make_sampler("prs", size, num_classes, seed, rho=rho, variant=variant)
    plain = (ReferencePRS if variant == "paper" else ReleasedPRS)(
        size, num_classes, seed, rho=rho
    )
    assert sampler.place(head).tolist() == plain.place(head).tolist()
    for row in stream:
        if len(sampler) == size:
            decision = sampler.explain(row)
            check(decision, plain, row)
            u = rng.random(3) * [rng.integers(2), 1, 1]  # half of them accept
            assert sampler.choose(row, u) in shown_slots(decision, sampler, u)
        assert sampler.place(row[None]) == plain.place(row[None])
    assert (sampler.labels == plain.labels).all()


def shown_slots(decision, sampler, u):
    """Return the slots that `choose` may take, from what `explain` shows."""
    if u[0] >= decision.acceptance:
        return [-1]
    c = sampler.draw_class(decision.class_probability, u[1])
    return decision.leaving[c].tolist()


def check(decision, plain, row):
    """Compare what `explain` shows with the methods of the reference."""
    partition = plain.partition(row)
    surplus = plain.surplus(partition)
    scarce = plain.scarce(row, surplus)
    chance = plain.class_probability(surplus)
    close = partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-9)
    assert decision.class_freq.tolist() == plain.counted(row).tolist()
    assert decision.scarce.tolist() == scarce.tolist()
    close(decision.partition, partition)
    close(decision.quota, plain.size * partition.astype(float))
    close(decision.weight, plain.weights(row))
    close(decision.acceptance, plain.acceptance(row, partition))
    close(decision.surplus, surplus)
    close(decision.class_probability, chance)
    # where a chance is next to 0, one of the two may have 0
    assert set(np.flatnonzero(chance > 1e-300)) <= set(decision.candidates)
    for c, candidates in list(decision.candidates.items())[:3]:
        expected = np.sort(plain.candidates(c, scarce))
        distances = plain.distances(expected, partition)
        leaving = plain.leaving(expected, distances)
        assert candidates.tolist() == expected.tolist()
        close(decision.distance[c], distances)
        assert decision.leaving[c].tolist() == leaving.tolist()


def test_a_surplus_of_rounding_is_none():
    """49 times 1 / 49 is less than 1."""
    plain = ReferencePRS(49, 49, seed=0)
    plain.place(np.eye(49, dtype=bool))
    nothing = np.zeros(49, bool)
    assert not plain.surplus(plain.partition(nothing)).any()
    assert plain.scarce(nothing, plain.surplus(plain.partition(nothing))).all()


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


def test_explain_changes_nothing_where_the_label_is_a_new_class():
    sampler = make_sampler("prs", 1, None, 0)
    sampler.place([0])
    before = sampler.state_dict()["checksum"]
    assert sampler.explain(2).weight.tolist() == [0, 0, 1]
    assert sampler.state_dict()["checksum"] == before


def test_explain_while_the_memory_fills():
    decision = decide(filled([A, B], size=5), C)
    assert decision.acceptance == 1 and not decision.candidates
    assert decision.partition == pytest.approx([1 / 3] * 3)
    assert decision.surplus == pytest.approx([1 / 3, 1 / 3, -2 / 3])
    assert not decision.class_probability.any()
    assert decide(filled([A, B], size=5)).acceptance == 0  # no label
