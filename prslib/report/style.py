"""Set each method's colour, marker and order, and draw the plots that several notebooks share."""

from collections.abc import Iterable

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from matplotlib.ticker import MaxNLocator

from prslib.paths import PACKAGE
from prslib.report.tables import GROUPS
from prslib.training.methods import METHODS

STYLE = PACKAGE / "report" / "paper.mplstyle"
# colours of Okabe and Ito, which the colour-blind can tell apart, and two greys; the paper's rows
# in its order, then later methods
LOOKS = {
    "Stream": ("#999999", ""),
    "Multitask": ("#666666", "s"),
    "Finetune": ("#000000", "X"),
    "EWC": ("#F0E442", "v"),
    "CRS": ("#0072B2", "o"),
    "GSS": ("#009E73", "^"),
    "ExStream": ("#CC79A7", "P"),
    "PRS": ("#D55E00", "D"),
    "CBRS": ("#56B4E9", "p"),
    "OCDM": ("#E69F00", "h"),
}
# of methods that are added by `prslib.register`, in turn
SPARE = (("#A6003C", "*"), ("#00686E", "<"), ("#7A4B00", ">"), ("#5B7F00", "d"))
COLOURS = {name: colour for name, (colour, _) in LOOKS.items()}
MARKERS = {name: marker for name, (_, marker) in LOOKS.items()}
INK = COLOURS | {"EWC": "#A39400"}  # of lines and marks, for which the yellow is too pale
OUTLINE = [withStroke(linewidth=3.2, foreground="white")]  # shows a dash on black bars, too
SPREAD = 0.5  # share of the way from one setting to the next that the methods take up


def in_order(methods: Iterable[str]) -> list[str]:
    """Return the methods, each once, in the order of the main table; others get a spare look."""
    present = set(methods)
    for name in [*METHODS, *sorted(present)]:
        if name not in COLOURS:
            COLOURS[name], MARKERS[name] = SPARE[(len(COLOURS) - len(LOOKS)) % len(SPARE)]
            INK[name] = COLOURS[name]
    return [name for name in COLOURS if name in present]


def share_legend(figure: Figure, columns: int | None = None) -> None:
    """Put one legend below all axes, in place of their own; all entries in a row by default."""
    entries = {}
    for ax in figure.axes:
        handles, names = ax.get_legend_handles_labels()
        legend = ax.get_legend()
        if legend is not None:
            handles, names = legend.legend_handles, [text.get_text() for text in legend.texts]
            legend.remove()
        entries |= dict(zip(names, handles, strict=True))
    place = {"loc": "outside lower center", "ncols": columns or len(entries)}
    figure.legend(entries.values(), entries.keys(), **place)


def legend_above(ax: Axes, paper: Line2D | None, columns: int | None = None) -> None:
    """Put the legend above the axes, with an entry for the paper's numbers if there are any."""
    handles, names = ax.get_legend_handles_labels()
    if paper is not None:
        handles, names = [*handles, paper], [*names, "paper"]
    columns = columns or len(names)
    ax.legend(handles, names, ncols=columns, loc="lower center", bbox_to_anchor=(0.5, 1.0))


def plot_groups(frame: pd.DataFrame, ax: Axes, metric: str) -> Axes:
    """Draw one metric by class group and method: mean as bar, seeds as dots, paper as dash.

    Columns method, group, seed, value and published, in percent; of one data set.
    """
    _bars(frame, ax, "group", [group for group in GROUPS if group in set(frame["group"])])
    ax.set(xlabel="", ylabel=f"{metric} (%)")
    return ax


def plot_metrics(frame: pd.DataFrame, ax: Axes) -> Axes:
    """Draw several metrics by method as `plot_groups` does; the column metric in place of group."""
    _bars(frame, ax, "metric", list(dict.fromkeys(frame["metric"])))
    ax.set(xlabel="", ylabel="score (%)")
    return ax


def plot_gaps(frame: pd.DataFrame, ax: Axes, metric: str) -> Axes:
    """Draw the distance between two methods by group and weights, later ones darker."""
    groups = [group for group in GROUPS if group in set(frame["group"])]
    weights = list(dict.fromkeys(frame["weights"]))
    greys = sns.color_palette("Greys", len(weights) + 2)[1:-1]  # neither white nor black
    _bars(frame, ax, "group", groups, "weights", dict(zip(weights, greys, strict=True)))
    ax.axhline(0, color="black", linewidth=0.8)
    ax.set(xlabel="", ylabel=f"{metric} (points)")
    return ax


def _bars(
    frame: pd.DataFrame,
    ax: Axes,
    x: str,
    order: list[str],
    hue: str = "method",
    palette: dict | None = None,
) -> None:
    """Draw bars, dots, dashes and the legend above them."""
    palette = palette or {name: COLOURS[name] for name in in_order(frame["method"])}
    names = list(palette)
    place = {"x": x, "y": "value", "hue": hue, "order": order, "hue_order": names}
    sns.barplot(frame, **place, palette=palette, errorbar=None, ax=ax)
    dots = {"size": 3.2, "linewidth": 0.8, "edgecolor": "black", "legend": False}
    white = dict.fromkeys(names, "white")
    sns.stripplot(frame, **place, **dots, palette=white, dodge=True, jitter=False, ax=ax)
    width = 0.8 / len(names)
    dash = {"color": "black", "linewidth": 1.6}
    theirs = frame.groupby([x, hue])["published"].first().dropna()
    for (name, of), value in theirs.items():
        left = order.index(name) - 0.4 + names.index(of) * width
        ax.hlines(value, left, left + width, **dash, zorder=5, path_effects=OUTLINE)
    legend_above(ax, Line2D([], [], **dash) if len(theirs) else None)


def draw_curves(
    frame: pd.DataFrame, ax: Axes, x: str, hue: str, order: list[str], colours, markers, **options
) -> None:
    """Draw the column value over `x`, a line with marks for each `hue`; options of seaborn's."""
    looks = {"hue_order": order, "style_order": order, "palette": colours, "dashes": False}
    looks["markers"] = {name: markers[name] for name in order}
    sns.lineplot(frame, x=x, y="value", hue=hue, style=hue, ax=ax, **looks, **options)


def plot_progression(frame: pd.DataFrame, ax: Axes, metric: str) -> Axes:
    """Draw one metric after every task: mean, a band of one standard deviation, the paper dotted.

    Columns method, seed, trained_tasks, value and published, in percent; of one data set.
    """
    methods = in_order(frame["method"])
    draw_curves(frame, ax, "trained_tasks", "method", methods, INK, MARKERS, errorbar="sd")
    hollow = {"linestyle": ":", "markerfacecolor": "none"}
    for method in methods:
        theirs = frame[frame["method"] == method].groupby("trained_tasks")["published"].first()
        look = {"color": INK[method], "marker": MARKERS[method], **hollow}
        ax.plot(theirs.index, theirs, **look, linewidth=1.2, markersize=4.5)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set(xlabel="tasks trained", ylabel=f"{metric} (%)", ylim=(0, None))
    paper = Line2D([], [], color="0.3", marker="o", **hollow)
    legend_above(ax, paper if frame["published"].notna().any() else None, columns=3)
    return ax


def plot_variations(frame: pd.DataFrame, ax: Axes, x: str, metric: str) -> Axes:
    """Draw one metric by setting and method: mean, a stroke from lowest to highest seed, paper.

    Columns method, seed, value and published, in percent, and `x`, which tells the settings apart;
    the paper's marks are hollow; of one data set.
    """
    settings, methods = list(dict.fromkeys(frame[x])), in_order(frame["method"])
    shifts = SPREAD * ((np.arange(len(methods)) + 0.5) / len(methods) - 0.5)
    place = frame[x].map({setting: number for number, setting in enumerate(settings)})
    hollow = {"linestyle": ":", "markerfacecolor": "white"}
    for method, shift in zip(methods, shifts, strict=True):
        cells = frame[frame["method"] == method].assign(place=place + shift).groupby("place")
        look = {"color": INK[method], "marker": MARKERS[method]}
        values, theirs = cells["value"].agg(["mean", "min", "max"]), cells["published"].first()
        ax.vlines(values.index, values["min"], values["max"], color=INK[method], linewidth=2.2)
        ax.plot(values.index, values["mean"], color=INK[method], linewidth=0.8, alpha=0.5)
        ax.plot(values.index, values["mean"], **look, linestyle="", label=method, clip_on=False)
        ax.plot(theirs.index, theirs, **look, **hollow, linewidth=1, markersize=5)
    for border in range(1, len(settings)):
        ax.axvline(border - 0.5, color="0.88", linewidth=0.7, zorder=0)
    ax.set_xticks(range(len(settings)), settings)
    ax.set(xlabel="", ylabel=f"{metric} (%)", ylim=(0, None), xlim=(-0.5, len(settings) - 0.5))
    paper = Line2D([], [], color="0.3", marker="o", **hollow)
    legend_above(ax, paper if frame["published"].notna().any() else None)
    return ax
