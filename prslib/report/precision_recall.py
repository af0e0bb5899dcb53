"""Draw precision against recall, method by method."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from prslib import METHODS, RunConfig
from prslib.report.main_results import Comparison
from prslib.report.notebook import several
from prslib.report.style import HOLLOW, draw_legend, looks_of

LEVELS = (10, 30, 50, 70)  # F1 in percent
TICKS = (0, 1, 5, 10, 20, 40, 60, 80, 100)


class Settings(Comparison):
    """Parameters of the notebook, which explains them."""

    one_label = None
    dataset: list[str] = several("cocoseq-mini", "digits49seq")
    rhos: list[float] = several(-0.03, 0.0)
    seeds: list[int] = several(*range(10))
    costly: list[str] = several("digits49seq")


def runs(settings: Settings) -> list[RunConfig]:
    """List a run of every method and seed on each data set."""
    return settings.configs(list(METHODS), settings.rhos)


def plot_precision_recall(frame: pd.DataFrame, ax: Axes) -> Axes:
    """Draw precision over recall of "C" or "O" with lines of equal F1 (Appendix, "CP, CR")."""
    # their square roots, so that rare classes are not one heap at 0
    roots = (
        lambda score: np.sign(score) * np.sqrt(np.abs(score)),
        lambda root: np.sign(root) * root**2,
    )
    ax.set_xscale("function", functions=roots)
    ax.set_yscale("function", functions=roots)
    ends = (-0.5, 103)  # room for marks at 0
    ax.set(xticks=TICKS, yticks=TICKS, xlim=ends, ylim=ends, box_aspect=1)
    scores = np.linspace(0.1, 103, 300)
    recall, precision = np.meshgrid(scores, scores)
    f1 = 2 * recall * precision / (recall + precision)
    lines = ax.contour(recall, precision, f1, LEVELS, colors="0.82", linewidths=0.8)
    # clear of the diagonal
    beside = [(1.35 * level, level * 1.35 / 1.7) for level in LEVELS]
    ax.clabel(lines, fontsize=7, fmt="F1 %d", colors="0.4", manual=beside)
    ax.plot([0, 103], [0, 103], color="0.7", linewidth=0.8, linestyle="--")
    cells = frame.pivot(index="method", columns="metric", values=["mean", "published"])
    for method, look in looks_of(frame["method"]).items():
        pair = cells.loc[method].unstack()[["C-R", "C-P"]]
        ax.plot(*pair.to_numpy().T, color=look["color"], linewidth=0.7, alpha=0.7)
        ax.plot(*pair.loc["published"], **look | HOLLOW | {"linestyle": ""})
        ax.plot(*pair.loc["mean"], **look, linestyle="", markersize=7, label=method)
    ax.set(xlabel="recall C-R (%)", ylabel="precision C-P (%)")
    ax.grid(False)
    draw_legend(frame, ax, "")
    return ax
