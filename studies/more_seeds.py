"""Estimate how much narrower the intervals of PRS minus CRS would be with more seeds.

Run ``python studies/more_seeds.py``. It uses the main table's ten seeds of both methods on
each test set of cocoseq-mini and reutersseq, trains missing runs, and writes
figures/studies/more_seeds.csv. The variance of a mean difference is the variance over
seeds, divided by their number, plus the variance over test images, which more seeds do not
reduce. Columns: `seeds`, the standard errors in points from seeds and from images, the
images' share of the variance in percent, and `narrower`, by how many percent thirty seeds
reduce the standard error of the difference.
"""

import argparse

import pandas as pd
from choosing import save

from prslib import configs, run_all
from prslib.metrics import values_and_draws
from prslib.report.tables import final, scores_of, seed_gaps

SEEDS, MORE = range(10), 30
TESTS = ["balanced", "imbalanced", "open"]


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    # the runs of the main table
    grid = {"dataset": ["cocoseq-mini", "reutersseq"], "method": ["CRS", "PRS"]}
    planned = configs(**grid, seed=SEEDS, tuned_threshold=True)
    scores = final(scores_of(run_all(planned), tests=TESTS))
    gaps = seed_gaps(scores, "PRS", "CRS").dropna(subset="value")
    rows = []
    keys = ["dataset", "test_set", "group", "metric"]
    for place, cell in gaps.groupby(keys, sort=False):
        values, count = values_and_draws(cell), len(cell)
        of_seeds = values["value"].var()
        of_images = values.drop(columns="value").mean().var()
        variance, with_more = of_seeds / count + of_images, of_seeds / MORE + of_images
        row = dict(zip(keys, place, strict=True)) | {"seeds": count}
        row["error_of_seeds"] = (of_seeds / count) ** 0.5
        row["error_of_images"] = of_images**0.5
        row["share_of_images"] = 100 * of_images / variance
        row["narrower"] = 100 * (1 - (with_more / variance) ** 0.5)
        rows.append(row)
    save(pd.DataFrame(rows).round(2), "more_seeds")


if __name__ == "__main__":
    main()
