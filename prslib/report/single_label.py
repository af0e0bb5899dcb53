"""Compare methods on single-label data, in many orders of the classes."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from prslib import published
from prslib.checks import expected
from prslib.datasets import SequentialDataset, load_dataset
from prslib.datasets.base import schedule_of, task_name, tasks_together
from prslib.datasets.single_label import at_hand
from prslib.paths import project_root
from prslib.report import notebook
from prslib.report.notebook import several
from prslib.report.style import COLOURS, STAR, in_order
from prslib.report.tables import beside, contrasts
from prslib.training.config import Run, RunConfig
from prslib.training.grids import configs
from prslib.training.methods import METHODS

TABLES = {"Imbal-MNISTseq": "mnist", "Imbal-SVHNseq": "svhn"}
STUDY = Path("studies/class_orders.csv")  # made by the script of that name
DRAWN = "another for each seed"


@dataclass(frozen=True)
class Settings(notebook.Settings):
    """Parameters of the notebook, which explains them."""

    one_label = True
    dataset: list[str] = several("imbal-digits")
    method: list[str] = several("Finetune", "CRS", "PRS")
    orders: list[str] = several("drawn")
    seeds: list[int] = several(0, 1, 2, 3, 4)
    spread: int = 10
    search: list[int] = several(least=0)
    device: str = "cpu"


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


def published_row(dataset: SequentialDataset) -> pd.DataFrame:
    """Load the paper's accuracies for a data set or the one it stands for (Appendix)."""
    cells = published.load(TABLES[dataset.stands_for])
    cells = cells.rename(columns={"value": "published"})
    return cells[["method", "trained_tasks", "published"]]


def random_orders(
    dataset: SequentialDataset, count: int, seed: int = 0
) -> list[tuple[int, ...]]:
    """Draw different orders of the classes, uniformly, each pair ascending."""
    rng, drawn = np.random.default_rng(seed), {}
    while len(drawn) < count:
        order = np.sort(rng.permutation(dataset.num_classes).reshape(-1, 2), axis=1)
        drawn[tuple(order.ravel().tolist())] = None
    return list(drawn)


def order_scores(
    dataset: str,
    orders: Sequence[tuple[int, ...]],
    methods: Sequence[str],
    seeds: Sequence[int],
    variant: str = "paper",
) -> pd.DataFrame:
    """Look up accuracies of an MLP in class orders, the paper's beside them (%)."""
    rows = _study(dataset, "random")
    rows = rows[(rows["variant"] == variant) | (rows["method"] != "PRS")]
    schedules = [",".join(map(task_name, tasks_together(order, 2))) for order in orders]
    keys = list(product(methods, seeds, schedules))
    by_key = rows.set_index(["method", "seed", "schedule"])
    if missing := set(keys) - set(by_key.index):
        what = f"{len(keys)} runs of {dataset} in {STUDY}"
        script = f"{STUDY.with_suffix('.py')} {dataset} --orders {len(schedules)}"
        advice = f"ask for fewer orders, or run `python {script}`"
        raise ValueError(expected(what, f"{len(keys) - len(missing)}", advice))
    return _tidy(by_key.loc[keys].reset_index())


def searched_orders(
    dataset: str, keep: Sequence[int]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the scores of the search's last two rounds, in percent."""
    rounds = tuple(_tidy(_study(dataset, look)) for look in ("second", "third"))
    counts = [rows["schedule"].nunique() for rows in rounds]
    if counts != list(keep):
        what = f"a search of {dataset} that keeps {list(keep)} orders in {STUDY}"
        script = f"{STUDY.with_suffix('.py')} {dataset} --search"
        advice = f"run `python {script} {' '.join(map(str, keep))}`"
        raise ValueError(expected(what, counts, advice))
    return rounds


def _study(dataset: str, look: str) -> pd.DataFrame:
    """Read one look of studies/class_orders.py at a data set, a row a run."""
    rows = pd.read_csv(project_root() / STUDY, dtype={"variant": str})
    rows["variant"] = rows["variant"].fillna("")
    return rows[(rows["dataset"] == dataset) & (rows["look"] == look)]


def _tidy(rows: pd.DataFrame) -> pd.DataFrame:
    """Give each accuracy after a task a row of its own, the paper's beside it."""
    columns = ["dataset", "method", "variant", "schedule", "seed"]
    values = rows.set_index(columns).filter(like="task ").stack().dropna()
    values = values.rename("value").rename_axis([*columns, "trained_tasks"])
    frame = values.reset_index()
    tasks = frame["trained_tasks"].str.removeprefix("task ").astype("int64")
    frame = frame.assign(trained_tasks=tasks)
    if frame.empty:
        return frame.assign(published=np.nan)
    theirs = published_row(load_dataset(frame["dataset"].iloc[0], images=False))
    return frame.merge(theirs, how="left", on=["method", "trained_tasks"])


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
    cells = rows.groupby(["order", "method", "trained_tasks"], sort=False)
    ours = cells["value"].agg(["mean", "std"]).reset_index()
    sd = ours["std"].map(" ± {:.1f}".format).where(ours["std"].notna(), "")
    ours = ours.assign(cell=ours["mean"].map("{:.1f}".format) + sd)
    theirs = rows.dropna(subset="published")
    theirs = theirs.drop_duplicates(["method", "trained_tasks"])
    theirs = theirs.assign(order="paper", cell=theirs["published"].map("{:.2f}".format))
    both = pd.concat([theirs, ours])
    table = both.pivot(
        index=["order", "method"], columns="trained_tasks", values="cell"
    )
    keys = product(both["order"].unique(), METHODS)
    table = table.reindex([key for key in keys if key in table.index]).fillna("")
    return table.rename(columns="after task {}".format).rename_axis(columns=None)


def task_contrasts(rows: pd.DataFrame, method: str, than: str) -> pd.DataFrame:
    """Compare two methods' accuracy after every task, for each order of the classes."""
    words = {
        "place": "{dataset}, order {order}, after task {trained_tasks}",
        "paper": "in the paper by {published:+.1f}",
    }
    rows = rows.drop(columns=["group", "metric"])  # there is one of each
    return contrasts(rows, method, than, by=["order", "trained_tasks"], **words)


def _last(rows: pd.DataFrame) -> pd.DataFrame:
    """Pick the rows after the last task."""
    return rows[rows["trained_tasks"] == rows["trained_tasks"].max()]


def lead_sentence(rows: pd.DataFrame) -> str:
    """Say in how many orders of the classes PRS is above CRS after the last task."""
    last = _last(rows)
    by_order = last.pivot(index="schedule", columns="method", values="value")
    gap = by_order["PRS"] - by_order["CRS"]
    return (
        f"{rows['dataset'].iloc[0]}: PRS is above CRS in {(gap > 0).sum()} of {len(gap)} orders, "
        f"by {gap.median():.1f} points in the middle, {gap.min():.1f} to {gap.max():.1f} in all."
    )


def search_sentences(orders: pd.DataFrame, within: float = 5.0) -> list[str]:
    """Say how many orders agree with the paper ``within`` some points, and which is nearest."""
    agree, best = (orders["largest"] <= within).sum(), orders.iloc[0]
    return [
        f"{agree} of these {len(orders)} orders agree with all {best.cells} numbers of the paper "
        f"within {within:g} points.",
        f"The nearest is {best.schedule}: {best.rms:.1f} points away in root mean square, "
        f"{best.largest:.1f} in the worst number.",
    ]


def variant_sentence(paper: pd.DataFrame, authors: pd.DataFrame) -> str:
    """Compare the last accuracy of the released PRS with the printed one."""
    keys = ["schedule", "seed"]
    first, second = (_last(r).set_index(keys)["value"] for r in (paper, authors))
    gap = second - first
    return (
        f"{paper['dataset'].iloc[0]}: PRS as released minus PRS as printed is {gap.mean():+.1f} "
        f"points after the last task (s.d. {gap.std():.1f} over {len(gap)} orders, standard error "
        f"{gap.sem():.1f})."
    )


def plot_order_spread(frame: pd.DataFrame, ax: Axes) -> Axes:
    """Draw the last accuracy of every order as a dot, the paper's number as a star (Appendix)."""
    methods = in_order(frame["method"])
    for position, method in enumerate(methods):
        rows = frame[frame["method"] == method]
        # side by side, in the rows' order
        places = position + np.linspace(-0.3, 0.3, len(rows))
        ax.scatter(places, rows["value"], s=9, alpha=0.5, color=COLOURS[method])
    theirs = frame.groupby("method")["published"].first().reindex(methods)
    ax.scatter(range(len(methods)), theirs, label="paper", **STAR)
    ax.legend()
    ax.set_xticks(range(len(methods)), methods)
    ax.set(xlabel="", ylabel="accuracy after the last task (%)", ylim=(0, 100))
    return ax


def plot_order_pairs(frame: pd.DataFrame, ax: Axes, x: str, y: str) -> Axes:
    """Draw one method's accuracy against another's: orders as dots, the paper as a star."""
    values = frame.pivot(index="schedule", columns="method", values="value")
    theirs = frame.groupby("method")["published"].first()
    ax.axline((0, 0), slope=1, color="0.6", linewidth=1, label="equal accuracy")
    dots = {"s": 9, "alpha": 0.5, "color": "0.35"}  # the colour of neither method
    ax.scatter(values[x], values[y], label="ours, one order each", **dots)
    ax.scatter(theirs[x], theirs[y], label="paper", **STAR)
    ax.legend()
    ax.set(xlim=(0, 100), ylim=(0, 100), aspect="equal")
    ax.set(xlabel=f"{x} (%)", ylabel=f"{y} (%)")
    return ax
