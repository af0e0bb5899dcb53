"""The search over the settings of Algorithm 2."""

import numpy as np
import pytest


def test_search_says_what_each_setting_loses(program):
    clusters = program("clusters")
    # two pairs of classes, three images within each, and one image across
    images = [[0, 1], [0, 1], [0], [2, 3], [2, 3], [3], [1, 2]]
    labels = np.array([np.isin(np.arange(4), image) for image in images])
    settings = clusters.search_clusters(labels, tuple("abcd"))
    assert {found.n_tasks for found in settings} <= {2, 3, 4}
    pairs = clusters.choose_clusters(settings)
    assert pairs.group_of_class.tolist() == [0, 0, 1, 1]
    assert (pairs.lost, pairs.largest) == (1 / 7, 1 / 2)
    everything = [found for found in settings if found.n_tasks == 4]
    with pytest.raises(ValueError, match="less than a third, got at least 71%"):
        clusters.choose_clusters(everything)
