"""Train a custom sampler together with CRS and PRS, and plot their scores.

``python examples/own_sampler.py newest.png`` needs about a minute on two cores. A notebook
can use the sampler if one of its cells registers it.
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
    import seaborn as sns

    from prslib.report.tables import final, scores_of

    methods = ["CRS", "PRS", "Newest"]
    configs = prslib.configs(dataset="cocoseq-mini", method=methods, seed=range(2))
    rows = final(scores_of(prslib.run_all(configs), tests=["balanced"]))
    shown = rows[(rows["measure"] == "score") & (rows["metric"] == "mAP")]
    print(shown.pivot_table("value", "method", "group").round(1))
    ax = sns.stripplot(shown, x="group", y="value", hue="method", dodge=True)
    ax.set(xlabel="", ylabel="mAP (%)")
    ax.figure.savefig(sys.argv[1])
