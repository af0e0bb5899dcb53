"""A score against the power of allocation."""

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes

METRIC_COLOURS = {"C-F1": "#0072B2", "O-F1": "#D55E00", "mAP": "#009E73"}
METRIC_MARKERS = {"C-F1": "o", "O-F1": "D", "mAP": "s"}


def plot_sweep(frame: pd.DataFrame, ax: Axes) -> Axes:
    """Draw the metrics of PRS against rho, the best rho of each marked (Figure "rho").

    Parameters
    ----------
    frame : DataFrame
        Columns rho, metric, seed, value in percent; one data set.
    ax : Axes
        Where to draw.

    Returns
    -------
    Axes
        With the mean over seeds, a band of one standard deviation, a ring at the best rho.
    """
    metrics = [metric for metric in METRIC_COLOURS if metric in set(frame["metric"])]
    sns.lineplot(
        frame,
        x="rho",
        y="value",
        hue="metric",
        style="metric",
        hue_order=metrics,
        style_order=metrics,
        palette=METRIC_COLOURS,
        markers=METRIC_MARKERS,
        dashes=False,
        errorbar="sd",
        ax=ax,
    )
    means = frame.groupby(["metric", "rho"])["value"].mean()
    for position, metric in enumerate(metrics):
        best = means[metric].idxmax()
        ax.plot(
            best,
            means[metric, best],
            marker="o",
            markersize=13,
            markerfacecolor="none",
            markeredgecolor=METRIC_COLOURS[metric],
            markeredgewidth=1.4,
        )
        ax.annotate(
            f"{best:g}".replace("-", "\N{MINUS SIGN}"),
            (best, means[metric, best]),
            xytext=(0, -13 if position % 2 else 13),  # every other one below, clear of the first
            textcoords="offset points",
            ha="center",
            va="center",
            color=METRIC_COLOURS[metric],
        )
    ax.margins(y=0.15)  # room for the best's own label below a title
    ax.set(xlabel=r"power of allocation $\rho$", ylabel="score (%)")
    ax.legend(title="", ncols=len(metrics), loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return ax
