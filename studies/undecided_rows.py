"""List the undecided rows of the ledger on real data, and the effect of more seeds.

Run ``python studies/undecided_rows.py``. It uses the runs of the seeds profile, trains
missing ones, evaluates all claims and writes figures/studies/undecided_rows.csv. Columns:
the effect of the row's weakest cell; `half`, half the width of its 95 % interval, as if
it were the row's only cell; the test images' share of the variance in percent;
`half_endless`, half the width that would remain with infinitely many seeds, from the test
images only; and `clear`, whether the present effect would then be significant, without
correction for the number of rows. If not, no number of seeds gives the row a verdict.
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
    _, values = claim.evaluate(scores)
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
