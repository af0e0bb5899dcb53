"""A buffer of Mammoth's that keeps what PRS keeps, for one label or several."""

import numpy as np
from utils.buffer import Buffer  # ty: ignore[import-not-found]

from prslib import make_sampler


class PRSBuffer(Buffer):
    """Mammoth's buffer, with `prslib` to say where a sample goes."""

    def __init__(self, buffer_size, device="cpu", num_classes=100, seed=0):
        super().__init__(buffer_size, device)
        self.num_classes = num_classes
        self.seeds = np.random.SeedSequence(seed)

    def add_data(
        self, examples, labels, logits=None, task_labels=None, true_labels=None
    ):
        """Place a batch; labels are class numbers or rows of 0 and 1.

        A sample without a label is not stored, and `num_seen_examples` does not count
        it: Mammoth replays the first slots, as many as it has seen examples.
        """
        columns = {
            "examples": examples,
            "labels": labels,
            "logits": logits,
            "task_labels": task_labels,
            "true_labels": true_labels,
        }
        if not hasattr(self, "examples"):  # at the beginning and after empty()
            self.init_tensors(**columns)
            (seed,) = self.seeds.spawn(1)
            self.sampler = make_sampler("prs", self.buffer_size, self.num_classes, seed)
        slots = self.sampler.place(labels)
        self.num_seen_examples = self.sampler.seen
        # of equal slots the last sample stays
        last = {slot: row for row, slot in enumerate(slots.tolist()) if slot >= 0}
        for name, values in columns.items():
            if values is not None and last:
                stored = getattr(self, name)
                stored[list(last)] = values[list(last.values())].to(stored)
