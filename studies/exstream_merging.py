"""Compare ExStream on frozen features with a variant that never merges vectors.

Run ``python studies/exstream_merging.py``: ten seeds on cocoseq-mini and its open test
images, two minutes. It writes figures/studies/exstream_merging.csv. On frozen features,
ExStream merges input vectors of the head, which never become stale. The variant finds the
same closest pair but keeps the older of the two vectors instead of their mean.
"""

import argparse

import numpy as np
import pandas as pd
from choosing import save

from prslib import compare, configs, register, run_all
from prslib.report.tables import final, scores_of
from prslib.samplers import ExStream

# the test set and seeds of the report's tables of differences
TEST = "open"
FIELDS = {"dataset": "cocoseq-mini", "seed": list(range(10))}
METRICS = ["C-F1", "O-F1", "mAP"]


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
    method = ["ExStream", "Unmerged", "PRS"]
    runs = run_all(configs(**FIELDS, method=method))
    of_method = {
        name: [run for run in runs if run.config.method == name] for name in method
    }
    rows = final(scores_of(runs, tests=[TEST]))
    rows = rows[(rows["group"] == "overall") & (rows["measure"] == "score")]
    table = rows.pivot(index=["metric", "seed"], columns="method", values="value")
    lines = []
    for metric in METRICS:
        scores = table.loc[metric]
        for first, second in (("ExStream", "Unmerged"), ("Unmerged", "PRS")):
            runs_of_both = of_method[first], of_method[second]
            gap = compare(*runs_of_both, metric=metric, test_set=TEST)
            means = {"mean": scores[first].mean(), "mean_than": scores[second].mean()}
            ends = {"difference": gap.effect, "low": gap.low, "high": gap.high}
            lines.append(
                {"metric": metric, "method": first, "than": second, **means, **ends}
            )
    save(pd.DataFrame(lines).round(2), "exstream_merging")


if __name__ == "__main__":
    main()
