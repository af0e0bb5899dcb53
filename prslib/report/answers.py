"""Answer a notebook's question in one sentence, from the frame that its pictures show."""

from collections.abc import Iterable

import pandas as pd

from prslib.datasets import DATASETS
from prslib.statistics import DECIDING

# names of the real streams in pictures and on pages; tables have the keys
STREAMS = {"cocoseq-mini": "COCO", "reutersseq": "Reuters"}
STREAMS |= {"mdiseq": "icons", "clipartseq": "clip art"}
SYNTHETIC = " The data are synthetic, made of handwritten digits."
ONE_SEED = " With one seed, no interval is known."
# sentences for a difference, by its sign
ABOVE = "{what} is {effect} points higher for {method} than for {than} {interval}."
BELOW = "{what} is {effect} points lower for {method} than for {than} {interval}."
UNCLEAR = (
    "{what} does not differ significantly: {method} minus {than} is {effect} points"
    " {interval}."
)


def name_streams(text: str) -> str:
    """Return a text with the streams as the pages name them."""
    for name, words in STREAMS.items():
        text = text.replace(name, words)
    return text


def first_set(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the first real data set or, if there is none, of the first one."""
    names = frame["dataset"].unique()
    first = min(names, key=lambda name: DATASETS[name].data_source == "stand-in")
    return frame[frame["dataset"] == first]


def find_smallest(gaps: pd.DataFrame, **where: str) -> pd.Series:
    """Return the first data set's row with the smallest difference."""
    rows = first_set(gaps)
    for column, value in where.items():
        rows = rows[rows[column] == value]
    return rows.loc[rows["difference"].idxmin()]


def describe_difference(
    row: pd.Series,
    what: str = "",
    method: str = "PRS",
    than: str = "CRS",
    above: str = ABOVE,
    below: str = BELOW,
    unclear: str = UNCLEAR,
) -> str:
    """Return the sentence for a difference and its interval."""
    effect, low, high = row["difference"], row["low"], row["high"]
    is_single = pd.isna(low)  # one seed, whose sign is reported without a test
    text, sign = unclear, "+"
    if is_single or low > 0 or high < 0:
        text, sign = (above if effect >= 0 else below), ""
        effect, (low, high) = abs(effect), sorted([abs(low), abs(high)])
    few = ""
    if row["seeds"] < DECIDING:
        few = f", {row['seeds']} seeds are too few for a test"
    interval = f"(95 % CI {low:{sign}.1f} to {high:{sign}.1f}{few})"
    if is_single:
        interval = "(one seed, so that no interval is known)"
    words = {"what": what, "method": method, "than": than, "interval": interval}
    return text.format(effect=f"{effect:{sign}.1f}", **words)


def describe_range(gaps: pd.DataFrame, by: str) -> str:
    """Describe PRS minus CRS in overall mAP (balanced test) over a column's values."""
    rows = first_set(gaps).query(
        "group == 'overall' and metric == 'mAP' and test_set == 'balanced'"
    )
    ends = rows.loc[rows["difference"].agg(["idxmin", "idxmax"]).unique()]
    words = (
        ends["difference"].map("{:+.1f} points".format) + f" ({by}: " + ends[by] + ")"
    )
    place = "between " if len(words) > 1 else ""
    sentence = "On the balanced test, PRS minus CRS in overall mAP is "
    sentence += f"{place}{' and '.join(words)}."
    if rows["seeds"].min() < DECIDING:
        return sentence
    above, below = ((rows["clearly"] == side).sum() for side in ("above", "below"))
    return (
        f"{sentence} It is significantly above 0 in {above or 'none'} of {len(rows)} cases "
        f"and significantly below 0 in {below or 'none'}."
    )


def join_words(words: Iterable[str]) -> str:
    """Return "C-F1, O-F1 and mAP"."""
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last
