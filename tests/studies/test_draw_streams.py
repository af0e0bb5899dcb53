"""The study that draws the stand-ins' labels: the stored ones again, as profiled."""

import numpy as np
import pytest

from prslib.datasets import digits
from prslib.datasets.arrays import read_arrays


@pytest.fixture
def study(program):
    return program("draw_streams")


def histogram(labels, length):
    return np.bincount(labels.sum(axis=1), minlength=length + 1)[1:].tolist()


@pytest.mark.parametrize("number", range(4))
def test_a_stream_has_its_profile_exactly_and_is_the_stored_one(study, number):
    plan = study.PLANS[number]
    selection, corpus = study.draw(plan)
    rows = selection.rows("train")
    labels, tasks = selection.labels[rows], selection.task[rows]
    for task, profile in enumerate(plan.profile):
        freq, counts = study.scaled(profile, plan.divisor)
        pairs = max(counts[1], len(freq) - 1)  # a tree joins the classes
        of_task = labels[tasks == task]
        counted = of_task.sum(axis=0)[selection.class_task == task]
        assert counted.tolist() == freq.tolist()
        assert histogram(of_task, len(counts))[1:] == [pairs, *counts[2:].tolist()]
    stored = read_arrays(digits.file_of(plan.name))
    for name, array in {**vars(selection), "corpus": corpus}.items():
        np.testing.assert_array_equal(array, stored[name])


def test_study_says_whether_the_stored_sets_are_drawn(
    study, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["draw_streams.py"])
    study.main()
    assert capsys.readouterr().out.count("as embedded") == 4
    assert len(list(tmp_path.glob("digits*.npz"))) == 4
