"""Find the best power of allocation in a sweep, and draw the sweep."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from prslib import RunConfig, configs
from prslib.report.notebook import Trained, several
from prslib.report.style import draw_curves, looks_like
from prslib.report.tables import MAIN_METRICS, labels_of
from prslib.training.replay import stream, without_training

LOOKS = looks_like(MAIN_METRICS)


class Settings(Trained):
    """Parameters of the notebook, which explains them."""

    rhos: list[float] = several(-1.0, -0.5, -0.2, -0.03, 0.0, 0.2, 0.5, 1.0)
    memory_size: int | None = None


def runs(settings: Settings) -> list[RunConfig]:
    """List a run of PRS for every rho and seed."""
    return configs(
        dataset=settings.dataset,
        method="PRS",
        rho=settings.rhos,
        memory_size=settings.memory_size,
        seed=settings.seeds,
    )


def best_rho(rows: pd.DataFrame) -> pd.DataFrame:
    """Find the best rho of each data set and metric, and the score at both ends of the sweep."""
    cells = rows.groupby(["dataset", "metric", "rho"], sort=False)["value"]
    means = cells.mean().unstack(sort=False).sort_index(axis=1)
    low, high = means.columns[[0, -1]]
    best = pd.DataFrame({"best_rho": means.idxmax(axis=1), "best": means.max(axis=1)})
    best = best.assign(lowest_rho=low, at_lowest=means[low])
    return best.assign(highest_rho=high, at_highest=means[high]).reset_index()


def plot_sweep(frame: pd.DataFrame, ax: Axes) -> Axes:
    """Draw PRS's metrics on one data set against rho, with a ring at the best (Figure "rho")."""
    draw_curves(frame, ax, "rho", "metric", LOOKS)
    means = frame.groupby(["metric", "rho"])["value"].mean()
    ring = {"marker": "o", "ls": "", "markersize": 13, "markerfacecolor": "none"}
    for metric, look in LOOKS.items():
        best = means[metric].idxmax()
        ax.plot(best, means[metric, best], **ring, color=look["color"])
    ax.plot([], [], **ring, color="0.3", label=r"best $\rho$")
    ax.set(xlabel=r"power of allocation $\rho$", ylabel="score (%)")
    return ax


def beside_crs(settings: Settings) -> pd.DataFrame:
    """Measure what PRS with rho 1 and CRS hold in the end: labels, share of early samples."""
    rows = []
    fixed = {"rho": 1.0, "memory_size": settings.memory_size, "seed": settings.seeds}
    for config in configs(dataset=settings.dataset, method=["CRS", "PRS"], **fixed):
        data = labels_of(config.dataset)
        shown = np.concatenate([s.batches.ravel() for s in stream(config, data)])
        replay = without_training(config, data)
        in_memory = replay.memory.read(replay.memory.filled)["index"]
        labels = data.train.labels[in_memory].sum(axis=1).mean()
        early = 100 * np.isin(in_memory, shown[: len(shown) // 10]).mean()
        rows.append((config.dataset, config.method, config.seed, labels, early))
    columns = ["dataset", "method", "seed", "labels", "early"]
    return pd.DataFrame(rows, columns=columns)
