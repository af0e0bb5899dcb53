"""From a COCO folder to COCOseq: the command and bad input."""

import io
import json
import os
import re
from itertools import islice

import numpy as np
import pytest
from PIL import Image
from real_folders import prepare_coco as prepare
from real_folders import write_coco, write_ids

from prslib.cli import main
from prslib.datasets import DATASETS, fingerprint, load_dataset
from prslib.datasets.prepare import make_rows

NAMES = ("apple", "bear", "cat", "cup", "dog", "person")
# the fifth is of both tasks and in no id file, the sixth has no annotation
TRAIN = "apple,apple bear person,cat,cat dog cup,apple dog,,bear,dog,person"
VAL = "apple,bear,cat person,dog,dog"
HALVES = {
    half: [(number, letters.split()) for number, letters in enumerate(images, first)]
    for half, images, first in (
        ("train2014", TRAIN.split(","), 1),
        ("val2014", VAL.split(","), 11),
    )
}
IDS = {
    "train": [[2, 1], [4, 3]],
    "test": [[11, 7], [13, 8]],
    "teorg": [[11, 12], [13, 14, 15]],
}


@pytest.fixture
def coco(tmp_path, monkeypatch):
    write_coco(tmp_path / "coco", HALVES, NAMES)
    write_ids(tmp_path / "data/cocoseq_ids", IDS, "coco")
    monkeypatch.setenv("PRSLIB_DATA", str(tmp_path / "data"))
    fingerprint.cache_clear()
    return tmp_path


def picture(root, half, number):
    return root / "coco" / half / f"COCO_{half}_{number:012d}.jpg"


def scaled(root, half, number):
    with Image.open(picture(root, half, number)) as original:
        return np.asarray(original.convert("RGB").resize((256, 256)))


@pytest.mark.parametrize("workers", ["0", "2"])
def test_images_and_labels_are_those_of_the_id_files(coco, capsys, workers):
    assert prepare(coco, "--workers", workers) == 0
    dataset = load_dataset("cocoseq")
    assert dataset.class_names == ("apple", "bear", "cat", "dog")
    assert dataset.class_task.tolist() == [0, 0, 1, 1]
    assert dataset.stands_for == "COCOseq"
    expected = {
        "train": ([2, 1, 4, 3], ["1100", "1000", "0011", "0010"]),
        "balanced": ([7, 8, 11, 13], ["0100", "0001", "1000", "0010"]),
        "imbalanced": ([11, 13, 12, 14, 15], ["1000", "0010", "0100", "0001", "0001"]),
    }
    for name, split in {"train": dataset.train, **dataset.tests}.items():
        numbers, labels = expected[name]
        assert ["".join(map(str, row)) for row in split.labels.astype(int)] == labels
        assert split.inputs.shape == (len(numbers), 256, 256, 3)
        for image, number in zip(split.inputs, numbers, strict=True):
            half = "train2014" if number < 10 else "val2014"
            np.testing.assert_array_equal(image, scaled(coco, half, number))
    assert "the released split, 11 images" in capsys.readouterr().out
    without = load_dataset("cocoseq", images=False)
    assert without.train.inputs is None
    np.testing.assert_array_equal(without.train.labels, dataset.train.labels)
    clustering = DATASETS["cocoseq"].clustering()
    assert clustering.class_names == ("apple", "bear", "cat", "cup", "dog")
    assert clustering.labels.sum(axis=0).tolist() == [3, 2, 2, 1, 3]
    assert (coco / "data/cocoseq/left_out.csv").read_text() == "file"


def test_labels_alone_need_no_images_and_images_may_follow(coco, capsys):
    annotations = f"--annotations={coco}/coco/annotations"
    assert main(["prepare", "cocoseq", annotations]) == 0
    assert len(load_dataset("cocoseq", images=False).train) == 4
    with pytest.raises(FileNotFoundError, match=r"images.npy, got none; see"):
        load_dataset("cocoseq")
    before = fingerprint("cocoseq")
    assert prepare(coco) == 0
    assert len(load_dataset("cocoseq").train.inputs) == 4
    fingerprint.cache_clear()
    assert fingerprint("cocoseq") != before
    assert prepare(coco) == 1
    assert "got images.npy; delete it to decode them" in capsys.readouterr().err


def test_lists_of_ids_that_are_not_there_are_fetched(coco, monkeypatch):
    lists = {file.name: file for file in (coco / "data/cocoseq_ids").iterdir()}
    content = lists["train_task0_id_coco.json"].read_bytes()
    lists["train_task0_id_coco.json"].unlink()
    asked = []

    def answer(address, timeout):
        asked.append(address)
        return io.BytesIO(content)

    monkeypatch.setattr("prslib.datasets.prepare.urlopen", answer)
    assert prepare(coco) == 0
    (address,) = asked
    assert address.endswith("/COCOseq/ids/train_task0_id_coco.json")
    assert lists["train_task0_id_coco.json"].read_bytes() == content


def test_missing_and_broken_images_are_left_out_where_that_is_allowed(coco, capsys):
    for broken in (picture(coco, "train2014", 1), picture(coco, "val2014", 12)):
        broken.write_bytes(broken.read_bytes()[:300])
    assert prepare(coco) == 1
    assert "at most 1% of 11 images missing or broken, got 2" in capsys.readouterr().err
    picture(coco, "train2014", 1).unlink()
    assert prepare(coco) == 1
    assert "got 1, such as train2014" in capsys.readouterr().err
    assert not list(coco.glob("data/cocoseq/images*"))
    assert prepare(coco, "--allow-missing") == 0
    assert "9 images; left_out.csv lists 2 others" in capsys.readouterr().out
    listed = (coco / "data/cocoseq/left_out.csv").read_text().split()
    assert [name[-6:-4] for name in listed[1:]] == ["01", "12"]
    dataset = load_dataset("cocoseq")
    sizes = [len(split) for split in (dataset.train, *dataset.tests.values())]
    assert sizes == [3, 4, 4]
    np.testing.assert_array_equal(dataset.train.inputs[2], scaled(coco, "train2014", 3))
    last = dataset.tests["imbalanced"].inputs[3]
    np.testing.assert_array_equal(last, scaled(coco, "val2014", 15))


def test_no_more_images_are_decoded_than_a_block_before_they_are_written(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("prslib.datasets.prepare.BLOCK", 3)
    rows = make_rows(os.mkdir, [tmp_path / str(k) for k in range(50)], 2)
    assert list(islice(rows, 6)) == [None] * 6
    assert len(list(tmp_path.iterdir())) == 6
    assert len(list(rows)) == 44


def edit(root, file, old, new):
    content = (root / file).read_text()
    assert old in content
    (root / file).write_text(content.replace(old, new, 1))


VAL_FILE = "coco/annotations/instances_val2014.json"
BAD = [  # a file, what stands there, what is to stand there, and the message
    (
        "coco/annotations/instances_train2014.json",
        "COCO_train2014_000000000001",
        "none",
        r"images missing or broken, got 1, such as train2014/none.*--allow",
    ),
    (VAL_FILE, '"image_id": 11', '"image_id": 777', r"in .*val2014.json, .* 777"),
    (VAL_FILE, '"name": "dog"', '"name": "cat"', r"val2014.json, .* got \['cat'\]"),
    (
        "data/cocoseq_ids/train_task0_id_coco.json",
        "1]",
        "1, 5]",
        r"of a sample's task .* sample 3 with label 'dog'",
    ),
]


@pytest.mark.parametrize(("file", "old", "new", "message"), BAD)
def test_bad_input_is_named_before_any_work(coco, capsys, file, old, new, message):
    edit(coco, file, old, new)
    assert prepare(coco) == 1
    said = capsys.readouterr().err
    assert re.search(message, said), said
    assert said.count("\n") == 1
    assert not (coco / "data/cocoseq").exists()


def test_categories_of_both_halves_are_joined_by_name(coco):
    content = json.loads((coco / VAL_FILE).read_text())
    for entry in content["annotations"]:
        entry["category_id"] *= 10
    for entry in content["categories"]:
        entry["id"] *= 10
    content["categories"].reverse()
    (coco / VAL_FILE).write_text(json.dumps(content))
    assert prepare(coco) == 0
    labels = load_dataset("cocoseq").tests["balanced"].labels.astype(int).tolist()
    assert labels == [[0, 1, 0, 0], [0, 0, 0, 1], [1, 0, 0, 0], [0, 0, 1, 0]]
