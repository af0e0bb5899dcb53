import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

mpl.use("Agg")
import matplotlib.pyplot as plt

from prslib import plots
from prslib.report.style import COLOURS, MARKERS, in_order
from prslib.training.methods import METHODS


@pytest.fixture
def ax():
    with plt.style.context(plots.STYLE):
        figure, ax = plt.subplots()
        yield ax
        figure.canvas.draw()  # what a reader would see can be drawn without a warning
        plt.close(figure)


def test_every_method_has_a_look_of_its_own():
    assert set(METHODS) <= set(COLOURS)
    assert set(COLOURS) == set(MARKERS)
    assert len(set(COLOURS.values())) == len(COLOURS)
    assert in_order(reversed(METHODS)) == list(METHODS)


def test_group_bars_are_the_means_dots_the_seeds_dashes_the_paper(ax):
    frame = pd.DataFrame(
        {
            "method": ["CRS", "CRS", "PRS", "PRS"] * 2,
            "group": ["majority"] * 4 + ["minority"] * 4,
            "seed": [0, 1] * 4,
            "value": [70, 72, 68, 70, 20, 24, 40, 44],
            "published": [67.9] * 2 + [67.5] * 2 + [np.nan] * 2 + [39.7] * 2,
        }
    )
    assert plots.plot_groups(frame, ax, "mAP") is ax
    assert sorted(bar.get_height() for bar in ax.patches if bar.get_height()) == [22, 42, 69, 71]
    dots = np.concatenate(
        [c.get_offsets()[:, 1] for c in ax.collections if len(c.get_offsets()) > 1]
    )
    assert sorted(dots) == sorted(frame["value"])
    dashes = [c.get_segments()[0][0][1] for c in ax.collections if hasattr(c, "get_segments")]
    assert sorted(dashes) == [39.7, 67.5, 67.9]
    assert ax.get_ylabel() == "mAP (%)"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["CRS", "PRS", "paper"]


def test_distances_are_bars_by_weights_with_a_line_at_zero(ax):
    frame = pd.DataFrame(
        {
            "group": ["majority", "majority", "overall", "overall"] * 2,
            "weights": ["none", "digits"] * 4,
            "seed": [0] * 4 + [1] * 4,
            "value": [-6.0, -1.0, 3.0, 4.0, -8.0, -3.0, 5.0, 6.0],
            "published": [-0.4, -0.4, 5.1, 5.1] * 2,
        }
    )
    plots.plot_gaps(frame, ax, "mAP")
    heights = [bar.get_height() for bars in ax.containers for bar in bars]
    assert heights == pytest.approx([-7, 4, -2, 5])
    lightness = [sum(bars[0].get_facecolor()[:3]) for bars in ax.containers]
    assert lightness[0] > lightness[1]
    assert any(list(line.get_ydata()) == [0, 0] for line in ax.lines)
    assert [text.get_text() for text in ax.get_legend().texts] == ["none", "digits", "paper"]
    assert ax.get_ylabel() == "mAP (points)"


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
    assert plots.plot_architectures(frame, ax, "mAP") is ax
    bars = {(round(b.get_x() + b.get_width() / 2, 6), b.get_height()) for b in ax.patches}
    assert bars == {(-0.2, 42), (0.2, 60), (1, 30)}  # a single one stands over its name
    dots = np.concatenate([line.get_ydata() for line in ax.lines])
    assert sorted(dots) == [30, 40, 44, 60]
    assert sorted(c.get_segments()[0][0][1] for c in ax.collections) == [41, 55]
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert legend == ["1 epoch", "2 epochs", "paper"]
    many = pd.concat([frame.assign(setting=str(number)) for number in range(5)])
    with pytest.raises(ValueError, match="expected at most 4 settings, got 5"):
        plots.plot_architectures(many, ax, "mAP")


def test_progression_draws_ours_and_theirs(ax):
    frame = pd.DataFrame(
        {
            "method": ["CRS"] * 4,
            "seed": [0, 1, 0, 1],
            "trained_tasks": [1, 1, 2, 2],
            "value": [60, 62, 50, 54],
            "published": [63.4, 63.4, 58.6, 58.6],
        }
    )
    plots.plot_progression(frame, ax, "mAP")
    drawn = [list(line.get_ydata()) for line in ax.lines if len(line.get_ydata())]
    assert [61, 52] in drawn
    assert [63.4, 58.6] in drawn
    assert ax.get_xlabel() == "tasks trained"


def test_sweep_rings_the_best_rho(ax):
    frame = pd.DataFrame(
        {"rho": [-1, 0, 1] * 2, "metric": "mAP", "seed": [0] * 3 + [1] * 3}
    ).assign(value=[10, 30, 20, 12, 32, 22])
    plots.plot_sweep(frame, ax)
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
    plots.plot_class_shares(frame, ax)
    assert [bar.get_height() for bar in ax.patches] == [60, 30, 10]
    assert [text.get_text() for text in ax.texts] == ["majority", "moderate", "minority"]
    ax.clear()
    plots.plot_group_shares(frame, ax)
    assert sorted(b.get_height() for b in ax.patches if b.get_height()) == [10, 30, 33, 33, 34, 60]


def test_gradient_variance_is_a_geometric_mean_with_its_band(ax):
    frame = pd.DataFrame(
        {"method": "PRS", "seed": [0, 1] * 2, "seen": [50, 50, 100, 100], "value": [1, 100, 4, 4.0]}
    )
    plots.plot_gradient_variance(frame, ax)
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
    plots.plot_gradient_variance(frame, ax)
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
    plots.plot_features(frame, ax, ["a", "b"])
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == ["other classes", "a (majority)", "b (minority)"]
    _, first, second = ax.collections
    assert [len(drawn.get_offsets()) for drawn in ax.collections] == [1, 1, 2]
    assert not np.array_equal(first.get_facecolor(), second.get_facecolor())
    assert len(first.get_paths()[0].vertices) != len(second.get_paths()[0].vertices)
    with pytest.raises(ValueError, match=r"expected at most 10 classes.* got 11"):
        plots.plot_features(frame, ax, [str(i) for i in range(11)])


def test_drawing_leaves_the_frame_and_the_style_alone(ax):
    frame = pd.DataFrame({"rho": [0.0, 1.0], "metric": "mAP", "seed": 0, "value": [1.0, 2.0]})
    before, style = frame.copy(), dict(mpl.rcParams)
    plots.plot_sweep(frame, ax)
    pd.testing.assert_frame_equal(frame, before)
    assert dict(mpl.rcParams) == style


def test_a_shared_legend_names_every_entry_once():
    figure, axes = plt.subplots(1, 2, layout="constrained")
    for ax, names in zip(axes, [["CRS", "PRS"], ["PRS", "GSS"]], strict=True):
        for name in names:
            ax.plot([0, 1], [0, 1], label=name, color=COLOURS[name])
        ax.legend()
    plots.share_legend(figure)
    assert [ax.get_legend() for ax in axes] == [None, None]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.texts] == ["CRS", "PRS", "GSS"]
    assert [line.get_color() for line in legend.get_lines()] == [
        COLOURS[name] for name in ("CRS", "PRS", "GSS")
    ]
    plt.close(figure)


def test_panels_that_share_a_scale_show_the_highest_share():
    figure, axes = plt.subplots(1, 3, sharey=True)
    for ax, highest in zip(axes, [30, 90, 20], strict=True):
        share = [60, 30, 10, highest, 5, 5]
        columns = {"method": ["Stream"] * 3 + ["PRS"] * 3, "seed": 0, "class_rank": [0, 1, 2] * 2}
        groups = ["majority", "moderate", "minority"] * 2
        plots.plot_class_shares(pd.DataFrame(columns | {"group": groups, "share": share}), ax)
    assert axes[0].get_ylim()[0] == 0
    assert axes[0].get_ylim()[1] > 90
    plt.close(figure)


def test_tail_forgetting_has_a_bar_a_class_a_gap_between_tasks_and_the_sizes(ax):
    columns = {"task": [0, 0, 3], "class": ["a", "b", "c"], "place": [0, 1, 2]}
    one = pd.DataFrame(columns | {"images": [400, 40, 90], "value": [10.0, 60.0, -5.0], "seed": 0})
    frame = pd.concat([one, one.assign(seed=1, value=one["value"] + 10)]).assign(method="CRS")
    assert plots.plot_tail_forgetting(frame, ax) is ax
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
        plots.plot_tail_forgetting(frame, ax)


def test_variations_draw_means_strokes_and_the_paper(ax):
    frame = pd.DataFrame(
        {
            "method": ["CRS"] * 3 + ["PRS"] * 2,
            "memory": ["500", "500", "250", "500", "250"],
            "seed": [0, 1, 0, 0, 0],
            "value": [40.0, 50.0, 30.0, 60.0, 55.0],
            "published": [50.2, 50.2, np.nan, 55.0, np.nan],
        }
    )
    assert plots.plot_variations(frame, ax, "memory", "mAP") is ax
    assert [label.get_text() for label in ax.get_xticklabels()] == ["500", "250"]
    strokes = [segment[:, 1].tolist() for c in ax.collections for segment in c.get_segments()]
    assert [40, 50] in strokes
    drawn = {line.get_label(): line for line in ax.lines}
    assert list(drawn["CRS"].get_ydata()) == [45, 30]
    assert list(drawn["PRS"].get_ydata()) == [60, 55]
    assert drawn["CRS"].get_xdata()[0] < 0 < drawn["PRS"].get_xdata()[0]  # side by side
    assert ax.get_ylabel() == "mAP (%)"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["CRS", "PRS", "paper"]


def test_metrics_are_bars_by_method(ax):
    frame = pd.DataFrame(
        {"method": ["CRS", "PRS"] * 2, "metric": ["C-F1"] * 2 + ["mAP"] * 2, "seed": 0}
    ).assign(value=[1.0, 35.0, 46.0, 90.0], published=np.nan)
    plots.plot_metrics(frame, ax)
    assert sorted(bar.get_height() for bar in ax.patches if bar.get_height()) == [1, 35, 46, 90]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["C-F1", "mAP"]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["CRS", "PRS"]


def test_precision_is_drawn_over_recall_ours_and_the_papers(ax):
    frame = pd.DataFrame(
        {
            "method": ["CRS", "CRS", "OCDM", "OCDM"],
            "metric": ["C-P", "C-R"] * 2,
            "mean": [40.0, 10.0, 70.0, 20.0],
            "published": [38.9, 9.1, np.nan, np.nan],
        }
    )
    plots.plot_precision_recall(frame, ax, "C")
    points = [(line.get_xdata()[0], line.get_ydata()[0]) for line in ax.lines]
    assert (10.0, 40.0) in points
    assert (9.1, 38.9) in points
    assert (20.0, 70.0) in points
    assert ax.get_xlim()[1] == pytest.approx(1.15 * 20)
    assert ax.get_xlabel() == "recall C-R (%)"
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == ["CRS", "OCDM", "paper"]
