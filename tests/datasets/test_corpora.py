"""Label matrices have exactly the counts asked for, and the published profiles add up."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prslib.datasets import curation as clustering
from prslib.datasets import digits as corpora
from prslib.datasets import digits as profiles


def histogram(labels, length):
    return np.bincount(labels.sum(axis=1), minlength=length + 1)[1:].tolist()


@pytest.mark.parametrize("task", profiles.COCOSEQ + profiles.NUSWIDESEQ)
def test_published_counts_agree_with_each_other(task):
    counts = np.array(task.labels_per_image)
    assert sum(task.class_freq) == (counts * np.arange(1, len(counts) + 1)).sum()
    assert list(task.class_freq) == sorted(task.class_freq, reverse=True)


def test_published_totals():
    images = {
        name: [sum(task.labels_per_image) for task in profile]
        for name, profile in (("coco", profiles.COCOSEQ), ("nus", profiles.NUSWIDESEQ))
    }
    assert images["coco"] == [8365, 7814, 11603, 7290]
    assert sum(images["nus"]) == 48724


def test_scaled_profile_by_hand():
    task = profiles.TaskProfile((41, 20, 9, 3), (40, 15, 1))
    freq, counts = task.scaled(4)
    assert freq.tolist() == [10, 5, 2, 1]
    assert counts.tolist() == [18 - 2 * 4, 4, 0]  # 15 / 4 is nearest to 4, 1 / 4 to 0
    assert task.scaled(8)[1].tolist() == [5 + 2 + 1 + 1 - 2 * 2, 2, 0]
    assert task.scaled(8, connected=True)[1].tolist() == [9 - 2 * 3, 3, 0]


def test_profile_too_small_for_its_pairs_is_refused():
    with pytest.raises(ValueError, match="smaller divisor"):
        profiles.TaskProfile((1, 1, 1), (3, 0)).scaled(4, connected=True)


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_drawn_labels_have_the_counts_asked_for(data):
    freq = np.array(data.draw(st.lists(st.integers(8, 30), min_size=4, max_size=9)))
    pairs = data.draw(st.integers(0, int(freq.sum()) // 8))
    triples = data.draw(st.integers(0, int(freq.sum()) // 12))
    counts = profiles.fill_with_singles(freq, np.array([0, pairs, triples]))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    labels = corpora.draw_labels(freq, counts, rng)
    assert labels.sum(axis=0).tolist() == freq.tolist()
    assert histogram(labels, 3) == counts.tolist()


@given(st.lists(st.integers(1, 6), min_size=2, max_size=12), st.integers(0, 99))
@settings(max_examples=100, deadline=None)
def test_tree_joins_all_classes(freq, seed):
    freq = np.array(freq)
    rng = np.random.default_rng(seed)
    edges = len(freq) - 1
    if freq.sum() < 2 * edges:
        counts = np.array([freq.sum() % 2, freq.sum() // 2])
        with pytest.raises(ValueError, match="to join"):
            corpora.draw_labels(freq, counts, rng, connected=True)
        return
    counts = np.array([freq.sum() - 2 * edges, edges])
    labels = corpora.draw_labels(freq, counts, rng, connected=True)
    assert labels.sum(axis=0).tolist() == freq.tolist()
    assert clustering.cluster_classes(labels, 1, 0.0).tolist() == [0] * len(freq)


def test_draw_refuses_counts_that_do_not_fit():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="equal sums, got 3 and 4"):
        corpora.draw_labels(np.array([2, 1]), np.array([2, 1]), rng)
    with pytest.raises(ValueError, match="2 or more two-label images"):
        corpora.draw_labels(np.array([2, 2, 2]), np.array([4, 1]), rng, connected=True)
    with pytest.raises(ValueError, match="2 labels, got 1"):
        corpora.draw_labels(np.array([9, 1]), np.array([4, 3]), rng)


def test_frequent_classes_meet_more_often():
    rng = np.random.default_rng(0)
    labels = corpora.draw_labels(np.array([800, 400, 200, 100]), np.array([1300, 100]), rng)
    pairs = labels[labels.sum(axis=1) == 2].sum(axis=0)  # of 100 pairs
    # Chance of being in a pair drawn without replacement with weights 8 : 4 : 2 : 1.
    np.testing.assert_allclose(pairs / 100, [0.868, 0.632, 0.334, 0.166], atol=0.15)
    assert (np.diff(pairs) < 0).all()


def test_bridges_span_three_tasks_or_more():
    class_task = np.repeat(np.arange(5), 3)
    freq = np.tile([8, 2, 0], 5)
    labels = corpora.draw_bridges(freq, class_task, 400, np.random.default_rng(0))
    tasks = [len(set(class_task[row].tolist())) for row in labels]
    assert set(tasks) == {3, 4}
    assert tasks == labels.sum(axis=1).tolist()
    share = labels.sum(axis=0).reshape(5, 3).sum(axis=0) / labels.sum()
    np.testing.assert_allclose(share, [0.8, 0.2, 0.0], atol=0.04)
