"""The classes' shares of memory, planned or trained."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from prslib.datasets import load_dataset
from prslib.experiments.store import Store
from prslib.report import memory_distribution as shares
from prslib.report.memory_distribution import plot_class_shares, plot_group_shares
from prslib.training.config import RunConfig, configs
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


def test_memory_plots_show_the_stream_and_every_method(ax):
    frame = pd.DataFrame(
        {
            "method": ["Stream"] * 3 + ["PRS"] * 3,
            "seed": 0,
            "class_rank": [0, 1, 2] * 2,
            "group": ["majority", "moderate", "minority"] * 2,
            "share": [60, 30, 10, 34, 33, 33],
        }
    )
    plot_class_shares(frame, ax)
    assert [bar.get_height() for bar in ax.patches] == [60, 30, 10]
    assert [text.get_text() for text in ax.texts] == ["majority", "moderate", "minority"]
    ax.clear()
    plot_group_shares(frame, ax)
    assert sorted(b.get_height() for b in ax.patches if b.get_height()) == [10, 30, 33, 33, 34, 60]


def test_panels_that_share_a_scale_show_the_highest_share():
    figure, axes = plt.subplots(1, 3, sharey=True)
    for ax, highest in zip(axes, [30, 90, 20], strict=True):
        share = [60, 30, 10, highest, 5, 5]
        columns = {"method": ["Stream"] * 3 + ["PRS"] * 3, "seed": 0, "class_rank": [0, 1, 2] * 2}
        groups = ["majority", "moderate", "minority"] * 2
        plot_class_shares(pd.DataFrame(columns | {"group": groups, "share": share}), ax)
    assert axes[0].get_ylim()[0] == 0
    assert axes[0].get_ylim()[1] > 90
    plt.close(figure)


def test_memory_shares_are_those_of_memory_and_stream():
    wanted = configs(dataset="digits70tiny", method=["CRS", "PRS"], seed=[0, 1])
    found = shares.memory_shares(wanted)
    totals = found.groupby(["method", "seed"])["share"].sum()
    assert len(totals) == 5
    np.testing.assert_allclose(totals, 100)
    dataset = load_dataset("digits70tiny", images=False)
    stream = found[found["method"] == "Stream"].set_index("class")["share"]
    expected = dict(zip(dataset.class_names, dataset.class_freq, strict=True))
    assert stream.to_dict() == pytest.approx(
        {name: 100 * n / dataset.class_freq.sum() for name, n in expected.items()}
    )
    ranked = found[found["method"] == "Stream"].sort_values("class_rank")["share"]
    assert (ranked.diff().dropna() <= 0).all()
    groups = shares.group_shares(found)
    np.testing.assert_allclose(groups.groupby(["method", "seed"])["share"].sum(), 100)


def test_distances_put_each_memory_where_it_belongs():
    wanted = configs(dataset="digits70seq", method=["CRS", "PRS"], seed=[0])
    found = shares.memory_shares(wanted)
    equal = shares.distance_to(found, "equal").set_index("method")["total_variation"]
    stream = shares.distance_to(found, "stream").set_index("method")["total_variation"]
    assert stream["Stream"] == pytest.approx(0)
    assert equal["PRS"] < 0.5 * equal["CRS"]
    assert stream["CRS"] < 0.5 * stream["PRS"]


def test_memory_shares_take_several_data_sets():
    wanted = [RunConfig(dataset=name, method="CRS") for name in ("digits70tiny", "digits49tiny")]
    found = shares.memory_shares(wanted)
    assert found.groupby("dataset")["class"].nunique().to_dict() == {
        "digits70tiny": 70,
        "digits49tiny": 49,
    }
    assert shares.distance_to(found, "stream").groupby("dataset").size().tolist() == [2, 2]
