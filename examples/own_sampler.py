"""A sampler of one's own beside CRS and PRS: trained in worker processes, compared, drawn.

``python examples/own_sampler.py newest.png`` takes about a minute on two cores. With
``PRSLIB_PLUGINS=own_sampler PYTHONPATH=examples`` notebooks and `make figures` know it, too.
"""

import sys

import numpy as np

import prslib
from prslib.samplers.base import Counted, LabelSampler


class Newest(Counted, LabelSampler):
    """Keep the newest samples: each takes the place of the oldest."""

    def __len__(self) -> int:
        """Return the number of filled slots."""
        return min(self._count, self.size)

    def _decide(self, labels: np.ndarray, uniforms: np.ndarray, slots: np.ndarray) -> None:
        slots[:] = -1
        for b in np.flatnonzero(labels.any(axis=1)):
            slots[b] = slot = self._count % self.size
            self._count += 1
            self._freq += labels[b]
            self._held += labels[b].astype(np.int64) - self._labels[slot]
            self._labels[slot] = labels[b]


prslib.register("Newest", Newest)

if __name__ == "__main__":
    import matplotlib.pyplot as plt

    from prslib.report.style import plot_groups
    from prslib.report.tables import beside, final, scores_of

    methods = ["CRS", "PRS", "Newest"]
    wanted = prslib.configs(dataset="cocoseq-mini", method=methods, seed=range(2))
    rows = beside(final(scores_of(prslib.run_all(wanted))), "main")
    shown = rows[(rows["measure"] == "score") & (rows["metric"] == "mAP")]
    print(shown.pivot_table("value", "method", "group").round(1))
    figure, ax = plt.subplots(layout="constrained")
    plot_groups(shown, ax, "mAP")
    figure.savefig(sys.argv[1])
