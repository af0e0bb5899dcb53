"""Turn scores into the tables and sentences of the report, ours beside the paper's."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from pandas.io.formats.style import Styler

from prslib import datasets, published
from prslib.datasets import SequentialDataset, load_dataset
from prslib.metrics import forgetting
from prslib.report.statistics import DECIDING, WORDS, compared, over_seeds
from prslib.resamples import class_draws
from prslib.training.config import Run
from prslib.training.methods import METHODS

GROUPS = (*datasets.GROUPS, "overall")
METRICS = ("C-F1", "O-F1", "mAP")
MEASURES = {"score": "Scores", "forget": "Forgetting"}
POOLED = ("O-P", "O-R", "O-F1")
PRECISION_RECALL = ("C-P", "C-R", "O-P", "O-R")
# all other columns tell runs apart
_CELL = ["trained_tasks", "task", "group", "metric", "value", "draws"]
_VALUES = ("value", "draws", "published")
NEXT = "\N{NO-BREAK SPACE}"  # keeps a deviation and its sign in one line
_KEEP_ALL = {"dropna": False, "sort": False}  # rho is NaN for most methods


def scores_of(runs: Sequence[Run], *fields: str) -> pd.DataFrame:
    """Join the scores of runs, in [0, 1], and add fields of their configurations as columns."""
    frames = [
        run.scores.assign(run=number, **{f: run.config.resolved[f] for f in fields})
        for number, run in enumerate(runs)
    ]
    rows = pd.concat(frames, ignore_index=True)
    return with_draws(rows, dict(enumerate(runs))).drop(columns="run")


@cache
def labels_of(name: str) -> SequentialDataset:
    """Load a data set without its images, once."""
    return load_dataset(name, images=False)


def with_draws(rows: pd.DataFrame, runs: Mapping[Any, Run]) -> pd.DataFrame:
    """Add to scores, where test images are few, those under resamples: `draws`.

    Column run says to which of the runs a row belongs. Scores that average over classes
    resample the classes (`class_draws`); O-P, O-R and O-F1 on all tasks seen pool the
    images, and have weights of the images.
    """
    cell, drawn = ["run", *_CELL[:4]], []
    alike = defaultdict(list)
    for name, run in runs.items():
        settings = run.config.resolved
        if draws := settings["test_resamples"]:
            alike[run.config.dataset, settings["test_set"], draws].append(name)
        if draws and run.resampled is not None:
            pooled = run.resampled[run.resampled["metric"].isin(POOLED)]
            drawn.append(pooled.assign(run=name, draws=pooled["draws"].map(np.asarray)))
    if not alike:
        return rows
    for (data, test_set, draws), names in alike.items():
        dataset = labels_of(data)
        positives = dataset.tests[test_set].labels.sum(axis=0)
        scores = rows.loc[rows["run"].isin(names), [*cell, "value"]]
        classes = dataset.class_names, dataset.class_group
        drawn.append(class_draws(scores, *classes, positives, draws))
    first = pd.concat(drawn).drop_duplicates(cell).set_index(cell)["draws"]
    return rows.join(first, on=cell)


def run_columns(scores: pd.DataFrame) -> list[str]:
    """Return the columns of a scores frame that tell runs apart, seed among them."""
    return [column for column in scores if column not in _CELL]


def final(scores: pd.DataFrame, metrics: Sequence[str] = METRICS) -> pd.DataFrame:
    """Pick what Table 1 reports, in percent: scores after the last task, and forgetting."""
    scores = _reported(scores, metrics)  # forgetting of each class takes long
    run = run_columns(scores)
    last = scores.groupby(run, **_KEEP_ALL)["trained_tasks"].transform("max")
    scored = scores[(scores["trained_tasks"] == last) & (scores["task"] == "seen")]
    both = [scored.assign(measure="score")]
    # Multitask has no earlier tasks to forget
    online = scores[scores["schedule"] != ""]
    if len(online):
        both.append(forgetting(online).assign(measure="forget"))
    return _percent(pd.concat(both, ignore_index=True), [*run, "measure"])


def progression(scores: pd.DataFrame) -> pd.DataFrame:
    """Pick the overall scores after every task, in percent (Appendix, Task Progression Results)."""
    rows = scores[(scores["task"] == "seen") & (scores["group"] == "overall")]
    rows = _reported(rows, METRICS).assign(measure="score")
    return _percent(rows, [*run_columns(scores), "trained_tasks", "measure"])


def _reported(rows: pd.DataFrame, metrics: Sequence[str]) -> pd.DataFrame:
    return rows[rows["group"].isin(GROUPS) & rows["metric"].isin(metrics)]


def _percent(rows: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    values = {name: 100 * rows[name] for name in ("value", "draws") if name in rows}
    rows = rows.assign(**values)[[*columns, "group", "metric", *values]]
    return rows.reset_index(drop=True)


def average(rows: pd.DataFrame) -> pd.DataFrame:
    """Replace seed and value by mean, sd (of the sample) and seeds, in the paper's order."""
    keys = [column for column in rows if column not in ("seed", "value", "draws")]
    cells = rows.groupby(keys, **_KEEP_ALL)["value"]
    table = cells.agg(mean="mean", sd="std", seeds="count").reset_index()
    orders = {"dataset": rows["dataset"].unique(), "method": METHODS}
    orders |= {"group": GROUPS, "metric": (*METRICS, *PRECISION_RECALL)}
    ranks = {
        name: {v: i for i, v in enumerate(values)} for name, values in orders.items()
    }
    by_rank = {"key": lambda column: column.map(ranks[column.name]), "kind": "stable"}
    return table.sort_values(list(ranks), ignore_index=True, **by_rank)


def beside(rows: pd.DataFrame, *tables: str, also: Sequence[str] = ()) -> pd.DataFrame:
    """Add stands_for and the paper's number, published; in columns `also` its cells must agree."""
    names = {name: labels_of(name).stands_for for name in set(rows["dataset"])}
    rows = rows.assign(stands_for=rows["dataset"].map(names))
    return published.beside(rows, *tables, also=also)


def main_tables(averages: pd.DataFrame, dataset: str, *layout, **more) -> list[Styler]:
    """Return `main_table` of each measure, with the best that sees a stream in bold."""
    tables = []
    for measure, title in MEASURES.items():
        table = main_table(averages, dataset, *layout, measure=measure, **more)
        if table.empty:
            continue
        numbers = table.map(lambda cell: float(cell.partition(" ")[0] or "nan"))
        methods = table.index.get_level_values("method")
        numbers[[METHODS[name].offline for name in methods]] = np.nan  # no rival
        blocks = numbers.groupby([n for n in table.index.names if n != "method"])
        best = numbers == blocks.transform("min" if measure == "forget" else "max")
        bold = np.where(best, "font-weight: bold", "")
        shown = table.style.set_caption(f"{title} in percent, best in bold")
        tables.append(shown.apply(lambda _, bold=bold: bold, axis=None))
    return tables


def main_table(
    averages: pd.DataFrame,
    dataset: str,
    metrics: Sequence[str] = METRICS,
    by: Sequence[str] = (),
    measure: str = "score",
) -> pd.DataFrame:
    """Lay out averages as Table 1 does, ours and the paper's; `by` names columns of blocks."""
    rows = averages[(averages["dataset"] == dataset) & (averages["measure"] == measure)]
    ours = _said(rows["mean"], "{:.1f}") + _said(rows["sd"], f" ±{NEXT}{{:.1f}}")
    pair = {"ours": ours, "paper": _said(rows["published"], "{:.1f}")}
    cells = pd.concat([rows.assign(source=name, cell=pair[name]) for name in pair])
    index = [*by, "method", "source"]
    table = cells.pivot(index=index, columns=["group", "metric"], values="cell")
    table = table.fillna("")
    blocks = [rows[column].drop_duplicates() for column in by]
    order = product(*blocks, METHODS, pair)
    table = table.reindex([key for key in order if key in table.index])
    table = table[(table != "").any(axis=1)]
    columns = [key for key in product(GROUPS, metrics) if key in table.columns]
    return table.reindex(columns=columns)


def _said(numbers: pd.Series, text: str) -> pd.Series:
    """Return numbers as text, "" where there is none."""
    return numbers.map(text.format).where(numbers.notna(), "")


def _keys(rows: pd.DataFrame, by: Sequence[str]) -> list[str]:
    """Return the columns in which two scores must agree to be compared, seed aside."""
    usual = ["dataset", "stands_for", *by, "measure", "group", "metric"]
    return [name for name in usual if name in rows]


def seed_gaps(
    rows: pd.DataFrame, method: str, than: str, by: Sequence[str] = ()
) -> pd.DataFrame:
    """Return how far one method is above another at each of its seeds; NaN if one is missing."""
    if "measure" in rows:
        rows = rows[rows["measure"] == "score"]
    values = [name for name in _VALUES if name in rows]
    table = rows.set_index([*_keys(rows, by), "seed"])
    first = table.loc[table["method"] == method, values]
    second = table.loc[table["method"] == than, values]
    return (first - second).reindex(first.index).reset_index()


def contrasts(
    rows: pd.DataFrame,
    method: str,
    than: str,
    cells: Sequence[tuple[str, str]] | None = None,  # (group, metric); by default all
    by: Sequence[str] = (),  # further columns in which the two must agree
    *,
    over: Sequence[str] = (),  # columns over which each seed's differences are averaged
    place: str | None = None,  # begins a sentence, columns in braces
    paper: str = "in the paper, on {stands_for}, by {published:+.1f}",
) -> pd.DataFrame:
    """Add to `over_seeds` the paper's difference of two methods, published, and a sentence."""
    gaps = seed_gaps(rows, method, than, [*by, *over]).dropna(subset="value")
    if cells is not None:
        gaps = gaps[
            [pair in cells for pair in zip(gaps["group"], gaps["metric"], strict=True)]
        ]
    keys = [name for name in _keys(gaps, by) if name != "measure"]
    if over:
        values = [name for name in ("value", "published") if name in gaps]
        gaps = gaps.groupby([*keys, "seed"], **_KEEP_ALL)[values].mean().reset_index()
    table = over_seeds(gaps, keys)
    if "published" in gaps:
        theirs = gaps.groupby(keys, **_KEEP_ALL)["published"].first()
        table["published"] = theirs.to_numpy()
    if place is None:
        place = ", ".join(f"{{{name}}}" for name in ("dataset", *by))
        place += ", {group} {metric}" if "group" in gaps else ""
    said = []
    for row in table.to_dict("records"):
        end = f"; {paper.format(**row)}." if pd.notna(row.get("published")) else "."
        said.append(f"{place.format(**row)}: {compared(row, method, than)}{end}")
    return table.assign(sentence=said).drop(columns="stands_for", errors="ignore")


def in_short(gaps: pd.DataFrame) -> str:
    """Say how many of `contrasts` are clear, and the ends of each data set's clear ones or all."""
    above, below = ((gaps["clearly"] == word).sum() for word in WORDS.values())
    text = f"Of {len(gaps)} differences {above} are clearly above 0 and {below} below"
    if gaps["seeds"].max() < DECIDING:
        text += f"; it takes {DECIDING} seeds to be clear"
    lines = [f"{text}.\n"]
    for _, rows in gaps.groupby("dataset", sort=False):
        clear = rows[rows["clearly"] != ""]
        ends = (clear if len(clear) else rows)["difference"].agg(["idxmax", "idxmin"])
        lines += [f"- {sentence}" for sentence in rows.loc[ends.unique(), "sentence"]]
    return "\n".join(lines)
