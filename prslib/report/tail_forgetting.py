"""Measure forgetting class by class, its correlation with class size, and draw it."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from prslib import METHODS, Run, RunConfig, configs_of
from prslib.checks import one_of
from prslib.metrics import forgetting
from prslib.report.datasets import class_statistics
from prslib.report.notebook import Trained, several
from prslib.report.style import looks_of, write_above
from prslib.report.tables import labels_of

FORGETTING = {"normalised": True, "plain": False}  # Table 1's, and Chaudhry et al.'s
TASK_GAP = 1.5  # bars' widths between two tasks


class Settings(Trained):
    """Parameters of the notebook, which explains them."""

    one_label = False
    method: list[str] = several("CRS", "EWC", "PRS")
    rho: float = -0.03
    memory_size: int | None = 60


def runs(settings: Settings) -> list[RunConfig]:
    """List a run of every method and seed."""
    online = [name for name, row in METHODS.items() if not row.offline]
    for name in settings.method:
        one_of("method", name, online)
    return configs_of(
        settings.method,
        settings.seeds,
        dataset=settings.dataset,
        rho=settings.rho,
        memory_size=settings.memory_size,
    )


def run_forgetting(run: Run) -> pd.DataFrame:
    """Measure the forgetting of every class of all tasks but the last, by both `FORGETTING`.

    In percent of the best score, or in points; NaN where a class was never learned.
    Tasks are in the order of the schedule, classes from large to small.
    """
    dataset = labels_of(run.config.dataset)
    scores = run.scores[run.scores["metric"].isin(["AP", "F1"])]
    scores = scores[scores["group"].isin(dataset.class_names)]
    both = [
        forgetting(scores, f).assign(measure=name) for name, f in FORGETTING.items()
    ]
    measured = pd.concat(both).dropna(subset="unlearned")
    sizes = class_statistics(dataset).drop(columns="dataset")
    in_turn = [sizes[sizes["task"] == t] for t in run.config.resolved["schedule"]]
    sizes = pd.concat(in_turn).rename(columns={"group": "class_group"})
    rows = sizes.merge(measured.rename(columns={"group": "class"}), on="class")
    place = pd.factorize(rows["class"])[0]
    return rows.assign(value=100 * rows["value"], place=place)


def size_correlations(
    rows: pd.DataFrame, weights: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Correlate forgetting with class size by rank (Spearman), task by task.

    NaN without a rank. With weights of the classes, a column each, the column draws has
    the correlation under each.
    """
    keys = ["dataset", "method", "seed", "measure", "metric", "task"]
    table = []
    for key, classes in rows.dropna(subset="value").groupby(keys, sort=False):
        row = dict(zip(keys, key, strict=True))
        ranks = classes[["images", "value"]].rank()
        row["correlation"] = ranks["images"].corr(ranks["value"])
        if weights is not None:
            row["draws"] = _correlations(ranks, weights[classes["class"]].to_numpy())
        table.append(row)
    return pd.DataFrame(table)


def _correlations(ranks: pd.DataFrame, weights: np.ndarray) -> np.ndarray:
    """Return the correlation of two columns (n, 2) under each of the weights (draws, n)."""
    weights = weights / weights.sum(axis=1, keepdims=True)
    ranks = (ranks - ranks.mean()).to_numpy()
    mean = weights @ ranks  # (draws, 2)
    square = weights @ ranks**2 - mean**2
    product = weights @ ranks.prod(axis=1) - mean.prod(axis=1)
    with np.errstate(invalid="ignore"):  # all alike
        return product / np.sqrt(square.prod(axis=1))


def tail_table(correlations: pd.DataFrame) -> pd.DataFrame:
    """Average the rank correlations over tasks, then over seeds."""
    keys = ["dataset", "method", "metric", "measure"]
    place = correlations["method"].map(list(METHODS).index)
    correlations = correlations.iloc[place.argsort(kind="stable")]
    by_seed = correlations.groupby([*keys, "seed"], sort=False)["correlation"].mean()
    table = by_seed.groupby(keys, sort=False).agg(mean="mean", sd="std", seeds="count")
    each = correlations.groupby(keys, sort=False)["correlation"]
    table["negative"] = each.agg(lambda values: (values < 0).sum())
    table["cells"] = each.count()  # one a task and seed
    return table.reset_index()


def plot_tail_forgetting(frame: pd.DataFrame, ax: Axes) -> Axes:
    """Draw one method's forgetting of every class as bars."""
    ((method, look),) = looks_of(frame["method"]).items()  # a user's method, too
    frame = _with_places(frame)
    _name_classes(frame, ax)
    values = frame.groupby("x")["value"]
    ax.bar(values.mean().index, values.mean(), width=0.85, color=look["color"])
    if frame["seed"].nunique() > 1:  # of few test images one seed may lie far out
        low, high = values.quantile(0.25), values.quantile(0.75)
        ax.vlines(low.index, low, high, "0.25", label="middle half of the seeds")
    ax.axhline(0, color="0.35", linewidth=0.8)
    unit = "points" if frame["measure"].iloc[0] == "plain" else "%"
    ax.set_ylabel(f"{method}:\nforgetting ({unit})")
    return ax


def plot_class_sizes(frame: pd.DataFrame, ax: Axes) -> Axes:
    """Draw training images of every class, for the panel above its forgetting."""
    rows = _with_places(frame).drop_duplicates("x")
    _name_classes(rows, ax)
    ax.plot(rows["x"], rows["images"], ".", color="0.2")
    for task, classes in rows.groupby("task", sort=False):
        write_above(ax, classes["x"].mean(), f"task {task}, {len(classes)} classes")
    ax.set(ylabel="training\nimages, log", yscale="log")
    ax.yaxis.set_major_formatter("{x:g}")
    return ax


def _with_places(frame: pd.DataFrame) -> pd.DataFrame:
    """Add each class's place `x` on the axis, with a gap between tasks."""
    frame = frame.sort_values("place", kind="stable")
    gaps = TASK_GAP * pd.factorize(frame["task"])[0]
    return frame.assign(x=frame["place"] + gaps)


def _name_classes(frame: pd.DataFrame, ax: Axes) -> None:
    """Write the classes' names below the axis."""
    names = frame.drop_duplicates("x")
    ax.set_xticks(names["x"], names["class"], rotation=90, fontsize=8)
    ax.margins(x=0.01)
