"""Imbal-MNISTseq, Imbal-SVHNseq and their stand-ins: files, counts, pairs, orders."""

import hashlib
import os
import sys
from functools import partial

import numpy as np
import pytest
import torch
from torchvision import datasets as torchvision

from prslib.cli import main
from prslib.datasets import DATASETS, at_hand, load_dataset, single_label
from prslib.datasets.arrays import read_arrays
from prslib.datasets.base import draw_schedule
from prslib.datasets.single_label import MNIST, SVHN
from prslib.models.networks import make_model
from prslib.training.config import RunConfig
from prslib.training.run import run

REAL = os.environ.get("PRSLIB_DATA")
MNIST_COUNTS = [5923, 2281, 1053, 684, 456, 316, 269, 230, 178, 153]
SVHN_COUNTS = [4948, 4690, 1872, 948, 582, 401, 261, 206, 153, 120]
MNIST_FREQ = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
SVHN_FREQ = [4948, 13861, 10585, 8497, 7458, 6882, 5727, 5595, 5045, 4659]
MNIST_TEST = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
STAND_INS = {
    "imbal-digits": (MNIST_COUNTS, 1),
    "imbal-digits-tiny": (MNIST_COUNTS, 10),
    "imbal-colour-digits": (SVHN_COUNTS, 1),
    "imbal-colour-digits-tiny": (SVHN_COUNTS, 20),
}
GROUPS = ("majority",) + ("moderate",) * 3 + ("minority",) * 6  # MNIST's
ORDER = (1, 2, 3, 4, 5, 6, 7, 8, 9, 0)


@pytest.mark.parametrize(
    ("source", "freq", "counts"),
    [(MNIST, MNIST_FREQ, MNIST_COUNTS), (SVHN, SVHN_FREQ, SVHN_COUNTS)],
)
def test_counts_are_thinned_to_a_pareto_distribution(source, freq, counts):
    density = 0.6 / np.arange(1, 11) ** 1.6
    share = np.minimum(1, density / (density.max() - density.min()))
    assert np.floor(freq * share).astype(int).tolist() == counts
    assert list(source.train_counts) == counts


def test_missing_files_say_what_to_put_where(tmp_path, monkeypatch):
    monkeypatch.delenv("PRSLIB_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match="PRSLIB_DATA"):
        load_dataset("imbal-mnistseq")
    monkeypatch.setenv("PRSLIB_DATA", str(tmp_path))
    for name, missing in (
        ("imbal-mnistseq", "MNIST in .*: mnist.npz or MNIST/raw, got none"),
        (
            "imbal-svhnseq",
            r"SVHN in .*: train_32x32.mat, got none; .*prepare imbal-svhnseq --d",
        ),
    ):
        with pytest.raises(FileNotFoundError, match=missing):
            load_dataset(name)
    assert at_hand(["imbal-mnistseq", "imbal-digits"]) == ["imbal-digits"]
    with pytest.raises(FileNotFoundError, match="expected MNIST in"):
        at_hand(["imbal-mnistseq", "imbal-svhnseq"])


def released_rows(name):
    return read_arrays(single_label.RELEASED, name)[name]


@pytest.fixture
def full_mnist(tmp_path, monkeypatch):
    """MNIST's counts with blank pictures; the first two pixels say which it is."""
    monkeypatch.setenv("PRSLIB_DATA", str(tmp_path))
    arrays, rng = {}, np.random.default_rng(1)
    kept = released_rows("mnist")
    rest = np.setdiff1d(np.arange(60000), kept)
    for split, freq in (("train", MNIST_FREQ), ("test", MNIST_TEST)):
        digits = np.repeat(np.arange(10, dtype=np.uint8), freq)
        if split == "train":  # the released images are of their classes
            digits[rest] = np.repeat(np.arange(10), np.subtract(freq, MNIST_COUNTS))
            digits[kept] = rng.permutation(np.repeat(np.arange(10), MNIST_COUNTS))
        pixels = np.zeros((len(digits), 28, 28), np.uint8)
        pixels[:, 0, 0], pixels[:, 0, 1] = np.divmod(np.arange(len(digits)), 256)
        digest = hashlib.sha256(pixels.tobytes() + digits.tobytes()).hexdigest()
        monkeypatch.setitem(single_label.MNIST_SHA256, split, digest)
        arrays |= {f"x_{split}": pixels, f"y_{split}": digits}
    np.savez(tmp_path / "mnist.npz", **arrays)
    return arrays


def test_imbal_mnistseq_is_thinned_and_its_test_set_whole(full_mnist, capsys):
    dataset = load_dataset("imbal-mnistseq")
    assert dataset.class_freq.tolist() == MNIST_COUNTS
    assert dataset.tests["full"].labels.sum(axis=0).tolist() == MNIST_TEST
    assert dataset.class_task.tolist() == list(range(10))
    assert dataset.class_group == GROUPS
    corner = dataset.train.images[:, 0, :2, 0].astype(int) @ [256, 1]
    np.testing.assert_array_equal(corner, released_rows("mnist"))
    labels = load_dataset("imbal-mnistseq", images=False)
    assert labels.train.images is None
    np.testing.assert_array_equal(labels.train.labels, dataset.train.labels)
    assert at_hand(["imbal-mnistseq", "imbal-svhnseq"]) == ["imbal-mnistseq"]
    assert main(["prepare", "imbal-mnistseq"]) == 0
    assert "11543 training images, 5923 2281 1053 684" in capsys.readouterr().out


def test_download_is_torchvisions(tmp_path, monkeypatch, capsys):
    asked = []

    class Fetched:
        def __init__(self, folder, split, download):
            asked.append((folder, download, split))
            self.data = np.zeros((73257, 3, 32, 32), np.uint8)
            self.labels = np.zeros(73257, np.int64)
            kept = released_rows("svhn")  # of their classes
            self.labels[kept] = np.repeat(np.arange(10), SVHN.train_counts)

    monkeypatch.setenv("PRSLIB_DATA", str(tmp_path))
    monkeypatch.setattr(torchvision, "SVHN", Fetched)
    assert main(["prepare", "imbal-svhnseq", "--download"]) == 0
    assert asked == [(tmp_path, True, "train"), (tmp_path, True, "test")]
    assert "14181 training images, 4948 4690 1872" in capsys.readouterr().out
    monkeypatch.setitem(sys.modules, "torchvision.datasets", None)
    assert main(["prepare", "imbal-svhnseq", "--download"]) == 1
    assert "expected the package torchvision.datasets" in capsys.readouterr().err


@pytest.mark.parametrize("name", STAND_INS)
def test_stand_ins_have_the_papers_counts(name):
    counts, divisor = STAND_INS[name]
    dataset = load_dataset(name, images=False)
    assert dataset.class_freq.tolist() == [count // divisor for count in counts]
    assert dataset.tests["full"].labels.sum(axis=0).tolist() == [200 // divisor] * 10
    assert counts == SVHN_COUNTS or dataset.class_group == GROUPS
    with pytest.raises(ValueError, match="weights that have not learned from test"):
        RunConfig(dataset=name, model="convnet", weights="digits")
    size = {11543: 300, 14181: 500}[sum(counts)] // divisor
    assert DATASETS[name].recipe.memory_size == size


def test_order_is_drawn_from_the_seed_or_given():
    config = partial(RunConfig, dataset="imbal-digits-tiny")
    first, second = config(seed=0), config(seed=1)
    assert first.resolved["schedule"] == draw_schedule(10, 0)
    assert first.resolved["schedule"] != second.resolved["schedule"]
    assert config(schedule=draw_schedule(10, 0)).hash == first.hash
    assert config(schedule=ORDER).hash != first.hash
    drawn = {draw_schedule(10, seed)[0] for seed in range(60)}
    assert drawn == set(range(10))


def test_scores_of_single_label_data():
    config = RunConfig(dataset="imbal-digits-tiny", method="CRS", schedule=ORDER)
    scores = run(config).scores
    assert set(scores["schedule"]) == {"1+2,3+4,5+6,7+8,0+9"}
    accuracy = scores[scores["metric"] == "accuracy"]
    value = accuracy.set_index(["trained_tasks", "task"])["value"]
    assert set(value[1].index) == {"all", "seen", "1+2"}
    pairs = ["1+2", "3+4", "5+6", "7+8", "0+9"]
    assert set(value[5].index) == {"all", "seen", *pairs}
    assert value[5, "all"] == value[5, "seen"]
    # 2 of 10 classes, equal sizes
    assert value[1, "all"] == pytest.approx(value[1, "seen"] / 5)
    assert value[5, "all"] == pytest.approx(value[5][pairs].mean())


@pytest.mark.parametrize(
    ("name", "shape", "features", "size"),
    [  # ResNet-18: four times torchvision's 11.2 million, as twice the width makes it
        ("mlp", (28, 28, 1), 64, 784 * 64 + 64 + 64 * 64 + 64 + 64 * 10 + 10),
        ("resnet18", (32, 32, 3), 1024, pytest.approx(4 * 11.17e6, rel=0.01)),
    ],
)
def test_models_have_the_papers_size(name, shape, features, size):
    model = make_model(name, shape, 10, seed=0)
    images = torch.rand(2, shape[2], *shape[:2])
    assert model.features(images).shape == (2, features)
    assert sum(p.numel() for p in model.parameters()) == size


@pytest.mark.skipif(
    not REAL or not os.path.isfile(os.path.join(REAL, "mnist.npz")),
    reason="needs MNIST",
)
def test_real_mnist_gives_the_known_level():
    dataset = load_dataset("imbal-mnistseq")
    assert dataset.class_freq.tolist() == MNIST_COUNTS
    scores = run(RunConfig(dataset="imbal-mnistseq", method="Multitask")).scores
    rows = scores[(scores["metric"] == "accuracy") & (scores["task"] == "all")]
    assert rows["value"].item() == pytest.approx(0.8167, abs=0.03)  # the paper's
