"""The frames of the notebook `datasets`."""

import numpy as np
import pytest
from cells import functions_of

from prslib.datasets import SequentialDataset, Split
from prslib.datasets.base import Clustering
from prslib.report import measures

datasets = functions_of("datasets")

LABELS = np.array(
    [[1, 0, 0], [1, 1, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], [0, 1, 1], [1, 1, 1]],
    dtype=bool,
)
STREAM = LABELS[:5]


@pytest.fixture
def dataset():
    task = np.array([1, 1, 1, 1, 0])
    pixels = np.arange(5, dtype=np.uint8).repeat(12).reshape(5, 2, 2, 3)
    split = Split(pixels, STREAM, task)
    classes = ("a", "b", "c"), np.array([1, 1, 0]), datasets.GROUPS
    return SequentialDataset("x", split, {"balanced": split}, *classes)


@pytest.fixture
def clustering():
    return Clustering(LABELS, ("a", "b", "c"), n_groups=2, beta=0.0)


def test_sizes_and_class_statistics(dataset):
    row = datasets.count_sizes(dataset)
    names = ["classes", "stream", "balanced test", "minority"]
    assert [row[name] for name in names] == [3, 5, 5, 1]
    assert row["labels per sample"] == 7 / 5
    assert row["largest to smallest"] == 3
    assert row["below half the mean"] == 1  # 1 of 3, 3 and 1
    frame = measures.class_statistics(dataset)
    rows = frame[["task", "class", "images"]].values.tolist()
    assert rows == [[0, "c", 1], [1, "a", 3], [1, "b", 3]]


def test_clustering_steps_count_what_is_kept(clustering):
    frame = datasets.clustering_steps(clustering)
    (row,) = frame.to_dict("records")
    assert (row["groups"], row["first"], row["second"]) == (2, "a", "b")
    assert (row["together"], row["apart"]) == (2, 2)
    assert row["kept"] == pytest.approx(100 * 5 / 7)
