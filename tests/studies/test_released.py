"""The released code's PRS: the slots in which it agreed with a second implementation."""

from hashlib import sha256

import numpy as np
from prs_examples import long_tailed

SLOTS = "70e68fbae2f0b2ce"  # of 3,049 samples, compared with a twin in dense numpy


def test_its_decisions_stay_the_same(program):
    digest = sha256()
    for seed in range(30):
        rng = np.random.default_rng(seed)
        num_classes = int(rng.integers(2, 30))
        size = int(rng.integers(1, 40))
        rho = rng.choice([-1.0, -0.03, 0.0, 0.5, 1.0])
        extra = rng.choice([0.0, 0.3, 2.0])
        stream = long_tailed(rng, size + 80, num_classes, extra)
        sampler = program("released").ReleasedPRS(size, num_classes, seed, rho=rho)
        digest.update(sampler.place(stream).astype("<i8").tobytes())
    assert digest.hexdigest()[:16] == SLOTS
