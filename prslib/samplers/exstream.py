"""ExStream: class by class, the two closest feature vectors become one."""

from typing import Any, ClassVar

import numpy as np

from prslib.checks import Seed, as_array, expected, finite_array
from prslib.samplers import books
from prslib.samplers.base import Sampler, within
from prslib.samplers.compiling import in_any_order


class ExStream(Sampler):
    """Keep prototypes, in equal shares of the classes (Hayes et al. 2019, Alg. 1).

    Unlike other samplers this one holds what it keeps, since it makes new vectors out
    of old ones: `vectors` gives them for replay.

    Parameters
    ----------
    size, num_classes, seed
        As in `make_sampler`; the classes are known in advance (Appendix, "Baselines").

    Attributes
    ----------
    quota : int64 (C,)
        Slots of each class, m_i.
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

    def __init__(self, size: int, num_classes: int, seed: Seed):
        if num_classes is None:
            advice = "its memory is divided among the classes in advance"
            raise ValueError(expected("num_classes of ExStream", None, advice))
        super().__init__(size, num_classes, seed)
        share, rest = divmod(self.size, self.num_classes)
        self.quota = np.full(self.num_classes, share, np.int64)
        self.quota[self.rng.permutation(self.num_classes)[:rest]] += 1
        self.samples = np.zeros(self.size, np.int64)
        self.prototypes = np.zeros((self.size, 0), np.float32)

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
        features = self._checked(features, len(labels))
        slots = {}
        for b in np.flatnonzero(labels.any(axis=1)):
            classes = np.flatnonzero(labels[b])
            books.count(self.state, classes)
            classes = classes[self.quota[classes] > 0]  # those that have slots
            if len(classes):
                c = books.rarest(classes, self.state.class_counts, uniforms[b, 0])
                slots[b] = self._add(c, features[b])
        return self._of_batch(slots, len(labels))

    def _checked(self, features: Any, count: int) -> np.ndarray:
        """Return features as float32 (B, D); make room for vectors like the first."""
        features = as_array("features", features)
        if features.ndim != 2:
            text = expected(f"shape ({count}, D)", features.shape)
            raise ValueError(f"features: {text}")
        width = self.prototypes.shape[1] or features.shape[1]
        features = finite_array("features", features, (count, width), np.float32)
        if self.prototypes.shape[1] == 0:
            self.prototypes = np.zeros((self.size, width), np.float32)
        return features

    def _of_batch(self, slots: dict[int, Any], count: int) -> np.ndarray:
        """Return slots, those of some rows of a batch, as int64 (B,)."""
        all_slots = np.full(count, -1)
        all_slots[list(slots)] = list(slots.values())
        return all_slots

    def _add(self, c: int, x: Any) -> Any:
        """Add a vector to a class; merge its two closest where it is full (Alg. 1)."""
        slots = self.members(c)
        if len(slots) < self.quota[c]:
            slot = len(self)
            books.store(self.state, np.array([c]), slot)
            self.prototypes[slot] = x
            self.samples[slot] = 1
            return slot
        return self._merge(c, slots, x)

    def _merge(self, c: int, slots: np.ndarray, x: Any) -> Any:
        """Merge the two closest of a full class and a new vector; return its slot."""
        vectors = np.vstack([self.prototypes[slots], x])
        samples = np.append(self.samples[slots], 1)
        first, second = closest(vectors)
        # the vector of the pair's second slot merges into the first; x takes its place
        samples[first] += samples[second]
        share = np.float32(samples[second] / samples[first])
        vectors[first] += share * (vectors[second] - vectors[first])
        vectors[second] = x
        samples[second] = 1
        self.prototypes[slots] = vectors[:-1]
        self.samples[slots] = samples[:-1]
        return int(slots[second] if second < len(slots) else slots[first])


@in_any_order
def closest(vectors: np.ndarray) -> tuple[int, int]:
    """Return the two closest of some vectors; of equal pairs the older."""
    least, pair = np.inf, (0, 0)
    for i in range(1, len(vectors)):
        for j in range(i):
            total = 0.0
            for k in range(vectors.shape[1]):
                gap = np.float64(vectors[i, k]) - vectors[j, k]
                total += gap * gap
            if total < least:
                least, pair = total, (j, i)
    return pair
