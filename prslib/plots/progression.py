"""A score over the tasks trained so far."""

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from prslib.plots.methods import COLOURS, MARKERS, in_order


def plot_progression(frame: pd.DataFrame, ax: Axes, metric: str) -> Axes:
    """Draw one metric after every task, ours solid and the paper's dotted (Tables 10, 11).

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
        With the mean over seeds and a band of one standard deviation.
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
        palette=COLOURS,
        markers={name: MARKERS[name] for name in methods},
        dashes=False,
        errorbar="sd",
        ax=ax,
    )
    for method in methods:
        theirs = frame[frame["method"] == method].groupby("trained_tasks")["published"].first()
        ax.plot(theirs.index, theirs, color=COLOURS[method], linestyle=":", linewidth=1.3)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set(xlabel="tasks trained", ylabel=f"{metric} (%)", ylim=(0, None))
    ax.legend(title="")
    return ax
