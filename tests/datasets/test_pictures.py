"""Icons and clip art: their tasks, their tests, and that siblings are on one side."""

import numpy as np
import pytest

from prslib.datasets import DATASETS, curation, load_dataset, pictures
from prslib.datasets.arrays import read_arrays
from prslib.datasets.prepared import Selection
from prslib.paths import DATA

NAMES = list(pictures.ENTRIES)


@pytest.mark.parametrize("name", NAMES)
def test_inputs_labels_and_recipe_fit(name):
    data = load_dataset(name)
    recipe = DATASETS[name].recipe
    assert data.train.inputs.shape == (len(data.train), 1280)
    assert recipe.memory_size == round(len(data.train) * 2000 / 35072)
    assert recipe.schedule == tuple(range(data.num_tasks))
    assert data.class_freq.min() >= 5
    assert set(data.class_group) == {"majority", "moderate", "minority"}


@pytest.mark.parametrize("name", NAMES)
def test_no_family_is_in_the_stream_and_in_a_test(name):
    file = DATA / f"{name}.npz"
    selection = Selection.load(file)
    (family,) = read_arrays(file, "family").values()
    assert len(np.unique(selection.files)) == len(family) == len(selection)
    stream = selection.rows("train")
    assert not np.isin(family[stream], family[stream.stop :]).any()


@pytest.mark.parametrize("name", NAMES)
def test_classes_are_alike_in_the_balanced_test_alone(name):
    tests = load_dataset(name, images=False).tests
    balanced, as_it_comes = (
        tests[kind].labels.sum(axis=0) for kind in ("balanced", "imbalanced")
    )
    assert balanced.min() == 10
    assert balanced.max() / 10 < as_it_comes.max() / np.median(as_it_comes)


@pytest.mark.parametrize("name", NAMES)
def test_clustering_finds_the_stored_tasks(name):
    data = load_dataset(name, images=False)
    source = DATASETS[name].clustering()
    group = curation.cluster_classes(source)
    stays = np.isin(source.class_names, data.class_names)
    task = curation.number_by_size(group, stays)[stays]
    np.testing.assert_array_equal(task, data.class_task)
