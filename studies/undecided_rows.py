"""Tell which undecided rows of the ledger more seeds could decide, on real data.

Run ``python studies/undecided_rows.py``: it takes the runs of the seeds profile (trains
what is missing), decides all claims and writes figures/studies/undecided_rows.csv.
Columns: the effect of the row's weakest cell; `half`, half of its 95 % interval's
width, as if it were the row's only cell; the test images' share of the variance in
percent; `half_endless`, half of the width that would be left with endless seeds, from
the test images alone; and `clear`, whether today's effect would be clear with them,
not corrected for the number of rows. More seeds cannot decide a row that is not.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from choosing import save

from prslib.report import ledger, topics
from prslib.report.claims import CLAIMS, Scores
from prslib.report.results import STAND_IN
from prslib.statistics import LEVEL, interval


def main() -> None:
    configs, _ = topics.runs("seeds")
    results = ledger.gather(configs, "train")
    decided = ledger.decide(results)
    open_rows = decided["verdict"].eq("undecided") & decided["data"].ne(STAND_IN)
    scores = {name: Scores(rows) for name, rows in results.groupby("dataset")}
    rows = [
        {name: row[name] for name in ("claim", "dataset", "alone", "seeds")}
        | variance_of(CLAIMS[row["claim"]], scores[row["dataset"]])
        for row in decided[open_rows].to_dict("records")
    ]
    save(pd.DataFrame(rows).round(3), "undecided_rows")


def variance_of(claim, scores: Scores) -> dict:
    """Split the variance of a claim's weakest cell between seeds and test images."""
    _, values = claim.evaluate(scores, claim.metrics)
    whole = interval(values, claim.over)
    if claim.over == "mean":
        values = values.mean(axis=1, keepdims=True)
    cell = values[:, whole.cell]  # (seeds, 1 + draws)
    of_images = np.nanvar(cell[:, 1:].mean(axis=0), ddof=1)
    of_seeds = cell[:, 0].var(ddof=1) / len(cell)
    one = interval(cell[:, None])
    endless = stats.norm.ppf((1 + LEVEL) / 2) * of_images**0.5
    return {
        "effect": one.effect,
        "half": (one.high - one.low) / 2,
        "share_of_images": 100 * of_images / (of_images + of_seeds),
        "half_endless": endless,
        "clear": abs(one.effect) > endless,
    }


if __name__ == "__main__":
    main()
