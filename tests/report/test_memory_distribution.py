"""The classes' shares of memory, planned or trained."""

import numpy as np
import pytest

from prslib.datasets import load_dataset
from prslib.experiments.store import Store
from prslib.report import memory_distribution as shares
from prslib.training.config import configs
from prslib.training.run import run

TINY = "imbal-digits-tiny"
FAST = {"dataset": TINY, "batch_size": 40}
LOOKING = ["GSS", "ExStream"]


def test_memory_shares_take_trained_memories_from_the_store(tmp_path):
    wanted = configs(method=["CRS", "GSS", "ExStream", "PRS"], **FAST)
    store = Store(tmp_path)
    runs = {config.method: run(config) for config in wanted}
    for method in LOOKING:
        store.save(runs[method])
    kept = sorted(tmp_path.iterdir())
    found = shares.memory_shares(wanted, store)
    assert sorted(tmp_path.iterdir()) == kept  # nothing was trained again, nor for the others
    dataset = load_dataset(TINY, images=False)
    for method, finished in runs.items():
        counts = finished.memory_labels.sum(0)
        rows = found[found["method"] == method].set_index("class")["share"]
        np.testing.assert_allclose(rows[list(dataset.class_names)], 100 * counts / counts.sum())
    with pytest.raises(ValueError, match=r"expected methods with a memory .* got EWC, Finetune"):
        shares.memory_shares(configs(method=["Finetune", "PRS", "EWC"], **FAST), store)
