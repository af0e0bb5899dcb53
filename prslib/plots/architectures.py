"""Bars of a score by network and setting."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

COLOURS = ("#56B4E9", "#E69F00", "#0072B2", "#D55E00")  # of Okabe and Ito; light, then dark


def plot_architectures(frame: pd.DataFrame, ax: Axes, metric: str) -> Axes:
    """Draw one metric by network and setting, the paper's number as a dash (Appendix).

    Parameters
    ----------
    frame : DataFrame
        Columns network, setting, seed, value and published, both in percent; one metric, one
        data set; at most four settings. Networks and settings are drawn in order of appearance.
    ax : Axes
        Where to draw.
    metric : str
        The metric's name, for the axis.

    Returns
    -------
    Axes
        With a bar for the mean over seeds, a dot for every seed and a dash for the paper.

    Raises
    ------
    ValueError
        If there are more settings than colours.
    """
    networks, settings = (list(dict.fromkeys(frame[name])) for name in ("network", "setting"))
    if len(settings) > len(COLOURS):
        raise ValueError(f"expected at most {len(COLOURS)} settings, got {len(settings)}")
    width = 0.8 / len(settings)
    found = frame.groupby("network")["setting"].agg(set)
    trained = {name: [s for s in settings if s in found[name]] for name in networks}
    for number, setting in enumerate(settings):
        part = frame[frame["setting"] == setting]
        beside = part["network"].map(lambda n, s=setting: trained[n].index(s) - len(trained[n]) / 2)
        place = part["network"].map(networks.index) + (beside + 0.5) * width
        cells = part.assign(place=place).groupby("place")
        means, theirs = cells["value"].mean(), cells["published"].first().dropna()
        ax.bar(means.index, means, width, color=COLOURS[number], label=setting)
        ax.plot(place, part["value"], "o", color="white", markeredgecolor="black", markersize=3.2)
        ends = np.array([-0.5, 0.5]) * width
        for left, right, value in zip(*np.add.outer(ends, theirs.index), theirs, strict=True):
            ax.hlines(value, left, right, color="black", linewidth=1.6, zorder=5)
    ax.set_xticks(range(len(networks)), [name.replace(" [", "\n[") for name in networks])
    ax.set_xlim(-0.5, len(networks) - 0.5)
    ax.set(xlabel="", ylabel=f"{metric} (%)")
    handles, names = ax.get_legend_handles_labels()
    if frame["published"].notna().any():
        handles, names = [*handles, Line2D([], [], color="black", linewidth=1.6)], [*names, "paper"]
    ax.legend(handles, names, ncols=len(names), loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return ax
