"""Compare ExStream on frozen features with a variant that never merges vectors.

Run ``python studies/exstream_merging.py``, which trains ten seeds on cocoseq-mini and tests
on its open images in two minutes. It writes figures/studies/exstream_merging.csv. On frozen
features, ExStream merges the head's input vectors, which never become stale. The variant
finds the same closest pair but keeps the older of the two vectors instead of their mean.
"""

import argparse

import numpy as np
import pandas as pd
from choosing import save

from prslib import configs, register, run_all
from prslib.report.tables import contrasts, final, scores_of
from prslib.samplers import ExStream

# the test set and seeds of the report's tables of differences
TEST = "open"
FIELDS = {"dataset": "cocoseq-mini", "seed": list(range(10))}
PAIRS = ("ExStream", "Unmerged"), ("Unmerged", "PRS")
COLUMNS = ["metric", "method", "than", "mean", "mean_than", "difference", "low", "high"]


class Unmerged(ExStream):
    """ExStream that drops the newer of the two closest vectors of a full class."""

    def place(self, labels, *, features=None):
        """Place samples one by one, and undo each mean."""
        rows = zip(labels, features, strict=True)
        return np.array([self.place_one(y[None], x[None]) for y, x in rows], np.int64)

    def place_one(self, y, x):
        """Place a sample; restore a vector that has become a mean."""
        before = self.prototypes.copy()
        (slot,) = super().place(y, features=x)
        merged = (self.prototypes != before).any(axis=1) if before.size else []
        merged = [i for i in np.flatnonzero(merged) if (self.prototypes[i] != x).any()]
        if merged:
            self.prototypes[merged] = before[merged]
        return slot


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    register("Unmerged", Unmerged)
    planned = configs(**FIELDS, method=["ExStream", "Unmerged", "PRS"])
    rows = final(scores_of(run_all(planned), tests=[TEST]))
    rows = rows[(rows["group"] == "overall") & (rows["measure"] == "score")]
    means = rows.groupby(["method", "metric"])["value"].mean()
    tables = []
    for method, than in PAIRS:
        table = contrasts(rows, method, than)
        table["mean"] = table["metric"].map(means[method])
        table["mean_than"] = table["metric"].map(means[than])
        tables.append(table.assign(method=method, than=than))
    table = pd.concat(tables).sort_values("metric", kind="stable")
    save(table[COLUMNS].round(2), "exstream_merging")


if __name__ == "__main__":
    main()
