"""Find the best power of allocation in a sweep, and draw the sweep."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from prslib.checks import expected
from prslib.datasets import load_dataset
from prslib.report import notebook
from prslib.report.notebook import several
from prslib.report.style import draw_curves, looks_like
from prslib.report.tables import METRICS
from prslib.training.config import RunConfig
from prslib.training.grids import configs
from prslib.training.replay import stream, without_training

LOOKS = looks_like(METRICS)


@dataclass(frozen=True)
class Settings(notebook.Settings):
    """Parameters of the notebook, which explains them."""

    dataset: list[str] = several("cocoseq-mini")
    rhos: list[float] = several(-1.0, -0.5, -0.2, -0.03, 0.0, 0.2, 0.5, 1.0)
    memory_size: int | None = None
    seeds: list[int] = several(0, 1, 2, 3, 4)
    device: str = "cpu"


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
    one_method(rows)
    table = []
    for (dataset, metric), sweep in rows.groupby(["dataset", "metric"], sort=False):
        means = sweep.groupby("rho")["value"].mean()
        low, high, best = means.index.min(), means.index.max(), means.idxmax()
        row = {
            "dataset": dataset,
            "metric": metric,
            "best_rho": best,
            "best": means[best],
            "lowest_rho": low,
            "at_lowest": means[low],
            "highest_rho": high,
            "at_highest": means[high],
        }
        inside = "inside" if -0.2 <= best <= 0.2 else "outside"
        row["sentence"] = (
            f"{dataset}, {metric}: best at rho = {best:g} with {means[best]:.1f} %, {inside} the "
            f"paper's range [-0.2, 0.2]; {means[best] - means[low]:.1f} points less at rho = "
            f"{low:g} and {means[best] - means[high]:.1f} less at rho = {high:g}."
        )
        table.append(row)
    return pd.DataFrame(table)


def one_method(rows: pd.DataFrame) -> None:
    """Raise ValueError for the rows of several methods, which would be averaged."""
    methods = rows["method"].unique()
    if len(methods) > 1:
        what, advice = "rows of one method", "select them by rows[rows.method == name]"
        raise ValueError(expected(what, ", ".join(methods), advice))


def plot_sweep(frame: pd.DataFrame, ax: Axes) -> Axes:
    """Draw PRS's metrics on one data set against rho, with a ring at the best (Figure "rho")."""
    one_method(frame)
    shown = set(frame["metric"])
    looks = {metric: look for metric, look in LOOKS.items() if metric in shown}
    draw_curves(frame, ax, "rho", "metric", looks)
    means = frame.groupby(["metric", "rho"])["value"].mean()
    ring = {"marker": "o", "markersize": 13, "markerfacecolor": "none"}
    ring["linestyle"] = ""
    for metric, look in looks.items():
        best = means[metric].idxmax()
        ax.plot(best, means[metric, best], **ring, color=look["color"])
    ax.plot([], [], **ring, color="0.3", label=r"best $\rho$")
    ax.set(xlabel=r"power of allocation $\rho$", ylabel="score (%)")
    ax.legend()
    return ax


def beside_crs(
    names: Sequence[str], seeds: Sequence[int], memory_size: int | None = None
) -> pd.DataFrame:
    """Measure what PRS with rho 1 and CRS hold in the end: labels, share of early samples."""
    rows = []
    fixed = {"rho": 1.0, "memory_size": memory_size, "seed": list(seeds)}
    for config in configs(dataset=list(names), method=["CRS", "PRS"], **fixed):
        data = load_dataset(config.dataset, images=False)
        shown = np.concatenate([s.batches.ravel() for s in stream(config, data)])
        replay = without_training(config, data)
        in_memory = replay.memory.read(np.arange(len(replay.memory)))["index"]
        row = {"dataset": config.dataset, "method": config.method, "seed": config.seed}
        row["labels"] = data.train.labels[in_memory].sum(axis=1).mean()
        early = 100 * np.isin(in_memory, shown[: len(shown) // 10]).mean()
        rows.append(row | {"early": early})
    return pd.DataFrame(rows)
