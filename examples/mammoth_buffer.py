"""A buffer of Mammoth's that keeps what PRS keeps, for one label or several."""

import numpy as np
from utils.buffer import Buffer  # ty: ignore[import-not-found]

from prslib import make_sampler
from prslib.adapters import multi_hot
from prslib.checks import expected


class PRSBuffer(Buffer):
    """Mammoth's buffer, with `prslib` to say where a sample goes."""

    def __init__(self, buffer_size, device="cpu", num_classes=100, seed=0):
        super().__init__(buffer_size, device)
        self.num_classes = num_classes
        self.seeds = np.random.SeedSequence(seed)

    def add_data(
        self,
        examples,
        labels=None,
        logits=None,
        task_labels=None,
        attention_maps=None,
        true_labels=None,
        sample_selection_scores=None,  # of Mammoth's other strategies
    ):
        """Place the samples as one batch; with class numbers or multi-hot labels.

        A sample without any label is not stored, and `num_seen_examples` does not
        count it: Mammoth replays the first slots, as many as it has seen examples.
        """
        if labels is None:
            raise ValueError(f"labels: {expected('a row a sample', None)}")
        rows = multi_hot(labels.cpu(), self.num_classes)
        columns = {
            "examples": examples,
            "labels": labels,
            "logits": logits,
            "task_labels": task_labels,
            "true_labels": true_labels,
        }
        if not hasattr(self, "examples"):  # at the beginning and after empty()
            self.init_tensors(*(columns[name] for name in self.attributes))
            seed = self.seeds.spawn(1)[0]
            self.sampler = make_sampler("prs", self.buffer_size, self.num_classes, seed)
        slots = self.sampler.place(rows)
        self.num_seen_examples += int(rows.any(axis=1).sum())
        # of equal slots the last sample stays
        last = {slot: row for row, slot in enumerate(slots.tolist()) if slot >= 0}
        for name, values in columns.items():
            if values is not None and last:
                stored = getattr(self, name)
                stored[list(last)] = values[list(last.values())].to(stored)
        if attention_maps is not None:
            for slot, row in last.items():
                maps = [each[row].byte().to(self.device) for each in attention_maps]
                self.attention_maps[slot] = maps
