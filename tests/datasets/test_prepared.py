"""COCOseq and NUS-WIDEseq on the real labels, where PRSLIB_DATA has them."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from real_folders import coco_json

from prslib.datasets import GROUPS, coco, features, nuswide
from prslib.datasets.arrays import read_arrays
from prslib.datasets.curation import cluster_classes, number_by_size
from prslib.datasets.prepare import download_ids
from prslib.datasets.prepared import Selection, read_table

DATA = Path(os.environ.get("PRSLIB_DATA") or "no folder")
LABELS, IDS = DATA / "coco2014_labels.npz", DATA / "cocoseq_ids"
needs_coco = pytest.mark.skipif(
    not (LABELS.is_file() and IDS.is_dir()),
    reason="PRSLIB_DATA has no real COCO labels",
)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Write the labels as COCO's two JSON files and read these."""
    folder = tmp_path_factory.mktemp("annotations")
    table = read_table(LABELS)
    for half, is_test in (("train2014", False), ("val2014", True)):
        rows = np.flatnonzero(table.is_test == is_test)
        files = [f"COCO_{half}_{key:012d}.jpg" for key in table.key[rows]]
        content = coco_json(table.key[rows], files, table.labels[rows], table.names)
        (folder / f"instances_{half}.json").write_text(json.dumps(content))
    return coco.PREPARED.corpus(folder)


def groups_of(names):
    return [list(names).count(group) for group in GROUPS]


@needs_coco
def test_released_split(corpus, program):
    ids = download_ids(coco.PREPARED, IDS)  # compares them with the pinned checksum
    dataset = coco.PREPARED.select(corpus, ids).dataset("cocoseq", "COCOseq", None)
    tests = dataset.tests
    assert np.bincount(dataset.class_task).tolist() == [24, 18, 14, 14]
    assert np.bincount(dataset.train.task).tolist() == [8365, 7814, 11603, 7290]
    assert np.bincount(tests["balanced"].task).tolist() == [1960, 1690, 1400, 1316]
    assert np.bincount(tests["imbalanced"].task).tolist() == [4710, 4287, 5672, 4191]
    assert set(tests["balanced"].labels.sum(axis=0).tolist()) == {100}
    assert groups_of(dataset.class_group) == [18, 38, 14]
    columns = json.loads((IDS / "multihot_map.json").read_text())
    assert dataset.class_names == tuple(sorted(columns, key=columns.get))
    profiles = program("draw_streams").PROFILES["COCOseq"]
    for number, (class_freq, labels_per_image) in enumerate(profiles):
        rows = dataset.train.labels[dataset.train.task == number]
        freq = np.sort(rows[:, dataset.class_task == number].sum(axis=0))[::-1]
        np.testing.assert_array_equal(freq, class_freq)
        counts = np.bincount(rows.sum(axis=1))[1:]
        np.testing.assert_array_equal(counts, labels_per_image)


@needs_coco
def test_algorithm_2_finds_the_published_tasks(corpus):
    released = coco.PREPARED.select(corpus, IDS)
    source = coco.PREPARED.load_clustering(corpus)
    stays = np.isin(source.class_names, released.class_names)
    task = number_by_size(cluster_classes(source), stays)[stays]
    np.testing.assert_array_equal(task, released.class_task)


@pytest.mark.skipif(
    not (DATA / "nuswideseq_ids").is_dir(),
    reason="PRSLIB_DATA has no released ids of NUS-WIDEseq",
)
def test_released_split_of_nuswideseq():
    ids = download_ids(nuswide.PREPARED, DATA / "nuswideseq_ids")
    selection = nuswide.PREPARED.select(nuswide.PREPARED.corpus(), ids)
    dataset = selection.dataset("nuswideseq", "NUS-WIDEseq", None)
    assert np.bincount(dataset.class_task).tolist() == [5, 6, 16, 12, 4, 6]
    sizes = [17672, 18402, 3622, 1926, 2372, 4730]
    assert np.bincount(dataset.train.task).tolist() == sizes
    balanced = dataset.tests["balanced"].labels
    assert set(balanced.sum(axis=0).tolist()) == {50}


@pytest.mark.skipif(not (DATA / "coco").is_dir(), reason="PRSLIB_DATA has no images")
def test_embedded_bytes_are_those_of_the_images(program):
    study = program("embed_features")
    files = Selection.load(features.MINI).files[::361].tolist()
    stored, scale = read_arrays(features.MINI, "features", "scale").values()
    made = study.to_bytes(study.embed_all(DATA / "coco", files), scale)
    apart = np.abs(made.astype(int) - stored[::361])
    assert (apart.max(), (apart != 0).mean()) <= (1, 1e-3)


def test_groups_of_nuswideseq():
    assert groups_of(nuswide.GROUP.values()) == [10, 18, 21]
