"""Why a balanced memory works: what features look like, and how gradients over memory vary."""

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes

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
            f"shown: expected at most {len(CLASS_COLOURS)} classes, as many colours as can "
            f"be told apart, got {len(shown)}; show fewer of each group"
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
        Columns method, seed, images (of the stream, so far), value; one data set.
    ax : Axes
        Where to draw.

    Returns
    -------
    Axes
        With the mean over seeds and a band of one standard deviation.
    """
    methods = in_order(frame["method"])
    sns.lineplot(
        frame,
        x="images",
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
    ax.set(
        xlabel="images of the stream seen",
        ylabel="gradient variance over memory\n(loss²/weight², trace of covariance)",
        ylim=(0, None),
    )
    ax.legend(title="")
    return ax
