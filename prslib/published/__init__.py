"""Load the tables of the paper, and add their numbers to tables of scores.

Every number of every table is one row, in the paper's units (percent) and with the
paper's digits. The columns:

- table: a name of `TABLES`;
- dataset, method, architecture, memory_size, schedule, epochs, test_set: the setting,
  as the caption and the text give it, also for methods that do not use it (Multitask has
  neither memory nor schedule; Finetune and EWC have no memory);
- trained_tasks: number of tasks after which the value was measured;
- group: overall, majority, moderate or minority;
- measure: "score", or "forget" for the normalised forgetting of that score;
- metric, value;
- note: caveats, and other values if the paper prints the same cell differently.

The tables of `TABLES`:

- main: COCOseq and NUS-WIDEseq, with forgetting;
- memory_and_schedules: COCOseq overall, three schedules and three memory sizes;
- mnist: Imbal-MNISTseq after each task;
- svhn: Imbal-SVHNseq after each task;
- architectures: Multitask of three architectures, 1 and 10 epochs, both test sets;
- imbalanced_test: COCOseq, imbalanced test set;
- coco_precision_recall: COCOseq, precision and recall;
- nus_precision_recall: NUS-WIDEseq, precision and recall;
- attention_consistency: COCOseq, Attention Consistency;
- rnn_attention: COCOseq, RNN-Attention;
- nus_memory: NUS-WIDEseq, three memory sizes;
- nus_schedules: NUS-WIDEseq, four schedules;
- coco_memory: COCOseq, three memory sizes;
- coco_schedules: COCOseq, four schedules;
- coco_progression: COCOseq overall after each task;
- nus_progression: NUS-WIDEseq overall after each task.

Notes
-----
The "overall performance" on the single-label data sets is entered as the metric
"accuracy". Their memory sizes are not printed; they come from the authors' released
configuration.
"""

from collections import defaultdict
from collections.abc import Collection
from pathlib import Path

from prslib.checks import naming_extra, one_of

with naming_extra("data"):
    import pandas as pd

_NUMBERS = {"memory_size": "Int64", "epochs": "int64", "trained_tasks": "int64"}
_CELLS = pd.read_csv(
    Path(__file__).with_name("tables.csv"),
    dtype=defaultdict(lambda: "str", _NUMBERS, value="float64"),
    keep_default_na=False,
    na_values={"memory_size": ""},
)
TABLES = tuple(_CELLS["table"].unique())


def load(table: str | None = None) -> pd.DataFrame:
    """Load the cells of one or all tables, as printed in the paper and its appendix.

    Parameters
    ----------
    table : str, optional
        A name of `TABLES`; by default all tables.

    Returns
    -------
    DataFrame
        One row per printed number, in percent; the module describes the columns. A
        schedule that the paper does not give is empty; a memory size that it does not
        give is missing.

    Raises
    ------
    ValueError
        If the table is unknown.

    Examples
    --------
    >>> cells = load("main").query("dataset == 'COCOseq' and method == 'PRS'")
    >>> cells.query("group == 'overall' and metric == 'mAP'")["value"].tolist()
    [55.3, 10.2]
    """
    names = TABLES if table is None else [one_of("table", table, TABLES)]
    return _CELLS[_CELLS["table"].isin(names)].reset_index(drop=True)


def merge_published(
    rows: pd.DataFrame, *tables: str, also: Collection[str] = ()
) -> pd.DataFrame:
    """Add the paper's numbers to a table of scores.

    Parameters
    ----------
    rows : DataFrame
        Scores with the columns stands_for (the paper's data set), method, measure, group
        and metric, and optionally test_set and trained_tasks. Other columns are kept.
    *tables : str
        Names of `TABLES` to search.
    also : collection of str
        Further columns in which scores and printed numbers must agree, for tables of
        several settings.

    Returns
    -------
    DataFrame
        The same rows with a column ``published`` in percent, NaN if the paper has no
        such number.

    Raises
    ------
    ValueError
        If a table is unknown, or the paper prints several values for a cell.

    Examples
    --------
    >>> ours = pd.DataFrame({"stands_for": ["COCOseq"], "method": ["CRS"], "measure": ["score"],
    ...     "group": ["overall"], "metric": ["mAP"]})
    >>> merge_published(ours, "main")["published"].tolist()
    [50.2]
    """
    on = ["stands_for", "method", "measure", "group", "metric", *also]
    on += [name for name in ("test_set", "trained_tasks") if name in rows]
    cells = pd.concat([load(table) for table in tables])
    cells = cells.rename(columns={"dataset": "stands_for", "value": "published"})
    cells = cells[[*on, "published"]].drop_duplicates()
    return rows.merge(cells, how="left", on=on, validate="many_to_one")
