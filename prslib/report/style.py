"""How a method looks: the same colour, marker and order in every figure."""

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

# colours of Okabe and Ito, which the colour-blind can tell apart, and two greys; the paper's rows
# in its order, then later methods
STYLE = PACKAGE / "report" / "paper.mplstyle"
COLOURS = {
    "Stream": "#999999",
    "Multitask": "#666666",
    "Finetune": "#000000",
    "EWC": "#F0E442",
    "CRS": "#0072B2",
    "GSS": "#009E73",
    "ExStream": "#CC79A7",
    "PRS": "#D55E00",
    "CBRS": "#56B4E9",
    "OCDM": "#E69F00",
}
INK = COLOURS | {"EWC": "#A39400"}  # of lines and marks, for which the yellow is too pale
MARKERS = {
    "Stream": "",
    "Multitask": "s",
    "Finetune": "X",
    "EWC": "v",
    "CRS": "o",
    "GSS": "^",
    "ExStream": "P",
    "PRS": "D",
    "CBRS": "p",
    "OCDM": "h",
}


def in_order(methods: Iterable[str]) -> list[str]:
    """Return the methods, each once, in the order of the main table; ValueError for others."""
    present = set(methods)
    if unknown := present - set(COLOURS):
        raise ValueError(
            f"expected methods that have a look, got {', '.join(sorted(unknown))}; give each a "
            "colour and a marker in prslib/plots/methods.py"
        )
    return [name for name in COLOURS if name in present]


def share_legend(figure: Figure, columns: int | None = None) -> None:
    """Put one legend below all axes of a figure, in place of each axes' own.

    Parameters
    ----------
    figure : Figure
        Its axes have legends; entries of the same name are shown once.
    columns : int, optional
        Entries in a row, by default all of them.
    """
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


def plot_progression(frame: pd.DataFrame, ax: Axes, metric: str) -> Axes:
    """Draw one metric after every task (Appendix, "Task Progression Results").

    Parameters
    ----------
    frame : DataFrame
        Columns method, seed, trained_tasks, value and published, both in percent; one metric, one
        data set; published is NaN where the paper has no number.
    ax : Axes
        Where to draw.
    metric : str
        The metric's name, for the axis.

    Returns
    -------
    Axes
        With the mean over seeds, a band of one standard deviation, and the paper dotted.
    """
    methods = in_order(frame["method"])
    sns.lineplot(
        frame,
        x="trained_tasks",
        y="value",
        hue="method",
        style="method",
        hue_order=methods,
        style_order=methods,
        palette=INK,
        markers={name: MARKERS[name] for name in methods},
        dashes=False,
        errorbar="sd",
        ax=ax,
    )
    for method in methods:
        theirs = frame[frame["method"] == method].groupby("trained_tasks")["published"].first()
        style = {"color": INK[method], "marker": MARKERS[method], "markerfacecolor": "none"}
        ax.plot(theirs.index, theirs, **style, linestyle=":", linewidth=1.2, markersize=4.5)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set(xlabel="tasks trained", ylabel=f"{metric} (%)", ylim=(0, None))
    handles, names = ax.get_legend_handles_labels()
    if frame["published"].notna().any():
        paper = Line2D([], [], color="0.3", linestyle=":", marker="o", markerfacecolor="none")
        handles, names = [*handles, paper], [*names, "paper"]
    ax.legend(handles, names, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return ax


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
