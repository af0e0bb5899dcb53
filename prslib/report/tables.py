"""Turn scores into the tables and sentences of the report, with the paper's numbers."""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import product

import numpy as np
import pandas as pd
from pandas.io.formats.style import Styler

from prslib import METHODS, Run, RunConfig, datasets, published
from prslib.checks import expected
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
# F1 if labels are predicted otherwise than by a threshold of 0.5
F1_OTHERWISE = tuple(
    f"{f1} ({how})" for how in ("tuned threshold", "top 3") for f1 in MAIN_METRICS[:2]
)
_PLACE = ["trained_tasks", "task", "group", "metric"]  # locates a value of a run
_VALUES = ("value", "draws", "published")
NEXT = "\N{NO-BREAK SPACE}"  # keeps a deviation and its sign in one line
_KEEP_ALL = {"dropna": False, "sort": False}  # rho is NaN for most methods


def scores_of(
    runs: Sequence[Run], *fields: str, **columns: Callable[[RunConfig], object]
) -> pd.DataFrame:
    """Join the scores of runs, in [0, 1], and add fields of their configurations as columns."""
    frames = []
    for run in runs:
        settings = {name: run.config.resolved[name] for name in fields}
        settings |= {name: column(run.config) for name, column in columns.items()}
        frames.append(with_resamples(run).assign(**settings))
    return pd.concat(frames, ignore_index=True)


@cache
def labels_of(name: str) -> SequentialDataset:
    """Load a data set without its images, once."""
    return load_dataset(name, images=False)


def read_scores(run: Run) -> pd.DataFrame:
    """Return a run's scores on the test set that its configuration asks for."""
    return run.scores[run.scores["test_set"] == run.config.resolved["test_set"]]


def with_resamples(run: Run) -> pd.DataFrame:
    """Return a run's scores and, in the column `draws`, those on resampled images."""
    scores = read_scores(run)
    if run.resampled is None:
        return scores
    drawn = run.resampled.to_numpy(np.float32)  # sums in half precision are inaccurate
    draws = pd.Series(list(drawn), run.resampled.index)
    return scores.assign(draws=draws)


def run_columns(scores: pd.DataFrame) -> list[str]:
    """Return the columns of a scores frame that identify a run, seed among them."""
    return [column for column in scores if column not in (*_PLACE, "value", "draws")]


def final(scores: pd.DataFrame, metrics: Sequence[str] = MAIN_METRICS) -> pd.DataFrame:
    """Pick what Table 1 reports, in percent: scores after the last task, and forgetting."""
    # the forgetting of every class would take long
    scores = scores[scores["group"].isin(ALL_GROUPS) & scores["metric"].isin(metrics)]
    run = run_columns(scores)
    rows = with_forgetting(scores, {"forget": True})
    last = rows.groupby(run, **_KEEP_ALL)["trained_tasks"].transform("max")
    rows = rows[(rows["trained_tasks"] == last) & (rows["task"] == "seen")]
    return in_percent(rows, [*run, "measure", "group", "metric"])


def with_forgetting(scores: pd.DataFrame, measures: dict[str, bool]) -> pd.DataFrame:
    """Add measures of forgetting to the scores of runs; True for normalised ones."""
    frames = [scores.assign(measure="score")]
    # Multitask has no earlier tasks to forget
    online = scores[scores["schedule"] != ""]
    for name, normalised in measures.items():
        lost = forgetting(online, normalised)
        frames.append(lost.assign(measure=name, task="seen"))
    rows = pd.concat(frames, ignore_index=True)
    # forgetting is measured after the last task
    runs = rows.groupby(run_columns(scores), **_KEEP_ALL)["trained_tasks"]
    end = runs.transform("max")
    return rows.assign(trained_tasks=rows["trained_tasks"].fillna(end).astype(int))


def in_percent(rows: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """Return columns of scores, and value and draws in percent."""
    values = rows[[name for name in ("value", "draws") if name in rows]]
    return rows[columns].join(100 * values).reset_index(drop=True)


def average(rows: pd.DataFrame) -> pd.DataFrame:
    """Replace seed and value by mean, sd (of the sample) and seeds, in the paper's order."""
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
    """Add stands_for and the paper's number, published, on the same kind of test set.

    Cells must also agree in the columns `also`.
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
        sd = _as_text(rows["sd"], f" ±{NEXT}{{:.1f}}")
        texts = {
            "ours": _as_text(rows["mean"], "{:.1f}") + sd,
            "paper": _as_text(rows["published"], "{:.1f}"),
        }
        table = _lay_out(rows, texts, by).fillna("")
        best = best_cells(rows, by, lowest=measure == "forget")
        bold = table.mask(best, "<b>" + table + "</b>")
        printed = bold[(table != "").any(axis=1)]
        caption = f"{CAPTIONS[str(measure)]} in percent, best in bold"
        tables.append(printed.style.set_caption(caption))
    return tables


def best_cells(
    rows: pd.DataFrame,
    by: Sequence[str] = (),
    lowest: bool = False,
) -> pd.DataFrame:
    """Return which cells of `main_tables` are the best of their block, to the printed digit."""
    printed = {
        source: rows[column].map("{:.1f}".format).astype(float)
        for source, column in {"ours": "mean", "paper": "published"}.items()
    }
    numbers = _lay_out(rows, printed, by)
    methods = numbers.index.get_level_values("method")
    numbers[[METHODS[name].offline for name in methods]] = np.nan  # does not compete
    blocks = numbers.groupby([*by, "source"])
    return numbers.eq(blocks.transform("min" if lowest else "max"))


def _lay_out(
    rows: pd.DataFrame,
    values: dict[str, pd.Series],  # ours and the paper's
    by: Sequence[str],
) -> pd.DataFrame:
    """Set values in the rows and columns of Table 1."""
    cells = [rows.assign(source=name, cell=column) for name, column in values.items()]
    index = [*by, "method", "source"]
    place = ["group", "metric"]
    table = pd.concat(cells).pivot(index=index, columns=place, values="cell")
    blocks = [rows[column].drop_duplicates() for column in by]
    order = product(*blocks, METHODS, values)
    table = table.reindex([key for key in order if key in table.index])
    metrics = rows["metric"].unique()
    columns = [key for key in product(ALL_GROUPS, metrics) if key in table.columns]
    return table.reindex(columns=columns)


def _as_text(numbers: pd.Series, text: str) -> pd.Series:
    """Return numbers as text, "" for NaN."""
    return numbers.map(text.format).where(numbers.notna(), "")


def seed_gaps(
    rows: pd.DataFrame, method: str, than: str, by: Sequence[str] = ()
) -> pd.DataFrame:
    """Return one method's scores minus another's at each seed; NaN if one is missing."""
    rows = rows[rows["measure"] == "score"]
    check_tests(rows, method, than)
    values = [name for name in _VALUES if name in rows]
    keys = ["dataset", "test_set", "stands_for", *by]
    keys += ["measure", "group", "metric", "seed"]
    table = rows.set_index([name for name in keys if name in rows])
    first = table.loc[table["method"] == method, values]
    second = table.loc[table["method"] == than, values]
    return (first - second).reindex(first.index).reset_index()


def check_tests(rows: pd.DataFrame, *methods: str) -> None:
    """Refuse to compare methods that are scored on different test sets of a data set."""
    for dataset, of_set in rows.groupby("dataset"):
        tests = of_set.groupby("method")["test_set"].unique()
        present = [name for name in methods if name in tests.index]
        on = {name: " and ".join(sorted(tests[name])) for name in present}
        if len(set(on.values())) > 1:
            what = f"{' and '.join(on)} on the same test sets of {dataset}"
            raise ValueError(expected(what, on))


def leads(
    rows: pd.DataFrame, methods: Sequence[str], than: str, by: Sequence[str]
) -> pd.DataFrame:
    """Join the `seed_gaps` of several methods, by name."""
    gaps = [seed_gaps(rows, name, than, by).assign(method=name) for name in methods]
    return pd.concat(gaps, ignore_index=True)


def contrasts(
    rows: pd.DataFrame,
    method: str,
    than: str,
    cells: Sequence[tuple[str, str]],  # (group, metric)
    by: Sequence[str] = (),  # further columns in which the two must agree
    place: str | None = None,  # begins a sentence, with columns in braces
) -> pd.DataFrame:
    """Add to `over_seeds` the paper's difference of two methods, published, and a sentence."""
    gaps = seed_gaps(rows, method, than, by).dropna(subset="value")
    gaps = gaps[gaps.set_index(["group", "metric"]).index.isin(list(cells))]
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
    cells: Sequence[tuple[str, str]],
    by: Sequence[str] = (),
) -> pd.DataFrame:
    """Join the `contrasts` of several methods with one, or of one with several, by name."""
    if isinstance(method, str):
        frames = [
            contrasts(rows, method, name, cells, by).assign(than=name) for name in than
        ]
    else:
        frames = [
            contrasts(rows, name, str(than), cells, by).assign(method=name)
            for name in method
        ]
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
    """Count significant `contrasts`, and list the extremes of each data set's, or of all."""
    above = (gaps["clearly"] == "above").sum()
    below = (gaps["clearly"] == "below").sum()
    unclear = gaps[gaps["clearly"] == ""]
    decided = unclear["seeds"] >= DECIDING
    alike = (decided & within(unclear["low"], unclear["high"])).sum()
    text = (
        f"Of {len(gaps)} differences, {above} are significantly positive and {below} "
        "significantly negative (not corrected for multiple testing)."
    )
    if alike:
        whose = (
            "interval of one other difference is"
            if alike == 1
            else f"intervals of {alike} other differences are"
        )
        text += f" The {whose} within ±{SMALL:g} points."
    if gaps["seeds"].max() < DECIDING:
        text += f" A test needs at least {DECIDING} seeds."
    has_clear = (gaps["clearly"] != "").groupby(gaps["dataset"]).any()
    text += " For each data set, the highest and the lowest "
    text += f"{'significant ' if has_clear.any() else ''}difference"
    if has_clear.any() and not has_clear.all():
        text += " or, if none is significant, the highest and the lowest difference"
    lines = [f"{text}:\n"]
    for _, rows in gaps.groupby("dataset", sort=False):
        clear = rows[rows["clearly"] != ""]
        ends = (clear if len(clear) else rows)["difference"].agg(["idxmax", "idxmin"])
        lines += [f"- {sentence}" for sentence in rows.loc[ends.unique(), "sentence"]]
    return name_streams("\n".join(lines))
