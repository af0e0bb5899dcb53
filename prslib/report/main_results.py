"""Compare PRS with CRS by the number of training images."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from prslib.datasets import digits, load_dataset
from prslib.report.style import INK, MARKERS
from prslib.report.tables import METRICS, beside, contrasts, final, scores_of
from prslib.training.config import Run

WHOLE = sum(sum(task.labels_per_image) for task in digits.COCOSEQ)  # training images of COCOseq


def by_images(runs: Sequence[Run], names: Sequence[str]) -> pd.DataFrame:
    """Compare PRS with CRS on data sets that differ in their number of training images alone."""
    chosen = [run for run in runs if run.config.dataset in names]
    chosen = [run for run in chosen if run.config.method in ("PRS", "CRS")]
    cells = [("overall", metric) for metric in METRICS]
    table = contrasts(beside(final(scores_of(chosen)), "main"), "PRS", "CRS", cells)
    sizes = {name: len(load_dataset(name, images=False).train) for name in names}
    table.insert(1, "images", table["dataset"].map(sizes))
    return table.sort_values("images", kind="stable", ignore_index=True)


def plot_by_images(frame: pd.DataFrame, ax: Axes) -> Axes:
    """Draw the difference of two methods by the number of images, and its trend to all."""
    ends = np.abs(frame[["low", "high"]].to_numpy().T - frame["difference"].to_numpy())
    style = {"color": INK["PRS"], "marker": MARKERS["PRS"], "linestyle": ""}
    ax.errorbar(frame["images"], frame["difference"], yerr=ends, label="ours, 95 %", **style)
    if len(frame) > 1:
        steps = np.log([*frame["images"], WHOLE])
        slope, level = np.polyfit(steps[:-1], frame["difference"], 1)
        ax.plot([*frame["images"], WHOLE], level + slope * steps, "--", color="0.5", label="trend")
    ax.plot(WHOLE, frame["published"].iloc[-1], "k_", markersize=12, label="paper, all images")
    ax.axhline(0, color="black", linewidth=0.8)
    ax.set_xscale("log")
    ax.set(xlabel="training images", ylabel="PRS minus CRS (points)")
    return ax
