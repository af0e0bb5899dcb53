"""The tables and sentences of the single-label data sets, ours beside the paper's."""

from collections.abc import Sequence

import pandas as pd

from prslib import report
from prslib.config import RunConfig
from prslib.methods import METHODS
from prslib.report.differences import compared, over_seeds
from prslib.results import Run
from prslib.stream import task_name, tasks_together

DRAWN = "drawn from the seed"


def by_order(wanted: Sequence[RunConfig], runs: Sequence[Run]) -> pd.DataFrame:
    """Pick the accuracies on the whole test set (Appendix, Tables of single-label data).

    Parameters
    ----------
    wanted : sequence of RunConfig
        Single-label configurations; a schedule of None is an order drawn from each seed.
    runs : sequence of Run
        Theirs, one each.

    Returns
    -------
    DataFrame
        Columns dataset, stands_for, order, method, schedule, seed, trained_tasks, measure, group,
        metric, value (accuracy on the whole test set, percent), published.
    """
    frames = []
    for config, run in zip(wanted, runs, strict=True):
        rows = run.scores[(run.scores["metric"] == "accuracy") & (run.scores["task"] == "all")]
        order = DRAWN if config.schedule is None else order_name(config)
        frames.append(rows.assign(order=order, measure="score", value=100 * rows["value"]))
    columns = ["dataset", "order", "method", "schedule", "seed", "trained_tasks"]
    rows = pd.concat(frames, ignore_index=True)[[*columns, "measure", "group", "metric", "value"]]
    return report.beside(rows, "mnist", "svhn")


def order_name(config: RunConfig) -> str:
    """Return what a configuration's order of the classes is called: "1+7,0+2,8+9,3+5,4+6"."""
    groups = tasks_together(config.schedule, config.resolved["tasks_at_once"])
    return ",".join(map(task_name, groups))


def accuracy_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Lay out accuracies as the paper does, a column for each task (Appendix).

    Parameters
    ----------
    rows : DataFrame
        As `by_order` gives them, of one data set.

    Returns
    -------
    DataFrame
        Text cells in percent, mean ± s.d. over seeds; a row for each method of the paper and of
        every order of ours.
    """
    cells = rows.groupby(["order", "method", "trained_tasks"], sort=False)
    ours = cells["value"].agg(["mean", "std"]).reset_index()
    sd = ours["std"].map(" ± {:.1f}".format).where(ours["std"].notna(), "")
    ours = ours.assign(cell=ours["mean"].map("{:.1f}".format) + sd)
    theirs = rows.drop_duplicates(["method", "trained_tasks"]).dropna(subset="published")
    theirs = theirs.assign(order="paper", cell=theirs["published"].map("{:.2f}".format))
    both = pd.concat([theirs, ours])
    table = both.pivot(index=["order", "method"], columns="trained_tasks", values="cell")
    orders = list(dict.fromkeys(both["order"]))
    keys = [(order, method) for order in orders for method in METHODS]
    table = table.reindex([key for key in keys if key in table.index]).fillna("")
    return table.rename(columns="after task {}".format).rename_axis(columns=None)


def contrasts(rows: pd.DataFrame, method: str, than: str) -> pd.DataFrame:
    """Subtract one method's accuracy from another's after every task, seed by seed.

    Parameters
    ----------
    rows : DataFrame
        As `by_order` gives them.
    method, than : str
        The difference is ``method`` minus ``than``.

    Returns
    -------
    DataFrame
        dataset, order, trained_tasks; difference, sd, low, high, seeds, coverage and clearly, in
        points, as `prslib.report.differences.over_seeds` gives them; published (the paper's
        difference), and a sentence that says it.
    """
    keys = ["dataset", "order", "trained_tasks"]
    first, second = (
        rows[rows["method"] == name].set_index([*keys, "seed"])[["value", "published"]]
        for name in (method, than)
    )
    gaps = (first - second).dropna(subset="value").reset_index()
    table = over_seeds(gaps, keys)
    table["published"] = gaps.groupby(keys, sort=False)["published"].first().to_numpy()
    said = [_sentence(row, compared(row, method, than)) for _, row in table.iterrows()]
    return table.assign(sentence=said)


def _sentence(row: pd.Series, said: str) -> str:
    paper = "" if pd.isna(row["published"]) else f"; in the paper by {row['published']:+.1f}"
    where = f"{row['dataset']}, order {row['order']}, after task {row['trained_tasks']}"
    return f"{where}: {said}{paper}."


def spread_sentences(rows: pd.DataFrame) -> list[str]:
    """Say how far the order of the classes moves the accuracy after the last task.

    Parameters
    ----------
    rows : DataFrame
        As `prslib.report.class_orders.train_orders` gives it, of one data set and seed.

    Returns
    -------
    list of str
        A sentence for each method with the range over orders, and one for PRS against CRS where
        both are there.
    """
    last = rows[rows["trained_tasks"] == rows["trained_tasks"].max()]
    name = rows["dataset"].iloc[0]
    said = []
    for method, part in last.groupby("method", sort=False):
        low, middle, high = part["value"].quantile([0.05, 0.5, 0.95])
        theirs = part["published"].iloc[0]
        paper = "" if pd.isna(theirs) else f"; the paper has {theirs:.1f}"
        said.append(
            f"{name}, {method}: {middle:.1f} % in the middle of {len(part)} orders, {low:.1f} to "
            f"{high:.1f} for nine in ten{paper}."
        )
    by_order = last.pivot(index="schedule", columns="method", values="value")
    if {"PRS", "CRS"} <= set(by_order):
        gap = by_order["PRS"] - by_order["CRS"]
        said.append(
            f"{name}: PRS is above CRS in {(gap > 0).sum()} of {len(gap)} orders, by "
            f"{gap.median():.1f} points in the middle, {gap.min():.1f} to {gap.max():.1f} in all."
        )
    return said


def search_sentences(found: pd.DataFrame, within: float = 5.0) -> list[str]:
    """Say how near the nearest orders come to the paper's whole progression.

    Parameters
    ----------
    found : DataFrame
        As `prslib.report.class_orders.distances` gives it.
    within : float
        Points in which every number of the table should agree.

    Returns
    -------
    list of str
        How many orders agree, and the nearest one.
    """
    agree, best = (found["largest"] <= within).sum(), found.iloc[0]
    return [
        f"{agree} of these {len(found)} orders agree with all {best.cells} numbers of the paper "
        f"within {within:g} points.",
        f"The nearest is {best.schedule}: {best.rms:.1f} points away in root mean square, "
        f"{best.largest:.1f} in the worst number.",
    ]


def variant_sentence(paper: pd.DataFrame, authors: pd.DataFrame) -> str:
    """Say what the released code's reading of PRS changes against the printed one.

    Parameters
    ----------
    paper, authors : DataFrame
        As `prslib.report.class_orders.train_orders` gives them for the two variants, same orders
        and seeds.

    Returns
    -------
    str
        The mean difference of the accuracy after the last task, and its spread over orders.
    """
    last = [rows[rows["trained_tasks"] == rows["trained_tasks"].max()] for rows in (paper, authors)]
    first, second = (rows.set_index(["schedule", "seed"])["value"] for rows in last)
    gap = second - first
    return (
        f"{paper['dataset'].iloc[0]}: PRS as released minus PRS as printed is {gap.mean():+.1f} "
        f"points after the last task (s.d. {gap.std():.1f} over {len(gap)} orders, standard error "
        f"{gap.sem():.1f})."
    )
