"""Measure forgetting class by class, its correlation with class size, and draw it."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from prslib import METHODS, Run, RunConfig, configs_of
from prslib.checks import one_of
from prslib.metrics import forgetting, values_and_draws
from prslib.report.datasets import class_statistics
from prslib.report.notebook import Trained, several
from prslib.report.style import looks_of, write_above
from prslib.report.tables import labels_of, with_resamples

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
        class_draws=True,
    )


def run_forgetting(run: Run) -> pd.DataFrame:
    """Measure the forgetting of every class of all tasks but the last, by both `FORGETTING`.

    In percent of the best score, or in points; NaN where a class was never learned. The
    column draws, where the run has class draws, holds both on resampled test images.
    Tasks are in the order of the schedule, classes from large to small.
    """
    dataset = labels_of(run.config.dataset)
    scores = with_resamples(run)
    scores = scores[scores["metric"].isin(["AP", "F1"])]
    scores = scores[scores["group"].isin(dataset.class_names)]
    if "draws" in scores and not scores["draws"].notna().any():
        scores = scores.drop(columns="draws")
    both = [
        forgetting(scores, f).assign(measure=name) for name, f in FORGETTING.items()
    ]
    measured = pd.concat(both).dropna(subset="unlearned")
    sizes = class_statistics(dataset).drop(columns="dataset")
    in_turn = [sizes[sizes["task"] == t] for t in run.config.resolved["schedule"]]
    sizes = pd.concat(in_turn).rename(columns={"group": "class_group"})
    rows = sizes.merge(measured.rename(columns={"group": "class"}), on="class")
    place = pd.factorize(rows["class"])[0]
    columns = [name for name in ("value", "draws") if name in rows]
    return rows.assign(place=place, **{name: 100 * rows[name] for name in columns})


def size_correlations(rows: pd.DataFrame) -> pd.DataFrame:
    """Correlate forgetting with class size by rank (Spearman), task by task.

    NaN without a rank. The column draws has the correlation on resampled test images: a
    class without a positive in a resample, or one never learned there, does not enter.
    """
    keys = ["dataset", "method", "seed", "measure", "metric", "task"]
    table = []
    for key, classes in rows.groupby(keys, sort=False):
        values = values_and_draws(classes)  # (classes, 1 + draws)
        sizes = values.notna().mul(classes["images"].to_numpy(), axis=0)
        sizes = sizes.where(values.notna())
        with np.errstate(invalid="ignore", divide="ignore"):  # all alike
            drawn = sizes.rank().corrwith(values.rank()).to_numpy()
        if np.isnan(classes["value"]).all():
            continue
        row = dict(zip(keys, key, strict=True)) | {"correlation": drawn[0]}
        if len(drawn) > 1:
            row["draws"] = drawn[1:]
        table.append(row)
    return pd.DataFrame(table)


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
