"""Answer each notebook's question in a sentence, from the tables of a profile.

The sentences are in `answers.toml`.
"""

import tomllib
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from prslib.paths import figures_dir
from prslib.report.articles import REPORTED
from prslib.report.ledger import counts
from prslib.report.observations import RELATIONS, relation
from prslib.report.tables import METRICS

TEXTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
ORDER = tuple(TEXTS)  # the notebooks in the order of their questions
STAND_IN = "†"
STAND_IN_NOTE = (
    f"{STAND_IN} on a stand-in made of handwritten digits; the other numbers are from "
    "real COCO images."
)


def numbers(folder: str, name: str) -> pd.DataFrame:
    """Read a table that a notebook or a benchmark saved; FileNotFoundError without."""
    file = figures_dir(folder) / f"{name}.csv"
    if not file.is_file():
        make = "make bench" if folder == "bench" else f"make figures PROFILE={folder}"
        raise FileNotFoundError(
            f"expected {file}, from which README and docs take numbers, it is not "
            f"there; run `{make}` first"
        )
    return pd.read_csv(file)


def answers(profile: str = REPORTED) -> dict[str, str]:
    """Answer each notebook's question in at most 20 words, from a profile's tables."""
    claims = numbers(profile, "ledger_claims").drop_duplicates("claim")
    claims = claims.set_index("claim")  # each on its first data set
    special = {"walkthrough": TEXTS["walkthrough"]["text"], "ledger": _tally(profile)}
    special["deviations"] = _cost_of_shortcuts(profile)
    special["datasets"] = _largest_fifth(claims.loc["largest_fifth"])
    said = {}
    for name, texts in TEXTS.items():
        if name in special:
            said[name] = special[name]
            continue
        if "claim" in texts:
            row = claims.loc[texts["claim"]]
        else:
            row = _smallest(numbers(profile, texts["table"]), **texts["where"])
        said[name] = _marked(_sentence(row.to_dict(), texts), row)
    return said


def _smallest(rows: pd.DataFrame, **where: str) -> pd.Series:
    """Return the row with the smallest difference on the first data set."""
    for name, value in where.items():
        rows = rows[rows[name] == value]
    rows = rows[rows["dataset"] == rows["dataset"].iloc[0]]
    return rows.loc[rows["difference"].idxmin()]


def _sentence(row: dict, texts: dict[str, str]) -> str:
    """Say an effect or a difference in the words of `answers.toml`."""
    if "above" in texts:
        return _by_sign(row, texts["above"], texts["below"], texts["unclear"])
    text = in_words(row, texts["what"])
    if "everywhere" not in texts:
        return text
    if row["low"] > 0:
        return f"{texts['everywhere']} {text.replace('gains', 'gains at least')}"
    return f"{texts['otherwise']} {text}"


def _by_sign(row: dict, above: str, below: str, unclear: str) -> str:
    """Fill a number and its interval into the sentence for its sign."""
    effect = row.get("difference", row.get("effect"))
    low, high = row["low"], row["high"]
    if not (low > 0 or high < 0):
        return unclear.format(f"{effect:+.1f}", _interval(low, high, "+"))
    text = above if effect > 0 else below
    return text.format(f"{abs(effect):.1f}", _interval(*sorted((abs(low), abs(high)))))


def _marked(text: str, row: pd.Series) -> str:
    """Mark an answer that a stand-in gave."""
    return text + STAND_IN * (relation(row["dataset"]) == RELATIONS[-1])


def _cost_of_shortcuts(profile: str) -> str:
    """Say the largest loss of a deviation against PRS."""
    files = sorted(figures_dir(profile).glob("deviations_costs_*.csv"))
    rows = pd.concat([pd.read_csv(file) for file in files], ignore_index=True)
    rows = rows[(rows["group"] == "overall") & (rows["metric"] == "mAP")]
    row = rows.loc[rows["difference"].idxmin()]
    name = f"The costliest shortcut, {row['deviation']},"
    return _marked(in_words(row.to_dict(), "mAP", "PRS", name), row)


def _largest_fifth(row: pd.Series) -> str:
    """Say which share of the labels the largest fifth of the classes has."""
    share, low, high = (50 + row[name] for name in ("effect", "low", "high"))
    text = TEXTS["datasets"]["text"].format(share)
    interval = f" {_interval(low, high)}" if high - low > 0.1 else ""
    return _marked(f"{text}{interval}.", row)


def _tally(profile: str) -> str:
    """Count the claims that hold on real images, or else on stand-ins."""
    total = counts(numbers(profile, "ledger_claims"))
    return TEXTS["ledger"]["text"].format(images=total.index[0], **total.iloc[0])


def in_three(rows: pd.DataFrame, group: str, than: str) -> str:
    """Say PRS's differences from another method in C-F1, O-F1 and mAP of one group."""
    rows = rows[(rows["group"] == group) & rows["metric"].isin(METRICS)]
    everywhere = group == "overall"
    before, after = ("overall ", "") if everywhere else ("", f" on the {group} classes")
    clear = rows["clearly"].notna()
    said = [
        in_words(row, f"{before}{row['metric']}{after}", than)
        for row in rows[clear].to_dict("records")
    ]
    if not clear.all():
        names = listed(rows.loc[~clear, "metric"])
        said.append(f"PRS and {than} do not differ clearly in {before}{names}{after}.")
    return " ".join(said)


def listed(names: Iterable[str]) -> str:
    """Return "C-F1, O-F1 and mAP"."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def in_words(row: dict, what: str, than: str = "CRS", method: str = "PRS") -> str:
    """Say a difference of two methods with its interval."""
    return _by_sign(
        row,
        f"{method} gains {{}} points of {what} over {than} {{}}.",
        f"{method} loses {{}} points of {what} against {than} {{}}.",
        f"{method} and {than} do not differ clearly in {what}: {{}} points {{}}.",
    )


def _interval(low: float, high: float, sign: str = "") -> str:
    if pd.isna(low):
        return "(one seed)"
    return f"(95 % interval {low:{sign}.1f} to {high:{sign}.1f})"
