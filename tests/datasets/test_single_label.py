"""Imbal-MNISTseq, Imbal-SVHNseq and their stand-ins: files, counts, pairs, orders."""

import hashlib
import shutil

import numpy as np
import pytest
from torchvision import datasets as torchvision

from prslib.cli import main
from prslib.datasets import DATASETS, available, load_dataset, single_label
from prslib.datasets.arrays import read_arrays
from prslib.datasets.single_label import MNIST, SVHN
from prslib.train import RunConfig, run

MNIST_FREQ = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
SVHN_FREQ = [4948, 13861, 10585, 8497, 7458, 6882, 5727, 5595, 5045, 4659]
MNIST_TEST = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
STAND_INS = {  # the source, how many times smaller, and the memory's size
    "imbal-digits": (MNIST, 1, 300),
    "imbal-digits-tiny": (MNIST, 10, 30),
    "imbal-colour-digits": (SVHN, 1, 500),
    "imbal-colour-digits-tiny": (SVHN, 20, 25),
}
ORDER = (1, 2, 3, 4, 5, 6, 7, 8, 9, 0)


def test_counts_are_thinned_to_a_pareto_distribution():
    density = 0.6 / np.arange(1, 11) ** 1.6
    share = np.minimum(1, density / (density.max() - density.min()))
    for source, freq in ((MNIST, MNIST_FREQ), (SVHN, SVHN_FREQ)):
        assert np.floor(freq * share).tolist() == list(source.train_counts)


def test_missing_files_say_what_to_put_where(tmp_path, monkeypatch):
    monkeypatch.delenv("PRSLIB_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match="PRSLIB_DATA"):
        load_dataset("imbal-mnistseq")
    monkeypatch.setenv("PRSLIB_DATA", str(tmp_path))
    missing = r"SVHN in .*: train_32x32.mat, got none; .*prepare imbal-svhnseq --d"
    with pytest.raises(FileNotFoundError, match=missing):
        load_dataset("imbal-svhnseq")
    assert available(["imbal-mnistseq", "imbal-digits"]) == ["imbal-digits"]
    missing = "MNIST in .*: mnist.npz or MNIST/raw, got none"
    with pytest.raises(FileNotFoundError, match=missing):
        available(["imbal-mnistseq", "imbal-svhnseq"])


RELEASED = read_arrays(single_label.RELEASED)


def idx(array):
    sizes = (0x0800 + array.ndim, *array.shape)
    return np.array(sizes, dtype=">i4").tobytes() + array.tobytes()


@pytest.fixture(params=["mnist.npz", "MNIST/raw"])
def full_mnist(tmp_path, monkeypatch, request):
    """MNIST's counts with blank pictures; the first two pixels say which it is."""
    monkeypatch.setenv("PRSLIB_DATA", str(tmp_path))
    arrays, rng, released = {}, np.random.default_rng(1), RELEASED["mnist"]
    rest = np.setdiff1d(np.arange(60000), released)
    raw = tmp_path / "MNIST/raw"
    raw.mkdir(parents=True)
    halves = ("train", "train", MNIST_FREQ), ("test", "t10k", MNIST_TEST)
    for split, prefix, freq in halves:
        digits = np.repeat(np.arange(10, dtype=np.uint8), freq)
        if split == "train":  # the released images are of their classes
            counts = MNIST.train_counts
            digits[rest] = np.repeat(np.arange(10), np.subtract(freq, counts))
            digits[released] = rng.permutation(np.repeat(np.arange(10), counts))
        pixels = np.zeros((len(digits), 28, 28), np.uint8)
        pixels[:, 0, 0], pixels[:, 0, 1] = np.divmod(np.arange(len(digits)), 256)
        digest = hashlib.sha256(pixels.tobytes() + digits.tobytes()).hexdigest()
        monkeypatch.setitem(single_label.MNIST_SHA256, split, digest)
        arrays |= {f"x_{split}": pixels, f"y_{split}": digits}
        for kind, array in (("images-idx3", pixels), ("labels-idx1", digits)):
            (raw / f"{prefix}-{kind}-ubyte").write_bytes(idx(array))
    if request.param == "mnist.npz":
        shutil.rmtree(raw)
        np.savez(tmp_path / "mnist.npz", **arrays)


@pytest.mark.usefixtures("full_mnist")
def test_imbal_mnistseq_is_thinned_and_its_test_set_whole(capsys, monkeypatch):
    dataset = load_dataset("imbal-mnistseq")
    assert dataset.class_freq.tolist() == list(MNIST.train_counts)
    assert dataset.tests["full"].labels.sum(axis=0).tolist() == MNIST_TEST
    assert dataset.class_task.tolist() == list(range(10))
    groups = ("majority",) + ("moderate",) * 3 + ("minority",) * 6
    assert dataset.class_group == groups
    corner = dataset.train.inputs[:, 0, :2, 0].astype(int) @ [256, 1]
    np.testing.assert_array_equal(corner, RELEASED["mnist"])
    labels = load_dataset("imbal-mnistseq", images=False)
    assert labels.train.inputs is None
    np.testing.assert_array_equal(labels.train.labels, dataset.train.labels)
    assert main(["prepare", "imbal-mnistseq"]) == 0
    assert "11543 training images, 5923 2281 1053 684" in capsys.readouterr().out
    monkeypatch.setitem(single_label.MNIST_SHA256, "test", "of other bytes")
    said = "original MNIST in .*its test set has other bytes"
    with pytest.raises(ValueError, match=said):
        load_dataset("imbal-mnistseq")


def test_download_is_torchvisions(tmp_path, monkeypatch, capsys):
    asked = []

    class Fetched:
        def __init__(self, folder, split, download):
            asked.append((folder, download, split))
            self.data = np.zeros((73257, 3, 32, 32), np.uint8)
            self.labels = np.zeros(73257, np.int64)
            # of their classes
            self.labels[RELEASED["svhn"]] = np.repeat(np.arange(10), SVHN.train_counts)

    monkeypatch.setenv("PRSLIB_DATA", str(tmp_path))
    monkeypatch.setattr(torchvision, "SVHN", Fetched)
    assert main(["prepare", "imbal-svhnseq", "--download"]) == 0
    assert asked == [(tmp_path, True, "train"), (tmp_path, True, "test")]
    assert "14181 training images, 4948 4690 1872" in capsys.readouterr().out
    (tmp_path / "train_32x32.mat").touch()
    assert load_dataset("imbal-svhnseq").train.inputs.shape == (14181, 32, 32, 3)


@pytest.mark.parametrize("name", STAND_INS)
def test_stand_ins_have_the_papers_counts(name):
    source, divisor, memory_size = STAND_INS[name]
    dataset = load_dataset(name, images=False)
    expected = [count // divisor for count in source.train_counts]
    assert dataset.class_freq.tolist() == expected
    assert dataset.tests["full"].labels.sum(axis=0).tolist() == [200 // divisor] * 10
    assert DATASETS[name].recipe.memory_size == memory_size
    with pytest.raises(ValueError, match="weights that have not learned from test"):
        RunConfig(dataset=name, model="convnet", weights="digits")


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
