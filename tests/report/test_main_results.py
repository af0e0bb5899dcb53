"""PRS beside CRS by the number of images: which rows are compared, and what is drawn."""

import matplotlib.pyplot as plt
import numpy as np
from fake_runs import fake_run

from prslib.report.main_results import WHOLE, by_images, plot_by_images
from prslib.training.config import configs

NAMES = ["cocoseq-mini-25", "cocoseq-mini-50", "cocoseq-mini"]


def test_the_gap_is_drawn_by_images_with_its_trend_to_all_of_them():
    leads = dict(zip(NAMES, (0.01, 0.02, 0.03), strict=True))  # a straight line in the logarithm
    wanted = configs(dataset=NAMES[::-1], method=["CRS", "PRS", "EWC"], seed=[0, 1, 2, 3, 4])

    def made(config):
        value = 0.5 + leads[config.dataset] * (config.method == "PRS")
        return fake_run(config, lambda rows: np.full(len(rows), value))

    runs = [made(config) for config in wanted]
    table = by_images(runs, NAMES)
    shown = table[table["metric"] == "mAP"]
    assert shown["dataset"].tolist() == NAMES
    assert shown["images"].is_monotonic_increasing and shown["images"].iloc[-1] == 2072
    np.testing.assert_allclose(shown["difference"], [1, 2, 3])
    assert WHOLE == 35072
    ax = plot_by_images(shown, plt.figure().add_subplot())
    (trend,) = (line for line in ax.lines if line.get_label() == "trend")
    assert trend.get_xdata()[-1] == WHOLE
    assert abs(trend.get_ydata()[-1] - 7.1) < 0.1  # a point with every doubling
    plt.close("all")
