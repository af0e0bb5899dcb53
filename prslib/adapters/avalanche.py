"""Use a label-only sampler as a storage policy of Avalanche (https://avalanche.continualai.org)."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from prslib.samplers import Sampler

try:
    from avalanche.training.storage_policy import ExemplarsBuffer
except ImportError as error:
    raise ImportError(
        "prslib.adapters.avalanche: expected the package avalanche-lib, found none that imports "
        f"({error}); install it with: pip install avalanche-lib"
    ) from error


class SamplerBuffer(ExemplarsBuffer):
    """Keep the samples that a sampler chooses in an Avalanche buffer (Sec. 3.1).

    Parameters
    ----------
    sampler : Sampler
        An empty sampler that looks at labels alone. Its size is the buffer's ``max_size``.

    Raises
    ------
    TypeError
        If ``sampler`` is no sampler.
    ValueError
        If the sampler needs more than labels, or is not empty.

    Notes
    -----
    Row k of ``buffer`` is the sample in the sampler's slot k. An experience is placed in the order
    of its data set and, by a sampler that decides by batch such as OCDM, as one batch.

    Targets are whole numbers from 0 to C - 1, or multi-hot vectors of length C. Everything else is
    refused: nothing is rounded, cut or replaced by its largest entry.

    Examples
    --------
    >>> from prslib import make_sampler
    >>> SamplerBuffer(make_sampler("prs", size=200, num_classes=10, seed=0)).max_size
    200
    """

    def __init__(self, sampler: Sampler):
        if not isinstance(sampler, Sampler):
            raise TypeError(f"sampler: expected what make_sampler returns, got {sampler!r}")
        if sampler.needs:
            raise ValueError(
                f"sampler: expected one that looks at labels alone, got one that needs "
                f"{', '.join(sorted(sampler.needs))}; choose crs, prs, cbrs or ocdm"
            )
        if len(sampler):
            raise ValueError(
                f"sampler: expected an empty one, got one that holds {len(sampler)} samples; "
                "make a new one for each buffer"
            )
        super().__init__(len(sampler.labels))
        self.sampler = sampler

    def post_adapt(self, agent_state: Any, exp: Any) -> None:
        """Place the samples of an experience; Avalanche calls it after training."""
        self.update_from_dataset(exp.dataset)

    def update_from_dataset(self, new_data: Any) -> None:
        """Place the samples of a data set, in its order (Algorithm 1).

        Parameters
        ----------
        new_data : AvalancheDataset
            With ``targets``.

        Raises
        ------
        TypeError
            If the targets are neither whole numbers nor multi-hot vectors.
        ValueError
            If there are none, a class is out of range or a vector is not multi-hot.
        """
        if len(new_data) == 0:
            return
        if not hasattr(new_data, "targets"):
            raise ValueError(
                "new_data: expected a data set with targets, got one without; "
                "make it with avalanche's as_classification_dataset"
            )
        labels = multi_hot(new_data.targets, self.sampler.labels.shape[1])
        rows = {slot: len(new_data) + slot for slot in range(len(self.sampler))}
        for row, slot in enumerate(self.sampler.place(labels).tolist()):
            if slot >= 0:
                rows[slot] = row
        self.buffer = new_data.concat(self.buffer).subset([rows[k] for k in sorted(rows)])

    def resize(self, strategy: Any, new_size: int) -> None:
        """Refuse a new size: what a sampler keeps depends on its size from the start."""
        if new_size != self.max_size:
            raise ValueError(
                f"new_size: expected {self.max_size}, the sampler's size, got {new_size}; "
                "make a sampler of the size you need"
            )


def multi_hot(targets: Iterable, num_classes: int) -> np.ndarray:
    """Return targets, class numbers or vectors of 0 and 1 throughout, as multi-hot rows.

    Raises TypeError for a single target that is no whole number, ValueError for others.

    Examples
    --------
    >>> multi_hot([2, 0], num_classes=3).astype(int)
    array([[0, 0, 1],
           [1, 0, 0]])
    """
    values = [np.asarray(target) for target in targets]
    shapes = {value.shape for value in values}
    if shapes not in ({()}, {(num_classes,)}):
        raise ValueError(
            f"targets: expected whole numbers, or vectors of {num_classes} classes throughout, got "
            f"shapes {', '.join(map(str, sorted(shapes)))}; a sample with several labels is "
            f"a multi-hot vector of shape ({num_classes},)"
        )
    array = np.stack(values)
    if shapes == {(num_classes,)}:
        if not np.isin(array, (0, 1)).all():
            raise ValueError(
                f"targets: expected vectors of 0 and 1, got {array[~np.isin(array, (0, 1))][0]}; "
                "decide which labels a sample has before it is placed"
            )
        return array.astype(bool)
    if array.dtype.kind not in "iu":
        raise TypeError(f"targets: expected whole numbers, got {array.dtype}; pass class indices")
    outside = array[(array < 0) | (array >= num_classes)]
    if len(outside):
        raise ValueError(
            f"targets: expected classes 0 to {num_classes - 1}, got {outside[0]}; "
            "make the sampler with num_classes of the whole stream"
        )
    return np.arange(num_classes) == array[:, None]
