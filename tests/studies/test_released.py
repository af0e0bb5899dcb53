"""The released code's PRS, against the same rules written once more."""

import numpy as np
import pytest
from plain_prs import PlainPRS
from prs_examples import A, B, D, long_tailed, rows
from released_prs import PlainReleasedPRS

from prslib.samplers import check_sampler


@pytest.fixture
def released(program):
    return program("released").ReleasedPRS


def test_it_decides_as_its_twin_and_not_as_the_paper(released):
    differ = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        num_classes = int(rng.integers(2, 30))
        size = int(rng.integers(1, 40))
        rho = rng.choice([-1.0, -0.03, 0.0, 0.5, 1.0])
        extra = rng.choice([0.0, 0.3, 2.0])
        stream = long_tailed(rng, size + 80, num_classes, extra)
        makers = released, PlainReleasedPRS, PlainPRS
        made = [make(size, num_classes, seed, rho=rho) for make in makers]
        slots, twin, paper = (s.place(stream).tolist() for s in made)
        assert slots == twin
        differ += slots != paper
    assert differ > 40


def test_the_first_candidate_goes_when_all_are_far(released):
    sampler = released(3, 4, 0, rho=-1)
    sampler.place(rows(D, (A, B, 2, D), (B, D), num_classes=4))
    sampler._count([D])
    # n = (1, 2, 1, 3), without the sample at hand
    p = sampler.partition()
    assert p[:4] == pytest.approx(np.array([6, 3, 6, 2]) / 17)
    k = sampler.candidates(D, sampler.scarce(sampler.surplus(p)))
    distance = sampler.distances(k, p)
    assert sorted(distance) == pytest.approx([52 / 17, 76 / 17])  # both above m = 3
    assert sampler.nearest(k, distance).tolist() == k.tolist()


def test_it_passes_the_checks_of_samplers(released):
    check_sampler(released)
