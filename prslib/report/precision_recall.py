"""Draw precision against recall, method by method."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from prslib.report.style import INK, MARKERS, in_order

LEVELS = (10, 20, 30, 40, 50, 60, 70, 80, 90)  # F1 in percent


def plot_precision_recall(frame: pd.DataFrame, ax: Axes, kind: str) -> Axes:
    """Draw each method's precision against its recall over lines of equal F1 (Appendix, "CP, CR").

    The frame has method, metric, mean and published (percent) of one group and data set; kind is
    "C" for the means over classes, "O" for the pooled decisions. The paper's points are hollow.
    """
    recalls = frame.loc[frame["metric"] == f"{kind}-R", ["mean", "published"]]
    top = max(1.0, 1.15 * recalls.max(axis=None))  # rare classes are seldom recalled
    recall, precision = np.meshgrid(np.linspace(0.1, top, 300), np.linspace(0.1, 103, 300))
    f1 = 2 * recall * precision / (recall + precision)
    lines = ax.contour(recall, precision, f1, LEVELS, colors="0.82", linewidths=0.8)
    ax.clabel(lines, fontsize=6.5, fmt="%d", colors="0.5")
    ax.plot([0, 103], [0, 103], color="0.7", linewidth=0.8, linestyle="--")
    cells = frame.pivot(index="method", columns="metric", values=["mean", "published"])
    for method in in_order(frame["method"]):
        look = {"color": INK[method], "marker": MARKERS[method]}
        ours, theirs = (
            (cells.loc[method, (source, f"{kind}-R")], cells.loc[method, (source, f"{kind}-P")])
            for source in ("mean", "published")
        )
        ax.plot(*zip(ours, theirs, strict=True), color=INK[method], linewidth=0.7, alpha=0.7)
        ax.plot(*theirs, **look, linestyle="", markerfacecolor="white", markersize=5.5)
        ax.plot(
            *ours, **look, linestyle="", markersize=7, markeredgecolor="black", label=method,
            markeredgewidth=0.6,
        )  # fmt: skip
    ax.set(xlim=(-0.04 * top, top), ylim=(-4, 103))
    ax.set(xlabel=f"recall {kind}-R (%)", ylabel=f"precision {kind}-P (%)")
    ax.grid(False)
    handles, names = ax.get_legend_handles_labels()
    if frame["published"].notna().any():
        hollow = Line2D([], [], color="0.3", marker="o", linestyle="", markerfacecolor="white")
        handles, names = [*handles, hollow], [*names, "paper"]
    ax.legend(handles, names, ncols=len(names), loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return ax
