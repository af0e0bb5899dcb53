"""From a COCO folder to COCOseq: the command and bad input."""

import gzip
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import psutil
import pytest
from PIL import Image
from real_folders import prepare_coco as prepare
from real_folders import write_coco, write_ids

from prslib.cli import main
from prslib.datasets import DATASETS, fingerprint, load_dataset
from prslib.datasets import prepare as command
from prslib.datasets.coco import PREPARED
from prslib.datasets.prepared import SPLITS
from prslib.paths import project_root

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
    fingerprint.cache_clear()
    return tmp_path


def picture(root, half, number):
    return root / "coco" / half / f"COCO_{half}_{number:012d}.jpg"


def scaled(root, half, number):
    with Image.open(picture(root, half, number)) as original:
        return np.asarray(original.convert("RGB").resize((256, 256)))


@pytest.mark.parametrize("workers", ["1", "2"])
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
    folders = ["--annotations", coco / "coco/annotations", "--ids", coco / "ids"]
    assert main(["prepare", "cocoseq", *map(str, folders)]) == 0
    assert len(load_dataset("cocoseq", images=False).train) == 4
    with pytest.raises(FileNotFoundError, match=r"got nothing or labels alone; run"):
        load_dataset("cocoseq")
    before = fingerprint("cocoseq")
    assert prepare(coco) == 0
    assert len(load_dataset("cocoseq").train.inputs) == 4
    fingerprint.cache_clear()
    assert fingerprint("cocoseq") != before
    assert prepare(coco) == 1
    assert "got images.npy; delete it to decode them" in capsys.readouterr().err


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


def test_a_file_that_is_cut_short_is_named(coco):
    assert prepare(coco) == 0
    for name in ("images.npy", "labels.npz"):
        file = coco / "data/cocoseq" / name
        file.write_bytes(file.read_bytes()[:-60])
        with pytest.raises(ValueError, match=f"{file}, but it cannot be read"):
            load_dataset("cocoseq")


def test_after_an_interruption_decoding_begins_again(coco, monkeypatch):
    real, decoded = command.read_image, []

    def read(file):
        decoded.append(file)
        if len(decoded) == 6:
            raise KeyboardInterrupt
        return real(file)

    monkeypatch.setattr(command, "read_image", read)
    assert prepare(coco) == 130
    assert len(load_dataset("cocoseq", images=False).train) == 4  # labels are there
    assert prepare(coco) == 0
    assert len(load_dataset("cocoseq").train.inputs) == 4


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
        r"images missing or broken, got 1, such as train2014/none.*put.*--allow",
    ),
    (VAL_FILE, '"image_id": 11', '"image_id": 777', r"in .*val2014.json, .* 777"),
    (VAL_FILE, '"category_id": 1', '"category_id": 77', r"val2014.json, .* 77\)"),
    (VAL_FILE, '"name": "dog"', '"name": "cat"', r"val2014.json, .* 'cat' repeated"),
    (VAL_FILE, '"name": "cup"', '"name": "cap"', r"both .* got \['cap', 'cup'\]"),
    (VAL_FILE, '"id": 5, "name"', '"id": 4, "name"', "6 categories have 5 ids"),
    (VAL_FILE, '"categories"', '"kinds"', "val2014.json, .*categories"),
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


def test_annotations_may_be_zipped_one_folder_deeper_or_those_of_2017(coco, capsys):
    annotations = coco / "coco/annotations"
    for half in ("train", "val"):
        plain = annotations / f"instances_{half}2014.json"
        later = annotations / f"instances_{half}2017.json.gz"
        later.write_bytes(gzip.compress(plain.read_bytes()))
        plain.unlink()
    command = ["prepare", "cocoseq", "--annotations", str(coco / "coco")]
    assert main(command) == 1
    assert "expected released ids, which name the halves" in capsys.readouterr().err
    assert main([*command, "--ids", str(coco / "ids")]) == 0
    labels = load_dataset("cocoseq", images=False).train.labels.astype(int)
    assert labels.tolist() == [[1, 1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 1], [0, 0, 1, 0]]
    later.unlink()
    assert main(command) == 1
    assert "instances_val2014.json in" in capsys.readouterr().err


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


DECODING = """
import time
import numpy as np
from prslib.datasets.prepare import make_rows

def make(item):
    return np.zeros(200_000, np.uint8)

for _ in make_rows(make, range(400), 2, "image"):
    print("begun", flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize("harm", [signal.SIGKILL, signal.SIGINT])
def test_no_process_stays_where_decoding_is_stopped(harm):
    script = subprocess.Popen(
        [sys.executable, "-c", DECODING],
        env=os.environ | {"PYTHONPATH": str(project_root())},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        # a shell's background work ignores Ctrl-C, and the tests may be that
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert script.stdout.readline() == b"begun\n"
    workers = psutil.Process(script.pid).children()
    assert len(workers) == 2
    os.kill(script.pid, harm)
    script.communicate(timeout=60)
    _, alive = psutil.wait_procs(workers, timeout=30)
    assert not [one for one in alive if one.status() != psutil.STATUS_ZOMBIE]


def test_a_set_that_was_cut_short_is_prepared_again(coco):
    assert prepare(coco) == 0
    (coco / "data/cocoseq/left_out.csv").unlink()  # the last that is written
    assert prepare(coco) == 0
