"""COCOseq on the real labels, where PRSLIB_DATA has them."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from real_folders import coco_json

from prslib.cli import main
from prslib.datasets import DATASETS, GROUPS, features, load_dataset, nuswide
from prslib.datasets.arrays import read_arrays
from prslib.datasets.curation import cluster_classes
from prslib.datasets.prepared import Selection

DATA = Path(os.environ.get("PRSLIB_DATA") or "no folder")
LABELS, IDS = DATA / "coco2014_labels.npz", DATA / "cocoseq_ids"
needs_coco = pytest.mark.skipif(
    not (LABELS.is_file() and IDS.is_dir()),
    reason="PRSLIB_DATA has no real COCO labels",
)


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """Prepare COCOseq from the real labels, which are written as COCO's two files."""
    folder = tmp_path_factory.mktemp("annotations")
    table = read_arrays(LABELS)
    for half, number in (("train2014", 0), ("val2014", 1)):
        rows = table["split"] == number
        keys, labels = table["image_id"][rows], table["labels"][rows]
        files = [f"COCO_{half}_{key:012d}.jpg" for key in keys]
        content = coco_json(keys, files, labels, table["names"])
        (folder / f"instances_{half}.json").write_text(json.dumps(content))
    (folder / IDS.name).symlink_to(IDS.absolute())
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PRSLIB_DATA", str(folder))
        assert main(["prepare", "cocoseq", f"--annotations={folder}"]) == 0
        yield load_dataset("cocoseq", images=False)


def groups_of(names):
    return [list(names).count(group) for group in GROUPS]


@needs_coco
def test_released_split(released, program):
    tests = released.tests
    assert np.bincount(released.class_task).tolist() == [24, 18, 14, 14]
    assert np.bincount(released.train.task).tolist() == [8365, 7814, 11603, 7290]
    assert np.bincount(tests["balanced"].task).tolist() == [1960, 1690, 1400, 1316]
    assert np.bincount(tests["imbalanced"].task).tolist() == [4710, 4287, 5672, 4191]
    assert set(tests["balanced"].labels.sum(axis=0).tolist()) == {100}
    assert groups_of(released.class_group) == [18, 38, 14]
    columns = json.loads((IDS / "multihot_map.json").read_text())
    assert released.class_names == tuple(sorted(columns, key=columns.get))
    profiles = program("draw_streams").PROFILES["COCOseq"]
    for number, (class_freq, labels_per_image) in enumerate(profiles):
        rows = released.train.labels[released.train.task == number]
        freq = np.sort(rows[:, released.class_task == number].sum(axis=0))[::-1]
        np.testing.assert_array_equal(freq, class_freq)
        counts = np.bincount(rows.sum(axis=1))[1:]
        np.testing.assert_array_equal(counts, labels_per_image)


@needs_coco
def test_algorithm_2_finds_the_published_tasks(released, program):
    source = DATASETS["cocoseq"].clustering()
    stays = np.isin(source.class_names, released.class_names)
    group = cluster_classes(source)
    task = program("clusters").number_by_size(group, stays)[stays]
    np.testing.assert_array_equal(task, released.class_task)


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
