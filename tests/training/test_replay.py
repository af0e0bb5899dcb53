"""The stream of a run, and its memory without training."""

import numpy as np
import pytest

from prslib.datasets import load_dataset
from prslib.training.config import RunConfig
from prslib.training.methods import METHODS
from prslib.training.replay import balanced_draw, stream, without_training

TINY = "digits70tiny"


@pytest.fixture(scope="module")
def dataset():
    return load_dataset(TINY, images=False)


def test_stream_follows_the_schedule_and_shows_each_image_once(dataset):
    config = RunConfig(TINY, "PRS", schedule=(2, 0, 1, 3))
    segments = stream(config, dataset)
    assert [s.seen for s in segments] == [(2,), (2, 0), (2, 0, 1), (2, 0, 1, 3)]
    for segment in segments:
        assert segment.batches.shape[1] == 10
        assert set(dataset.train.task[segment.batches].ravel()) == {segment.seen[-1]}
        left_out = (dataset.train.task == segment.seen[-1]).sum() - segment.batches.size
        assert 0 <= left_out < 10
    shown = np.concatenate([segment.batches.ravel() for segment in segments])
    assert len(np.unique(shown)) == len(shown)


def test_multitask_shows_every_image_in_each_epoch(dataset):
    (segment,) = stream(RunConfig(TINY, "Multitask", epochs=3), dataset)
    epochs = segment.batches.reshape(3, -1)
    for epoch in epochs:
        assert len(np.unique(epoch)) == epoch.size >= len(dataset.train) - 9
    assert not (epochs[0] == epochs[1]).all()


def test_methods_of_one_seed_see_the_same_stream(dataset):
    """Else differences between methods would not be paired."""

    def rows(method, seed):
        segments = stream(RunConfig(TINY, method, seed), dataset)
        return np.concatenate([segment.batches for segment in segments])

    for method in METHODS.keys() - {"Multitask"}:
        np.testing.assert_array_equal(rows(method, 7), rows("PRS", 7))
    assert not np.array_equal(rows("PRS", 7), rows("PRS", 8))


def test_only_labels_alone_fill_a_memory_without_training(dataset):
    assert without_training(RunConfig(TINY, "Finetune"), dataset) is None
    for method in ("GSS", "ExStream"):
        with pytest.raises(ValueError, match=f"at labels alone, got {method}"):
            without_training(RunConfig(TINY, method), dataset)


def test_a_balanced_draw_takes_each_class_as_often_and_no_sample_twice():
    labels = np.eye(3, dtype=bool)[np.repeat([0, 1, 2], [80, 15, 5])]
    rng = np.random.default_rng(0)
    first = [balanced_draw(labels, 1, rng).item() for _ in range(3000)]
    shares = labels[first].mean(axis=0)
    assert np.abs(shares - 1 / 3).max() < 0.04  # over four standard errors
    of_class = np.bincount(np.array(first)[np.array(first) >= 95] - 95) / 1000
    assert np.abs(of_class - 0.2).max() < 0.06
    assert sorted(balanced_draw(labels, 200, rng)) == list(range(100))
    # a sample of two classes is drawn by either
    both = np.array([[1, 0], [1, 0], [1, 1], [0, 1]], bool)
    first = [balanced_draw(both, 1, rng).item() for _ in range(4000)]
    shares = np.bincount(first) / 4000
    assert np.abs(shares - [1 / 6, 1 / 6, 5 / 12, 1 / 4]).max() < 0.035
