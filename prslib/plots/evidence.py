"""Why a balanced memory works: what features look like, and how gradients over memory vary."""

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter
from scipy.stats import gmean

from prslib.plots.methods import COLOURS, MARKERS, in_order

# Tol's "muted" colours and black: ten classes that the colour-blind can tell apart
CLASS_COLOURS = (
    "#332288", "#88CCEE", "#CC6677", "#117733", "#DDCC77",
    "#882255", "#44AA99", "#AA4499", "#999933", "#000000",
)  # fmt: skip
GROUP_MARKERS = {"majority": "o", "moderate": "^", "minority": "*"}
SIZES = {"majority": 22, "moderate": 24, "minority": 55}  # points squared, equal to the eye


def plot_features(frame: pd.DataFrame, ax: Axes, shown: list[str]) -> Axes:
    """Draw images where t-SNE puts their features (Figure "t-SNE").

    Parameters
    ----------
    frame : DataFrame
        Columns x, y, class_name, group; one run.
    ax : Axes
        Where to draw.
    shown : list of str
        The classes to tell apart, ten at most, in the order of the legend; the others are grey.

    Returns
    -------
    Axes
        A class has a colour and its group a marker.

    Raises
    ------
    ValueError
        If there are more classes to tell apart than colours.
    """
    if len(shown) > len(CLASS_COLOURS):
        raise ValueError(
            f"shown: expected at most {len(CLASS_COLOURS)} classes, as many as it has "
            f"colours, got {len(shown)}; show fewer of each group"
        )
    rest = frame[~frame["class_name"].isin(shown)]
    if len(rest):
        ax.scatter(rest["x"], rest["y"], s=5, color="0.8", linewidth=0, label="other classes")
    for name, colour in zip(shown, CLASS_COLOURS, strict=False):
        part = frame[frame["class_name"] == name]
        group = part["group"].iloc[0]
        ax.scatter(
            part["x"], part["y"], s=SIZES[group], marker=GROUP_MARKERS[group], color=colour,
            edgecolor="white", linewidth=0.4, label=f"{name} ({group})",
        )  # fmt: skip
    ax.set(xlabel="t-SNE axis 1 (no unit)", ylabel="t-SNE axis 2 (no unit)", xticks=[], yticks=[])
    ax.set_aspect("equal", adjustable="datalim")
    ax.legend(fontsize=8)
    return ax


def plot_gradient_variance(frame: pd.DataFrame, ax: Axes) -> Axes:
    """Draw the gradient variance over memory during training (Figures "gradient variance").

    Parameters
    ----------
    frame : DataFrame
        Columns method, seed, seen (share of the stream in percent), value; one data set.
    ax : Axes
        Where to draw.

    Returns
    -------
    Axes
        With the geometric mean over seeds and a band of one standard deviation of the logarithm,
        on a logarithmic scale.
    """
    methods = in_order(frame["method"])
    sns.lineplot(
        frame,
        x="seen",
        y="value",
        hue="method",
        style="method",
        hue_order=methods,
        style_order=methods,
        palette=COLOURS,
        markers={name: MARKERS[name] for name in methods},
        dashes=False,
        estimator=gmean,
        errorbar=_band,
        ax=ax,
    )
    ax.set(
        xlabel="share of the stream seen (%)",
        ylabel="gradient variance over memory\n(loss²/weight²)",
        xlim=(0, 102),
        yscale="log",
    )
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 5)))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.legend(title="")
    return ax


def _band(values: pd.Series) -> tuple[float, float]:
    """Return one standard deviation of the logarithm below and above the geometric mean."""
    logs = np.log(values)
    spread = logs.std() if len(logs) > 1 else 0.0
    return np.exp(logs.mean() - spread), np.exp(logs.mean() + spread)
