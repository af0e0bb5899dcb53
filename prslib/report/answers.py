"""Answer each notebook's question in a sentence, from the tables of a profile."""

from collections.abc import Iterable
from functools import partial

import pandas as pd

from prslib.paths import figures_dir
from prslib.report.articles import REPORTED
from prslib.report.ledger import counts
from prslib.report.observations import RELATIONS, relation
from prslib.report.tables import METRICS

# the notebooks in the order of their questions
ORDER = (
    *("walkthrough", "main_results", "precision_recall", "memory_distribution"),
    *("rho_sweep", "tail_forgetting", "inter_task", "schedules_and_memory"),
    *("imbalanced_test", "feature_tsne", "gradient_variance", "architectures"),
    *("pretraining", "single_label", "deviations", "datasets", "ledger"),
)
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
    lead = partial(_lead, profile)
    overall = {"group": "overall", "metric": "mAP"}
    rare = overall | {"group": "minority"}
    common = {"group": "majority", "metric": "C-R"}
    texts = {
        "walkthrough": "It lets samples of rare classes in, and removes one from a "
        "class above its quota.",
        "main_results": lead(
            "main_results_prs_minus_crs", "mAP on the minority classes", rare
        ),
        "precision_recall": lead(
            "precision_recall_prs_minus_crs", "recall on the majority classes", common
        ),
        "memory_distribution": _of_claim(
            claims.loc["prs_balances"],
            "PRS's memory is {} points nearer to {} {}.",
            ("balance than to the stream", "the stream than to balance"),
            "PRS's memory is about as near to balance as to the stream: {} points {}.",
        ),
        "rho_sweep": _of_claim(
            claims.loc["rho_ends"],
            "In its weakest metric, rho near 0 is {} points {} the ends {}.",
            ("above", "below"),
            "Undecided: in its weakest metric, rho near 0 leads the ends by {} points {}.",
        ),
        "tail_forgetting": _of_claim(
            claims.loc["tail_crs"],
            "CRS forgets {} points {} of the minority's best mAP than of the "
            "majority's {}.",
            ("more", "less"),
            "CRS forgets about the same share of minority and majority: {} points {}.",
        ),
        "inter_task": lead("inter_task_prs_minus_others", "mAP on that task", overall),
        "schedules_and_memory": _weakest(
            profile,
            "schedules_and_memory_schedules_prs_minus_crs",
            ("In every task order", "In one order"),
        ),
        "imbalanced_test": lead(
            "imbalanced_test_prs_minus_others", "mAP on that set", overall
        ),
        "feature_tsne": _said(
            claims.loc["features"], "minority nearest-neighbour accuracy"
        ),
        "gradient_variance": _of_claim(
            claims.loc["variance_crs"],
            "The gradient over PRS's memory varies {} % {} than over CRS's {}.",
            ("more", "less"),
            "The gradient's variance over both memories does not differ clearly: {} "
            "% {}.",
        ),
        "architectures": _weakest(
            profile,
            "architectures_prs_minus_crs",
            ("With every network", "With one network"),
        ),
        "pretraining": _weakest(
            profile,
            "pretraining_prs_minus_crs",
            ("From all initial weights", "From some weights"),
        ),
        "single_label": _said(claims.loc["single_crs"], "accuracy"),
        "deviations": _cost_of_shortcuts(profile),
        "datasets": _largest_fifth(claims.loc["largest_fifth"]),
        "ledger": _tally(profile),
    }
    return {name: texts[name] for name in ORDER}


def _lead(profile: str, table: str, what: str, where: dict[str, str]) -> str:
    """Say PRS's difference from CRS in one place, on the first data set."""
    rows = numbers(profile, table)
    for name, value in (where | {"than": "CRS"}).items():
        rows = rows[rows[name] == value] if name in rows else rows
    return _said(rows.iloc[0], what)


def _said(row: pd.Series, what: str) -> str:
    return _marked(in_words(row.to_dict(), what), row)


def _marked(text: str, row: pd.Series) -> str:
    """Mark an answer that a stand-in gave."""
    return text + STAND_IN * (relation(row["dataset"]) == RELATIONS[-1])


def _weakest(profile: str, table: str, places: tuple[str, str]) -> str:
    """Say PRS's smallest difference from CRS in overall mAP, on the first data set."""
    rows = numbers(profile, table)
    rows = rows[(rows["group"] == "overall") & (rows["metric"] == "mAP")]
    rows = rows[rows["dataset"] == rows["dataset"].iloc[0]]
    row = rows.loc[rows["difference"].idxmin()]
    everywhere, worst = places
    text = _said(row, "mAP")
    if row["low"] > 0:
        return f"{everywhere} {text.replace('gains', 'gains at least')}"
    return f"{worst} {text}"


def _of_claim(row: pd.Series, clear: str, words: tuple[str, str], unclear: str) -> str:
    """Say a claim's effect and interval, with the word for its direction."""
    effect, low, high = row["effect"], row["low"], row["high"]
    if not (low > 0 or high < 0):
        text = unclear.format(f"{effect:+.1f}", _interval(low, high, "+"))
        return _marked(text, row)
    ends = sorted(abs(end) for end in (low, high))
    way = words[int(effect < 0)]
    text = clear.format(f"{abs(effect):.1f}", way, _interval(*ends))
    return _marked(text, row)


def _cost_of_shortcuts(profile: str) -> str:
    """Say the largest loss of a deviation against PRS."""
    files = sorted(figures_dir(profile).glob("deviations_costs_*.csv"))
    rows = pd.concat([pd.read_csv(file) for file in files])
    rows = rows[(rows["group"] == "overall") & (rows["metric"] == "mAP")]
    row = rows.loc[rows["difference"].idxmin()]
    name = f"The costliest shortcut, {row['deviation']},"
    return _marked(in_words(row.to_dict(), "mAP", "PRS", name), row)


def _largest_fifth(row: pd.Series) -> str:
    """Say which share of the labels the largest fifth of the classes has."""
    share, low, high = (50 + row[name] for name in ("effect", "low", "high"))
    text = f"The largest fifth of the classes has {share:.1f} % of the stream's labels"
    text += f" {_interval(low, high)}." if high - low > 0.1 else "."
    return _marked(text, row)


def _tally(profile: str) -> str:
    """Count the claims that hold on real images, or else on stand-ins."""
    total = counts(numbers(profile, "ledger_claims"))
    row = total.iloc[0]
    return (
        f"On {total.index[0]}, of {row['rows']} claims {row['holds']} hold and "
        f"{row['does not hold']} do not; the others are undecided or show no "
        "difference."
    )


def in_three(rows: pd.DataFrame, group: str, than: str) -> str:
    """Say PRS's differences from another method in C-F1, O-F1 and mAP of one group."""
    rows = rows[(rows["group"] == group) & rows["metric"].isin(METRICS)]
    before, after = "", f" on the {group} classes"
    if group == "overall":
        before, after = "overall ", ""
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
    gap, low, high = row.get("difference", row.get("effect")), row["low"], row["high"]
    if not (low > 0 or high < 0):
        return (
            f"{method} and {than} do not differ clearly in {what}: {gap:+.1f} points "
            f"{_interval(low, high, '+')}."
        )
    verb, against = ("gains", "over") if gap > 0 else ("loses", "against")
    ends = sorted(abs(end) for end in (low, high))
    return (
        f"{method} {verb} {abs(gap):.1f} points of {what} {against} {than} "
        f"{_interval(*ends)}."
    )


def _interval(low: float, high: float, sign: str = "") -> str:
    if pd.isna(low):
        return "(one seed)"
    return f"(95 % interval {low:{sign}.1f} to {high:{sign}.1f})"
