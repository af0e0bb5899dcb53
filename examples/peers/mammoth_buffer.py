"""Mammoth's buffer, filled by Partitioning Reservoir Sampling.

Copy this file and ``prs_sampling.py`` into Mammoth's ``utils/``. A model can then create a
``PRSBuffer`` instead of its ``Buffer``.
"""

from functools import partial

from prs_sampling import PRSSampling
from utils.buffer import Buffer


class PRSBuffer(Buffer):
    """A buffer for samples whose labels are class numbers or rows of 0 and 1.

    Parameters
    ----------
    buffer_size, device
        As for ``Buffer``.
    rho, seed
        As for ``PRSSampling``.
    """

    def __init__(self, buffer_size, device="cpu", rho=0.0, seed=None):
        super().__init__(buffer_size, device)
        self.select = PRSSampling(buffer_size, rho, seed)

    def add_data(
        self, examples, labels, logits=None, task_labels=None, true_labels=None
    ):
        """Store a batch as ``Buffer`` does, in the slots that PRS selects."""
        columns = {
            "examples": examples,
            "labels": labels,
            "logits": logits,
            "task_labels": task_labels,
            "true_labels": true_labels,
        }
        columns = {name: rows for name, rows in columns.items() if rows is not None}
        for i in range(len(examples)):
            y = labels[i].cpu().numpy()
            self.sample_selection_fn = partial(self.select, labels=y)
            super().add_data(**{name: row[i : i + 1] for name, row in columns.items()})
