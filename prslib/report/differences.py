"""Differences between two methods, seed by seed: how sure they are, and the words for it."""

from collections.abc import Sequence

import pandas as pd

from prslib.report.bootstrap import DECIDING, paired_bootstrap

NEITHER = "not clearly apart from"
WORDS = {"holds": "above", "does not hold": "below"}  # of the verdict that a difference is above 0


def over_seeds(gaps: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """Average differences over seeds, with an interval; our own choice.

    Parameters
    ----------
    gaps : DataFrame
        The columns of ``keys``, and value: the difference of one seed, a row each, without gaps.
    keys : sequence of str
        Columns whose values belong to one difference.

    Returns
    -------
    DataFrame
        A row for each of them, in order of appearance: the columns of ``keys``; difference (mean
        over seeds), sd (sample standard deviation), low and high (ends of the interval of
        `prslib.report.bootstrap.paired_bootstrap`), all in the values' unit; seeds; coverage (the
        most that an interval of so few seeds can promise); clearly: "above" or "below" where the
        interval is, else empty, and empty for fewer than three seeds.

    Examples
    --------
    >>> gaps = pd.DataFrame({"metric": "mAP", "value": [6.0, 8.0, 10.0]})
    >>> over_seeds(gaps, ["metric"]).values.tolist()
    [['mAP', 8.0, 2.0, 6.0, 10.0, 3, 0.75, 'above']]
    """
    rows = []
    for key, part in gaps.groupby(list(keys), sort=False, dropna=False):
        found = paired_bootstrap(part[["value"]], lambda means: means["value"])
        rows.append(
            dict(zip(keys, key, strict=True))
            | {"difference": found.effect, "sd": part["value"].std()}
            | {"low": found.low, "high": found.high, "seeds": found.seeds}
            | {"coverage": found.coverage, "clearly": WORDS.get(found.verdict, "")}
        )
    columns = ["difference", "sd", "low", "high", "seeds", "coverage", "clearly"]
    return pd.DataFrame(rows, columns=[*keys, *columns])


def spread(row: pd.Series | dict, digits: int = 1) -> str:
    """Say how far a difference moves when other seeds are drawn.

    Parameters
    ----------
    row : Series or dict
        Of what `over_seeds` gives.
    digits : int
        After the point.

    Returns
    -------
    str
        Such as "95 % interval +1.2 to +3.4 over 10 seeds".
    """
    if row["seeds"] == 1:
        return "one seed"
    ends = f"{row['low']:+.{digits}f} to {row['high']:+.{digits}f} over {row['seeds']} seeds"
    return ends if row["seeds"] < DECIDING else f"{100 * row['coverage']:.0f} % interval {ends}"


def compared(row: pd.Series | dict, method: str, than: str) -> str:
    """Say which of two methods is above the other, and by how much.

    Parameters
    ----------
    row : Series or dict
        Of what `over_seeds` gives, in points.
    method, than : str
        The difference is ``method`` minus ``than``.

    Returns
    -------
    str
        "PRS is above CRS, by +3.1 points (...)"; of fewer than three seeds only who is ahead.
    """
    by = f", by {row['difference']:+.1f} points"
    word = row["clearly"] or NEITHER
    if row["seeds"] < DECIDING:
        word = "ahead of" if row["difference"] > 0 else "behind"
        if round(row["difference"], 1) == 0:
            word, by = "level with", ""
    return f"{method} is {word} {than}{by} ({spread(row)})"
