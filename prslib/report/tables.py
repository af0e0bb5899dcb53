"""Turn scores into the tables and sentences of the report, with the paper's numbers."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from pandas.io.formats.style import Styler

from prslib import METHODS, Run, datasets, published
from prslib.datasets import SequentialDataset, load_dataset
from prslib.metrics import MAIN_METRICS, forgetting
from prslib.report.answers import name_streams
from prslib.statistics import (
    DECIDING,
    SMALL,
    TEST_WORDS,
    over_seeds,
    say_difference,
    within,
)
from prslib.statistics import label_powers as label_powers

ALL_GROUPS = (*datasets.GROUPS, "overall")
CAPTIONS = {"score": "Scores", "forget": "Forgetting"}
PRECISION_RECALL = ("C-P", "C-R", "O-P", "O-R")
# F1 of predictions that do not use the threshold of 0.5
F1_OTHERWISE = tuple(
    f"{f1} ({how})" for how in ("tuned threshold", "top 3") for f1 in MAIN_METRICS[:2]
)
# names of test sets: balanced test (FULL for single-label data), imbalanced test, and
# further images of cocoseq-mini
BALANCED, FULL, IMBALANCED, OPEN = "balanced", "full", "imbalanced", "open"
TESTS = (BALANCED, FULL, IMBALANCED)
MEASURES = pd.Index(["score", "forget", "lost"])
_VALUES = ("value", "draws", "published")
NEXT = "\N{NO-BREAK SPACE}"  # keeps a deviation and its sign in one line
_KEEP_ALL = {"dropna": False, "sort": False}  # rho is NaN for most methods


@cache
def labels_of(name: str) -> SequentialDataset:
    """Load a data set without its images, once."""
    return load_dataset(name, images=False)


def with_draws(run: Run) -> pd.DataFrame:
    """Return a run's scores and, in the column `draws`, those on resampled images."""
    if run.resampled is None:
        return run.scores
    drawn = run.resampled.to_numpy(np.float32)  # sums in half precision are inaccurate
    return run.scores.assign(draws=pd.Series(list(drawn), run.resampled.index))


def scores_of(
    runs: Iterable[Run], *fields: str, tests: Collection[str] = TESTS
) -> pd.DataFrame:
    """Return the scores of class groups after each task, and the forgetting, in percent.

    Each run is read on those of the test sets `tests` that it has. Besides the columns
    that identify the run, the table has test_set, the `fields` of its configuration,
    trained_tasks, task, at_end (whether it is after the last task), measure (one of
    `MEASURES`), group, metric, value and draws.
    """
    frames = []
    for run in runs:
        settings = {name: run.config.resolved[name] for name in fields}
        frames += [frame.assign(**settings) for frame in read_run(run, tests)]
    table = pd.concat(frames, ignore_index=True)
    table = table.sort_values("measure", key=MEASURES.get_indexer, kind="stable")
    place = ["trained_tasks", "task", "at_end", "measure", "group", "metric"]
    values = [name for name in ("value", "draws") if name in table]
    names = [name for name in table if name not in [*place, *values, "unlearned"]]
    return table[[*names, *place]].join(100 * table[values]).reset_index(drop=True)


def read_run(run: Run, tests: Collection[str]) -> Iterator[pd.DataFrame]:
    """Yield the scores of a run's class groups on some test sets, and their forgetting."""
    rows = with_draws(run)
    end = rows["trained_tasks"].max()
    rows = rows[rows["group"].isin(ALL_GROUPS) & rows["test_set"].isin(tests)]
    order = pd.Index([*tests])
    rows = rows.sort_values("test_set", key=order.get_indexer, kind="stable")
    yield rows.assign(measure="score", at_end=rows["trained_tasks"] == end)
    if (rows["schedule"] == "").all():
        return  # Multitask has no earlier tasks to forget
    # as in Table 1, and as Chaudhry et al. define forgetting
    for name, normalised in {"forget": True, "lost": False}.items():
        lost = forgetting(rows, normalised).assign(measure=name)
        yield lost.assign(trained_tasks=end, task="seen", at_end=True)


def final(
    scores: pd.DataFrame, metrics: Collection[str] = MAIN_METRICS
) -> pd.DataFrame:
    """Pick what Table 1 reports: scores after the last task, and forgetting."""
    is_final = scores["at_end"] & (scores["task"] == "seen")
    is_printed = scores["metric"].isin(metrics) & (scores["measure"] != "lost")
    rows = scores[is_final & is_printed].reset_index(drop=True)
    return rows.drop(columns=["trained_tasks", "task", "at_end"])


def average(rows: pd.DataFrame) -> pd.DataFrame:
    """Average over seeds: mean, sd (of the sample), number of seeds, in the paper's order."""
    keys = [column for column in rows if column not in ("seed", "value", "draws")]
    cells = rows.groupby(keys, **_KEEP_ALL)["value"]
    table = cells.agg(mean="mean", sd="std", seeds="count").reset_index()
    order = {
        "dataset": list(rows["dataset"].unique()),
        "test_set": list(rows["test_set"].unique()),
        "method": list(METHODS),
        "group": list(ALL_GROUPS),
        "metric": [*MAIN_METRICS, *PRECISION_RECALL, *F1_OTHERWISE],
    }
    return table.sort_values(
        list(order),
        key=lambda column: column.map(order[str(column.name)].index),
        kind="stable",
        ignore_index=True,
    )


def merge_published(
    rows: pd.DataFrame, *tables: str, also: Sequence[str] = ()
) -> pd.DataFrame:
    """Add the column published: the paper's number on the same kind of test set.

    The column stands_for is also added. Cells must also agree in the columns `also`.
    """
    names = rows["dataset"].map(lambda name: labels_of(name).stands_for or "")
    rows = rows.assign(stands_for=names)
    return published.merge_published(rows, *tables, also=also)


def main_tables(
    averages: pd.DataFrame,
    by: Sequence[str] = (),  # columns of blocks
) -> list[Styler]:
    """Lay out averages of a data set and test set as Table 1 does, the best in bold.

    There is a table for each measure, with our number above the paper's. Methods that
    see no stream do not compete.
    """
    tables = []
    for measure, rows in averages.groupby("measure", sort=False):
        theirs = rows.assign(source="paper", mean=rows["published"], sd=np.nan)
        cells = pd.concat([rows.assign(source="ours"), theirs], ignore_index=True)
        text = cells["mean"].map("{:.1f}".format)
        # the best to the printed digit
        is_offline = cells["method"].map(lambda name: METHODS[name].offline)
        numbers = text.astype(float).mask(is_offline)
        keys = [cells[name] for name in (*by, "source", "group", "metric")]
        best = numbers.groupby(keys).transform("min" if measure == "forget" else "max")
        sd = cells["sd"].map(f" ±{NEXT}{{:.1f}}".format)
        text = (text + sd.mask(cells["sd"].isna(), "")).mask(cells["mean"].isna(), "")
        cells["cell"] = text.mask(numbers == best, "<b>" + text + "</b>")
        index, columns = [*by, "method", "source"], ["group", "metric"]
        table = cells.pivot(index=index, columns=columns, values="cell").fillna("")
        blocks = [rows[column].drop_duplicates() for column in by]
        order = product(*blocks, METHODS, ("ours", "paper"))
        table = table.loc[[key for key in order if key in table.index]]
        order = product(ALL_GROUPS, rows["metric"].unique())
        table = table[[key for key in order if key in table.columns]]
        printed = table[(table != "").any(axis=1)]
        caption = f"{CAPTIONS[str(measure)]} in percent, best in bold"
        tables.append(printed.style.set_caption(caption))
    return tables


def seed_gaps(
    rows: pd.DataFrame, method: str, than: str, by: Sequence[str] = ()
) -> pd.DataFrame:
    """Return one method's scores minus another's at each seed; NaN if one is missing."""
    rows = rows[rows["measure"] == "score"]
    values = [name for name in _VALUES if name in rows]
    keys = ["dataset", "test_set", "stands_for", *by]
    keys += ["measure", "group", "metric", "seed"]
    table = rows.set_index([name for name in keys if name in rows])
    first = table.loc[table["method"] == method, values]
    second = table.loc[table["method"] == than, values]
    return (first - second).reindex(first.index).reset_index()


def leads(
    rows: pd.DataFrame, methods: Sequence[str], than: str, by: Sequence[str]
) -> pd.DataFrame:
    """Join the `seed_gaps` of several methods, which the column method names."""
    gaps = [seed_gaps(rows, name, than, by).assign(method=name) for name in methods]
    return pd.concat(gaps, ignore_index=True)


def contrasts(
    rows: pd.DataFrame,
    method: str,
    than: str,
    groups: Collection[str] = ("overall",),
    by: Sequence[str] = (),  # further columns in which the two must agree
    place: str | None = None,  # begins a sentence, with columns in braces
) -> pd.DataFrame:
    """Compare two methods `over_seeds`; add the paper's difference and a sentence."""
    gaps = seed_gaps(rows, method, than, by).dropna(subset="value")
    gaps = gaps[gaps["group"].isin(groups)]
    keys = [name for name in gaps if name not in ("seed", *_VALUES)]
    table = over_seeds(gaps, keys)
    if "published" in gaps:
        theirs = gaps.groupby(keys, **_KEEP_ALL)["published"].first()
        table["published"] = theirs.to_numpy()
    if place is None:
        place = ", ".join(f"{{{name}}}" for name in ("dataset", *by))
        place += ", {group} {metric}, {test}"
    sentences = []
    for row in table.to_dict("records"):
        row["test"] = TEST_WORDS[row["test_set"]]
        theirs = row.get("published", np.nan)
        paper = f"; paper: {theirs:+.1f}" if pd.notna(theirs) else ""
        difference = say_difference(row, method, than)
        sentences.append(f"{place.format(**row)}: {difference}{paper}.")
    table = table.assign(sentence=sentences)
    return table.drop(columns=["stands_for", "measure"], errors="ignore")


def contrast_each(
    rows: pd.DataFrame,
    method: str | Sequence[str],
    than: str | Sequence[str],
    groups: Collection[str] = ("overall",),
    by: Sequence[str] = (),
) -> pd.DataFrame:
    """Join the `contrasts` of several methods with one, or of one with several, by name."""
    column, names = ("than", than) if isinstance(method, str) else ("method", method)
    frames = []
    for name in names:
        pair: dict[str, Any] = {"method": method, "than": than, column: name}
        gaps = contrasts(rows, **pair, groups=groups, by=by)
        frames.append(gaps.assign(**{column: name}))
    return pd.concat(frames, ignore_index=True)


def write_differences(gaps: pd.DataFrame) -> pd.Series:
    """Write `contrasts` as "+1.3 [+0.2, +2.4]", the significant ones in bold."""
    text = gaps["difference"].map("{:+.1f}".format)
    low, high = gaps["low"].map("{:+.1f}".format), gaps["high"].map("{:+.1f}".format)
    text = text.where(gaps["low"].isna(), text + " [" + low + ", " + high + "]")
    return text.where(gaps["clearly"] == "", "<b>" + text + "</b>")


def pivot_differences(
    gaps: pd.DataFrame, rows: list[str], columns: str | list[str]
) -> pd.DataFrame:
    """Lay `contrasts` out as text; the column test names the test set in words."""
    test = gaps["test_set"].map(TEST_WORDS)
    cells = gaps.assign(test=test, cell=write_differences(gaps))
    return cells.pivot_table("cell", rows, columns, "first", sort=False)


def in_short(gaps: pd.DataFrame) -> str:
    """Count the significant `contrasts`, and list their extremes on each data set."""
    above = (gaps["clearly"] == "above").sum()
    below = (gaps["clearly"] == "below").sum()
    unclear = gaps[gaps["clearly"] == ""]
    decided = unclear["seeds"] >= DECIDING
    alike = (decided & within(unclear["low"], unclear["high"])).sum()
    text = (
        f"Of {len(gaps)} differences, {above} are significantly above 0 and {below} "
        "significantly below 0, without correction for multiple testing."
    )
    if alike:
        whose = f"intervals of {alike} other differences are"
        if alike == 1:
            whose = "interval of one other difference is"
        text += f" The {whose} within ±{SMALL:g} points."
    if gaps["seeds"].max() < DECIDING:
        text += f" A test needs at least {DECIDING} seeds."
    has_clear = (gaps["clearly"] != "").groupby(gaps["dataset"]).any()
    text += " The highest and the lowest "
    text += f"{'significant ' if has_clear.any() else ''}difference on each data set"
    if has_clear.any() and not has_clear.all():
        text += " (of all differences if none is significant)"
    lines = [f"{text} are:\n"]
    for _, rows in gaps.groupby("dataset", sort=False):
        clear = rows[rows["clearly"] != ""]
        ends = (clear if len(clear) else rows)["difference"].agg(["idxmax", "idxmin"])
        lines += [f"- {sentence}" for sentence in rows.loc[ends.unique(), "sentence"]]
    return name_streams("\n".join(lines))
