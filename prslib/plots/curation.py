"""How the tasks come about: co-occurrences and the steps of the clustering."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.patches import Rectangle
from matplotlib.ticker import PercentFormatter


def plot_cooccurrence(matrix: pd.DataFrame, task: np.ndarray, ax: Axes) -> Axes:
    """Draw how many images show two classes together, a frame around each task (Algorithm 2).

    Parameters
    ----------
    matrix : DataFrame, (C, C)
        Images with both classes; rows and columns ordered by task.
    task : ndarray of int, (C,)
        Task of each row.
    ax : Axes
        Where to draw.

    Returns
    -------
    Axes
        With a colour bar; white where two classes never meet.
    """
    counts = matrix.to_numpy().astype(float)
    counts[counts == 0] = np.nan
    np.fill_diagonal(counts, np.nan)
    shown = ax.imshow(counts, norm=LogNorm(vmin=1, vmax=np.nanmax(counts)), cmap="viridis_r")
    for number in np.unique(task):
        rows = np.flatnonzero(task == number)
        corner, side = (rows[0] - 0.5, rows[0] - 0.5), len(rows)
        frame = Rectangle(corner, side, side, fill=False, edgecolor="#D55E00", linewidth=1.6)
        ax.add_patch(frame).set_clip_on(False)
        ax.text(
            len(task), rows.mean(), f"task {number}", ha="left", va="center",
            fontsize=8, color="#D55E00",
        )  # fmt: skip
    ax.set_xticks([])
    ax.set_yticks(range(len(matrix)), matrix.index, fontsize=min(9, 330 / len(matrix)))
    ax.tick_params(length=0)
    ax.grid(False)
    ax.set(xlabel="class, in the order of the rows", ylabel="class")
    ax.figure.colorbar(shown, ax=ax, label="images with both classes", shrink=0.7, pad=0.09)
    return ax


def plot_clustering_steps(frame: pd.DataFrame, ax: Axes) -> Axes:
    """Draw which share of the images lies within one group, merge by merge (Algorithm 2).

    Parameters
    ----------
    frame : DataFrame
        Columns groups (left after the merge), kept (percent).
    ax : Axes
        Where to draw.

    Returns
    -------
    Axes
        With the number of groups falling from left to right, and the last share written down.
    """
    ax.plot(frame["groups"], frame["kept"], color="#0072B2", drawstyle="steps-post")
    last = frame.iloc[-1]
    ax.plot(last["groups"], last["kept"], "o", color="#D55E00")
    ax.annotate(
        f"{last['groups']:.0f} tasks keep {last['kept']:.0f} %", (last["groups"], last["kept"]),
        xytext=(-8, 4), textcoords="offset points", ha="right", va="bottom", color="#D55E00",
    )  # fmt: skip
    ax.invert_xaxis()
    ax.yaxis.set_major_formatter(PercentFormatter(decimals=0))
    ax.set(xlabel="groups left", ylabel="images within one group")
    ax.set_ylim(0, min(112, 1.2 * last["kept"]))
    ax.margins(x=0.04)
    return ax
