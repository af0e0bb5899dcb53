"""A storage policy of Avalanche (https://avalanche.continualai.org) that asks a sampler.

It keeps what PRS keeps, or any other sampler that looks at labels alone. Avalanche is
the package avalanche-lib.
"""

from typing import Any

from avalanche.training.storage_policy import ExemplarsBuffer  # ty: ignore

from prslib import Sampler
from prslib.adapters import multi_hot
from prslib.checks import expected


class SamplerBuffer(ExemplarsBuffer):
    """Keep the samples that a sampler chooses in an Avalanche buffer (Sec. 3.1).

    Parameters
    ----------
    sampler : Sampler
        An empty sampler that looks at labels alone. Its size is the ``max_size``.

    Raises
    ------
    ValueError
        If ``sampler`` needs more than labels or is not empty.

    Notes
    -----
    Row k of ``buffer`` is the sample in the sampler's slot k. An experience is
    placed as one batch. Targets are whole numbers from 0 to C - 1, or multi-hot vectors
    of length C; others are refused. A data set without ``targets`` is read sample by
    sample.

    Examples
    --------
    >>> from prslib import make_sampler
    >>> SamplerBuffer(make_sampler("prs", size=200, num_classes=10, seed=0)).max_size
    200
    """

    def __init__(self, sampler: Sampler):
        if sampler.needs or len(sampler):
            what = "an empty sampler that looks at labels alone"
            raise ValueError(f"sampler: {expected(what, sampler)}")
        super().__init__(len(sampler.labels))
        self.sampler = sampler

    def post_adapt(self, agent_state: Any, exp: Any) -> None:
        """Place the samples of an experience; Avalanche calls it after training."""
        self.update_from_dataset(exp.dataset)

    def update_from_dataset(self, new_data: Any) -> None:
        """Place the samples of a data set, in its order (Algorithm 1).

        Raises ValueError for targets that are neither classes nor multi-hot vectors.
        """
        if len(new_data) == 0:
            return
        targets = getattr(new_data, "targets", None)
        if targets is None:  # of make_avalanche_dataset: read every sample
            targets = [new_data[k][1] for k in range(len(new_data))]
        labels = multi_hot(targets, self.sampler.labels.shape[1])
        rows = {slot: len(new_data) + slot for slot in range(len(self.sampler))}
        for row, slot in enumerate(self.sampler.place(labels).tolist()):
            if slot >= 0:
                rows[slot] = row
        self.buffer = new_data.concat(self.buffer).subset(
            [rows[k] for k in sorted(rows)]
        )

    @property
    def buffer_groups(self) -> dict[int, "SamplerBuffer"]:
        """One group of all samples: one of several labels belongs to no class alone."""
        return {0: self}

    @property
    def buffer_datasets(self) -> list:
        """The data sets of the groups, as Avalanche's balanced buffers have them."""
        return [self.buffer]

    def resize(self, strategy: Any, new_size: int) -> None:
        """Refuse a new size: what a sampler keeps depends on it from the start."""
        if new_size != self.max_size:
            what = f"{self.max_size}, the sampler's size"
            raise ValueError(f"new_size: {expected(what, new_size)}")
