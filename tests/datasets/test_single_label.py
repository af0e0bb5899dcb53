"""Imbal-MNISTseq, Imbal-SVHNseq and their stand-ins: files, counts, pairs, orders."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torchvision import datasets as torchvision

from prslib.cli import main
from prslib.datasets import DATASETS, available, load_dataset, single_label
from prslib.datasets.arrays import read_arrays
from prslib.datasets.single_label import MNIST, SVHN
from prslib.train import RunConfig, run

MNIST_FREQ = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
SVHN_FREQ = [4948, 13861, 10585, 8497, 7458, 6882, 5727, 5595, 5045, 4659]
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
    missing = "train_32x32.mat, got none; see .*prepare"
    with pytest.raises(FileNotFoundError, match=missing):
        load_dataset("imbal-svhnseq")
    assert available(["imbal-mnistseq", "imbal-digits"]) == ["imbal-digits"]
    with pytest.raises(FileNotFoundError, match="MNIST/raw, got none"):
        available(["imbal-mnistseq", "imbal-svhnseq"])


RELEASED = read_arrays(single_label.RELEASED)


ORIGINALS = {  # shape of a small image, and numbers of training and test images
    MNIST: ((2, 2), {True: 60000, False: 10000}),
    SVHN: ((3, 2, 2), {"train": 73257, "test": 26032}),
}


@pytest.mark.parametrize("source", ORIGINALS)
def test_stream_is_thinned_and_its_test_set_whole(
    source, tmp_path, monkeypatch, capsys
):
    shape, counts = ORIGINALS[source]
    released = RELEASED[source.original.lower()]
    digits = np.arange(max(counts.values())) % 10
    digits[released] = np.repeat(np.arange(10), source.train_counts)
    asked = []

    def read(folder, half, download):
        asked.append((folder, half, download))
        numbers = np.arange(counts[half])
        pixels = np.zeros((len(numbers), *shape), np.uint8)
        pixels.reshape(len(numbers), -1)[:, 0] = numbers % 256
        data = torch.tensor(pixels) if source is MNIST else pixels
        labels = digits[numbers]
        return SimpleNamespace(data=data, labels=labels, targets=torch.tensor(labels))

    monkeypatch.setattr(torchvision, source.original, read)
    monkeypatch.setenv("PRSLIB_DATA", str(tmp_path))
    assert main(["prepare", source.name]) == 0
    assert asked == [(tmp_path, half, True) for half in counts]
    first, second, third, *_ = source.train_counts
    told = f"{len(released)} training images, {first} {second} {third}"
    assert told in capsys.readouterr().out
    (tmp_path / source.file).mkdir(parents=True)
    dataset = load_dataset(source.name)
    assert dataset.class_freq.tolist() == list(source.train_counts)
    assert dataset.train.inputs.shape[3] == (1 if source is MNIST else 3)
    test = dataset.tests["full"].labels.argmax(axis=1)
    assert np.array_equal(test, digits[: min(counts.values())])
    assert dataset.class_task.tolist() == list(range(10))
    groups = ("majority",) + ("moderate",) * 3 + ("minority",) * 6
    assert source is SVHN or dataset.class_group == groups
    corner = dataset.train.inputs[:, 0, 0, 0]
    np.testing.assert_array_equal(corner, released % 256)
    labels = load_dataset(source.name, images=False)
    assert labels.train.inputs is None
    np.testing.assert_array_equal(labels.train.labels, dataset.train.labels)
    digits[released[0]] = 9
    with pytest.raises(ValueError, match=f"original {source.original} in .* others"):
        load_dataset(source.name)


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
