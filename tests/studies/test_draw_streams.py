"""The study that draws the stand-ins' labels: the stored ones again, as profiled."""

import numpy as np
import pytest

from prslib.datasets import digits
from prslib.datasets.arrays import read_arrays


@pytest.mark.parametrize("number", range(4))
def test_a_stream_has_its_profile_exactly_and_is_the_stored_one(number, program):
    study = program("draw_streams")
    plan = study.PLANS[number]
    selection, corpus = study.draw(plan)
    rows = selection.rows("train")
    labels, tasks = selection.labels[rows], selection.task[rows]
    for task, profile in enumerate(plan.profile):
        freq, counts = study.scaled(profile, plan.divisor)
        counts[1] = max(counts[1], len(freq) - 1)  # a tree joins the classes
        of_task = labels[tasks == task]
        counted = of_task.sum(axis=0)[selection.class_task == task]
        assert counted.tolist() == freq.tolist()
        histogram = np.bincount(of_task.sum(axis=1), minlength=len(counts) + 1)
        assert histogram[2:].tolist() == counts[1:].tolist()
    stored = read_arrays(digits.file_of(plan.name))
    for name, array in {**vars(selection), "corpus": corpus}.items():
        np.testing.assert_array_equal(array, stored[name])
