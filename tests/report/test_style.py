"""Check the style of figures, shared plots, and the plots of single notebooks."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from prslib.report import style
from prslib.report.precision_recall import plot_precision_recall
from prslib.report.style import (
    COLOURS,
    LOOKS,
    MARKERS,
    in_order,
    plot_gaps,
    plot_groups,
    plot_metrics,
    plot_progression,
    plot_variations,
    share_legend,
)
from prslib.training.methods import METHODS


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
    assert plot_groups(frame, ax, "mAP") is ax
    assert sorted(bar.get_height() for bar in ax.patches if bar.get_height()) == [22, 42, 69, 71]
    dots = np.concatenate(
        [c.get_offsets()[:, 1] for c in ax.collections if len(c.get_offsets()) > 1]
    )
    assert sorted(dots) == sorted(frame["value"])
    dashes = [c.get_segments()[0][0][1] for c in ax.collections if hasattr(c, "get_segments")]
    assert sorted(dashes) == [39.7, 67.5, 67.9]


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
    plot_gaps(frame, ax, "mAP")
    heights = [bar.get_height() for bars in ax.containers for bar in bars]
    assert heights == pytest.approx([-7, 4, -2, 5])
    lightness = [sum(bars[0].get_facecolor()[:3]) for bars in ax.containers]
    assert lightness[0] > lightness[1]
    assert any(list(line.get_ydata()) == [0, 0] for line in ax.lines)
    assert [text.get_text() for text in ax.get_legend().texts] == ["none", "digits", "paper"]


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
    plot_progression(frame, ax, "mAP")
    drawn = [list(line.get_ydata()) for line in ax.lines if len(line.get_ydata())]
    assert [61, 52] in drawn
    assert [63.4, 58.6] in drawn


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
    assert plot_variations(frame, ax, "memory", "mAP") is ax
    assert [label.get_text() for label in ax.get_xticklabels()] == ["500", "250"]
    strokes = [segment[:, 1].tolist() for c in ax.collections for segment in c.get_segments()]
    assert [40, 50] in strokes
    drawn = {line.get_label(): line for line in ax.lines}
    assert list(drawn["CRS"].get_ydata()) == [45, 30]
    assert list(drawn["PRS"].get_ydata()) == [60, 55]
    assert drawn["CRS"].get_xdata()[0] < 0 < drawn["PRS"].get_xdata()[0]  # side by side
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["CRS", "PRS", "paper"]


def test_metrics_are_bars_by_method(ax):
    frame = pd.DataFrame(
        {"method": ["CRS", "PRS"] * 2, "metric": ["C-F1"] * 2 + ["mAP"] * 2, "seed": 0}
    ).assign(value=[1.0, 35.0, 46.0, 90.0], published=np.nan)
    plot_metrics(frame, ax)
    assert sorted(bar.get_height() for bar in ax.patches if bar.get_height()) == [1, 35, 46, 90]


def test_precision_is_drawn_over_recall_ours_and_the_papers(ax):
    frame = pd.DataFrame(
        {
            "method": ["CRS", "CRS", "OCDM", "OCDM"],
            "metric": ["C-P", "C-R"] * 2,
            "mean": [40.0, 10.0, 70.0, 20.0],
            "published": [38.9, 9.1, np.nan, np.nan],
        }
    )
    assert plot_precision_recall(frame, ax, "C") is ax
    points = [(line.get_xdata()[0], line.get_ydata()[0]) for line in ax.lines]
    assert {(10.0, 40.0), (9.1, 38.9), (20.0, 70.0)} <= set(points)
    assert ax.get_xlim()[1] == pytest.approx(1.15 * 20)


def test_a_shared_legend_names_every_entry_once():
    figure, axes = plt.subplots(1, 2, layout="constrained")
    for ax, names in zip(axes, [["CRS", "PRS"], ["PRS", "GSS"]], strict=True):
        for name in names:
            ax.plot([0, 1], [0, 1], label=name, color=COLOURS[name])
        ax.legend()
    share_legend(figure)
    assert [ax.get_legend() for ax in axes] == [None, None]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.texts] == ["CRS", "PRS", "GSS"]
    assert [line.get_color() for line in legend.get_lines()] == [
        COLOURS[name] for name in ("CRS", "PRS", "GSS")
    ]
    plt.close(figure)


def test_a_method_without_a_look_gets_one_of_its_own(monkeypatch):
    for table in ("COLOURS", "MARKERS", "INK"):
        monkeypatch.setattr(style, table, dict(getattr(style, table)))
    assert in_order(["MIR", "PRS", "iCaRL"]) == ["PRS", "MIR", "iCaRL"]
    assert in_order(["iCaRL"]) == ["iCaRL"]
    assert len(set(style.INK.values())) == len(set(style.MARKERS.values())) == len(LOOKS) + 2
