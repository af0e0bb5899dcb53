"""From scores to the tables and sentences of the report, ours beside the paper's."""

from collections.abc import Sequence
from itertools import product

import pandas as pd

from prslib import published
from prslib.datasets import load_dataset
from prslib.metrics import forgetting
from prslib.report.statistics import compared, over_seeds
from prslib.training.config import Run
from prslib.training.methods import METHODS

GROUPS = ("majority", "moderate", "minority", "overall")
METRICS = ("C-F1", "O-F1", "mAP")
PRECISION_RECALL = ("C-P", "C-R", "O-P", "O-R")
_CELL = ["trained_tasks", "task", "group", "metric", "value"]  # all other columns tell runs apart
_KEEP_ALL = {"dropna": False, "sort": False}  # rho is NaN for most methods


def scores_of(runs: Sequence[Run], *fields: str) -> pd.DataFrame:
    """Join the scores of several runs into one tidy frame, values in [0, 1] (Table 1).

    Parameters
    ----------
    runs : sequence of Run
        Finished runs.
    *fields : str
        Fields of their configurations that scores do not tell, such as "test_set", to be added as
        columns.

    Returns
    -------
    DataFrame
        One row a score, with the columns of `prslib.training.config.Run.scores` and the fields.
    """
    frames = [
        run.scores.assign(**{name: run.config.resolved[name] for name in fields}) for run in runs
    ]
    return pd.concat(frames, ignore_index=True)


def run_columns(scores: pd.DataFrame) -> list[str]:
    """Return the columns of a scores frame that tell runs apart, seed among them (Table 1)."""
    return [column for column in scores if column not in _CELL]


def final(scores: pd.DataFrame, metrics: Sequence[str] = METRICS) -> pd.DataFrame:
    """Pick what Table 1 reports: scores after the last task on all test sets, and forgetting.

    Parameters
    ----------
    scores : DataFrame
        Tidy scores of one or more runs, values in [0, 1].
    metrics : sequence of str
        Which metrics, such as `PRECISION_RECALL`.

    Returns
    -------
    DataFrame
        The columns that tell runs apart, measure ("score" or "forget"), group, metric, value in
        percent.
    """
    run = run_columns(scores)
    last = scores.groupby(run, **_KEEP_ALL)["trained_tasks"].transform("max")
    scored = scores[(scores["trained_tasks"] == last) & (scores["task"] == "seen")]
    both = [scored.assign(measure="score")]
    online = scores[scores["schedule"] != ""]  # Multitask has no earlier tasks to forget
    if len(online):
        both.append(forgetting(online).assign(measure="forget"))
    both = pd.concat(both, ignore_index=True)
    return _percent(both, [*run, "measure", "group", "metric", "value"], metrics)


def progression(scores: pd.DataFrame) -> pd.DataFrame:
    """Pick the overall scores after every task (Appendix, "Task Progression Results").

    Parameters
    ----------
    scores : DataFrame
        Tidy scores of one or more runs, values in [0, 1].

    Returns
    -------
    DataFrame
        The columns that tell runs apart, trained_tasks, measure, group, metric, value in percent.
    """
    rows = scores[(scores["task"] == "seen") & (scores["group"] == "overall")]
    columns = [*run_columns(scores), "trained_tasks", "measure", "group", "metric", "value"]
    return _percent(rows.assign(measure="score"), columns, METRICS)


def _percent(rows: pd.DataFrame, columns: list[str], metrics: Sequence[str]) -> pd.DataFrame:
    rows = rows[rows["group"].isin(GROUPS) & rows["metric"].isin(metrics)]
    return rows.assign(value=100 * rows["value"])[columns].reset_index(drop=True)


def average(rows: pd.DataFrame) -> pd.DataFrame:
    """Average over seeds (Table 1).

    Parameters
    ----------
    rows : DataFrame
        As `final` or `progression` gives them.

    Returns
    -------
    DataFrame
        The same columns without seed and value, and mean, sd (sample standard deviation, NaN for
        one seed) and seeds; methods, groups and metrics in the paper's order.
    """
    keys = [column for column in rows if column not in ("seed", "value")]
    cells = rows.groupby(keys, **_KEEP_ALL)["value"]
    table = cells.agg(mean="mean", sd="std", seeds="count").reset_index()
    orders = {"dataset": rows["dataset"].unique(), "method": METHODS}
    orders |= {"group": GROUPS, "metric": (*METRICS, *PRECISION_RECALL)}
    ranks = {name: {v: i for i, v in enumerate(values)} for name, values in orders.items()}
    return table.sort_values(
        list(ranks),
        key=lambda column: column.map(ranks[column.name]),
        kind="stable",
        ignore_index=True,
    )


def beside(rows: pd.DataFrame, *tables: str, also: Sequence[str] = ()) -> pd.DataFrame:
    """Set the paper's number beside each of ours; a stand-in beside what it stands for.

    Parameters
    ----------
    rows : DataFrame
        As `final`, `progression` or `average` give them.
    *tables : str
        Names of `prslib.published.TABLES`, of the paper's standard setting.
    also : sequence of str
        Further columns of the rows that the paper's cells have too and must agree in, such as
        "test_set".

    Returns
    -------
    DataFrame
        The rows with stands_for and published (percent, NaN where the paper has no number).
    """
    names = {name: load_dataset(name, images=False).stands_for for name in set(rows["dataset"])}
    rows = rows.assign(stands_for=rows["dataset"].map(names))
    return published.beside(rows, *tables, also=also)


def main_table(
    averages: pd.DataFrame,
    dataset: str,
    metrics: Sequence[str] = METRICS,
    by: Sequence[str] = (),
) -> pd.DataFrame:
    """Lay out one data set's main table as the paper does, ours and the paper's rows (Table 1).

    Parameters
    ----------
    averages : DataFrame
        As ``beside(average(final(scores)), "main")`` gives it.
    dataset : str
        Which data set.
    metrics : sequence of str
        Which metrics.
    by : sequence of str
        Columns whose values head blocks of rows, such as "schedule", in order of appearance.

    Returns
    -------
    DataFrame
        Text cells; a row for each method's score and forgetting, ours and the paper's; a column
        for each group and metric, in percent; groups of which the rows say nothing are left out.
    """
    rows = averages[averages["dataset"] == dataset]
    sd = rows["sd"].map("{:.1f}".format).where(rows["sd"].notna(), "–")  # noqa: RUF001
    ours = rows["mean"].map("{:.1f}".format) + " ± " + sd
    paper = rows["published"].map("{:.1f}".format)
    cells = pd.concat(
        [
            rows.assign(source="ours", cell=ours.where(rows["mean"].notna(), "")),
            rows.assign(source="paper", cell=paper.where(rows["published"].notna(), "")),
        ]
    )
    index = [*by, "method", "measure", "source"]
    table = cells.pivot(index=index, columns=["group", "metric"], values="cell").fillna("")
    blocks = [rows[column].drop_duplicates() for column in by]
    order = list(product(*blocks, METHODS, ("score", "forget"), ("ours", "paper")))
    table = table.reindex([key for key in order if key in table.index])
    table = table[(table != "").any(axis=1)]
    return table.reindex(columns=[key for key in product(GROUPS, metrics) if key in table.columns])


def seed_gaps(rows: pd.DataFrame, method: str, than: str, by: Sequence[str] = ()) -> pd.DataFrame:
    """Subtract one method's scores from another's, seed by seed (Table 1).

    Parameters
    ----------
    rows, method, than, by
        As for `contrasts`.

    Returns
    -------
    DataFrame
        dataset, stands_for, the columns of ``by``, measure ("score"), group, metric, seed, and
        value and published in points: a row for each seed of ``method``, NaN where ``than`` has
        not got it.
    """
    rows = rows[rows["measure"] == "score"]
    keys = ["dataset", "stands_for", *by, "measure", "group", "metric", "seed"]
    first, second = (
        rows[rows["method"] == name].set_index(keys)[["value", "published"]]
        for name in (method, than)
    )
    return (first - second).reindex(first.index).reset_index()


def contrasts(
    rows: pd.DataFrame,
    method: str,
    than: str,
    cells: Sequence[tuple[str, str]],
    by: Sequence[str] = (),
) -> pd.DataFrame:
    """Average what `seed_gaps` gives over seeds, and say it (Table 1).

    Parameters
    ----------
    rows : DataFrame
        As ``beside(final(scores), "main")`` gives them.
    method, than : str
        The difference is ``method`` minus ``than``.
    cells : sequence of (group, metric)
        Which scores to compare.
    by : sequence of str
        Further columns in which the two must agree, such as "schedule".

    Returns
    -------
    DataFrame
        dataset, the columns of ``by``, group, metric; difference, sd, low, high, seeds, coverage
        and clearly, in points, as `prslib.report.statistics.over_seeds` gives them; published (the
        paper's difference in points), and a sentence that says it.
    """
    keys = ["dataset", "stands_for", *by, "group", "metric"]
    gaps = seed_gaps(rows, method, than, by).dropna(subset="value")
    gaps = gaps[[pair in cells for pair in zip(gaps["group"], gaps["metric"], strict=True)]]
    table = over_seeds(gaps, keys)
    table["published"] = gaps.groupby(keys, **_KEEP_ALL)["published"].first().to_numpy()
    table["sentence"] = [
        _sentence(row, compared(row, method, than), ["dataset", *by]) for _, row in table.iterrows()
    ]
    return table.drop(columns="stands_for")


def _sentence(row: pd.Series, said: str, where: Sequence[str]) -> str:
    text = f"{', '.join(str(row[name]) for name in where)}, {row['group']} {row['metric']}: {said}"
    if pd.isna(row["published"]):
        return text + "."
    return text + f"; in the paper, on {row['stands_for']}, by {row['published']:+.1f}."
