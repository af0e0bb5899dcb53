"""The styles of methods, and plots that figures share."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.text import Text

from prslib.report import style
from prslib.report.style import METHOD_STYLES, styles_of
from prslib.train import METHODS


def test_every_method_has_a_style_of_its_own_also_a_new_one(monkeypatch):
    assert set(METHODS) <= set(METHOD_STYLES)
    assert list(styles_of(reversed(METHODS))) == list(METHODS)
    monkeypatch.setattr(style, "METHOD_STYLES", dict(METHOD_STYLES))
    assert list(styles_of(["MIR", "PRS", "iCaRL"])) == ["PRS", "MIR", "iCaRL"]
    assert len(style.METHOD_STYLES) == len(METHOD_STYLES) + 2
    for field in ("color", "marker"):
        assert len({each[field] for each in style.METHOD_STYLES.values()}) == len(
            style.METHOD_STYLES
        )


def test_marks_are_means_with_a_stroke_over_the_seeds_and_the_paper_beside():
    methods = ["CRS", "CRS", "PRS", "PRS"] * 2
    frame = pd.DataFrame({"method": methods, "seed": [0, 1] * 4})
    frame["group"] = ["minority"] * 4 + ["majority"] * 4
    frame["value"] = [20, 24, 40, 44, 70, 72, 68, 70]
    frame["published"] = [19.0] * 2 + [39.7] * 2 + [67.9] * 2 + [67.5] * 2
    figure, ax = plt.subplots()
    style.plot_variations(frame, ax, "group", "mAP")
    names = [label.get_text() for label in ax.get_xticklabels()]
    assert names == ["majority", "minority"]
    heights = [line.get_ydata().tolist() for line in ax.lines[:4]]
    assert heights == [[71, 22], [67.9, 19], [69, 42], [67.5, 39.7]]
    seeds = [line[:, 1].tolist() for c in ax.collections for line in c.get_segments()]
    assert seeds == [[70, 72], [20, 24], [68, 70], [40, 44]]
    plt.close(figure)


def test_the_paper_stands_beside_its_own_images_and_apart_from_stand_ins():
    frame = pd.DataFrame({"dataset": ["cocoseq-mini", "digits49seq", "digits49seq"]})
    frame = frame.assign(value=[50.0, 80.0, np.nan], published=[55.0, 25.0, 25.0])
    shown = style.without_far_numbers(frame)["published"]
    np.testing.assert_array_equal(shown, [55.0, np.nan, 25.0])


def test_panels_that_are_stacked_keep_their_labels_and_small_words_grow():
    figure, axes = plt.subplots(2, 2, figsize=(11, 5), sharex=True, sharey=True)
    for number, ax in enumerate(axes.flat):
        ax.set(title=str(number), xlabel=f"rho {number % 2}", ylabel="mAP (%)")
        ax.plot([0, 1], label="PRS")
        ax.label_outer()
    axes[0, 0].text(0, 0, "note", fontsize=5)
    style.join_panels(figure, "cocoseq-mini: " + "PRS minus CRS, " * 4)
    style.stack_panels(figure)
    figure.canvas.draw()
    assert figure.get_figwidth() == style.NARROW
    heights = [ax.get_position().y0 for ax in axes.flat]
    assert heights == sorted(heights, reverse=True)
    assert [ax.get_xlabel() for ax in axes.flat] == ["rho 0", "rho 1"] * 2
    sizes = [text.get_fontsize() for text in figure.findobj(Text) if text.get_text()]
    assert min(sizes) == style.SMALLEST
    assert len(figure.legends) == 1
    assert "\n" in figure.get_suptitle()
    plt.close(figure)
