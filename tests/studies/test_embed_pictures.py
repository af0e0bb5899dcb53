"""The study that embeds icons and clip art."""

import numpy as np


def test_siblings_stay_on_one_side(program):
    study = program("embed_pictures")
    rng = np.random.default_rng(0)
    family = rng.integers(60, size=300)
    labels = np.eye(4, dtype=bool)[rng.integers(4, size=300)]
    parts = study.split(labels, family, rng)
    assert labels[parts.balanced].sum(axis=0).tolist() == [10] * 4
    in_tests = {*family[parts.balanced], *family[parts.imbalanced]}
    assert len(parts.train) > 0 and in_tests.isdisjoint(family[parts.train])
