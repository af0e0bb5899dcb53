"""The study that embeds icons and clip art."""

import numpy as np
import pytest


def test_siblings_stay_on_one_side(program):
    study = program("embed_pictures")
    rng = np.random.default_rng(0)
    family = rng.integers(60, size=300)
    labels = np.eye(4, dtype=bool)[rng.integers(4, size=300)]
    parts = study.split(labels, family, rng)
    names = np.array([f"picture {row}" for row in range(300)])
    study.check_families(family, names, parts)
    assert labels[parts.balanced].sum(axis=0).tolist() == [10] * 4
    moved = study.Split(np.append(parts.train, parts.balanced[0]), *parts[1:])
    with pytest.raises(ValueError, match=r"expected siblings on one side .*picture"):
        study.check_families(family, names, moved)
