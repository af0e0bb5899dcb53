"""The gain of more seeds: how much narrower intervals of PRS less CRS would be.

Run ``python studies/more_seeds.py``: it takes the runs of cocoseq-mini of the profile
"seeds" (trains what is missing) and writes figures/studies/more_seeds.csv. The variance
of a mean difference is that of the seeds, divided by their number, and that of the test
images, which more seeds leave as it is. Columns: `seeds`, standard errors in points of
the seeds' and the images' chance, and `narrower`, by how many percent thirty seeds make
the standard error of the difference less.
"""

import sys
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from saving import save

from prslib import run_all
from prslib.metrics import values_and_draws
from prslib.report.tables import final, scores_of, seed_gaps
from prslib.report.topics import runs_of

DATASET, MORE = "cocoseq-mini", 30


def main() -> None:
    configs = runs_of("seeds", "main_results")
    runs = run_all([one for one in configs if one.dataset == DATASET])
    gaps = seed_gaps(final(scores_of(runs)), "PRS", "CRS").dropna(subset="value")
    rows = []
    for (group, metric), cell in gaps.groupby(["group", "metric"], sort=False):
        values, count = values_and_draws(cell).to_numpy(), len(cell)
        of_seeds = values[:, 0].var(ddof=1)
        of_images = values[:, 1:].mean(axis=0).var(ddof=1)
        variance, with_more = of_seeds / count + of_images, of_seeds / MORE + of_images
        rows.append(
            {
                "group": group,
                "metric": metric,
                "seeds": count,
                "error_of_seeds": (of_seeds / count) ** 0.5,
                "error_of_images": of_images**0.5,
                "narrower": 100 * (1 - (with_more / variance) ** 0.5),
            }
        )
    save(pd.DataFrame(rows).round(2), "more_seeds")


if __name__ == "__main__":
    main()
