"""ExStream: class by class, the two closest feature vectors become one."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from prslib.checks import Seed, as_array, expected, finite_array
from prslib.samplers.base import Sampler, draw_rarest, within


class ExStream(Sampler):
    """Keep prototypes, in equal shares of the classes (Hayes et al. 2019, Alg. 1).

    Unlike other samplers this one holds what it keeps, since it makes new vectors out
    of old ones: `vectors` gives them for replay.

    Parameters
    ----------
    size, num_classes, seed, unlabelled
        As in `make_sampler`; the classes are known in advance (Appendix, "Baselines").

    Attributes
    ----------
    quota : int64 (C,)
        Slots of each class, m_i; with ``unlabelled="class"`` also of samples without a
        label, at the end.
    samples : int64 (m,)
        Samples that the vector in each slot stands for.

    Raises
    ------
    ValueError
        By `place`, if the features do not have the shape (B, D), or one is not finite.

    Notes
    -----
    `place` takes ``features`` beside the labels, float32 (B, D), one vector a sample.
    It returns the slot that a sample fills or into whose vector it merges; -1 where
    none of its labels has a slot. When two older vectors merge they share the slot of
    the first, and the sample fills that of the second.

    A class's part is m // C slots; of the m mod C slots that are left, classes drawn at
    random get one each. A new vector takes a free slot of its class. Where none is
    free, the two vectors of the class that lie closest together in L2, the new one
    included, merge into their mean, weighted by how many samples each stands for. Of
    equal distances the one between older vectors is taken, where a vector is as old as
    the first in its slot.

    What the paper leaves open, and what we chose. It assigns a sample with several
    labels to "the fewest label in the current reservoir"; we count a class's slots in
    use, leave out labels whose class has no slot at all, and break ties at random. The
    vector stands for this one label, in the memory's counts and as the target when it
    is replayed: vectors that merge agree in no other. `labels` therefore has a single
    label a slot, and `class_counts` counts vectors, not the samples merged in them
    (``samples`` counts those).

    Examples
    --------
    >>> sampler = ExStream(size=2, num_classes=2, seed=0)
    >>> features = np.array([[0.0], [4.0], [1.0]], np.float32)
    >>> sampler.place(np.array([[1, 0], [0, 1], [1, 0]], bool), features=features)
    array([0, 1, 0])
    >>> sampler.vectors(np.array([0]))
    array([[0.5]], dtype=float32)
    """

    needs: ClassVar[frozenset[str]] = frozenset({"features"})
    on_gpu: ClassVar[str] = "prslib.exstream_gpu:ExStreamOnGPU"  # if its memory fits

    def __init__(
        self, size: int, num_classes: int, seed: Seed, *, unlabelled: str = "drop"
    ):
        if num_classes is None:
            advice = "its memory is divided among the classes in advance"
            raise ValueError(expected("num_classes of ExStream", None, advice))
        super().__init__(size, num_classes, seed, unlabelled=unlabelled)
        parts = self.num_classes + (unlabelled == "class")
        share, rest = divmod(self.size, parts)
        self.quota = np.full(parts, share, np.int64)
        self.quota[self.rng.permutation(parts)[:rest]] += 1
        self.samples = np.zeros(self.size, np.int64)
        self.prototypes = np.zeros((self.size, 0), np.float32)
        # squared distances of full classes, of the next vector too, (K + 1, K + 1)
        self._gaps: dict[int, Any] = {}

    def add_classes(self, count: int) -> None:
        """Refuse: the memory is divided among the classes in advance."""
        raise TypeError(expected("all classes of ExStream in advance", f"{count} more"))

    def vectors(self, slots: np.ndarray) -> np.ndarray:
        """Return the vectors in filled slots, int64 (K,); float32 (K, D), a copy."""
        return self.prototypes[within("slot", slots, self.size)]

    def choose_batch(
        self, labels: np.ndarray, uniforms: np.ndarray, *, features: np.ndarray
    ) -> np.ndarray:
        """Return the slot of each sample's vector, one sample after the other."""
        if self.prototypes.shape[1] == 0:
            self.prototypes = np.zeros((self.size, features.shape[1]), np.float32)
        slots = {}
        for b, classes in self._taking_part(labels):
            self._count(classes)
            classes = [c for c in classes if self.quota[c] > 0]
            if classes:
                c = draw_rarest(classes, self._counts, uniforms[b, 0])
                slots[b] = self._add(c, features[b])
        return self._of_batch(slots, len(labels))

    def _prepare(self, rows: np.ndarray, *, features: Any) -> dict[str, Any]:
        """Return features as float32 (B, D)."""
        features = as_array("features", features)
        if features.ndim != 2:
            text = expected(f"shape ({len(rows)}, D)", features.shape)
            raise ValueError(f"features: {text}")
        shape = len(rows), self.prototypes.shape[1] or features.shape[1]
        return {"features": finite_array("features", features, shape, np.float32)}

    def _of_batch(self, slots: dict[int, Any], count: int) -> np.ndarray:
        """Return slots, those of some rows of a batch, as int64 (B,)."""
        all_slots = np.full(count, -1)
        all_slots[list(slots)] = list(slots.values())
        return all_slots

    def _add(self, c: int, x: Any) -> Any:
        """Add a vector to a class; merge its two closest where it is full (Alg. 1)."""
        if self._counts[c] < self.quota[c]:
            slot = len(self)
            self._store([c], slot)
            self.prototypes[slot] = x
            self.samples[slot] = 1
            return slot
        return self._merge(c, self.members(c), x)

    def _merge(self, c: int, slots: np.ndarray, x: Any) -> Any:
        """Merge the two closest of a full class and a new vector; return its slot."""
        vectors = np.vstack([self.prototypes[slots], x])
        samples = np.append(self.samples[slots], 1)
        gaps = self._gaps.get(c)
        if gaps is None:
            gaps = self._gaps[c] = np.zeros((len(vectors), len(vectors)))
            for row in range(len(slots)):
                measure(gaps, vectors, row)
        measure(gaps, vectors, len(slots))
        second, first = closest(gaps)
        # the vector of the pair's second slot merges into the first; x takes its place
        samples[first] += samples[second]
        share = np.float32(samples[second] / samples[first])
        vectors[first] += share * (vectors[second] - vectors[first])
        vectors[second] = x
        samples[second] = 1
        measure(gaps, vectors, first)
        measure(gaps, vectors, second)
        self.prototypes[slots] = vectors[:-1]
        self.samples[slots] = samples[:-1]
        return int(slots[second] if second < len(slots) else slots[first])

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on as the sampler whose `state_dict` this is, slot by slot."""
        super().load_state_dict(state)
        self._gaps = {}


def measure(gaps: np.ndarray, vectors: np.ndarray, row: int) -> None:
    """Set a vector's squared distances from all vectors, in ``gaps`` (K, K)."""
    difference = vectors.astype(np.float64) - vectors[row]
    gaps[row] = gaps[:, row] = (difference**2).sum(axis=1)


def closest(gaps: np.ndarray) -> tuple[int, int]:
    """Return the later and the earlier of the two closest; of equal pairs the older."""
    later, earlier = np.tril_indices(len(gaps), -1)  # row by row
    least = gaps[later, earlier].argmin()
    return int(later[least]), int(earlier[least])
