"""How often the classes occur, and with how many others."""

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.patches import Patch

GROUP_COLOURS = {"majority": "#0072B2", "moderate": "#E69F00", "minority": "#CC79A7"}


def plot_class_statistics(frame: pd.DataFrame, ax: Axes) -> Axes:
    """Draw the classes of every task by frequency, coloured by group (Figure "COCOseq").

    Parameters
    ----------
    frame : DataFrame
        Columns task, class, group, images, in the order in which they are drawn; one data set.
    ax : Axes
        Where to draw.

    Returns
    -------
    Axes
        With a bar a class on a logarithmic scale and a gap between the tasks.
    """
    place = range(len(frame)) + 1.5 * frame["task"].to_numpy()
    ax.bar(place, frame["images"], color=frame["group"].map(GROUP_COLOURS), width=0.85)
    ax.set_xticks(place, frame["class"], rotation=90, fontsize=6.5)
    for task, positions in pd.Series(place).groupby(frame["task"].to_numpy()):
        ax.text(
            positions.mean(), 1.0, f"task {task}", ha="center", va="bottom",
            transform=ax.get_xaxis_transform(),
        )  # fmt: skip
    ax.set(xlabel="class", ylabel="training images", yscale="log")
    ax.margins(x=0.005)
    handles = [
        Patch(color=colour, label=f"{group} ({(frame['group'] == group).sum()})")
        for group, colour in GROUP_COLOURS.items()
    ]
    ax.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return ax


def plot_labels_per_image(frame: pd.DataFrame, ax: Axes) -> Axes:
    """Draw which share of each task's images carries 1, 2, 3, ... labels (section "Datasets").

    Parameters
    ----------
    frame : DataFrame
        Columns task, labels, share (percent); one data set.
    ax : Axes
        Where to draw.

    Returns
    -------
    Axes
        With a group of bars for each number of labels, a bar a task.
    """
    sns.barplot(frame, x="labels", y="share", hue="task", palette="viridis", ax=ax)
    ax.set(xlabel="labels of an image", ylabel="share of the task's images (%)")
    ax.legend(title="task")
    return ax
