"""Bars of a score by class group, or of several scores."""

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke

from prslib.plots.methods import COLOURS, in_order

OUTLINE = [withStroke(linewidth=3.2, foreground="white")]  # seen on black bars, too
GROUPS = ("majority", "moderate", "minority", "overall")


def plot_groups(frame: pd.DataFrame, ax: Axes, metric: str) -> Axes:
    """Draw one metric by class group and method, the paper's number as a dash (Table 1).

    Parameters
    ----------
    frame : DataFrame
        Columns method, group, seed, value and published, both in percent; one metric, one data
        set; published is NaN where the paper has no number.
    ax : Axes
        Where to draw.
    metric : str
        The metric's name, for the axis.

    Returns
    -------
    Axes
        With a bar for the mean over seeds, a dot for every seed and a dash for the paper.
    """
    groups = [group for group in GROUPS if group in set(frame["group"])]
    _bars(frame, ax, "group", groups)
    ax.set(xlabel="", ylabel=f"{metric} (%)")
    return ax


def plot_metrics(frame: pd.DataFrame, ax: Axes) -> Axes:
    """Draw several metrics by method, the paper's number as a dash (Figure "Inter-task").

    Parameters
    ----------
    frame : DataFrame
        Columns method, metric, seed, value and published, both in percent; one data set;
        published is NaN where the paper has no number.
    ax : Axes
        Where to draw.

    Returns
    -------
    Axes
        With a bar for the mean over seeds, a dot for every seed and a dash for the paper.
    """
    _bars(frame, ax, "metric", list(dict.fromkeys(frame["metric"])))
    ax.set(xlabel="", ylabel="score (%)")
    return ax


def plot_gaps(frame: pd.DataFrame, ax: Axes, metric: str) -> Axes:
    """Draw the distance between two methods by class group and weights (after Table 1).

    Parameters
    ----------
    frame : DataFrame
        Columns weights, group, seed, value and published, both in points; one metric, one data
        set; weights are drawn in the order in which they appear, the later the darker.
    ax : Axes
        Where to draw.
    metric : str
        The metric's name, for the axis.

    Returns
    -------
    Axes
        With a bar for the mean over seeds, a dot for every seed and a dash for the paper.
    """
    groups = [group for group in GROUPS if group in set(frame["group"])]
    weights = list(dict.fromkeys(frame["weights"]))
    greys = sns.color_palette("Greys", len(weights) + 2)[1:-1]  # neither white nor black
    palette = dict(zip(weights, greys, strict=True))
    _bars(frame, ax, "group", groups, ("weights", palette))
    ax.axhline(0, color="black", linewidth=0.8)
    ax.set(xlabel="", ylabel=f"{metric} (points)")
    return ax


def _bars(
    frame: pd.DataFrame, ax: Axes, x: str, order: list[str], by: tuple[str, dict] | None = None
) -> None:
    """Draw bars, dots, dashes and the legend above them; by a column and the looks of its values.

    By default these are the methods.
    """
    hue, palette = by or ("method", {name: COLOURS[name] for name in in_order(frame["method"])})
    names = list(palette)
    place = {"x": x, "y": "value", "hue": hue, "order": order, "hue_order": names}
    sns.barplot(frame, **place, palette=palette, errorbar=None, ax=ax)
    dots = dict.fromkeys(names, "white")
    sns.stripplot(
        frame,
        **place,
        palette=dots,
        dodge=True,
        jitter=False,
        size=3.2,
        linewidth=0.8,
        edgecolor="black",
        legend=False,
        ax=ax,
    )
    width = 0.8 / len(names)
    theirs = frame.groupby([x, hue])["published"].first().dropna()
    for (name, of), value in theirs.items():
        left = order.index(name) - 0.4 + names.index(of) * width
        ax.hlines(
            value, left, left + width, color="black", linewidth=1.6, zorder=5, path_effects=OUTLINE
        )
    handles, names = ax.get_legend_handles_labels()
    if len(theirs):
        handles.append(Line2D([], [], color="black", linewidth=1.6))
        names.append("paper")
    ax.legend(handles, names, ncols=len(names), loc="lower center", bbox_to_anchor=(0.5, 1.0))
