"""The study that draws the stand-ins' labels: the stored ones again."""

import numpy as np
import pytest

from prslib.datasets.arrays import read_arrays
from prslib.paths import DATA


@pytest.mark.parametrize("number", range(4))
def test_a_drawn_stream_is_the_stored_one(number, program):
    study = program("draw_streams")
    plan = study.PLANS[number]
    selection, corpus = study.draw(plan)
    stored = read_arrays(DATA / f"{plan.name}.npz")
    for name, array in {**vars(selection), "corpus": corpus}.items():
        np.testing.assert_array_equal(array, stored[name])
