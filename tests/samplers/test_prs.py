import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from prs_examples import A, B, C, D, decide, filled, long_tailed, rows
from released_prs import ReleasedPRS
from scipy.stats import chisquare

from prslib.samplers import PRS, make_sampler
from prslib.samplers.reference import ReferencePRS


@pytest.mark.parametrize(
    ("rho", "share"), [(0, 1 / 2), (1, 0.9), (0.5, 3 / 4), (-1, 0.1)]
)
def test_partition_by_hand(rho, share):
    sampler = filled(
        [A] * 8 + [B], 3, rho=rho
    )  # the sample at hand makes it n = (9, 1)
    decision = decide(sampler, A)
    assert decision.partition == pytest.approx([share, 1 - share, 0])
    assert decision.quota == pytest.approx(9 * decision.partition)


def test_acceptance_by_hand():
    sampler = filled([A] * 8 + [B], 3)
    assert decide(sampler, A).acceptance == pytest.approx(4.5 / 9)
    assert decide(sampler, B).acceptance == 1  # 4.5 / 2, cut
    assert decide(sampler, C).acceptance == 1  # 3 / 1, cut
    sampler = filled([A] * 20 + [B] * 10, size=4)
    w = 1 / (1 + math.exp(10))  # of A: n = (21, 11)
    assert decide(sampler, A, B).acceptance == pytest.approx(
        2 / 21 * w + 2 / 11 * (1 - w)
    )
    assert decide(sampler, A).acceptance == pytest.approx(2 / 21)


def test_acceptance_of_the_authors_by_hand():
    sampler = filled([A] * 7 + [B], 3, variant="authors")
    assert decide(sampler, A).acceptance == pytest.approx(
        4 / 7
    )  # n as before the sample
    assert decide(sampler, C).acceptance == 1  # met for the first time
    assert decide(sampler, B).acceptance == 1  # 4 / 1, cut before it is weighed
    weight = 1 / (1 + math.exp(-6))  # of B: n = (7, 1)
    assert decide(sampler, A, B).acceptance == pytest.approx(
        4 / 7 * (1 - weight) + weight
    )


def test_surplus_and_class_probability_by_hand():
    decision = decide(filled([A, (A, B), (A, B), (A, B), C]), A)
    assert decision.surplus == pytest.approx(
        [4 / 3, 1 / 3, -5 / 3]
    )  # l = (4, 3, 1), p = 1/3
    assert decision.class_probability == pytest.approx(
        [math.e / (1 + math.e), 1 / (1 + math.e), 0]
    )


def test_candidates_by_hand():
    decision = decide(filled([A, A, (A, B), (A, C), (A, B)]), A)
    assert decision.class_probability == pytest.approx([1, 0, 0])
    assert decision.candidates[A].tolist() == [0, 1]  # (not y).q = 2 2 1 1 1
    assert decision.distance[A] == pytest.approx(
        [10 / 3, 10 / 3]
    )  # l = (4, 2, 1) to 7/3 each
    assert decision.leaving[A].tolist() == [0, 1]


def test_distance_by_hand():
    samples = [A, (A, B), (A, B), (A, B), C]
    decision = decide(filled(samples), A)
    assert decision.candidates[A].tolist() == [0, 1, 2, 3]
    assert decision.distance[A] == pytest.approx([8 / 3, 2, 2, 2])
    assert decision.leaving[A].tolist() == [1, 2, 3]
    assert decision.candidates[B].tolist() == decision.leaving[B].tolist() == [1, 2, 3]
    authors = decide(filled(samples, variant="authors"), A)
    assert authors.leaving[A].tolist() == authors.leaving[B].tolist() == [1]
    assert authors.class_probability[C] > 0


def test_authors_leave_an_emptied_class_out():
    assert decide(filled([A, B]), A).distance[A] == pytest.approx([1])
    assert decide(filled([A, B], variant="authors"), A).distance[A] == pytest.approx(
        [0.5]
    )


def test_authors_keep_the_share_of_a_class_that_left():
    sampler = filled([A], variant="authors")  # one slot
    assert sampler.place(rows(B)).tolist() == [0]  # n = 0: enters, A leaves with p = 1
    assert decide(sampler, A).partition.tolist() == [1, 1, 0]
    assert decide(sampler, A).acceptance == decide(sampler, B).acceptance == 1


def test_authors_take_the_first_candidate_when_all_are_far():
    sampler = filled([D, (A, B, C, D), (B, D)], 4, rho=-1, variant="authors")
    decision = decide(sampler, D)
    assert decision.partition == pytest.approx(
        np.array([6, 3, 6, 2]) / 17
    )  # n = (1, 2, 1, 3)
    assert decision.candidates[D].tolist() == [0, 2]
    assert decision.distance[D] == pytest.approx([76 / 17, 52 / 17])  # both above m = 3
    assert decision.leaving[D].tolist() == [0]


def test_memory_on_target_shrinks_any_class_with_the_largest_surplus():
    decision = decide(filled([A, B, C, A, B, C]), A)
    assert decision.surplus.tolist() == [0, 0, 0]
    assert decision.class_probability == pytest.approx([1 / 3] * 3)


@settings(max_examples=40, deadline=None)
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
    for row in np.concatenate([head, stream]):
        if len(sampler) == size and plain.class_freq.sum() >= preload:
            check(sampler.explain(row), plain, row)
        assert sampler.place(row[None]) == plain.place(row[None])
    assert (sampler.labels == plain.labels).all()
    assert (sampler.class_freq == plain.class_freq).all()
    assert (sampler.class_counts == plain.class_counts).all()


@pytest.mark.parametrize(
    "case", ["near targets", "long", "many scarce labels", "many labels"]
)
def test_a_larger_memory_equals_the_reference(case):
    rng, rho = np.random.default_rng(0), 2.0
    stream = rng.random((1000, 8)) < 0.62
    if case == "long":
        stream = rng.random((1900, 6)) < 0.2
    elif case == "many scarce labels":
        rho, stream = 0.0, of_lengths(rng, 1000, 41, 8, 13)
        stream[:, 0] = True  # far above its target, the others below theirs
    elif case == "many labels":
        rho, stream = 1.0, of_lengths(rng, 1000, 60, 28, 38)
        stream[300:] = np.eye(60, dtype=bool)[
            0
        ]  # far below its target, the others above
    size = len(stream) - 700
    sampler, plain = (
        make(size, stream.shape[1], 0, rho=rho) for make in (PRS, ReferencePRS)
    )
    assert (sampler.place(stream) == plain.place(stream)).all()


def of_lengths(rng, length, num_classes, least, most):
    return rng.random((length, num_classes)).argsort().argsort() < rng.integers(
        least, most, (length, 1)
    )


def check(decision, plain, row):
    partition = plain.partition(row)
    surplus = plain.surplus(partition)
    chance = plain.class_probability(surplus)
    tolerance = {"rel": 1e-9, "abs": 1e-9}
    expected = {
        "partition": partition,
        "acceptance": plain.acceptance(row, partition),
        "class_freq": plain.counted(row),
        "quota": plain.size * partition.astype(float),
        "weight": plain.weights(row),
        "surplus": surplus,
        "scarce": plain.scarce(row, surplus),
        "class_probability": chance,
    }
    for name, value in expected.items():
        assert getattr(decision, name) == pytest.approx(value, **tolerance)
    # where a chance is next to 0, one of the two may have 0
    assert set(np.flatnonzero(chance > 1e-300)) <= set(decision.candidates)
    assert set(decision.candidates) <= set(np.flatnonzero(plain.class_counts))
    for chosen, candidates in decision.candidates.items():
        expected = np.sort(plain.candidates(chosen, plain.scarce(row, surplus)))
        distances = plain.distances(expected, partition)
        assert candidates.tolist() == expected.tolist()
        assert decision.distance[chosen] == pytest.approx(distances, **tolerance)
        assert (
            decision.leaving[chosen].tolist()
            == plain.leaving(expected, distances).tolist()
        )


@pytest.mark.parametrize("variant", ["paper", "authors"])
def test_place_draws_what_explain_shows(variant):
    samples = [A, A, (A, B), (A, B), (B, C), C, D, (A, D), A, B, (C, D), A] + [A] * 12
    stream = rows(*samples, num_classes=4)
    expected = np.zeros(13)
    shown = filled(samples[:12], 4, variant=variant).explain(stream[12])
    for chosen, leaving in shown.leaving.items():
        expected[leaving] += (
            shown.class_probability[chosen] / len(leaving) * shown.acceptance
        )
    expected[12] = 1 - shown.acceptance
    slots = [
        make_sampler("prs", 12, 4, seed, variant=variant).place(stream[:13])[-1]
        for seed in range(4000)
    ]
    seen = np.bincount(np.where(np.array(slots) < 0, 12, slots), minlength=13)
    assert not seen[expected == 0].any()
    rare = expected < 0.001
    seen, expected = (
        np.append(part[~rare], part[rare].sum()) for part in (seen, expected)
    )
    keep = expected > 0
    assert (
        chisquare(seen[keep], 4000 * expected[keep] / expected[keep].sum()).pvalue
        > 1e-4
    )


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


def test_explain_while_the_memory_fills():
    decision = decide(filled([A, B], size=5), C)
    assert decision.acceptance == 1 and not decision.candidates
    assert decision.partition == pytest.approx([1 / 3] * 3)
    assert decision.surplus == pytest.approx([1 / 3, 1 / 3, -2 / 3])
    assert not decision.class_probability.any()
    assert decide(filled([A, B], size=5)).acceptance == 0  # no label
    for variant in ("paper", "authors"):  # before the first sample
        decision = decide(make_sampler("prs", 4, 3, 0, variant=variant))
        assert not decision.partition.any() and not decision.quota.any()
        assert not decision.surplus.any() and decision.acceptance == 0
