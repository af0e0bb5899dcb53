"""How far schedule and memory size move a method's scores, and the sentences that say it."""

from itertools import pairwise

import pandas as pd

from prslib.datasets import DATASETS


def schedule_spread(rows: pd.DataFrame) -> pd.DataFrame:
    """Measure how far the schedule alone moves each method's overall scores (Table 2).

    Parameters
    ----------
    rows : DataFrame
        As `prslib.report.variations.by_schedule` gives them.

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
        As `prslib.report.variations.by_memory` gives them.

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
