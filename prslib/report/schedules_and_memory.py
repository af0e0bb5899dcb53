"""The paper's other settings: permuted schedules and other memory sizes, ours beside theirs."""

from collections.abc import Sequence
from itertools import pairwise

import pandas as pd

from prslib import published, report
from prslib.datasets import DATASETS, load_dataset
from prslib.report.single_label import schedule_of

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


def schedule_spread(rows: pd.DataFrame) -> pd.DataFrame:
    """Measure how far the schedule alone moves each method's overall scores (Table 2).

    Parameters
    ----------
    rows : DataFrame
        As `prslib.report.schedules_and_memory.by_schedule` gives them.

    Returns
    -------
    DataFrame
        dataset, stands_for, metric, method, schedules, sd (over schedules of the mean over the
        seeds that all of them have), lowest, highest, seed_sd (over the standard schedule's seeds;
        NaN for one), published_sd (the same of the paper's numbers), in points.

    Examples
    --------
    >>> rows = pd.DataFrame({"dataset": "digits70seq", "stands_for": "COCOseq", "metric": "mAP",
    ...     "measure": "score", "group": "overall", "method": "CRS", "seed": 0,
    ...     "schedule": ["0,3,1,2", "0,1,3,2"], "value": [50.0, 54.0], "published": [50.2, 50.8]})
    >>> schedule_spread(rows)[["sd", "published_sd"]].round(2).values.tolist()
    [[2.83, 0.42]]
    """
    rows = rows[(rows["measure"] == "score") & (rows["group"] == "overall")]
    keys = ["dataset", "stands_for", "metric", "method"]
    return pd.DataFrame(
        dict(zip(keys, key, strict=True)) | _spread(part, DATASETS[key[0]].recipe.schedule)
        for key, part in rows.groupby(keys, sort=False)
    )


def _spread(part: pd.DataFrame, standard: tuple[int, ...]) -> dict:
    """Compute one method's row of `schedule_spread`."""
    values = part.pivot(index="schedule", columns="seed", values="value")
    means = values.dropna(axis="columns").mean(axis="columns")
    return {
        "schedules": len(means),
        "sd": means.std(),
        "lowest": means.min(),
        "highest": means.max(),
        "seed_sd": values.loc[",".join(map(str, standard))].std(),
        "published_sd": part.groupby("schedule")["published"].first().std(),
    }


def steadiest(spread: pd.DataFrame) -> list[str]:
    """Say which method the schedule moves least, here and in the paper (Table 2).

    Parameters
    ----------
    spread : DataFrame
        As `schedule_spread` gives it.

    Returns
    -------
    list of str
        A sentence for each data set and metric.
    """
    said = []
    for (name, metric), part in spread.groupby(["dataset", "metric"], sort=False):
        part = part.set_index("method")
        each = ", ".join(
            f"{method} {row.sd:.1f} [{row.published_sd:.1f}]" for method, row in part.iterrows()
        )
        theirs = part["published_sd"].dropna()
        paper = f"; in the paper it is {theirs.idxmin()}" if len(theirs) else ""
        said.append(
            f"{name}, overall {metric}, s.d. over {part['schedules'].max()} schedules in points "
            f"[the paper's over the same]: {each}. {part['sd'].idxmin()} moves least{paper}. From "
            f"seed to seed {_noise(part['seed_sd'])} at the standard schedule."
        )
    return said


def _noise(seed_sd: pd.Series) -> str:
    """Say how far the seed alone moves the methods."""
    known = seed_sd.dropna()
    if known.empty:
        return "nothing is known, with one seed"
    return "they move by " + ", ".join(f"{sd:.1f} ({method})" for method, sd in known.items())


def memory_gains(rows: pd.DataFrame) -> pd.DataFrame:
    """Measure what each larger memory adds to the overall scores (Appendix, "Memory Sizes").

    Parameters
    ----------
    rows : DataFrame
        As `prslib.report.schedules_and_memory.by_memory` gives them.

    Returns
    -------
    DataFrame
        dataset, stands_for, metric, method, memory_from, memory_to (text, "250 [1000]"), gain and
        published_gain in points, seeds (that both sizes have).

    Examples
    --------
    >>> rows = pd.DataFrame({"dataset": "digits70seq", "stands_for": "COCOseq", "metric": "mAP",
    ...     "measure": "score", "group": "overall", "method": "PRS", "seed": 0,
    ...     "memory": ["250 [1000]", "500 [2000]"], "value": [50, 56], "published": [50, 55]})
    >>> memory_gains(rows)[["gain", "published_gain"]].values.tolist()
    [[6.0, 5.0]]
    """
    rows = rows[(rows["measure"] == "score") & (rows["group"] == "overall")]
    found = []
    for key, part in rows.groupby(["dataset", "stands_for", "metric", "method"], sort=False):
        sizes = list(dict.fromkeys(part["memory"]))
        values = part.pivot(index="seed", columns="memory", values="value")
        theirs = part.groupby("memory")["published"].first()
        for small, large in pairwise(sizes):
            gains = (values[large] - values[small]).dropna()
            cells = [*key, small, large, gains.mean(), theirs[large] - theirs[small], len(gains)]
            found.append(cells)
    names = ["dataset", "stands_for", "metric", "method", "memory_from", "memory_to"]
    return pd.DataFrame(found, columns=[*names, "gain", "published_gain", "seeds"])


def narrowing(gains: pd.DataFrame) -> list[str]:
    """Say whether each step in memory adds less than the one before (Appendix, "Memory Sizes").

    Parameters
    ----------
    gains : DataFrame
        As `memory_gains` gives them.

    Returns
    -------
    list of str
        A sentence for each data set, method and metric with at least two steps.
    """
    said = []
    for (name, method, metric), part in gains.groupby(["dataset", "method", "metric"], sort=False):
        if len(part) < 2:
            continue
        sizes = ", ".join([part["memory_from"].iloc[0], *part["memory_to"]])
        falls = (part["gain"].diff().dropna() < 0).all()
        said.append(
            f"{name}, {method}, overall {metric}, memory {sizes}: "
            f"{_steps(part['gain'])} points [the paper {_steps(part['published_gain'])}], so that "
            f"the gain {'narrows' if falls else 'does not narrow'}."
        )
    return said


def _steps(gains: pd.Series) -> str:
    return " and then ".join(f"{gain:+.1f}" for gain in gains)
