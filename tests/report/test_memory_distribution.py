"""The classes' shares of memory, planned or trained."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from prslib.datasets import load_dataset
from prslib.experiments.store import Store
from prslib.report import memory_distribution as shares
from prslib.report.memory_distribution import plot_class_shares, plot_group_shares
from prslib.training.grids import configs
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
    # nothing was trained again, nor for the others
    assert sorted(tmp_path.iterdir()) == kept
    dataset = load_dataset(TINY, images=False)
    for method, finished in runs.items():
        counts = finished.memory_labels.sum(0)
        rows = found[found["method"] == method].set_index("class")["share"]
        expected = 100 * counts / counts.sum()
        np.testing.assert_allclose(rows[list(dataset.class_names)], expected)
    message = r"expected methods with a memory .* got EWC, Finetune"
    with pytest.raises(ValueError, match=message):
        shares.memory_shares(configs(method=["Finetune", "PRS", "EWC"], **FAST), store)


def three_classes(share):
    groups = ["majority", "moderate", "minority"]
    frame = pd.DataFrame({"class_rank": [0, 1, 2] * 2, "group": groups * 2})
    frame["method"] = ["Stream"] * 3 + ["PRS"] * 3
    return frame.assign(seed=0, share=share, classes=1)


def test_memory_plots_show_the_stream_and_every_method(ax):
    frame = three_classes([60, 30, 10, 34, 33, 33])
    plot_class_shares(frame, ax)
    assert ax.get_title("left") == "PRS"
    assert [bar.get_height() for bar in ax.patches] == [60, 30, 10]
    groups = [text.get_text() for text in ax.texts]
    assert groups == ["majority", "moderate", "minority"]
    ax.clear()
    plot_group_shares(frame, ax)
    drawn = {line.get_label(): list(line.get_ydata()) for line in ax.lines}
    assert (drawn["Stream"], drawn["PRS"]) == ([60, 30, 10], [34, 33, 33])
    equal = [c for c in ax.collections if c.get_linestyle()[0][1]]
    np.testing.assert_allclose([c.get_segments()[0][:, 1] for c in equal], 100 / 3)
    assert "equal shares" in ax.get_legend_handles_labels()[1]


def test_panels_that_share_a_scale_show_the_highest_share():
    figure, axes = plt.subplots(1, 3, sharey=True)
    for ax, highest in zip(axes, [30, 90, 20], strict=True):
        plot_class_shares(three_classes([60, 30, 10, highest, 5, 5]), ax)
    assert axes[0].get_ylim()[0] == 0
    assert axes[0].get_ylim()[1] > 90
    plt.close(figure)


def test_distances_put_each_memory_where_it_belongs():
    wanted = configs(dataset="digits70seq", method=["CRS", "PRS"], seed=[0])
    found = shares.memory_shares(wanted)
    dataset = load_dataset("digits70seq", images=False)
    of_stream = found[found["method"] == "Stream"].set_index("class")["share"]
    expected = 100 * dataset.class_freq / dataset.class_freq.sum()
    np.testing.assert_allclose(of_stream[list(dataset.class_names)], expected)
    assert (of_stream.diff().dropna() <= 0).all()  # groups from frequent to rare
    totals = shares.group_shares(found).groupby("method")["share"].sum()
    np.testing.assert_allclose(totals, [100] * 3)
    equal = shares.distance_to(found, "equal").set_index("method")["total_variation"]
    stream = shares.distance_to(found, "stream").set_index("method")["total_variation"]
    assert stream["Stream"] == pytest.approx(0)
    assert equal["PRS"] < 0.5 * equal["CRS"]
    assert stream["CRS"] < 0.5 * stream["PRS"]


def test_costly_data_sets_take_the_first_seed_and_training_where_methods_look():
    settings = shares.Settings(
        dataset=["digits70tiny", "digits49tiny"], costly=["digits49tiny"], seeds=[3, 4]
    )
    made = shares.memories(settings)
    seeds = {(config.dataset, config.seed) for config in made}
    assert seeds == {("digits70tiny", 3), ("digits70tiny", 4), ("digits49tiny", 3)}
    assert {config.method for config in shares.runs(settings)} == set(LOOKING)
