"""A storage policy for Avalanche that also supports targets with several labels.

In Avalanche, ``PRSBuffer`` and ``PRSSampling`` would be part of
``avalanche/training/storage_policy.py``.
"""

from avalanche.training.storage_policy import (
    ExemplarsBuffer,
)
from prs_sampling import PRSSampling


class PRSBuffer(ExemplarsBuffer):
    """Buffer updated with Partitioning Reservoir Sampling.

    The class shares in the buffer stay close to their targets, even if the stream is
    long-tailed.
    Targets are class numbers, or rows of 0 and 1 for several labels per sample.
    Row k of ``self.buffer`` is the sample in slot k.
    """

    def __init__(self, max_size: int, rho: float = 0.0, seed: int | None = None):
        """Init.

        :param max_size: max number of input samples in the replay memory.
        :param rho: 0 for equal class shares, 1 for the class shares in the stream.
        :param seed: seed of all random decisions.
        """
        super().__init__(max_size)
        self.select = PRSSampling(max_size, rho, seed)
        self.num_seen = 0

    def post_adapt(self, agent_state, exp):
        """Update buffer."""
        self.update_from_dataset(exp.dataset)

    def update_from_dataset(self, new_data):
        """Offer the samples of a dataset to the buffer, in the order of the dataset.

        :param new_data:
        :return:
        """
        rows = {slot: len(new_data) + slot for slot in range(len(self.buffer))}
        for row, target in enumerate(new_data.targets):
            slot = self.select(self.num_seen, target)
            self.num_seen += 1
            if slot >= 0:
                rows[slot] = row
        kept = [rows[slot] for slot in sorted(rows)]
        self.buffer = new_data.concat(self.buffer).subset(kept)

    def resize(self, strategy, new_size: int):
        """Raise an error, because the sampler has a fixed number of slots."""
        raise ValueError(f"expected the size {self.max_size}, got {new_size}")
