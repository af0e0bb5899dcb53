"""Answer each notebook's question from its tables, in the words of `answers.toml`."""

import tomllib
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd
from articles import REPORTED

from prslib.datasets import DATASETS
from prslib.paths import figures_dir
from prslib.report.ledger import counts
from prslib.report.tables import MAIN_METRICS

# the notebooks in the order of their questions, with their answers
TEXTS = tomllib.loads(Path(__file__).with_name("answers.toml").read_text("utf-8"))
DIFFERENCE, PAGES, SAMPLERS = map(TEXTS.pop, ("difference", "pages", "samplers"))
STREAMS = {"cocoseq-mini": "COCO", "reutersseq": "Reuters"}
STAND_IN = "†"
LAST_QUARTER = 75  # percent of the stream


def numbers(name: str, folder: str = REPORTED) -> pd.DataFrame:
    """Read a table that a notebook or a benchmark saved."""
    return pd.read_csv(figures_dir(folder) / f"{name}.csv")


def of_first_set(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the first data set, which is of real images where there are any."""
    return rows[rows["dataset"] == rows["dataset"].iloc[0]]


def listed(names: Iterable[str]) -> str:
    """Return "C-F1, O-F1 and mAP"."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def sentence_for(row: dict, texts: dict) -> str:
    """Fill a difference and its interval into the sentence for its sign."""
    texts = DIFFERENCE | texts
    shortcut = row.get("deviation", "")
    words = texts.get("words", {}).get(shortcut, shortcut)
    texts["method"] = texts["method"].format(words=words)
    effect = row.get("difference", row.get("effect"))
    low, high = row["low"], row["high"]
    if low > 0 or high < 0:
        text, sign = texts["above" if low > 0 else "below"], ""
        effect, (low, high) = abs(effect), sorted((abs(low), abs(high)))
    else:
        text, sign = texts["unclear"], "+"
    texts["effect"] = f"{effect:{sign}.1f}"
    texts["interval"] = f"(95 % interval {low:{sign}.1f} to {high:{sign}.1f})"
    return text.format(**texts)


def answers() -> dict[str, str]:
    """Answer each notebook's question in about 20 words."""
    claims = first_rows()
    computed = facts()
    sentences = {}
    for name, texts in TEXTS.items():
        if "text" in texts:
            sentences[name] = texts["text"].format(**computed)
            continue
        if "sentence" in texts:
            sentences[name] = numbers(texts["sentence"])["sentence"].iloc[0]
            continue
        if "claim" in texts:
            row = claims.loc[texts["claim"]].to_dict()
        else:
            row = smallest_difference(numbers(texts["table"]), texts["where"])
        mark = STAND_IN if DATASETS[row["dataset"]].data_source == "stand-in" else ""
        sentences[name] = sentence_for(row, texts) + mark
    return {name: with_names(text) for name, text in sentences.items()}


def first_rows() -> pd.DataFrame:
    """Return each claim of the ledger on its first data set."""
    return numbers("ledger_claims").drop_duplicates("claim").set_index("claim")


def with_names(text: str) -> str:
    """Name the real streams as the README does."""
    for dataset, name in STREAMS.items():
        text = text.replace(dataset, name)
    return text


def facts() -> dict[str, object]:
    """Compute the numbers of those sentences that are no single claim or difference."""
    claims = first_rows()
    total = counts(numbers("ledger_claims"))
    streams = numbers("when_it_pays_streams").set_index("dataset")
    starts = numbers("when_it_pays_pays_from")
    starts = starts[starts["method"] == "PRS"].set_index("metric")["from"]
    pays = [
        f"from {about(start)}:1 on in {metric}"
        for metric, start in starts.dropna().sort_values().items()
    ]
    pays += [f"never in {metric}" for metric in starts.index[starts.isna()]]
    orders, sizes = (
        overall_map(f"schedules_and_memory_{name}_prs_minus_crs")
        for name in ("schedules", "sizes")
    )
    shares = of_first_set(numbers("precision_recall_prs_minus_crs"))
    shares = shares.pivot(index="group", columns="metric", values="difference")
    gaps = of_first_set(numbers("memory_distribution_distance")).groupby("method")
    gaps = gaps[["to equal", "to stream"]].mean()
    end = numbers("gradient_variance_curves")
    end = end[(end["dataset"] == "cocoseq-mini") & (end["seen"] > LAST_QUARTER)]
    end = np.log(end["value"]).groupby(end["method"]).mean()
    best = pd.DataFrame(best_rhos(), columns=["name", "rho", "changes"])
    rhos = [
        f"rho {rho:g} on {listed(rows['name'])}"
        for rho, rows in best.groupby("rho", sort=False)
    ]
    if len(rhos) == 1:
        rhos = [f"rho {best['rho'].iloc[0]:g}"]
    return {
        "images": total.index[0],
        **total.iloc[0],
        "share": 50 + claims.loc["largest_fifth", "effect"],
        "variance": claims.loc["variance_crs", "effect"],
        "trained": trained_rhos(),
        "pays_from": about(starts.min()),
        "smallest": about(streams["imbalance"].min()),
        "coco_images": streams.loc["cocoseq-mini", "samples"],
        "best_rho": listed(f"{rho:g}" for rho in sorted({*best["rho"]})),
        "rho": listed(rhos),
        "changes": "; ".join(best["changes"] + " points on " + best["name"]),
        "pays": ", ".join(pays),
        "orders": clear_share(orders),
        "sizes": clear_share(sizes),
        "sets": listed(orders["dataset"].unique()),
        "majority": most_changed(shares.loc["majority"]),
        "minority": most_changed(shares.loc["minority"]),
        "prs": gaps.loc["PRS"],
        "crs": gaps.loc["CRS"],
        "at_the_end": 100 * (np.exp(end["PRS"] - end["CRS"]) - 1),
    }


def overall_map(name: str) -> pd.DataFrame:
    """Return the rows of a table of differences that are about overall mAP."""
    rows = numbers(name)
    return rows[(rows["group"] == "overall") & (rows["metric"] == "mAP")]


def clear_share(rows: pd.DataFrame) -> str:
    """Count the differences that are clearly above 0: "9 of 10"."""
    return f"{(rows['clearly'] == 'above').sum()} of {len(rows)}"


def most_changed(differences: pd.Series) -> dict[str, object]:
    """Return which of precision and recall differs more, and by how many points."""
    metric = differences[["C-P", "C-R"]].abs().idxmax()
    name = {"C-P": "precision", "C-R": "recall"}[metric]
    return {"name": name, "points": differences[metric]}


def trained_rhos() -> pd.Series:
    """Return the rho with which PRS was trained on each data set."""
    rows = numbers("main_results_table")
    return rows[rows["method"] == "PRS"].groupby("dataset")["rho"].first()


def best_rhos() -> Iterable[tuple[str, float, str]]:
    """Return for each data set the rho whose worst overall metric is the best over CRS."""
    gaps = numbers("rho_sweep_minus_crs")
    gaps = gaps[gaps["group"] == "overall"]
    for name, rows in gaps.groupby("dataset", sort=False):
        rho = rows.groupby("rho")["difference"].min().idxmax()
        best = rows[rows["rho"] == rho].set_index("metric")["difference"]
        words = [f"{best[metric]:+.1f}" for metric in MAIN_METRICS]
        yield str(name), float(rho), listed(words)


def about(imbalance: float) -> str:
    """Return an imbalance with two digits: "27" of 26.7."""
    return f"{float(f'{imbalance:.2g}'):.0f}"


def opening(answer: str) -> str:
    """Return the line with which an article begins."""
    where = ", measured on a stand-in made of handwritten digits."
    return f"**{answer.replace(f'.{STAND_IN}', where)}**"


def smallest_difference(rows: pd.DataFrame, where: dict[str, str]) -> dict:
    """Return the row with the smallest difference on the first data set."""
    chosen = (rows[list(where)] == pd.Series(where)).all(axis=1)
    rows = of_first_set(rows[chosen])
    return rows.loc[rows["difference"].idxmin()].to_dict()
