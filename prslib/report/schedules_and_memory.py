"""Compare methods under permuted schedules and other memory sizes (Table 2, appendix)."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pandas as pd

from prslib import DATASETS, RunConfig, configs_of, paired, published
from prslib.datasets.base import schedule_of
from prslib.report.notebook import Trained, several
from prslib.report.tables import beside, final, labels_of

# The appendix's tables, as the main text has other numbers for PRS. COCOseq's standard
# schedule stands in the table of memory sizes, and its forgetting in the main table
# alone.
SCHEDULE_TABLES = ("coco_schedules", "nus_schedules", "coco_memory", "main")
TABLE_2 = "memory_and_schedules"
STANDARD = 2000  # samples in the paper's memory


class Settings(Trained):
    """Parameters of the notebook, which explains them."""

    rhos: list[float] = several(-0.03)
    method: list[str] = several("CRS", "GSS", "ExStream", "PRS")
    sized: list[str] = several("CRS", "GSS", "ExStream", "PRS")
    schedules: int = 4
    shares: list[float] = several(0.5, 1.5)
    seeds: list[int] = several(*range(10))
    varied_seeds: list[int] = several(0)
    costly: list[str] = several()
    costly_seeds: list[int] = several(0, 1, 2, 3, 4)


def runs(settings: Settings) -> list[RunConfig]:
    """List runs of the standard setting, of other schedules and of other memories."""
    made = []
    costly = {"costly": settings.costly, "costly_seeds": settings.costly_seeds}
    for pair in paired(dataset=settings.dataset, rho=settings.rhos):
        fixed = costly | pair
        orders = permuted_schedules(pair["dataset"], settings.schedules)
        usual_size = DATASETS[pair["dataset"]].recipe.memory_size
        sizes = [round(share * usual_size) for share in settings.shares]
        few = settings.varied_seeds
        made += configs_of(settings.method, settings.seeds, **fixed)
        made += configs_of(settings.method, few, **fixed, schedule=orders)
        made += configs_of(settings.sized, few, **fixed, memory_size=sizes)
    return made


def permuted_schedules(dataset: str, count: int) -> list[tuple[int, ...]]:
    """List up to ``count`` of the paper's schedules beside the standard one, Table 2's first."""
    cells = pd.concat([published.load(table) for table in (TABLE_2, *SCHEDULE_TABLES)])
    papers = cells[cells["dataset"] == labels_of(dataset).stands_for]
    schedules = [schedule_of(text) for text in papers["schedule"].unique()]
    usual = DATASETS[dataset].recipe.schedule
    return [order for order in schedules if order != usual][:count]


def scores_by_schedule(scores: pd.DataFrame) -> pd.DataFrame:
    """Pick the final scores of every schedule at the standard memory size, with the paper's."""
    rows = _with_memory(scores)
    return _with_published(rows[rows["paper_memory"] == STANDARD], SCHEDULE_TABLES)


def scores_by_memory(scores: pd.DataFrame) -> pd.DataFrame:
    """Pick the final scores of every memory size at the standard schedule, small memories first."""
    rows = _with_memory(scores)
    rows = rows[rows["schedule"] == rows["dataset"].map(_usual_schedule)]
    order = np.lexsort([rows["memory_size"], pd.factorize(rows["dataset"])[0]])
    return _with_published(rows.iloc[order], ("coco_memory", "nus_memory"))


def _usual_schedule(dataset: str) -> str:
    """Write a data set's own schedule as scores carry it."""
    return ",".join(map(str, DATASETS[dataset].recipe.schedule))


def _with_memory(scores: pd.DataFrame) -> pd.DataFrame:
    """Take the final scores of runs with a memory, and the paper's size for ours: "500 [2000]"."""
    rows = final(scores[scores["memory_size"] > 0])
    usual = rows["dataset"].map(lambda name: DATASETS[name].recipe.memory_size)
    # to the hundred, because sizes are whole numbers
    paper = (rows["memory_size"] / usual * STANDARD).round(-2).astype("Int64")
    both = rows["memory_size"].astype(str) + " [" + paper.astype(str) + "]"
    return rows.assign(paper_memory=paper, memory=both)


def _with_published(rows: pd.DataFrame, tables: Sequence[str]) -> pd.DataFrame:
    """Take each published cell from the first of the tables that prints it, and from Table 2."""
    asked = rows.assign(memory_size=rows["paper_memory"])
    also = ["schedule", "memory_size"]
    printed = [beside(asked, table, also=also)["published"] for table in tables]
    table = beside(asked, TABLE_2, also=also)
    table["memory_size"] = rows["memory_size"].to_numpy()
    table["table_2"] = table["published"]
    table["published"] = pd.concat(printed, axis=1).bfill(axis=1).iloc[:, 0]
    return table


def _overall(rows: pd.DataFrame) -> Iterator[tuple[dict, pd.DataFrame]]:
    """Return the overall scores of each method, and what they have in common."""
    rows = rows[(rows["measure"] == "score") & (rows["group"] == "overall")]
    keys = ["dataset", "stands_for", "metric", "method"]
    for key, scores in rows.groupby(keys, sort=False):
        yield dict(zip(keys, key, strict=True)), scores


def schedule_spread(rows: pd.DataFrame) -> pd.DataFrame:
    """Measure how far schedules move each method's overall scores; seed_sd is the standard's."""
    table = []
    for row, scores in _overall(rows):
        values = scores.pivot(index="schedule", columns="seed", values="value")
        means = values.dropna(axis="columns").mean(axis="columns")
        theirs = scores.groupby("schedule")["published"].first()
        row["schedules"] = len(means)
        row["sd"] = means.std()
        row["lowest"] = means.min()
        row["highest"] = means.max()
        row["seed_sd"] = values.loc[_usual_schedule(row["dataset"])].std()
        row["published_sd"] = theirs.std()
        table.append(row)
    return pd.DataFrame(table)


def memory_gains(rows: pd.DataFrame) -> pd.DataFrame:
    """Measure what each larger memory adds to the overall scores (Appendix, "Memory Sizes")."""
    table = []
    for row, scores in _overall(rows):
        values = scores.pivot(index="seed", columns="memory", values="value")
        theirs = scores.groupby("memory")["published"].first()
        for small, large in pairwise(scores["memory"].unique()):
            gains = (values[large] - values[small]).dropna()
            step = {"memory_from": small, "memory_to": large, "gain": gains.mean()}
            step["published_gain"] = theirs[large] - theirs[small]
            table.append(row | step | {"seeds": len(gains)})
    return pd.DataFrame(table)
