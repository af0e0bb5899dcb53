"""Plots and tables of the topics that have no test file of their own."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

mpl.use("Agg")
import matplotlib.pyplot as plt

from prslib.datasets import load_dataset
from prslib.report import memory_distribution as shares
from prslib.report.architectures import plot_architectures
from prslib.report.feature_tsne import plot_features
from prslib.report.gradient_variance import plot_gradient_variance
from prslib.report.memory_distribution import plot_class_shares, plot_group_shares
from prslib.report.precision_recall import plot_precision_recall
from prslib.report.rho_sweep import best_rho, plot_sweep
from prslib.report.style import COLOURS, STYLE
from prslib.report.tail_forgetting import plot_tail_forgetting
from prslib.training.config import RunConfig, configs


@pytest.fixture
def ax():
    with plt.style.context(STYLE):
        figure, ax = plt.subplots()
        yield ax
        figure.canvas.draw()  # what a reader would see can be drawn without a warning
        plt.close(figure)


def test_networks_are_drawn_side_by_side_and_gaps_stay_gaps(ax):
    frame = pd.DataFrame(
        {
            "network": ["plain", "plain", "plain", "other"],
            "setting": ["1 epoch", "1 epoch", "2 epochs", "2 epochs"],
            "seed": [0, 1, 0, 0],
            "value": [40, 44, 60, 30],
            "published": [41.0, 41.0, 55.0, np.nan],
        }
    )
    assert plot_architectures(frame, ax, "mAP") is ax
    bars = {(round(b.get_x() + b.get_width() / 2, 6), b.get_height()) for b in ax.patches}
    assert bars == {(-0.2, 42), (0.2, 60), (1, 30)}  # a single one stands over its name
    dots = np.concatenate([line.get_ydata() for line in ax.lines])
    assert sorted(dots) == [30, 40, 44, 60]
    assert sorted(c.get_segments()[0][0][1] for c in ax.collections) == [41, 55]
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert legend == ["1 epoch", "2 epochs", "paper"]
    many = pd.concat([frame.assign(setting=str(number)) for number in range(5)])
    with pytest.raises(ValueError, match="expected at most 4 settings, got 5"):
        plot_architectures(many, ax, "mAP")


def test_sweep_rings_the_best_rho(ax):
    frame = pd.DataFrame(
        {"rho": [-1, 0, 1] * 2, "metric": "mAP", "seed": [0] * 3 + [1] * 3}
    ).assign(value=[10, 30, 20, 12, 32, 22])
    plot_sweep(frame, ax)
    rings = [line for line in ax.lines if line.get_markersize() == 13]
    assert [(list(r.get_xdata()), list(r.get_ydata())) for r in rings] == [([0], [31])]
    assert ax.texts[0].get_text() == "0"


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


def test_gradient_variance_is_a_geometric_mean_with_its_band(ax):
    frame = pd.DataFrame(
        {"method": "PRS", "seed": [0, 1] * 2, "seen": [50, 50, 100, 100], "value": [1, 100, 4, 4.0]}
    )
    plot_gradient_variance(frame, ax)
    (line,) = [line for line in ax.lines if len(line.get_ydata()) == 2]
    np.testing.assert_allclose(line.get_ydata(), [10, 4])
    assert line.get_color() == COLOURS["PRS"]
    assert ax.get_yscale() == "log"
    (band,) = ax.collections
    heights = band.get_paths()[0].vertices[:, 1]
    factor = 10 ** (2**0.5)  # one standard deviation of the logarithms 0 and 2
    np.testing.assert_allclose([heights.min(), heights.max()], [10 / factor, 10 * factor])


def test_one_seed_has_no_band(ax):
    frame = pd.DataFrame({"method": "PRS", "seed": 0, "seen": [50, 100], "value": [1.0, 2.0]})
    plot_gradient_variance(frame, ax)
    assert [list(line.get_ydata()) for line in ax.lines if len(line.get_ydata())] == [[1, 2]]
    assert not [band for band in ax.collections if len(band.get_paths())]


def test_features_show_classes_by_colour_and_groups_by_marker(ax):
    frame = pd.DataFrame(
        {
            "x": [0.0, 1, 2, 3],
            "y": [0.0, 1, 2, 3],
            "class_name": ["a", "b", "b", "c"],
            "group": ["majority", "minority", "minority", "moderate"],
        }
    )
    plot_features(frame, ax, ["a", "b"])
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == ["other classes", "a (majority)", "b (minority)"]
    _, first, second = ax.collections
    assert [len(drawn.get_offsets()) for drawn in ax.collections] == [1, 1, 2]
    assert not np.array_equal(first.get_facecolor(), second.get_facecolor())
    assert len(first.get_paths()[0].vertices) != len(second.get_paths()[0].vertices)
    with pytest.raises(ValueError, match=r"expected at most 10 classes.* got 11"):
        plot_features(frame, ax, [str(i) for i in range(11)])


def test_drawing_leaves_the_frame_and_the_style_alone(ax):
    frame = pd.DataFrame({"rho": [0.0, 1.0], "metric": "mAP", "seed": 0, "value": [1.0, 2.0]})
    before, style = frame.copy(), dict(mpl.rcParams)
    plot_sweep(frame, ax)
    pd.testing.assert_frame_equal(frame, before)
    assert dict(mpl.rcParams) == style


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


def test_tail_forgetting_has_a_bar_a_class_a_gap_between_tasks_and_the_sizes(ax):
    columns = {"task": [0, 0, 3], "class": ["a", "b", "c"], "place": [0, 1, 2]}
    one = pd.DataFrame(columns | {"images": [400, 40, 90], "value": [10.0, 60.0, -5.0], "seed": 0})
    frame = pd.concat([one, one.assign(seed=1, value=one["value"] + 10)]).assign(method="CRS")
    assert plot_tail_forgetting(frame, ax) is ax
    assert [bar.get_height() for bar in ax.patches] == [15, 65, 0]
    left = [bar.get_x() for bar in ax.patches]
    assert left[1] - left[0] == pytest.approx(1)
    assert left[2] - left[1] == pytest.approx(2.5)
    dots = next(line for line in ax.lines if line.get_linestyle() == "None")
    assert sorted(dots.get_ydata()) == sorted(frame["value"])
    (sizes,) = [other for other in ax.figure.axes if other is not ax]
    assert [list(line.get_ydata()) for line in sizes.lines] == [[400, 40], [90]]
    assert sizes.get_ylabel() == "training images"
    assert [text.get_text() for text in ax.texts] == ["task 0, 2 classes", "task 3, 1 classes"]
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert sorted(names) == ["CRS: forgetting", "class size", "one seed"]


def test_tail_forgetting_takes_one_method_at_a_time(ax):
    frame = pd.DataFrame({"method": ["CRS", "PRS"]})
    with pytest.raises(ValueError, match="too many values"):
        plot_tail_forgetting(frame, ax)


def test_precision_is_drawn_over_recall_ours_and_the_papers(ax):
    frame = pd.DataFrame(
        {
            "method": ["CRS", "CRS", "OCDM", "OCDM"],
            "metric": ["C-P", "C-R"] * 2,
            "mean": [40.0, 10.0, 70.0, 20.0],
            "published": [38.9, 9.1, np.nan, np.nan],
        }
    )
    plot_precision_recall(frame, ax, "C")
    points = [(line.get_xdata()[0], line.get_ydata()[0]) for line in ax.lines]
    assert (10.0, 40.0) in points
    assert (9.1, 38.9) in points
    assert (20.0, 70.0) in points
    assert ax.get_xlim()[1] == pytest.approx(1.15 * 20)
    assert ax.get_xlabel() == "recall C-R (%)"
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == ["CRS", "OCDM", "paper"]


def test_best_rho():
    rhos, values = [-1.0, 0.0, 0.4, 1.0], [10.0, 30.0, 31.0, 20.0]
    rows = pd.DataFrame(
        {"dataset": "d", "metric": "mAP", "rho": rhos * 2, "seed": [0] * 4 + [1] * 4}
    )
    best = best_rho(rows.assign(value=values + [v + 2 for v in values])).iloc[0]
    assert (best["best_rho"], best["best"]) == (0.4, 32)
    assert "outside the paper's range [-0.2, 0.2]; 21.0 points less at rho = -1" in best["sentence"]


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
