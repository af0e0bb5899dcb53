"""What a memory holds: shares of the classes and of their groups."""

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes

from prslib.plots.methods import COLOURS, in_order


def plot_class_shares(frame: pd.DataFrame, ax: Axes) -> Axes:
    """Draw each class's share, classes from frequent to rare (Figure "memory distribution").

    Parameters
    ----------
    frame : DataFrame
        Columns method ("Stream" for the stream itself), seed, class_rank (0 for the most frequent
        class of the stream), group, share (of all labels, in percent).
    ax : Axes
        Where to draw.

    Returns
    -------
    Axes
        With the stream as bars, every method as a line with a band of one standard deviation.
    """
    stream = frame[frame["method"] == "Stream"]
    ax.bar(stream["class_rank"], stream["share"], color="0.82", width=1.0, label="Stream")
    for name in in_order(frame["method"]):
        if name != "Stream":
            shares = frame[frame["method"] == name].groupby("class_rank")["share"]
            mean, sd = shares.mean(), shares.std().fillna(0)
            ax.plot(mean, color=COLOURS[name], drawstyle="steps-mid", label=name)
            band = {"color": COLOURS[name], "alpha": 0.2, "linewidth": 0, "step": "mid"}
            ax.fill_between(mean.index, mean - sd, mean + sd, **band)
    ends = stream.groupby("group", sort=False)["class_rank"].max()
    starts = stream.groupby("group", sort=False)["class_rank"].min()
    for group, end in ends.items():
        if end < stream["class_rank"].max():
            ax.axvline(end + 0.5, color="0.55", linewidth=0.8, linestyle="--")
        ax.text(
            (starts[group] + end) / 2, 0.99, group, ha="center", va="top", color="0.4", fontsize=8,
            transform=ax.get_xaxis_transform(),
        )  # fmt: skip
    top = max(ax.get_ylim()[1], 1.1 * frame["share"].max())  # axes may share their scale
    ax.set(xlabel="class, from frequent to rare", ylabel="share of labels (%)", ylim=(0, top))
    ax.margins(x=0.005)
    ax.label_outer()
    ax.legend(title="")
    return ax


def plot_group_shares(frame: pd.DataFrame, ax: Axes) -> Axes:
    """Draw each group's share of the labels (Figure "memory distribution").

    Parameters
    ----------
    frame : DataFrame
        Columns method ("Stream" for the stream itself), seed, group, share (percent).
    ax : Axes
        Where to draw.

    Returns
    -------
    Axes
        With a bar for the mean over seeds and a dot for every seed.
    """
    methods = in_order(frame["method"])
    place = {"x": "group", "y": "share", "hue": "method", "hue_order": methods}
    sns.barplot(frame, **place, palette=COLOURS, errorbar=None, ax=ax)
    sns.stripplot(
        frame, **place, palette=dict.fromkeys(methods, "white"), dodge=True, jitter=False, size=3.2,
        linewidth=0.8, edgecolor="black", legend=False, ax=ax,
    )  # fmt: skip
    ax.set(xlabel="", ylabel="share of labels (%)")
    ax.legend(title="")
    return ax
