"""Label matrices have the counts asked for, stand-ins what their profiles say."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from prslib.datasets import DATASETS, curation, digits, load_dataset, scenes
from prslib.datasets.base import Clustering, validate_schedule

PLANS = {name: entry.load.args[0] for name, entry in digits.ENTRIES.items()}


def histogram(labels, length):
    return np.bincount(labels.sum(axis=1), minlength=length + 1)[1:].tolist()


def test_published_counts_agree_with_each_other():
    for task in digits.COCOSEQ + digits.NUSWIDESEQ:
        counts = np.array(task.labels_per_image)
        assert sum(task.class_freq) == (counts * np.arange(1, len(counts) + 1)).sum()
        assert list(task.class_freq) == sorted(task.class_freq, reverse=True)
    images = [sum(task.labels_per_image) for task in digits.COCOSEQ + digits.NUSWIDESEQ]
    assert images[:4] == [8365, 7814, 11603, 7290]
    assert sum(images[4:]) == 48724


def test_scaled_profile_by_hand():
    task = digits.TaskProfile((41, 20, 9, 3), (40, 15, 1))
    freq, counts = task.scaled(4)
    assert freq.tolist() == [10, 5, 2, 1]
    assert counts[1:].tolist() == [4, 0]  # 15 / 4 is nearest to 4, 1 / 4 to 0
    rng = np.random.default_rng(0)
    assert histogram(digits.draw_labels(freq, counts, rng), 3) == [18 - 2 * 4, 4, 0]
    freq, counts = task.scaled(8)
    drawn = [digits.draw_labels(freq, counts, rng, joined) for joined in (False, True)]
    assert [histogram(labels, 3) for labels in drawn] == [[5, 2, 0], [3, 3, 0]]


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_drawn_labels_have_the_counts_asked_for(data):
    freq = np.array(data.draw(st.lists(st.integers(8, 30), min_size=4, max_size=9)))
    pairs = data.draw(st.integers(0, int(freq.sum()) // 8))
    triples = data.draw(st.integers(0, int(freq.sum()) // 12))
    counts = np.array([freq.sum() - 2 * pairs - 3 * triples, pairs, triples])
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    labels = digits.draw_labels(freq, counts, rng)
    assert labels.sum(axis=0).tolist() == freq.tolist()
    assert histogram(labels, 3) == counts.tolist()


@given(st.lists(st.integers(1, 6), min_size=2, max_size=12), st.integers(0, 99))
@settings(max_examples=100, deadline=None)
def test_tree_joins_all_classes(freq, seed):
    freq, edges = np.array(freq), len(freq) - 1
    assume(freq.sum() >= 2 * edges)
    counts = np.array([freq.sum() - 2 * edges, edges])
    rng = np.random.default_rng(seed)
    labels = digits.draw_labels(freq, counts, rng, connected=True)
    assert labels.sum(axis=0).tolist() == freq.tolist()
    assert not curation.cluster_classes(Clustering(labels, (), 1, 0.0)).any()


def test_frequent_classes_meet_more_often():
    freq, rng = np.array([800, 400, 200, 100]), np.random.default_rng(0)
    labels = digits.draw_labels(freq, np.array([1300, 100]), rng)
    pairs = labels[labels.sum(axis=1) == 2].sum(axis=0)  # of 100 pairs
    # Chance of being in a pair drawn without replacement with weights 8 : 4 : 2 : 1.
    np.testing.assert_allclose(pairs / 100, [0.868, 0.632, 0.334, 0.166], atol=0.15)
    assert (np.diff(pairs) < 0).all()


def test_bridges_span_three_tasks_or_more():
    class_task = np.repeat(np.arange(5), 3)
    freq = np.tile([8, 2, 0], 5)
    labels = digits.draw_bridges(freq, class_task, 400, np.random.default_rng(0))
    tasks = [len(set(class_task[row].tolist())) for row in labels]
    assert set(tasks) == {3, 4}
    assert tasks == labels.sum(axis=1).tolist()
    share = labels.sum(axis=0).reshape(5, 3).sum(axis=0) / labels.sum()
    np.testing.assert_allclose(share, [0.8, 0.2, 0.0], atol=0.04)


@pytest.fixture(params=PLANS, scope="module")
def labelled(request):
    return load_dataset(request.param, images=False)


def test_clustering_finds_the_planted_tasks_in_the_same_corpus(labelled):
    clustering = DATASETS[labelled.name].clustering()
    group = curation.cluster_classes(clustering)
    np.testing.assert_array_equal(group, labelled.class_task)
    assert clustering.class_names == labelled.class_names
    task = curation.tasks_of_images(clustering.labels, labelled.class_task)
    np.testing.assert_array_equal(clustering.labels[task >= 0], labelled.train.labels)


def test_stream_has_the_profile_exactly(labelled):
    plan = PLANS[labelled.name]
    for task, profile in enumerate(plan.profile):
        freq, counts = profile.scaled(plan.divisor)
        pairs = max(counts[1], len(freq) - 1)  # a tree joins the classes
        rows = labelled.train.labels[labelled.train.task == task]
        assert rows.sum(axis=0)[labelled.class_task == task].tolist() == freq.tolist()
        assert histogram(rows, len(counts))[1:] == [pairs, *counts[2:].tolist()]


def test_recipe_fits(labelled):
    recipe = DATASETS[labelled.name].recipe
    assert validate_schedule(recipe.schedule, labelled.num_tasks) == recipe.schedule
    share = {"COCOseq": 2000 / 35072, "NUS-WIDEseq": 2000 / 48724}[labelled.stands_for]
    assert recipe.memory_size / len(labelled.train) == pytest.approx(share, rel=0.06)


def test_images_show_their_labels():
    dataset = load_dataset("digits49seq")
    for split in (dataset.train, *dataset.tests.values()):
        assert split.images.shape == (len(split), 32, 32, 3)
        assert (split.images.max(axis=(1, 2, 3)) > 150).all()
        ink = (split.images >= scenes.NOISE).any(axis=3).sum(axis=(1, 2))
        per_image = split.labels.sum(axis=1)
        assert np.all(np.diff([ink[per_image == k].mean() for k in (1, 2, 3, 4)]) > 20)
    # Hue tells the colour: the brightest pixel of a single-label scene is near its
    # palette entry.
    train, colours = dataset.train, list(scenes.COLOURS)
    single = np.flatnonzero(train.labels.sum(axis=1) == 1)[:2000]
    label = train.labels[single].argmax(axis=1)
    names = [name.split()[0] for name in np.array(dataset.class_names)[label]]
    pixels = train.images[single].reshape(len(single), -1, 3).astype(float)
    brightest = pixels[np.arange(len(single)), pixels.sum(axis=2).argmax(axis=1)]
    palette = np.array(list(scenes.COLOURS.values()))
    near = np.abs(brightest[:, None] - palette[None]).sum(axis=2).argmin(axis=1)
    assert np.mean(np.array(colours)[near] == names) > 0.97
