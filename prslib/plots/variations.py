"""A score in several settings side by side: schedules, memory sizes, tasks."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from prslib.plots.methods import INK, MARKERS, in_order

SPREAD = 0.5  # share of the way from one setting to the next that the methods take up


def plot_variations(frame: pd.DataFrame, ax: Axes, x: str, metric: str) -> Axes:
    """Draw one metric in every setting and by every method (Table 2).

    Parameters
    ----------
    frame : DataFrame
        Columns method, seed, value and published, both in percent, and ``x``, whose values are
        drawn in the order in which they appear; one metric, one data set; published is NaN where
        the paper has no number.
    ax : Axes
        Where to draw.
    x : str
        The column that tells settings apart.
    metric : str
        The metric's name, for the axis.

    Returns
    -------
    Axes
        With the mean over seeds, a stroke from the lowest to the highest seed, and the paper's
        number hollow.
    """
    settings, methods = list(dict.fromkeys(frame[x])), in_order(frame["method"])
    shifts = SPREAD * ((np.arange(len(methods)) + 0.5) / len(methods) - 0.5)
    place = frame[x].map({setting: number for number, setting in enumerate(settings)})
    for method, shift in zip(methods, shifts, strict=True):
        cells = frame[frame["method"] == method].assign(place=place + shift).groupby("place")
        look = {"color": INK[method], "marker": MARKERS[method]}
        values, theirs = cells["value"].agg(["mean", "min", "max"]), cells["published"].first()
        ax.vlines(values.index, values["min"], values["max"], color=INK[method], linewidth=2.2)
        ax.plot(values.index, values["mean"], color=INK[method], linewidth=0.8, alpha=0.5)
        ax.plot(values.index, values["mean"], **look, linestyle="", label=method, clip_on=False)
        ax.plot(
            theirs.index, theirs, **look, linestyle=":", linewidth=1, markerfacecolor="white",
            markersize=5,
        )  # fmt: skip
    for border in range(1, len(settings)):
        ax.axvline(border - 0.5, color="0.88", linewidth=0.7, zorder=0)
    ax.set_xticks(range(len(settings)), settings)
    ax.set(xlabel="", ylabel=f"{metric} (%)", ylim=(0, None), xlim=(-0.5, len(settings) - 0.5))
    handles, names = ax.get_legend_handles_labels()
    if frame["published"].notna().any():
        paper = Line2D([], [], color="0.3", linestyle=":", marker="o", markerfacecolor="white")
        handles, names = [*handles, paper], [*names, "paper"]
    ax.legend(handles, names, ncols=len(names), loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return ax
