"""Icons and clip art: their inputs, labels and recipes."""

import pytest

from prslib.datasets import DATASETS, load_dataset, pictures

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
