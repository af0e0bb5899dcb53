"""Accuracy over the orders in which the classes appear."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from prslib.plots.methods import COLOURS, in_order


def plot_order_spread(frame: pd.DataFrame, ax: Axes) -> Axes:
    """Draw one dot for every order, the paper's number as a dash (Appendix, single-label tables).

    Parameters
    ----------
    frame : DataFrame
        Columns method, value and published, both in percent; a row an order, one data set.
    ax : Axes
        Where to draw.

    Returns
    -------
    Axes
        With a column of dots for each method.
    """
    methods = in_order(frame["method"])
    for position, method in enumerate(methods):
        rows = frame[frame["method"] == method]
        places = position + np.linspace(-0.3, 0.3, len(rows))  # side by side, in the rows' order
        ax.scatter(places, rows["value"], s=9, alpha=0.5, color=COLOURS[method])
        theirs = rows["published"].iloc[0]
        ends = position - 0.4, position + 0.4
        label = "paper" if position == 0 else None
        ax.hlines(theirs, *ends, color="black", linewidth=1.8, zorder=5, label=label)
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0))
    ax.set_xticks(range(len(methods)), methods)
    ax.set(xlabel="", ylabel="accuracy after the last task (%)", ylim=(0, 100))
    return ax


def plot_order_pairs(frame: pd.DataFrame, ax: Axes, x: str, y: str) -> Axes:
    """Draw one method's accuracy against another's, a dot for every order, the paper as a star.

    Parameters
    ----------
    frame : DataFrame
        Columns schedule, method, value and published, both in percent; one value a method and
        order.
    ax : Axes
        Where to draw.
    x, y : str
        Methods.

    Returns
    -------
    Axes
        With equal scales and the line on which the two are the same.
    """
    values = frame.pivot(index="schedule", columns="method", values="value")
    theirs = frame.groupby("method")["published"].first()
    ax.axline((0, 0), slope=1, color="0.6", linewidth=1)
    ax.scatter(values[x], values[y], s=9, alpha=0.5, color=COLOURS[y], label="ours, one order each")
    ax.scatter(theirs[x], theirs[y], s=170, marker="*", color="black", label="paper", zorder=5)
    ax.legend(loc="lower center", ncols=2, bbox_to_anchor=(0.5, 1.0))
    ax.set(xlim=(0, 100), ylim=(0, 100), aspect="equal", xlabel=f"{x} (%)", ylabel=f"{y} (%)")
    return ax
