"""Forgetting class by class, and whether the small classes are forgotten most."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, NullFormatter, ScalarFormatter
from scipy.stats import spearmanr

from prslib.datasets import load_dataset
from prslib.metrics import forgetting
from prslib.report.datasets import class_statistics
from prslib.report.style import COLOURS
from prslib.training.config import Run
from prslib.training.methods import METHODS

METRICS = ("AP", "F1")
MEASURES = {"normalised": True, "absolute": False}
_KEEP_ALL = {"dropna": False, "sort": False}  # rho is NaN for most methods


def class_forgetting(runs: Sequence[Run]) -> pd.DataFrame:
    """Measure what is forgotten of every class, and set the class's size beside it (Figure 1).

    Parameters
    ----------
    runs : sequence of Run
        Runs of methods that see the tasks one after the other.

    Returns
    -------
    DataFrame
        One row for each run, class, metric ("AP" or "F1") and measure: dataset, method, rho,
        memory_size, schedule, seed, task, class, class_group, images (of the class in the stream),
        place (0 for the first drawn class), metric, measure, value. "normalised" is the paper's
        measure and "absolute" that of Chaudhry et al., both in percent. Tasks come in the order of
        the schedule, the classes of a task from large to small.

    Raises
    ------
    ValueError
        If a run saw all tasks at once, so that nothing came later to make it forget.

    Notes
    -----
    The classes of the last task have nothing to be forgotten by and are left out: of COCOseq's
    four tasks three remain, the "three sequential tasks" of the figure's caption.
    """
    frames = [_of_run(run) for run in runs]
    return pd.concat(frames, ignore_index=True)


def _of_run(run: Run) -> pd.DataFrame:
    scores, config = run.scores, run.config
    if (scores["schedule"] == "").any():
        raise ValueError(
            f"expected runs that see one task after the other, got {config.method}; leave it out"
        )
    dataset = load_dataset(config.dataset, images=False)
    rows = scores[scores["metric"].isin(METRICS) & scores["group"].isin(dataset.class_names)]
    measured = pd.concat(
        [forgetting(rows, flag).assign(measure=name) for name, flag in MEASURES.items()]
    ).dropna(subset="value")
    sizes = class_statistics(dataset)
    order = [task for task in config.resolved["schedule"] if task in set(sizes["task"])]
    sizes["turn"] = sizes["task"].map(order.index)
    sizes = sizes.sort_values(["turn", "images"], ascending=[True, False], kind="stable")
    sizes = sizes.drop(columns=["turn", "dataset"]).rename(columns={"group": "class_group"})
    measured = measured.rename(columns={"group": "class"}).assign(value=100 * measured["value"])
    merged = sizes.merge(measured, on="class", sort=False)
    return merged.assign(place=merged["class"].map({c: i for i, c in enumerate(sizes["class"])}))


def size_correlations(rows: pd.DataFrame) -> pd.DataFrame:
    """Correlate forgetting with class size by rank, task by task (Figure 1).

    Parameters
    ----------
    rows : DataFrame
        As `class_forgetting` gives them.

    Returns
    -------
    DataFrame
        dataset, method, seed, measure, metric, task, correlation: Spearman's, -1 where the
        smallest class of the task is forgotten most and the largest least; NaN where all classes
        of a task are forgotten alike, so that they have no order.

    Examples
    --------
    >>> rows = pd.DataFrame({"dataset": "d", "method": "CRS", "seed": 0, "measure": "normalised",
    ...     "metric": "AP", "task": 0, "images": [300, 200, 100], "value": [10.0, 20.0, 90.0]})
    >>> size_correlations(rows)["correlation"].round(2).tolist()
    [-1.0]
    """
    keys = ["dataset", "method", "seed", "measure", "metric", "task"]
    found = [
        dict(zip(keys, key, strict=True)) | {"correlation": _rank_correlation(part)}
        for key, part in rows.groupby(keys, sort=False)
    ]
    return pd.DataFrame(found)


def _rank_correlation(part: pd.DataFrame) -> float:
    if part["value"].nunique() < 2 or part["images"].nunique() < 2:
        return np.nan
    return float(spearmanr(part["images"], part["value"]).statistic)


def tail_table(correlations: pd.DataFrame) -> pd.DataFrame:
    """Average the rank correlations over tasks and then over seeds (Figure 1).

    Parameters
    ----------
    correlations : DataFrame
        As `size_correlations` gives them.

    Returns
    -------
    DataFrame
        dataset, method, metric, measure, mean and sd over seeds of the mean over tasks, seeds,
        negative (tasks and seeds with a correlation below 0), cells (tasks and seeds that have
        one), and a sentence that says it.
    """
    keys = ["dataset", "method", "metric", "measure"]
    rank = {name: place for place, name in enumerate(METHODS)}
    correlations = correlations.sort_values("method", key=lambda m: m.map(rank), kind="stable")
    by_seed = correlations.groupby([*keys, "seed"], **_KEEP_ALL)["correlation"].mean()
    table = by_seed.groupby(keys, **_KEEP_ALL).agg(mean="mean", sd="std", seeds="size")
    each = correlations.groupby(keys, **_KEEP_ALL)["correlation"]
    table["negative"] = each.agg(lambda values: int((values < 0).sum()))
    table["cells"] = each.count()
    table = table.reset_index()
    return table.assign(sentence=[_sentence(row) for row in table.itertuples()])


def _sentence(row) -> str:
    head = f"{row.dataset}, {row.method}, {row.measure} forgetting of {row.metric}"
    if not row.cells:
        return f"{head}: every class of a task is forgotten alike; there is no order to correlate."
    spread = "one seed" if row.seeds == 1 else f"s.d. {row.sd:.2f} over {row.seeds} seeds"
    return (
        f"{head}: {row.mean:+.2f} ({spread}); small classes are forgotten more in {row.negative} "
        f"of {row.cells} tasks, each seed counted."
    )


GAP = 1.5  # bars' widths between two tasks
SIZES = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000)


def plot_tail_forgetting(frame: pd.DataFrame, ax: Axes) -> Axes:
    """Draw what is forgotten of every class, the class's size as a line (Figure 1).

    Parameters
    ----------
    frame : DataFrame
        Columns method, seed, task, class, place (0 for the first class from the left), images and
        value (forgetting in percent); one method, one metric, one measure, one data set.
    ax : Axes
        Where to draw.

    Returns
    -------
    Axes
        With a bar for the mean over seeds and a dot for every seed, a gap between the tasks, and
        the number of training images on a logarithmic axis of its own at the right.
    """
    (method,) = frame["method"].unique()
    turn = {task: number for number, task in enumerate(frame.sort_values("place")["task"].unique())}
    frame = frame.assign(x=frame["place"] + GAP * frame["task"].map(turn))
    columns = {"value": ("value", "mean"), "images": ("images", "first"), "task": ("task", "first")}
    classes = frame.groupby("x").agg(**columns)
    ax.bar(
        classes.index, classes["value"], width=0.85, color=COLOURS[method], edgecolor="0.35",
        linewidth=0.4, label=f"{method}: forgetting",
    )  # fmt: skip
    if frame["seed"].nunique() > 1:
        ax.plot(
            frame["x"], frame["value"], ".", color="white", markersize=4.5, markeredgecolor="black",
            markeredgewidth=0.5, label="one seed",
        )  # fmt: skip
    sizes = ax.twinx()
    for number, (task, part) in enumerate(classes.groupby("task", sort=False)):
        label = "class size" if number == 0 else None
        sizes.plot(part.index, part["images"], color="0.15", linewidth=1.3, label=label)
        ax.text(
            part.index.to_numpy().mean(), 1.0, f"task {task}, {len(part)} classes",
            ha="center", va="bottom", transform=ax.get_xaxis_transform(),
        )  # fmt: skip
    _finish(ax, sizes)
    return ax


def _finish(ax: Axes, sizes: Axes) -> None:
    """Label both axes, put one legend at the side and keep the grid to the bars' scale."""
    ax.axhline(0, color="0.35", linewidth=0.8)
    ax.set(xlabel="classes of each task, from large to small", ylabel="forgetting (%)", xticks=[])
    for axes in (ax, sizes):
        axes.margins(x=0.01)
    sizes.set(ylabel="training images", yscale="log")
    sizes.yaxis.set_major_locator(FixedLocator(SIZES))
    sizes.yaxis.set_major_formatter(ScalarFormatter())
    sizes.yaxis.set_minor_formatter(NullFormatter())
    sizes.grid(False)
    sizes.spines["right"].set_visible(True)
    entries = [axes.get_legend_handles_labels() for axes in (ax, sizes)]
    handles, names = (first + second for first, second in zip(*entries, strict=True))
    ax.legend(handles, names, loc="upper left", bbox_to_anchor=(1.07, 1.0))
