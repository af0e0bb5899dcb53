"""How much a run has forgotten of the tasks it learnt first."""

import numpy as np
import pandas as pd

_KEEP_ALL = {"dropna": False, "observed": True, "sort": False}  # rho is NaN for most methods


def forgetting(scores: pd.DataFrame, normalised: bool = True) -> pd.DataFrame:
    """Measure what each run has forgotten by its last scores, "Normalized Forgetting Measure".

    For each earlier task: (best before the end - at the end) / |best before the end|, averaged
    over the earlier tasks.

    Parameters
    ----------
    scores : DataFrame
        Columns schedule (task ids, "0,3,1,2"), trained_tasks, task, group, metric, value in
        [0, 1]; every other column (dataset, method, rho, memory_size, seed, ...) tells runs apart.
        Rows whose task is "seen" or "all" do not enter.
    normalised : bool
        Whether to divide by the best value; without, it is the measure of Chaudhry et al. that
        the paper cites beside Figure 1, in the unit of the values.

    Returns
    -------
    DataFrame
        The columns that tell runs apart, group, metric, value as a fraction: one row for every
        run, group and metric. NaN where no earlier task has a value, and for a run that was
        evaluated only once, such as Multitask.

    Raises
    ------
    ValueError
        If a column is missing, only "seen" rows are there, a row is there twice, a task is not in
        its schedule, or a task lacks a value at the end or before it.

    Notes
    -----
    The paper divides by the best value. Where that is 0 a task counts as 1 if the end is 0 too,
    as the tables' "forget 100.0" beside a score of 0.0 shows, else as minus the end value. Tasks
    where the group has no class (NaN) are skipped. "Before the end" starts when the task has been
    trained.

    Examples
    --------
    >>> scores = pd.DataFrame({"schedule": "1,0", "trained_tasks": [1, 2], "task": "1",
    ...     "group": "overall", "metric": "mAP", "value": [0.8, 0.6]})
    >>> forgetting(scores)["value"].round(3).tolist()
    [0.25]
    """
    cell = ["schedule", "trained_tasks", "task", "group", "metric", "value"]
    if missing := [column for column in cell if column not in scores]:
        raise ValueError(f"expected the columns {cell}, {missing} missing; pass the scores frame")
    run = [column for column in scores if column not in cell[1:]]
    trained = scores.groupby(run, **_KEEP_ALL)["trained_tasks"]
    last, first = trained.transform("max"), trained.transform("min")
    rows = scores.assign(last=last, single=first == last)[~scores["task"].isin(["seen", "all"])]
    _check_rows(rows, scores)
    position = _positions(rows)
    earlier = position < rows["last"]
    before = earlier & (rows["trained_tasks"] >= position) & (rows["trained_tasks"] < rows["last"])
    rows = rows.assign(
        earlier_task=rows["task"].where(earlier),
        best=rows["value"].where(before),
        end=rows["value"].where(earlier & (rows["trained_tasks"] == rows["last"])),
    )
    _check_tasks(rows, run)
    by_task = rows.groupby([*run, "group", "metric", "task"], **_KEEP_ALL)
    tasks = by_task[["best", "end", "single"]].max().reset_index()
    _check_gaps(tasks, [*run, "group", "metric", "task"])
    best, end = tasks["best"].to_numpy(), tasks["end"].to_numpy()
    tasks["value"] = _forgotten(best, end) if normalised else best - end
    return tasks.groupby([*run, "group", "metric"], **_KEEP_ALL)["value"].mean().reset_index()


def _check_tasks(rows: pd.DataFrame, run: list[str]) -> None:
    found = rows.groupby(run, **_KEEP_ALL)["earlier_task"].transform("nunique")
    short = (found < rows["last"] - 1) & ~rows["single"]
    if short.any():
        raise ValueError(
            "expected rows for every task of the schedule trained before the last, some are "
            f"missing for {rows.loc[short, run].iloc[0].to_dict()}; evaluate every task seen so far"
        )


def _check_gaps(tasks: pd.DataFrame, keys: list[str]) -> None:
    gap = (tasks["best"].isna() != tasks["end"].isna()) & ~tasks["single"].astype(bool)
    if gap.any():
        raise ValueError(
            "expected a value of every earlier task at the end and before it, one is missing for "
            f"{tasks.loc[gap, keys].iloc[0].to_dict()}; evaluate all tasks seen so far each time"
        )


def _forgotten(best: np.ndarray, end: np.ndarray) -> np.ndarray:
    ratio = (best - end) / np.abs(np.where(best == 0, 1.0, best))  # best 0 leaves minus the end
    return np.where((best == 0) & (end == 0), 1.0, ratio)


def _positions(rows: pd.DataFrame) -> pd.Series:
    """Give the number of tasks after which each row's task had been trained."""
    pairs = set(zip(rows["schedule"], rows["task"], strict=True))
    position = {}
    for schedule, task in pairs:
        order = str(schedule).split(",")
        if task not in order:
            raise ValueError(
                f"expected a task of the schedule {schedule!r}, got {task!r}; "
                "write task ids as text, as the schedule does"
            )
        position[schedule, task] = order.index(task) + 1
    values = [position[pair] for pair in zip(rows["schedule"], rows["task"], strict=True)]
    return pd.Series(values, index=rows.index)


def _check_rows(rows: pd.DataFrame, scores: pd.DataFrame) -> None:
    if rows.empty:
        raise ValueError(
            f"expected rows for single tasks, got {len(scores)} rows of 'seen' alone; "
            "evaluate each task's test set too"
        )
    twice = rows.duplicated([column for column in rows if column != "value"])
    if twice.any():
        raise ValueError(
            f"expected one row a run, evaluation, task, group and metric, got {twice.sum()} more; "
            "add a column that tells the runs apart, such as seed"
        )
