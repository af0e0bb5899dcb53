"""Every number that the paper prints, a row each, with ours beside it."""

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from prslib.report.observations import SETTING, published_observations

# fields that the paper's tables vary
VARIED = {"epochs", "frozen_stages", "memory_size", "model", "rho", "schedule", "test_set"}
OF_A_MODEL = {"learning_rate", "model"}  # a network of its own may have a step size of its own
KINDS = ("C-F1", "O-F1", "mAP", "precision and recall", "accuracy", "forgetting")
MATCH = [*SETTING, "frozen", "power", "trained_tasks", "group", "measure", "metric", "task"]


def cells(observations: pd.DataFrame, profile: str) -> pd.DataFrame:
    """Set ours beside every published cell (all tables).

    Parameters
    ----------
    observations : DataFrame
        As `prslib.report.observations.observe` gives them.
    profile : str
        Under which the runs were asked for.

    Returns
    -------
    DataFrame
        One row for each cell of `prslib.published`, in order: the setting, theirs, ours (mean over
        seeds), sd (sample standard deviation), seeds, difference (ours less theirs), all in
        percent; kind (one of `KINDS`), status ("run" or "not run"), dataset, stand_in, profile,
        note.

    Notes
    -----
    Ours is of the same method, architecture, schedule, epochs, test set, group and metric, and of
    the same memory relative to the standard. Where several data sets stand for one of the paper's,
    its own counts, else the first. Where the paper's first residual block is frozen, ours is too.
    """
    ours = observations[observations["varied"].map(_alike).astype(bool)]
    ours = ours[ours["dataset"] == ours["stands_for"].map(first_dataset(ours))]
    keys = {"dropna": False, "sort": False}
    ours = ours.drop_duplicates([*MATCH, "seed"])
    found = ours.groupby([*MATCH, "dataset", "stand_in"], **keys)["value"]
    found = found.agg(ours="mean", sd="std", seeds="count").reset_index()
    theirs = published_observations().rename(columns={"value": "theirs"})
    both = theirs.merge(found, how="left", on=MATCH)
    both = both.assign(
        seeds=both["seeds"].fillna(0).astype(int),
        difference=both["ours"] - both["theirs"],
        status=np.where(both["ours"].notna(), "run", "not run"),
        profile=profile,
        kind=[_kind(*pair) for pair in zip(both["measure"], both["metric"], strict=True)],
    )
    setting = ["method", "architecture", "memory_size", "schedule", "epochs", "test_set"]
    cell = ["trained_tasks", "group", "measure", "metric", "kind"]
    values = ["theirs", "ours", "sd", "seeds", "difference", "status"]
    origin = ["dataset", "stand_in", "profile", "note"]
    return both[["table", "stands_for", *setting, *cell, *values, *origin]]


def _alike(varied: str) -> bool:
    names = set(filter(None, varied.split(",")))
    return names - (OF_A_MODEL if names >= OF_A_MODEL else set()) <= VARIED


def _kind(measure: str, metric: str) -> str:
    kind = dict.fromkeys(("C-P", "C-R", "O-P", "O-R"), "precision and recall")
    return "forgetting" if measure == "forget" else kind.get(metric, metric)


def first_dataset(rows: pd.DataFrame) -> dict[str, str]:
    """Return which data set counts for each of the paper's: its own, else the first."""
    rows = rows.drop_duplicates("dataset").sort_values("stand_in", kind="stable")
    return rows.drop_duplicates("stands_for").set_index("stands_for")["dataset"].to_dict()


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Sum up every table: how much was run, how far off, and in which order (all tables).

    Parameters
    ----------
    rows : DataFrame
        As `cells` gives them.

    Returns
    -------
    DataFrame
        table, cells, run, stand_ins (of those run), mean_difference (mean absolute difference of
        scores, in points), rank_correlation (Spearman's, of the methods of one column, ours against
        theirs, mean over columns with three methods or more), columns (how many).
    """
    return pd.DataFrame([_sum_up(name, part) for name, part in rows.groupby("table", sort=False)])


def _sum_up(table: str, rows: pd.DataFrame) -> dict:
    run = rows[rows["status"] == "run"]
    scores = run[run["measure"] == "score"]
    found = rank_correlations(scores)
    return {
        "table": table,
        "cells": len(rows),
        "run": len(run),
        "stand_ins": int(run["stand_in"].fillna(False).astype(bool).sum()),
        "mean_difference": scores["difference"].abs().mean(),
        "rank_correlation": np.mean(found) if found else np.nan,
        "columns": len(found),
    }


def rank_correlations(rows: pd.DataFrame) -> list[float]:
    """Return Spearman's correlation of the methods' order, column by column (all tables).

    Parameters
    ----------
    rows : DataFrame
        As `cells` gives them, only cells that were run.

    Returns
    -------
    list of float
        One for each column in which at least three methods were run and neither side is constant.
    """
    by = ["table", "stands_for", "architecture", "epochs", "test_set", "trained_tasks"]
    # memory and schedule mean nothing to some methods of a column, which belong to its standard
    by += ["group", "measure", "metric"]
    found = []
    for _, column in rows.groupby(by, sort=False):
        for _, part in column.groupby(["memory_size", "schedule"], dropna=False, sort=False):
            steady = part["ours"].nunique() < 2 or part["theirs"].nunique() < 2
            if part["method"].nunique() > 2 and not steady:
                found.append(float(spearmanr(part["ours"], part["theirs"]).statistic))
    return found
