"""Forgetting class by class beside the size of the classes."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, NullFormatter, ScalarFormatter

from prslib.plots.methods import COLOURS

GAP = 1.5  # bars' widths between two tasks
SIZES = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000)


def plot_tail_forgetting(frame: pd.DataFrame, ax: Axes) -> Axes:
    """Draw what is forgotten of every class, the class's size as a line (Figure 1).

    Parameters
    ----------
    frame : DataFrame
        Columns method, seed, task, class, place (0 for the first class from the left), images and
        value (forgetting in percent); one method, one metric, one measure, one data set.
    ax : Axes
        Where to draw.

    Returns
    -------
    Axes
        With a bar for the mean over seeds and a dot for every seed, a gap between the tasks, and
        the number of training images on a logarithmic axis of its own at the right.
    """
    (method,) = frame["method"].unique()
    turn = {task: number for number, task in enumerate(frame.sort_values("place")["task"].unique())}
    frame = frame.assign(x=frame["place"] + GAP * frame["task"].map(turn))
    columns = {"value": ("value", "mean"), "images": ("images", "first"), "task": ("task", "first")}
    classes = frame.groupby("x").agg(**columns)
    ax.bar(
        classes.index, classes["value"], width=0.85, color=COLOURS[method], edgecolor="0.35",
        linewidth=0.4, label=f"{method}: forgetting",
    )  # fmt: skip
    if frame["seed"].nunique() > 1:
        ax.plot(
            frame["x"], frame["value"], ".", color="white", markersize=4.5, markeredgecolor="black",
            markeredgewidth=0.5, label="one seed",
        )  # fmt: skip
    sizes = ax.twinx()
    for number, (task, part) in enumerate(classes.groupby("task", sort=False)):
        label = "class size" if number == 0 else None
        sizes.plot(part.index, part["images"], color="0.15", linewidth=1.3, label=label)
        ax.text(
            part.index.to_numpy().mean(), 1.0, f"task {task}, {len(part)} classes",
            ha="center", va="bottom", transform=ax.get_xaxis_transform(),
        )  # fmt: skip
    _finish(ax, sizes)
    return ax


def _finish(ax: Axes, sizes: Axes) -> None:
    """Label both axes, put one legend at the side and keep the grid to the bars' scale."""
    ax.axhline(0, color="0.35", linewidth=0.8)
    ax.set(xlabel="classes of each task, from large to small", ylabel="forgetting (%)", xticks=[])
    for axes in (ax, sizes):
        axes.margins(x=0.01)
    sizes.set(ylabel="training images", yscale="log")
    sizes.yaxis.set_major_locator(FixedLocator(SIZES))
    sizes.yaxis.set_major_formatter(ScalarFormatter())
    sizes.yaxis.set_minor_formatter(NullFormatter())
    sizes.grid(False)
    sizes.spines["right"].set_visible(True)
    entries = [axes.get_legend_handles_labels() for axes in (ax, sizes)]
    handles, names = (first + second for first, second in zip(*entries, strict=True))
    ax.legend(handles, names, loc="upper left", bbox_to_anchor=(1.07, 1.0))
