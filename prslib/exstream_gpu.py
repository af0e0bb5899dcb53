"""ExStream whose vectors lie on a GPU; `prslib.samplers.exstream` needs numpy alone."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from prslib.checks import Seed, expected
from prslib.device import send
from prslib.samplers.base import within
from prslib.samplers.exstream import ExStream


class ExStreamOnGPU(ExStream):
    """ExStream whose vectors lie on a GPU, where the two closest are found, too.

    The host counts the slots of each class. It waits for the GPU when a batch comes, to
    see that all numbers are finite, and for the slots in which vectors have merged. A
    full class keeps the distances of its vectors: a merge measures those of three.
    """

    # tensors on the GPU, arrays while a state is saved or before the first batch
    prototypes: Any
    samples: Any
    takes_tensors = True  # features as they are on the GPU

    def __init__(self, size: int, num_classes: int, seed: Seed):
        super().__init__(size, num_classes, seed)
        # squared distances of full classes, of the next vector too, (K + 1, K + 1)
        self._gaps: dict[int, Tensor] = {}

    def vectors(self, slots: np.ndarray) -> np.ndarray | Tensor:
        """Return the vectors in filled slots, float32 (K, D), a copy."""
        if isinstance(self.prototypes, np.ndarray):  # it has just gone on
            return super().vectors(slots)
        numbers = torch.from_numpy(within("slot", slots, self.size))
        return self.prototypes[send(numbers, self.prototypes.device)]

    def _prepare(self, rows: np.ndarray, *, features: Tensor) -> dict[str, Any]:
        width = self.prototypes.shape[1] or features.shape[1]
        if features.shape != (len(rows), width):
            what = f"shape {(len(rows), width)}"
            raise ValueError(f"features: {expected(what, tuple(features.shape))}")
        if not features.isfinite().all().cpu():
            text = expected("finite numbers", "others", "has the network diverged?")
            raise ValueError(f"features: {text}")
        if isinstance(self.prototypes, np.ndarray):
            self._to_gpu(features)
        return {"features": features}

    def _to_gpu(self, features: Tensor) -> None:
        """Send the vectors where features lie, or make room for them."""
        stored = torch.from_numpy(self.prototypes)
        self.prototypes = features.new_zeros((self.size, features.shape[1]))
        if stored.shape[1]:
            self.prototypes.copy_(stored)
        self.samples = torch.from_numpy(self.samples).to(features.device)
        self._gaps = {}

    def _of_batch(self, slots: dict[int, Any], count: int) -> np.ndarray:
        merged = {b: slot for b, slot in slots.items() if isinstance(slot, Tensor)}
        if merged:
            numbers = torch.cat(list(merged.values())).cpu().numpy()
            slots = slots | dict(zip(merged, numbers, strict=True))
        return super()._of_batch(slots, count)

    def _merge(self, c: int, slots: np.ndarray, x: Tensor) -> Tensor:
        """Merge as on the host; the pair and its slots are numbers on the GPU."""
        of_class = send(torch.from_numpy(slots), x.device)  # (K,)
        vectors = torch.cat([self.prototypes[of_class], x[None]])  # (K + 1, D)
        samples = torch.cat([self.samples[of_class], self.samples.new_ones(1)])
        rows = torch.arange(len(vectors), device=x.device).split(1)
        gaps = self._gaps.get(c)
        if gaps is None:
            shape = len(rows), len(rows)
            gaps = self._gaps[c] = x.new_empty(shape, dtype=torch.float64)
            for row in rows[:-1]:
                measure(gaps, vectors, row)
        measure(gaps, vectors, rows[-1])
        below = torch.ones_like(gaps, dtype=torch.bool).tril(-1)
        pair = gaps.where(below, torch.inf).argmin().view(1)  # of equal pairs the older
        second, first = pair // len(rows), pair % len(rows)
        total = samples[first] + samples[second]
        share = (samples[second] / total).float()
        vectors[first] += share[:, None] * (vectors[second] - vectors[first])
        vectors[second] = x
        samples[first] = total
        samples[second] = 1
        for row in (first, second):
            measure(gaps, vectors, row)
        self.prototypes[of_class] = vectors[:-1]
        self.samples[of_class] = samples[:-1]
        return torch.cat([of_class, of_class[first]])[second]

    def state_dict(self) -> dict[str, Any]:
        """Return a copy of the state, in arrays."""
        on_gpu = self.prototypes, self.samples
        self._to_host()
        try:
            return super().state_dict()
        finally:
            self.prototypes, self.samples = on_gpu

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a state; the next batch brings the vectors to the GPU."""
        self._to_host()
        super().load_state_dict(state)

    def _to_host(self) -> None:
        self.prototypes = torch.as_tensor(self.prototypes).cpu().numpy()
        self.samples = torch.as_tensor(self.samples).cpu().numpy()


def measure(gaps: Tensor, vectors: Tensor, row: Tensor) -> None:
    """Set a vector's squared distances from all, in ``gaps`` (K, K); ``row`` is (1,)."""
    squares = (vectors - vectors[row]).square().sum(1, dtype=torch.float64)
    gaps.index_copy_(0, row, squares[None])
    gaps.index_copy_(1, row, squares[:, None])
