"""A buffer of Mammoth's that keeps what PRS keeps, for one label or several."""

from utils.buffer import Buffer  # ty: ignore[import-not-found]

from prslib import make_sampler
from prslib.adapters import multi_hot


class PRSBuffer(Buffer):
    """Mammoth's buffer, with `prslib` to say where a sample goes."""

    def __init__(self, buffer_size, device="cpu", num_classes=100):
        super().__init__(buffer_size, device)
        self.sampler = make_sampler("prs", buffer_size, num_classes, seed=0)

    def add_data(self, examples, labels, logits=None, task_labels=None):
        """Place the samples as one batch; with class numbers or multi-hot labels."""
        if not hasattr(self, "examples"):
            self.init_tensors(examples, labels, logits, task_labels)
        slots = self.sampler.place(multi_hot(labels.cpu(), self.sampler.num_classes))
        self.num_seen_examples += len(examples)
        given = {"examples": examples, "labels": labels}
        given |= {"logits": logits, "task_labels": task_labels}
        for name, values in given.items():
            if values is not None:
                for slot, value in zip(slots, values, strict=True):
                    if slot >= 0:
                        getattr(self, name)[slot] = value.to(self.device)
