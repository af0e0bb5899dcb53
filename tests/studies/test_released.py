"""The released code's PRS, against the same rules written once more."""

import numpy as np
import pytest
from plain_prs import PlainPRS
from prs_examples import long_tailed
from released_prs import PlainReleasedPRS


@pytest.fixture
def released(program):
    return program("released").ReleasedPRS


def test_it_decides_as_its_twin_and_not_as_the_paper(released):
    differ = 0
    for seed in range(30):
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
    assert differ > 20
