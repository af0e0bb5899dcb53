"""From scores to the tables and sentences of the report, ours beside the paper's."""

from collections.abc import Sequence

import pandas as pd

from prslib import published
from prslib.config import METHODS
from prslib.datasets import load_dataset
from prslib.experiment import Run
from prslib.forgetting import forgetting

GROUPS = ("majority", "moderate", "minority", "overall")
METRICS = ("C-F1", "O-F1", "mAP")
RUN = ["dataset", "method", "rho", "memory_size", "schedule"]
_KEEP_ALL = {"dropna": False, "sort": False}  # rho is NaN for most methods


def scores_of(runs: Sequence[Run]) -> pd.DataFrame:
    """Join the scores of several runs into one tidy frame, values in [0, 1]."""
    return pd.concat([run.scores for run in runs], ignore_index=True)


def final(scores: pd.DataFrame) -> pd.DataFrame:
    """Pick what Table 1 reports: scores after the last task on all test sets, and forgetting.

    Parameters
    ----------
    scores : DataFrame
        Tidy scores of one or more runs, values in [0, 1].

    Returns
    -------
    DataFrame
        The run columns, seed, measure ("score" or "forget"), group, metric, value in percent.
    """
    last = scores.groupby([*RUN, "seed"], **_KEEP_ALL)["trained_tasks"].transform("max")
    scored = scores[(scores["trained_tasks"] == last) & (scores["task"] == "seen")]
    both = [scored.assign(measure="score")]
    online = scores[scores["schedule"] != ""]  # Multitask has no earlier tasks to forget
    if len(online):
        both.append(forgetting(online).assign(measure="forget"))
    both = pd.concat(both, ignore_index=True)
    return _percent(both, [*RUN, "seed", "measure", "group", "metric", "value"])


def progression(scores: pd.DataFrame) -> pd.DataFrame:
    """Pick the overall scores after every task (Appendix, "Task Progression Results").

    Parameters
    ----------
    scores : DataFrame
        Tidy scores of one or more runs, values in [0, 1].

    Returns
    -------
    DataFrame
        The run columns, seed, trained_tasks, measure, group, metric, value in percent.
    """
    rows = scores[(scores["task"] == "seen") & (scores["group"] == "overall")]
    columns = [*RUN, "seed", "trained_tasks", "measure", "group", "metric", "value"]
    return _percent(rows.assign(measure="score"), columns)


def _percent(rows: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    rows = rows[rows["group"].isin(GROUPS) & rows["metric"].isin(METRICS)]
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
    orders |= {"group": GROUPS, "metric": METRICS}
    ranks = {name: {v: i for i, v in enumerate(values)} for name, values in orders.items()}
    return table.sort_values(
        list(ranks),
        key=lambda column: column.map(ranks[column.name]),
        kind="stable",
        ignore_index=True,
    )


def beside(rows: pd.DataFrame, *tables: str) -> pd.DataFrame:
    """Set the paper's number beside each of ours; a stand-in beside what it stands for.

    Parameters
    ----------
    rows : DataFrame
        As `final`, `progression` or `average` give them.
    *tables : str
        Names of `prslib.published.TABLES`, of the paper's standard setting.

    Returns
    -------
    DataFrame
        The rows with stands_for and published (percent, NaN where the paper has no number).
    """
    names = {name: load_dataset(name, images=False).stands_for for name in set(rows["dataset"])}
    return published.beside(rows.assign(stands_for=rows["dataset"].map(names)), *tables)


def main_table(averages: pd.DataFrame, dataset: str) -> pd.DataFrame:
    """Lay out one data set's main table as the paper does, ours and the paper's rows (Table 1).

    Parameters
    ----------
    averages : DataFrame
        As ``beside(average(final(scores)), "main")`` gives it.
    dataset : str
        Which data set.

    Returns
    -------
    DataFrame
        Text cells; a row for each method's score and forgetting, ours and the paper's; a column
        for each group and metric, in percent.
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
    table = cells.pivot(
        index=["method", "measure", "source"], columns=["group", "metric"], values="cell"
    )
    order = [
        (method, measure, source)
        for method in METHODS
        for measure in ("score", "forget")
        for source in ("ours", "paper")
    ]
    table = table.reindex([key for key in order if key in table.index])
    table = table[(table != "").any(axis=1)]
    return table.reindex(columns=[(group, metric) for group in GROUPS for metric in METRICS])


def contrasts(
    rows: pd.DataFrame, method: str, than: str, cells: Sequence[tuple[str, str]]
) -> pd.DataFrame:
    """Subtract one method's scores from another's, seed by seed (Table 1).

    Parameters
    ----------
    rows : DataFrame
        As ``beside(final(scores), "main")`` gives them.
    method, than : str
        The difference is ``method`` minus ``than``.
    cells : sequence of (group, metric)
        Which scores to compare.

    Returns
    -------
    DataFrame
        dataset, group, metric, difference and sd over seeds in points, seeds, published (the
        paper's difference in points), and a sentence that says it.
    """
    rows = rows[rows["measure"] == "score"]
    keys = ["dataset", "stands_for", "group", "metric", "seed"]
    first, second = (
        rows[rows["method"] == name].set_index(keys)[["value", "published"]]
        for name in (method, than)
    )
    gaps = (first - second).reindex(first.index).groupby(keys[:4], **_KEEP_ALL)
    table = gaps["value"].agg(difference="mean", sd="std", seeds="count")
    table["published"] = gaps["published"].first()
    table = table.reset_index()
    table = table[[pair in cells for pair in zip(table["group"], table["metric"], strict=True)]]
    table["sentence"] = [_sentence(row, method, than) for row in table.itertuples()]
    return table.drop(columns="stands_for").reset_index(drop=True)


def _sentence(row, method: str, than: str) -> str:
    spread = "one seed" if row.seeds == 1 else f"s.d. {row.sd:.1f} over {row.seeds} seeds"
    clear = row.seeds > 1 and abs(row.difference) > row.sd
    word = ("above" if row.difference > 0 else "below") if clear else "not clearly apart from"
    text = (
        f"{row.dataset}, {row.group} {row.metric}: {method} is {word} {than}, "
        f"by {row.difference:+.1f} points ({spread})"
    )
    if pd.isna(row.published):
        return text + "."
    return text + f"; in the paper, on {row.stands_for}, by {row.published:+.1f}."


def best_rho(rows: pd.DataFrame) -> pd.DataFrame:
    """Find the best power of allocation and what the ends cost (Figure "power of allocation").

    Parameters
    ----------
    rows : DataFrame
        Columns dataset, metric, rho, seed, value in percent.

    Returns
    -------
    DataFrame
        dataset, metric, best_rho, best, lowest_rho and highest_rho of the sweep, at_lowest and
        at_highest (mean over seeds, percent), and a sentence that says it.
    """
    found = []
    for (dataset, metric), part in rows.groupby(["dataset", "metric"], sort=False):
        means = part.groupby("rho")["value"].mean()
        low, high, best = means.index.min(), means.index.max(), means.idxmax()
        inside = "inside" if -0.2 <= best <= 0.2 else "outside"
        sentence = (
            f"{dataset}, {metric}: best at rho = {best:g} with {means[best]:.1f} %, {inside} the "
            f"paper's range [-0.2, 0.2]; {means[best] - means[low]:.1f} points less at rho = "
            f"{low:g} and {means[best] - means[high]:.1f} less at rho = {high:g}."
        )
        found.append(
            {
                "dataset": dataset,
                "metric": metric,
                "best_rho": best,
                "best": means[best],
                "lowest_rho": low,
                "at_lowest": means[low],
                "highest_rho": high,
                "at_highest": means[high],
                "sentence": sentence,
            }
        )
    return pd.DataFrame(found)
