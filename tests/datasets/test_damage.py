"""A damaged file is refused by its name or gives what was written: no other numbers."""

import random
import shutil
import zipfile

import numpy as np
import pytest
from real_folders import prepare_coco, write_coco, write_ids

from prslib.cli import main
from prslib.datasets import DATASETS, features, load_dataset
from prslib.datasets.arrays import read_arrays, write_arrays

IMAGES = [(number, ["apple", "bear"][: 1 + number % 2]) for number in range(1, 6)]
IDS = {"train": [[1, 2, 3]], "test": [[4]], "teorg": [[6]]}
KINDS = {  # a file, and a data set that is read from it
    "data/cocoseq/images.bin": "cocoseq",
    "data/cocoseq/images.sums": "cocoseq",
    "data/cocoseq/labels.npz": "cocoseq",
    "data/cocoseq/corpus.npz": "",
    "data/cocoseq/features*.bin": "cocoseq-features",
    "data/cocoseq/features*.sums": "cocoseq-features",
    "data/cocoseq/features.txt": "cocoseq-features",
    "mini.npz": "",
}


def see(image, name):
    return image[:2, :2, 0].ravel().astype(np.float32)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("damage")
    with pytest.MonkeyPatch.context() as patch:
        halves = {"train2014": IMAGES, "val2014": [(6, ["apple"])]}
        write_coco(root / "coco", halves, ("apple", "bear"))
        write_ids(root / "ids", IDS, "coco")
        (root / "data").mkdir()
        patch.setenv("PRSLIB_DATA", str(root / "data"))
        assert prepare_coco(root) == 0
        patch.setattr(features, "frozen_network", lambda _: (None, "sha256:0"))
        patch.setattr(features, "embed", see)
        assert main(["prepare", "features", "cocoseq", "--workers", "1"]) == 0
        shutil.copy(features.MINI, root / "mini.npz")
        patch.setattr(features, "MINI", root / "mini.npz")
        yield root


def read(kind):
    """Return the arrays that a file of a kind is read for."""
    if "corpus" in kind:
        return [DATASETS["cocoseq"].clustering().labels]
    if kind == "mini.npz":  # load_dataset keeps what it has read
        dataset = features.load_mini.__wrapped__(True, "mini", 1)
    else:
        dataset = load_dataset(KINDS[kind])
    splits = (dataset.train, *dataset.tests.values())
    return [array for split in splits for array in (split.inputs, split.labels)]


def damaged(content, rng):
    """Return other bytes: a bit flipped, a run of zeros, or cut."""
    position = rng.randrange(len(content))
    flipped = bytes([content[position] ^ 1 << rng.randrange(8)])
    yield content[:position] + flipped + content[position + 1 :]
    yield content[:position]
    yield content[:position] + bytes(60) + content[position + 60 :]


@pytest.mark.parametrize("kind", KINDS)
def test_damage_is_named_or_changes_nothing(root, kind):
    (file,) = root.glob(kind)
    before, content = read(kind), file.read_bytes()
    rng, refused = random.Random(kind), 0
    for other in [o for _ in range(5) for o in damaged(content, rng)]:
        file.write_bytes(other)
        try:
            again = read(kind)
        except (ValueError, OSError) as error:
            refused += 1
            assert str(root / kind.partition("/")[0]) in str(error), error
        else:
            for array, expected in zip(again, before, strict=True):
                np.testing.assert_array_equal(array, expected)
    file.write_bytes(content)
    assert refused > 5


# arrays with the right checksums that do not fit the others
FORGED = {
    "labels": lambda labels: labels[:, 1:],
    "task": lambda task: task[1:],
    "files": lambda files: files[1:],
    "bounds": lambda bounds: bounds + 9000,
    "class_task": lambda tasks: tasks + 1,
    "class_group": lambda groups: groups[1:],
    "origin": lambda _: np.array("elsewhere"),
    "features": lambda rows: rows.astype(float),
    "scale": lambda scale: scale[1:],
}


@pytest.mark.parametrize("kind", ["data/cocoseq/labels.npz", "mini.npz"])
def test_arrays_that_do_not_fit_are_refused_by_their_file(root, kind):
    content = (root / kind).read_bytes()
    stored = read_arrays(root / kind)
    for name in FORGED.keys() & stored.keys():
        write_arrays(root / kind, **stored | {name: FORGED[name](stored[name])})
        with pytest.raises(ValueError, match=str(root / kind)):
            read(kind)
    (root / kind).write_bytes(content)


def test_two_arrays_that_change_places_are_refused(root):
    """Their shapes fit, and each has the right checksum."""
    file = root / "data/cocoseq/corpus.npz"
    content = file.read_bytes()
    with zipfile.ZipFile(file) as stored:
        digest = stored.comment
        members = {name: stored.read(name) for name in stored.namelist()}
    other = {"split.npy": "image_id.npy", "image_id.npy": "split.npy"}
    with zipfile.ZipFile(file, "w") as changed:
        changed.comment = digest
        for name in members:
            changed.writestr(name, members[other.get(name, name)])
    with pytest.raises(ValueError, match=f"{file}.*the members that were written"):
        read("data/cocoseq/corpus.npz")
    file.write_bytes(content)


def test_a_table_of_labels_that_does_not_fit_is_refused_by_its_file(root):
    file = root / "data/cocoseq/corpus.npz"
    content, stored = file.read_bytes(), read_arrays(file)
    for name in ("labels", "split", "names"):
        others = stored | {name: stored[name][1:]}, stored.copy()
        del others[1][name]
        for arrays in others:
            write_arrays(file, **arrays)
            with pytest.raises(ValueError, match=str(file)):
                read("data/cocoseq/corpus.npz")
    file.write_bytes(content)
