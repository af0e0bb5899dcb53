import numpy as np
import pandas as pd
import pytest

from prslib.report.precision_recall import plot_precision_recall


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
