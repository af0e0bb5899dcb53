"""From a NUS-WIDE folder to NUS-WIDEseq."""

import numpy as np
import pytest
from real_folders import write_ids, write_nuswide

from prslib.cli import main
from prslib.datasets import load_dataset, nuswide

SHOWN = [["animal"], ["animal"], ["beach"], ["clouds"], ["animal", "wedding"], []]
EMPTY = 5  # row of the image without a label


def corpus_of(prefix):
    return [(f"{prefix}/{i:04d}_{i}.jpg", found) for i, found in enumerate(SHOWN)]


@pytest.fixture
def nus(tmp_path, monkeypatch):
    halves = {"Train": corpus_of("actor"), "Test": corpus_of("zebra")}
    write_nuswide(tmp_path / "nus", halves, nuswide.CLASSES)
    ids = {"train": [[0, 2], [3, EMPTY]], "test": [[0, 2], [3]]}
    ids["teorg"] = [[0, 1, 2], [3]]
    write_ids(tmp_path / "data/nuswideseq_ids", ids, "nuswide")
    monkeypatch.setenv("PRSLIB_DATA", str(tmp_path / "data"))
    return tmp_path


def prepare(root):
    folders = f"--annotations={root / 'nus'}", f"--images={root / 'nus/Flickr'}"
    return main(["prepare", "nuswideseq", "--workers", "1", *folders])


def test_released_ids_are_rows_of_the_official_lists(nus):
    assert prepare(nus) == 0
    dataset = load_dataset("nuswideseq")
    shown = [dataset.class_names.index(name) for name in ("animal", "beach", "clouds")]
    assert dataset.class_task[shown].tolist() == [0, 0, 1]
    groups = [dataset.class_group[column] for column in shown]
    assert groups == ["majority", "minority", "majority"]
    assert np.argwhere(dataset.train.labels).tolist() == [*map(list, enumerate(shown))]
    assert len(dataset.tests["balanced"]) == 3
    assert len(dataset.tests["imbalanced"]) == 4
    assert dataset.stands_for == "NUS-WIDEseq"


BAD = [  # a file, and what stands there
    ("Groundtruth/TrainTestLabels/Labels_toy_Train.txt", "0\n" * (len(SHOWN) + 1)),
    ("Groundtruth/TrainTestLabels/Labels_toy_Train.txt", "<html>"),
]


@pytest.mark.parametrize(("file", "content"), BAD)
def test_a_bad_file_is_named_in_one_line(nus, capsys, file, content):
    (nus / "nus" / file).write_text(content)
    assert prepare(nus) == 1
    said = capsys.readouterr().err
    assert file in said and said.count("\n") == 1
    assert not (nus / "data/nuswideseq").exists()
