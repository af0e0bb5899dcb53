"""From a COCO folder to COCOseq: the command, interruptions and bad input."""

import gzip
import hashlib
import json
import re
import shutil
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from real_folders import prepare_coco as prepare
from real_folders import write_coco, write_ids

from prslib.cli import main
from prslib.datasets import DATASETS, arrays, load_dataset
from prslib.datasets import prepare as command
from prslib.datasets.coco import PREPARED
from prslib.datasets.prepared import SPLITS

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
    write_ids(tmp_path / "ids", IDS, "coco")
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("PRSLIB_DATA", str(tmp_path / "data"))
    return tmp_path


def picture(root, half, number):
    return root / "coco" / half / f"COCO_{half}_{number:012d}.jpg"


def scaled(root, half, number):
    with Image.open(picture(root, half, number)) as original:
        return np.asarray(original.convert("RGB").resize((256, 256)))


def test_images_and_labels_are_those_of_the_id_files(coco, capsys, monkeypatch):
    assert prepare(coco, "--workers", "2") == 0
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
    monkeypatch.setattr(command, "read_image", lambda *_: pytest.fail("decoded again"))
    assert prepare(coco) == 0
    assert "11 images; left_out.csv lists 0 others" in capsys.readouterr().out


def test_two_at_once(coco, monkeypatch, capsys):
    beside, real = [], command.read_image

    def read(*place):
        if not beside:
            beside.append(prepare(coco))
        return real(*place)

    monkeypatch.setattr(command, "read_image", read)
    assert prepare(coco) == 0
    assert beside == [1]  # refused while the other one is at work
    assert str(coco / "data/cocoseq/prepare.lock") in capsys.readouterr().err
    assert len(load_dataset("cocoseq").train) == 4


def test_labels_alone_need_no_images_and_images_may_follow(coco):
    folders = ["--annotations", coco / "coco/annotations", "--ids", coco / "ids"]
    assert main(["prepare", "cocoseq", *map(str, folders)]) == 0
    assert len(load_dataset("cocoseq", images=False).train) == 4
    with pytest.raises(FileNotFoundError, match=r"images.bin, got none; .* prepare"):
        load_dataset("cocoseq")
    assert prepare(coco) == 0
    assert len(load_dataset("cocoseq").train.inputs) == 4


def test_missing_and_broken_images_are_left_out_where_that_is_allowed(coco, capsys):
    for broken in (picture(coco, "train2014", 1), picture(coco, "val2014", 12)):
        broken.write_bytes(broken.read_bytes()[:300])
    assert prepare(coco) == 1
    assert "at most 1% of 11 images" in capsys.readouterr().err
    with pytest.raises(ValueError, match="expected 11 rows"):
        load_dataset("cocoseq")
    for file in (*coco.glob("data/cocoseq/images.*"), picture(coco, "train2014", 1)):
        file.unlink()
    assert prepare(coco, "--allow-missing") == prepare(coco) == 0
    assert "9 images; left_out.csv lists 2 others" in capsys.readouterr().out
    listed = (coco / "data/cocoseq/left_out.csv").read_text().split()
    assert [name[-6:-4] for name in listed[1:]] == ["01", "12"]
    for images in (True, False):
        dataset = load_dataset("cocoseq", images)
        sizes = [len(split) for split in (dataset.train, *dataset.tests.values())]
        assert sizes == [3, 4, 4]
    dataset = load_dataset("cocoseq")
    np.testing.assert_array_equal(dataset.train.inputs[2], scaled(coco, "train2014", 3))
    last = dataset.tests["imbalanced"].inputs[3]
    np.testing.assert_array_equal(last, scaled(coco, "val2014", 15))
    for file in coco.glob("data/cocoseq/images.*"):
        file.unlink()
    assert len(load_dataset("cocoseq", images=False).train) == 4


def test_interrupted_it_goes_on_where_it_stopped(coco, monkeypatch):
    assert prepare(coco) == 0
    folder, real, decoded = coco / "data/cocoseq", command.read_image, []
    images = (folder / "images.bin").read_bytes()
    shutil.rmtree(folder)

    def read(root, name):
        decoded.append(name)
        if len(decoded) == 6:
            raise KeyboardInterrupt
        return real(root, name)

    monkeypatch.setattr(command, "read_image", read)
    monkeypatch.setattr(arrays, "CHUNK", 2)
    assert prepare(coco) == 130
    assert len(load_dataset("cocoseq", images=False).train) == 4  # labels are there
    assert prepare(coco) == 0
    assert len(decoded) == 13 and len(set(decoded)) == 11
    assert (folder / "images.bin").read_bytes() == images


def edit(root, file, old, new):
    content = (root / file).read_text()
    assert old in content
    (root / file).write_text(content.replace(old, new, 1))


BAD = [  # a file, what stands there, what is to stand there, and the message
    (
        "coco/annotations/instances_train2014.json",
        "COCO_train2014_000000000001",
        "none",
        r"images missing or broken, got 1, such as train2014/none.*put.*--allow",
    ),
    (
        "coco/annotations/instances_val2014.json",
        '"image_id": 11',
        '"image_id": 777',
        r"COCO's instances in .*val2014.json, .*annotation of 777.*download",
    ),
    (
        "ids/test_task1_id_coco.json",
        "13",
        "4000",
        r"annotated images in .*test_task1.*KeyError: 4000\).*anew",
    ),
    (
        "ids/train_task0_id_coco.json",
        "1]",
        "1, 5]",
        r"of a sample's own task .* task 1 with label 'dog'",
    ),
]


@pytest.mark.parametrize(("file", "old", "new", "message"), BAD)
def test_bad_input_is_named_before_any_work(coco, capsys, file, old, new, message):
    edit(coco, file, old, new)
    assert prepare(coco) == 1
    said = capsys.readouterr().err
    assert re.search(message, said), said
    assert not (coco / "data/cocoseq").exists()


def change_categories(root, change):
    """Write the validation half's categories as `change` returns them."""
    file = root / "coco/annotations/instances_val2014.json"
    content = json.loads(file.read_text())
    content["categories"] = change(content["categories"])
    file.write_text(json.dumps(content))


def test_categories_of_both_halves_are_joined_by_name(coco):
    def renumber(categories):
        return [entry | {"id": 10 * entry["id"]} for entry in categories[::-1]]

    change_categories(coco, renumber)
    file = coco / "coco/annotations/instances_val2014.json"
    content = json.loads(file.read_text())
    for entry in content["annotations"]:
        entry["category_id"] *= 10
    file.write_text(json.dumps(content))
    assert prepare(coco) == 0
    labels = load_dataset("cocoseq").tests["balanced"].labels.astype(int).tolist()
    assert labels == [[0, 1, 0, 0], [0, 0, 0, 1], [1, 0, 0, 0], [0, 0, 1, 0]]


@pytest.mark.parametrize(
    ("change", "file", "said"),
    [
        (lambda rows: rows[:3] + rows[4:], "val2014", "none called 'cup'; give both"),
        (
            lambda rows: [*rows, {"id": 9, "name": "zebra"}],
            "train2014",
            "'zebra'; give",
        ),
        (
            lambda rows: [*rows, {"id": 9, "name": "dog"}],
            "val2014",
            "a name for each class, got 'dog' repeated",
        ),
        (
            lambda rows: [*rows, {"id": 5, "name": "eel"}],
            "val2014",
            "category id 5 stands there 2 times",
        ),
    ],
)
def test_categories_that_differ_or_repeat_are_named(coco, capsys, change, file, said):
    change_categories(coco, change)
    assert prepare(coco) == 1
    error = capsys.readouterr().err
    assert said in error and f"instances_{file}.json" in error


def test_an_image_in_both_halves_is_named(coco, capsys):
    file = coco / "coco/annotations/instances_val2014.json"
    content = json.loads(file.read_text())
    content["images"].append({"id": 1, "file_name": "x.jpg"})
    file.write_text(json.dumps(content))
    assert prepare(coco) == 1
    error = capsys.readouterr().err
    assert "expected other image ids in" in error and "got 1 in both" in error


def test_annotations_may_be_zipped_one_folder_deeper_or_those_of_2017(coco, capsys):
    annotations = coco / "coco/annotations"
    ids = ["--ids", str(coco / "ids")]
    for half in ("train", "val"):
        plain = annotations / f"instances_{half}2014.json"
        later = f"instances_{half}2017.json.gz"
        (annotations / later).write_bytes(gzip.compress(plain.read_bytes()))
        plain.unlink()
    command = ["prepare", "cocoseq", "--annotations", str(coco / "coco")]
    assert main(command) == 1
    assert "expected released ids, which name the halves" in capsys.readouterr().err
    assert main([*command, *ids]) == 0
    dataset = load_dataset("cocoseq", images=False)
    assert dataset.train.labels.astype(int).tolist() == [
        *([1, 1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 1], [0, 0, 1, 0])
    ]
    (annotations / later).unlink()
    assert main([*command, *ids]) == 1
    error = capsys.readouterr().err
    what = "expected instances_train2014.json and instances_val2014.json in"
    assert what in error and "got instances_train2017.json.gz; unpack" in error


def test_work_on_another_selection_is_not_overwritten(coco, capsys):
    prepare(coco)
    before = (coco / "data/cocoseq/images.bin").read_bytes()
    edit(coco, "ids/test_task0_id_coco.json", "11, 7", "11")
    assert prepare(coco) == 1
    assert "got those of another selection" in capsys.readouterr().err
    assert (coco / "data/cocoseq/images.bin").read_bytes() == before


def test_id_files_are_fetched_once_and_must_be_the_released_ones(coco, monkeypatch):
    monkeypatch.setattr(command, "ID_ADDRESS", (coco / "web").as_uri())
    web, ids = coco / "web/COCOseq/ids", coco / "fetched"
    shutil.copytree(coco / "ids", web)
    files = [file for split in SPLITS for file in PREPARED.id_files(web, split)]
    content = b"".join(file.read_bytes() for file in files)
    released = replace(PREPARED, id_digest=hashlib.sha256(content).hexdigest())
    with pytest.raises(ValueError, match=f"released id files in {ids}, got others"):
        command.download_ids(PREPARED, ids)
    shutil.rmtree(web)  # nothing is asked for again
    assert command.download_ids(released, ids) == ids
    (ids / "test_task0_id_coco.json").unlink()
    with pytest.raises(OSError, match="test_task0"):
        command.download_ids(released, ids)
