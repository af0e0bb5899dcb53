"""Algorithm 2 against examples and a literal twin; groups and test sets."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prslib.datasets import DATASETS, curation, digits, load_dataset
from prslib.datasets.base import Clustering, Split

PICTURES = ("mdiseq", "clipartseq")


def matrix(num_classes, *images):
    labels = np.zeros((len(images), num_classes), dtype=bool)
    for row, image in zip(labels, images, strict=True):
        row[list(image)] = True
    return labels


def cluster_classes(labels, n_groups, beta, min_classes=1):
    return curation.cluster_classes(Clustering(labels, (), n_groups, beta, min_classes))


def cluster_literally(labels, n_groups, beta, min_classes):
    """Algorithm 2 line by line, over sets; None where no merge is allowed."""
    images = [set(np.flatnonzero(row).tolist()) for row in labels]
    groups = [{c} for c in range(labels.shape[1])]
    while len(groups) > n_groups:
        groups.sort(key=min)
        elem = [sum(image <= group for image in images) for group in groups]
        small = [len(group) < min_classes for group in groups]
        forced = len(groups) - n_groups <= sum(small)
        best, merge = -np.inf, None
        for j, k in combinations(range(len(groups)), 2):
            union = groups[j] | groups[k]
            co = sum(
                i <= union and not i <= groups[j] and not i <= groups[k] for i in images
            )
            if co == 0 or (forced and not small[j] and not small[k]):
                continue
            score = float(np.log(co) - beta * float(elem[j] + elem[k]) ** 2)
            if score > best:
                best, merge = score, (j, k)
        if merge is None:
            return None
        j, k = merge
        groups[j] |= groups.pop(k)
    groups.sort(key=min)
    if min(map(len, groups)) < min_classes:
        return None
    return [
        next(g for g, group in enumerate(groups) if c in group)
        for c in range(labels.shape[1])
    ]


@pytest.mark.parametrize("name", [*digits.ENTRIES, "reutersseq", *PICTURES])
def test_clustering_finds_the_stored_tasks(name, program):
    data, source = load_dataset(name, images=False), DATASETS[name].clustering()
    group = curation.cluster_classes(source)
    stays = np.isin(source.class_names, data.class_names)
    task = group[stays]
    if name not in digits.ENTRIES:  # whose tasks are planted in this order
        task = program("clusters").number_by_size(group, stays)[stays]
    np.testing.assert_array_equal(task, data.class_task)
    if name not in PICTURES:  # whose corpus also has what is left out
        labels = source.labels[curation.tasks_of_images(source.labels, group) >= 0]
        labels = labels[labels[:, stays].any(axis=1)][:, stays]
        np.testing.assert_array_equal(labels, data.train.labels)


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_twin_agrees(data):
    num_classes = data.draw(st.integers(1, 7))
    rows = st.sets(st.integers(0, num_classes - 1), min_size=1, max_size=4)
    labels = matrix(num_classes, *data.draw(st.lists(rows, min_size=1, max_size=25)))
    n_groups = data.draw(st.integers(1, num_classes))
    min_classes = data.draw(st.integers(1, num_classes // n_groups))
    beta = data.draw(st.sampled_from([0.0, 1e-4, 0.05, 1.0]))
    question = labels, n_groups, beta, min_classes
    expected = cluster_literally(*question)
    if expected is None:
        with pytest.raises(ValueError, match="expected"):
            cluster_classes(*question)
    else:
        assert cluster_classes(*question).tolist() == expected


def test_an_even_draw_fills_classes_that_never_come_alone():
    # class 0 is with every other
    labels = np.repeat(np.eye(5, dtype=bool), 6, axis=0)
    labels[:, 0] = True
    reserve = np.tile([0, 0, 0, 0, 1, 2], 5)
    drawn = curation.draw_even(labels, 3, np.random.default_rng(0), reserve)
    np.testing.assert_array_equal(labels[drawn].sum(axis=0), [12, 3, 3, 3, 3])
    assert (reserve[drawn] == 0).all()


def test_features_need_images_with_a_single_label():
    both = Split(None, np.ones((3, 2), dtype=bool), np.zeros(3, np.int64))
    with pytest.raises(
        ValueError, match="test images with a single label for features"
    ):
        curation.feature_rows(both, 1)
