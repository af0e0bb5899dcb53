"""A sampler of one's own beside CRS and PRS: trained in worker processes, and drawn.

``python examples/own_sampler.py newest.png`` takes about a minute on two cores. With
``PRSLIB_PLUGINS=own_sampler PYTHONPATH=examples`` notebooks and `make figures` know it.
"""

import sys

import numpy as np

import prslib


class Newest(prslib.Sampler):
    """Overwrite the oldest sample."""

    def choose(self, y: np.ndarray, u: np.ndarray) -> int:
        """Return the slot of a sample, from its labels and uniform numbers."""
        return (self.seen - 1) % self.size


prslib.register("Newest", Newest)

if __name__ == "__main__":
    import matplotlib.pyplot as plt

    from prslib.report.style import plot_variations
    from prslib.report.tables import final, merge_published, scores_of

    methods = ["CRS", "PRS", "Newest"]
    wanted = prslib.configs(dataset="cocoseq-mini", method=methods, seed=range(2))
    rows = merge_published(final(scores_of(prslib.run_all(wanted))), "main")
    shown = rows[(rows["measure"] == "score") & (rows["metric"] == "mAP")]
    print(shown.pivot_table("value", "method", "group").round(1))
    figure, ax = plt.subplots(layout="constrained")
    plot_variations(shown, ax, "group", "mAP")
    figure.savefig(sys.argv[1])
