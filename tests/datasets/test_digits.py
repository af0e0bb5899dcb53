"""The digits stand-ins: their tasks, their recipes, and what their pictures show."""

import numpy as np
import pytest

from prslib.datasets import DATASETS, curation, digits, load_dataset, scenes
from prslib.datasets.base import validate_schedule


@pytest.fixture(params=digits.ENTRIES, scope="module")
def labelled(request):
    return load_dataset(request.param, images=False)


def test_clustering_finds_the_planted_tasks_in_the_same_corpus(labelled):
    clustering = DATASETS[labelled.name].clustering()
    group = curation.cluster_classes(clustering)
    np.testing.assert_array_equal(group, labelled.class_task)
    assert clustering.class_names == labelled.class_names
    task = curation.tasks_of_images(clustering.labels, labelled.class_task)
    np.testing.assert_array_equal(clustering.labels[task >= 0], labelled.train.labels)


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


@pytest.mark.parametrize("name", ["digits70tiny", "imbal-digits-tiny"])
def test_who_changes_a_picture_changes_it_for_nobody_else(name):
    images = load_dataset(name).train.images
    before = images.copy()
    images[:] = 0
    assert np.array_equal(load_dataset(name).train.images, before)
