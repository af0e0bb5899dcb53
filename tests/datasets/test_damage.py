"""A damaged file is refused by its name or gives what was written: no other numbers."""

import hashlib
import random
import shutil

import numpy as np
import pytest
import scipy.io
from real_folders import write_coco, write_ids
from torchvision import datasets as torchvision

from prslib.cli import main
from prslib.datasets import DATASETS, features, load_dataset, single_label
from prslib.datasets.arrays import read_arrays

IMAGES = [(number, ["apple", "bear"][: 1 + number % 2]) for number in range(1, 6)]
IDS = {"train": [[1, 2, 3]], "test": [[4]], "teorg": [[6]]}
KINDS = (
    "data/cocoseq/images.bin",
    "data/cocoseq/images.sums",
    "data/cocoseq/labels.npz",
    "data/cocoseq/corpus.npz",
    "data/cocoseq/features*.bin",
    "data/cocoseq/features*.sums",
    "data/cocoseq/features.txt",
    "keras/mnist.npz",
    "idx/MNIST/raw/train-images-idx3-ubyte",
    "idx/MNIST/raw/t10k-labels-idx1-ubyte",
    "svhn/test_32x32.mat",
    "MINI",
    "RELEASED",
)


def idx(array):
    sizes = (0x0800 + array.ndim, *array.shape)
    return np.array(sizes, dtype=">i4").tobytes() + array.tobytes()


def write_single_label(root, patch):
    """Write MNIST in both forms and SVHN, tiny ones that are taken for the real."""
    rng = np.random.default_rng(0)
    digits = np.array([0, 9, 4], dtype=np.uint8)
    raw = root / "idx/MNIST/raw"
    for folder in (root / "keras", raw, root / "svhn"):
        folder.mkdir(parents=True)
    keras, svhn = {}, {}
    for split, prefix in (("train", "train"), ("test", "t10k")):
        pixels = rng.integers(0, 256, (3, 28, 28), dtype=np.uint8)
        keras |= {f"x_{split}": pixels, f"y_{split}": digits}
        (raw / f"{prefix}-images-idx3-ubyte").write_bytes(idx(pixels))
        (raw / f"{prefix}-labels-idx1-ubyte").write_bytes(idx(digits))
        digest = hashlib.sha256(pixels.tobytes() + digits.tobytes()).hexdigest()
        patch.setitem(single_label.MNIST_SHA256, split, digest)
        file = root / f"svhn/{split}_32x32.mat"
        pixels = rng.integers(0, 256, (32, 32, 3, 3), dtype=np.uint8)
        labels = np.array([[10], [9], [4]])
        scipy.io.savemat(file, {"X": pixels, "y": labels}, do_compression=True)
        svhn[split] = ["", file.name, hashlib.md5(file.read_bytes()).hexdigest()]
    np.savez(root / "keras/mnist.npz", **keras)
    patch.setattr(torchvision.SVHN, "split_list", svhn)
    np.savez(root / "all_rows.npz", mnist=np.arange(3), svhn=np.arange(3))


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("damage")
    with pytest.MonkeyPatch.context() as patch:
        write_single_label(root, patch)
        halves = {"train2014": IMAGES, "val2014": [(6, ["apple"])]}
        write_coco(root / "coco", halves, ("apple", "bear"))
        write_ids(root / "ids", IDS, "coco")
        (root / "data").mkdir()
        patch.setenv("PRSLIB_DATA", str(root / "data"))
        folders = {"images": "coco", "annotations": "coco/annotations", "ids": "ids"}
        options = [f"--{name}={root / folder}" for name, folder in folders.items()]
        assert main(["prepare", "cocoseq", "--workers", "1", *options]) == 0
        patch.setattr(features, "frozen_network", lambda _: (None, "sha256:0"))
        patch.setattr(features, "embed", see)
        assert main(["prepare", "features", "cocoseq", "--workers", "1"]) == 0
        for module, name in ((features, "MINI"), (single_label, "RELEASED")):
            shutil.copy(getattr(module, name), root / name)
            patch.setattr(module, name, root / name)
        yield root


def see(image, name):
    return image[:2, :2, 0].ravel().astype(np.float32)


def arrays_of(dataset):
    splits = (dataset.train, *dataset.tests.values())
    return [array for split in splits for array in (split.images, split.labels)]


def read(root, kind):
    """Return the arrays that a file of a kind is read for."""
    if "features" in kind:
        return arrays_of(load_dataset("cocoseq-features"))
    if "corpus" in kind:
        return [DATASETS["cocoseq"].clustering().labels]
    if kind == "MINI":
        return arrays_of(load_dataset("cocoseq-tiny"))
    if kind == "RELEASED":
        return list(read_arrays(single_label.RELEASED).values())
    if kind.startswith(("keras", "idx", "svhn")):
        source = single_label.SVHN if kind.startswith("svhn") else single_label.MNIST
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PRSLIB_DATA", str(root / kind.split("/")[0]))
            patch.setattr(single_label, "RELEASED", root / "all_rows.npz")
            return arrays_of(load_dataset(source.name))
    return arrays_of(load_dataset("cocoseq"))


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
    before, content = read(root, kind), file.read_bytes()
    rng, refused = random.Random(kind), 0
    for other in [o for _ in range(5) for o in damaged(content, rng)]:
        file.write_bytes(other)
        try:
            again = read(root, kind)
        except (ValueError, OSError) as error:
            refused += 1
            assert str(root / kind.partition("/")[0]) in str(error), error
        else:
            for array, expected in zip(again, before, strict=True):
                np.testing.assert_array_equal(array, expected)
    file.write_bytes(content)
    assert refused > 5
