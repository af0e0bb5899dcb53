"""Compare methods on single-label data, in many orders of the classes."""

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from prslib import METHODS, Run, RunConfig, configs
from prslib.checks import expected
from prslib.datasets import at_hand
from prslib.datasets.base import schedule_of, task_name, tasks_together
from prslib.paths import project_root
from prslib.report.notebook import Trained, several
from prslib.report.style import STAR, looks_of
from prslib.report.tables import beside

STUDY = Path("studies/class_orders.csv")  # made by the script of that name
DRAWN = "another for each seed"


class Settings(Trained):
    """Parameters of the notebook, which explains them."""

    one_label = True
    dataset: list[str] = several("imbal-digits")
    method: list[str] = several("Finetune", "CRS", "PRS")
    orders: list[str] = several("drawn")
    spread: int = 10
    search: list[int] = several()


def runs(settings: Settings) -> list[RunConfig]:
    """List a run of every order of the classes, method and seed."""
    names = at_hand(settings.dataset)
    made = []
    for order in settings.orders:
        schedule = None if order == "drawn" else schedule_of(order)
        made += configs(
            dataset=names,
            method=settings.method,
            seed=settings.seeds,
            schedule=schedule,
        )
    return made


def order_scores(dataset: str, look: str, count: int) -> pd.DataFrame:
    """Look up accuracies in `count` orders of the classes, the paper's beside them (%).

    Looks are those of studies/class_orders.py: "random" orders as they were drawn,
    "second" and "third" of its search, the nearest to the paper's numbers first.
    """
    runs = pd.read_csv(project_root() / STUDY).fillna({"variant": ""})
    runs = runs[(runs["dataset"] == dataset) & (runs["look"] == look)]
    columns = ["dataset", "method", "variant", "schedule", "seed"]
    rows = runs.set_index(columns).filter(like="task ").stack().dropna()
    rows = rows.rename("value").rename_axis([*columns, "trained_tasks"]).reset_index()
    tasks = rows["trained_tasks"].str.removeprefix("task ")
    rows["trained_tasks"] = tasks.astype("int64")
    rows = rows.assign(measure="score", group="overall", metric="accuracy")
    rows = beside(rows, "mnist", "svhn")
    rows = rows[[*columns, "trained_tasks", "value", "published"]]
    near = look != "random"
    orders = distances(rows)["schedule"] if near else rows["schedule"].unique()
    if len(orders) < count:
        what = f"{count} orders in the {look} look at {dataset} in {STUDY}"
        advice = f"ask for fewer, or run {STUDY.with_suffix('.py')}"
        raise ValueError(expected(what, len(orders), advice))
    return rows[rows["schedule"].isin(orders[:count])]


def distances(rows: pd.DataFrame) -> pd.DataFrame:
    """Measure each order's distance to the paper's progression in points, the nearest first."""
    cells = rows.groupby(["schedule", "method", "trained_tasks"], sort=False)
    gaps = (cells["value"].mean() - cells["published"].first()).abs().dropna()
    table = gaps.groupby("schedule", sort=False).agg(
        rms=lambda gap: np.sqrt((gap**2).mean()), largest="max", cells="size"
    )
    return table.sort_values("rms", kind="stable").reset_index()


def accuracies(configs: Sequence[RunConfig], runs: Sequence[Run]) -> pd.DataFrame:
    """Pick accuracies on the whole test set in percent, beside the paper's (Appendix)."""
    frames = []
    for config, run in zip(configs, runs, strict=True):
        rows = run.scores.query("metric == 'accuracy' and task == 'all'")
        groups = tasks_together(config.schedule or (), config.resolved["tasks_at_once"])
        order = ",".join(map(task_name, groups)) or DRAWN  # "1+7,0+2,8+9,3+5,4+6"
        frames.append(rows.assign(order=order))
    rows = pd.concat(frames, ignore_index=True)
    rows = rows.assign(measure="score", value=100 * rows["value"])
    columns = ["dataset", "order", "method", "schedule", "seed", "trained_tasks"]
    columns += ["measure", "group", "metric", "value"]
    return beside(rows[columns], "mnist", "svhn")


def accuracy_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Lay out accuracies as in the paper, mean ± s.d., a column for each task (Appendix)."""
    keys = ["order", "method", "trained_tasks"]
    cells = rows.groupby(keys)["value"]
    sd = cells.std().map(" ± {:.1f}".format).replace(" ± nan", "")
    ours = cells.mean().map("{:.1f}".format) + sd
    theirs = rows.assign(order="paper").groupby(keys)["published"].first()
    theirs = theirs.dropna().map("{:.2f}".format)
    table = pd.concat([theirs, ours]).unstack().fillna("")
    order = product(["paper", *rows["order"].unique()], METHODS)
    table = table.reindex([key for key in order if key in table.index])
    return table.rename(columns="after task {}".format).rename_axis(columns=None)


def plot_order_spread(frame: pd.DataFrame, ax: Axes) -> Axes:
    """Draw the last accuracy of every order as a dot, the paper's number as a star (Appendix)."""
    methods = looks_of(frame["method"])
    for position, (method, look) in enumerate(methods.items()):
        rows = frame[frame["method"] == method]
        # side by side, in the rows' order
        places = position + np.linspace(-0.3, 0.3, len(rows))
        ax.scatter(places, rows["value"], s=9, alpha=0.5, color=look["color"])
    theirs = frame.groupby("method")["published"].first().reindex(list(methods))
    ax.scatter(range(len(methods)), theirs, label="paper", **STAR)
    ax.set_xticks(range(len(methods)), methods)
    ax.set(ylabel="accuracy after the last task (%)", ylim=(0, 100))
    return ax


def plot_order_pairs(frame: pd.DataFrame, ax: Axes, x: str, y: str) -> Axes:
    """Draw one method's accuracy against another's: orders as dots, the paper as a star."""
    values = frame.pivot(index="schedule", columns="method", values="value")
    theirs = frame.groupby("method")["published"].first()
    ax.axline((0, 0), slope=1, color="0.6", linewidth=1, label="equal accuracy")
    dots = {"s": 9, "alpha": 0.5, "color": "0.35"}  # the colour of neither method
    ax.scatter(values[x], values[y], label="ours, one order each", **dots)
    ax.scatter(theirs[x], theirs[y], label="paper", **STAR)
    ax.set(xlim=(0, 100), ylim=(0, 100), aspect="equal")
    ax.set(xlabel=f"{x} (%)", ylabel=f"{y} (%)")
    return ax
