"""A score over the tasks trained so far."""

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from prslib.plots.methods import INK, MARKERS, in_order


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
