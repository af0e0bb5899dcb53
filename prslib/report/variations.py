"""The paper's other settings: permuted schedules and other memory sizes, ours beside theirs."""

from collections.abc import Sequence

import pandas as pd

from prslib import published, report
from prslib.datasets import DATASETS, load_dataset
from prslib.report.class_orders import schedule_of

# the appendix's numbers throughout, as the main text has others for PRS; COCOseq's standard
# schedule stands in its table of memory sizes, and its forgetting in the main table alone
SCHEDULES = ("coco_schedules", "nus_schedules", "coco_memory", "main")
MEMORIES = ("coco_memory", "nus_memory")
TABLE_2 = ("memory_and_schedules",)


def permuted_schedules(dataset: str, count: int) -> list[tuple[int, ...]]:
    """List the paper's schedules beside the standard one, those of Table 2 first.

    Parameters
    ----------
    dataset : str
        A key of `DATASETS`.
    count : int
        How many at most; the paper has four for COCOseq and three for NUS-WIDEseq.

    Returns
    -------
    list of tuple of int
        Schedules.

    Examples
    --------
    >>> permuted_schedules("digits49seq", 1)
    [(0, 1, 2, 3, 4, 5)]
    """
    stands_for = load_dataset(dataset, images=False).stands_for
    cells = pd.concat([published.load(table) for table in (*TABLE_2, *SCHEDULES)])
    orders = cells.loc[cells["dataset"] == stands_for, "schedule"].drop_duplicates()
    found = [schedule_of(order) for order in orders if order]
    return [order for order in found if order != DATASETS[dataset].recipe.schedule][:count]


def memory_sizes(dataset: str, shares: Sequence[float]) -> list[int]:
    """Scale a data set's own memory, as the paper has 1000, 2000 and 3000 (Table 2).

    Parameters
    ----------
    dataset : str
        A key of `DATASETS`.
    shares : sequence of float
        Sizes as shares of the data set's own.

    Returns
    -------
    list of int
        Samples, rounded.

    Examples
    --------
    >>> memory_sizes("digits70seq", [0.5, 1.5]), memory_sizes("cocoseq", [0.5, 1.5])
    ([250, 750], [1000, 3000])
    """
    return [round(share * DATASETS[dataset].recipe.memory_size) for share in shares]


def by_schedule(scores: pd.DataFrame) -> pd.DataFrame:
    """Pick the final scores of every schedule at the standard memory size (Table 2, appendix).

    Parameters
    ----------
    scores : DataFrame
        Tidy scores of runs with a memory and a schedule, values in [0, 1].

    Returns
    -------
    DataFrame
        As `report.final` gives them, with stands_for, paper_memory (samples, the paper's size for
        ours), memory ("500 [2000]", both), published (the appendix's number, in percent) and
        table_2 (that of Table 2, which has other numbers for PRS).
    """
    rows = _with_memory(scores)
    own = rows["dataset"].map(lambda name: DATASETS[name].recipe.memory_size)
    return _beside(rows[rows["memory_size"] == own], SCHEDULES)


def by_memory(scores: pd.DataFrame) -> pd.DataFrame:
    """Pick the final scores of every memory size at the standard schedule (Table 2, appendix).

    Parameters
    ----------
    scores : DataFrame
        Tidy scores of runs with a memory and a schedule, values in [0, 1].

    Returns
    -------
    DataFrame
        As `by_schedule` gives them, from the smallest memory to the largest.

    Notes
    -----
    A stand-in's memory is to its own standard as the paper's is to 2000. Sizes are whole numbers,
    so that the paper's is found to the nearest hundred.
    """
    rows = _with_memory(scores)
    first = {name: place for place, name in enumerate(rows["dataset"].unique())}
    rows = rows.assign(first=rows["dataset"].map(first))
    rows = rows.sort_values(["first", "memory_size"], kind="stable").drop(columns="first")
    own = rows["dataset"].map(lambda name: ",".join(map(str, DATASETS[name].recipe.schedule)))
    return _beside(rows[rows["schedule"] == own], MEMORIES)


def _with_memory(scores: pd.DataFrame) -> pd.DataFrame:
    """Take the final scores of runs with a memory, and what their size is to the paper's."""
    rows = report.final(scores[scores["memory_size"] > 0])
    standard = published.load("main", method="PRS")["memory_size"].max()
    own = rows["dataset"].map(lambda name: DATASETS[name].recipe.memory_size)
    paper = (rows["memory_size"] / own * int(standard)).round(-2).astype("Int64")
    both = rows["memory_size"].astype(str) + " [" + paper.astype(str) + "]"
    return rows.assign(paper_memory=paper, memory=both)


def _beside(rows: pd.DataFrame, tables: Sequence[str]) -> pd.DataFrame:
    """Take each published cell from the first of the tables that prints it, and from Table 2."""
    asked = rows.assign(memory_size=rows["paper_memory"])
    columns = []
    for table in (*tables, *TABLE_2):
        found = report.beside(asked, table, also=["schedule", "memory_size"])
        columns.append(found["published"].to_numpy())
    theirs = pd.DataFrame(columns[:-1]).bfill().iloc[0].to_numpy()
    own = {"memory_size": rows["memory_size"].to_numpy(), "published": theirs}
    return found.assign(**own, table_2=columns[-1])
