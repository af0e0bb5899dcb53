"""The study that embeds icons and clip art."""

import numpy as np

from prslib.datasets.prepared import Selection
from prslib.paths import DATA


def test_siblings_stay_on_one_side(program):
    study = program("embed_pictures")
    rng = np.random.default_rng(0)
    family = rng.integers(60, size=300)
    labels = np.eye(4, dtype=bool)[rng.integers(4, size=300)]
    parts = study.split(labels, family, rng)
    assert labels[parts.balanced].sum(axis=0).tolist() == [10] * 4
    in_tests = {*family[parts.balanced], *family[parts.imbalanced]}
    assert len(parts.train) > 0 and in_tests.isdisjoint(family[parts.train])


def test_a_new_file_is_compared_with_the_embedded_one(
    program, tmp_path, monkeypatch, capsys
):
    study = program("embed_pictures")
    selection = Selection.load(DATA / "mdiseq.npz")
    selection.task[0] += 1
    monkeypatch.setattr(study, "make", lambda name, folder, made: selection.save(made))
    monkeypatch.setattr("sys.argv", ["embed_pictures.py", "mdiseq", "--packages", "."])
    monkeypatch.chdir(tmp_path)
    study.main()
    assert "6 of 7 arrays equal the embedded ones" in capsys.readouterr().out
