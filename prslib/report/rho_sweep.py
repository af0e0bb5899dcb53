"""Find the best power of allocation in a sweep, and draw the sweep."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from prslib.datasets import load_dataset
from prslib.report.style import draw_curves
from prslib.training.config import configs
from prslib.training.replay import make_replay, stream_of

METRIC_COLOURS = {"C-F1": "#0072B2", "O-F1": "#D55E00", "mAP": "#009E73"}
METRIC_MARKERS = {"C-F1": "o", "O-F1": "D", "mAP": "s"}


def best_rho(rows: pd.DataFrame) -> pd.DataFrame:
    """Find the best rho of each data set and metric, and the score at both ends of the sweep."""
    table = []
    for (dataset, metric), part in rows.groupby(["dataset", "metric"], sort=False):
        means = part.groupby("rho")["value"].mean()
        low, high, best = means.index.min(), means.index.max(), means.idxmax()
        inside = "inside" if -0.2 <= best <= 0.2 else "outside"
        sentence = (
            f"{dataset}, {metric}: best at rho = {best:g} with {means[best]:.1f} %, {inside} the "
            f"paper's range [-0.2, 0.2]; {means[best] - means[low]:.1f} points less at rho = "
            f"{low:g} and {means[best] - means[high]:.1f} less at rho = {high:g}."
        )
        table.append(
            {
                "dataset": dataset,
                "metric": metric,
                "best_rho": best,
                "best": means[best],
                "lowest_rho": low,
                "at_lowest": means[low],
                "highest_rho": high,
                "at_highest": means[high],
                "sentence": sentence,
            }
        )
    return pd.DataFrame(table)


def plot_sweep(frame: pd.DataFrame, ax: Axes) -> Axes:
    """Draw PRS's metrics on one data set against rho, with a ring at the best (Figure "rho")."""
    metrics = [metric for metric in METRIC_COLOURS if metric in set(frame["metric"])]
    looks = METRIC_COLOURS, METRIC_MARKERS
    draw_curves(frame, ax, "rho", "metric", metrics, *looks, errorbar="sd")
    means = frame.groupby(["metric", "rho"])["value"].mean()
    for position, metric in enumerate(metrics):
        best, colour = means[metric].idxmax(), METRIC_COLOURS[metric]
        point = (best, means[metric, best])
        ring = {"marker": "o", "markersize": 13, "markerfacecolor": "none"}
        ax.plot(*point, **ring, markeredgecolor=colour, markeredgewidth=1.4)
        # every other one below, clear of the first
        place = {"xytext": (0, -13 if position % 2 else 13), "textcoords": "offset points"}
        text = f"{best:g}".replace("-", "\N{MINUS SIGN}")
        ax.annotate(text, point, **place, ha="center", va="center", color=colour)
    ax.margins(y=0.15)  # room for the label of the best point below a title
    ax.set(xlabel=r"power of allocation $\rho$", ylabel="score (%)")
    ax.legend(title="", ncols=len(metrics), loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return ax


def beside_crs(
    names: Sequence[str], seeds: Sequence[int], memory_size: int | None = None
) -> pd.DataFrame:
    """Compare what PRS with rho 1 and CRS hold at the end of a stream, without training.

    Returns dataset, method, seed, labels (of a held sample) and early (percent of the held samples
    that are from the first tenth of the stream).
    """
    rows = []
    fixed = {"rho": 1.0, "memory_size": memory_size, "seed": list(seeds)}
    for config in configs(dataset=list(names), method=["CRS", "PRS"], **fixed):
        data = load_dataset(config.dataset, images=False)
        replay, size = make_replay(config, data), config.resolved["batch_size"]
        batches = [b for part in stream_of(config, data, replay) for b in part.batches]
        stream = np.concatenate([batch[:size] for batch in batches])  # replayed ones come after
        held = replay.memory.read(np.arange(len(replay.memory)))["index"]
        row = {"dataset": config.dataset, "method": config.method, "seed": config.seed}
        row["labels"] = data.train.labels[held].sum(axis=1).mean()
        early = 100 * np.isin(held, stream[: len(stream) // 10]).mean()
        rows.append(row | {"early": early})
    return pd.DataFrame(rows)
