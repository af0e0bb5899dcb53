"""ExStream: a memory that merges the two closest feature vectors of a class."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from prslib.checks import Seed, as_array, expected, finite_array
from prslib.memory import allocate, as_tensor, check_slots, is_tensor, take
from prslib.samplers.base import Sampler, draw_rarest


class ExStream(Sampler):
    """Keep prototypes of the classes' features (Hayes et al. 2019, Alg. 1).

    Each class has an equal share of the memory. When the share of a class is full, the
    two closest vectors of the class merge into their weighted mean. Unlike other
    samplers, ExStream stores its vectors, because it makes new vectors from old ones.
    `vectors` returns the stored vectors for replay.

    Parameters
    ----------
    size : int
        Capacity of the memory m, in vectors.
    num_classes : int
        Number of classes C, which must be known in advance (Appendix, "Baselines").
    seed : int, SeedSequence or Generator
        Source of every random decision.
    unlabelled : {"drop", "class"}
        Whether samples without a label are dropped or form an additional class.

    Attributes
    ----------
    quota : int64 (C,)
        Number of slots of each class, m_i. With ``unlabelled="class"``, a last entry
        contains the number of slots for samples without a label.
    samples : int64 (m,)
        Number of samples that the vector in each slot represents.
    prototypes : float32 (m, D)
        The vectors. They are a tensor on the device of the features if the features are
        tensors, and otherwise an array.

    Raises
    ------
    ValueError
        If ``num_classes`` is None, or if `place` receives features that do not have the
        shape (B, D) or are not all finite.

    Notes
    -----
    `place` receives the labels and ``features``, float32 (B, D). For each sample, it
    returns the slot that the sample fills or the slot of the vector with which the
    sample merges, or -1 if none of its labels has a slot. When two older vectors merge,
    the result remains in the slot of the first vector, and the sample fills the slot of
    the second vector.

    A class has m // C slots, and the m mod C slots that are left are given to classes
    that are drawn at random. A new vector fills a free slot of its class. If the class
    has no free slot, the two vectors with the smallest Euclidean distance are replaced
    by their mean; one of them may be the new vector. In this mean, each vector is
    weighted by the number of samples that it represents. If distances are equal, the
    older vectors merge; a vector is as old as the first sample in its slot.

    The PRS paper assigns a sample with several labels to "the fewest label in the
    current reservoir". In prslib, this is the label with the fewest slots in use, among
    the sample's labels that have a slot at all; ties are broken at random. Vectors that
    merge have only this label in common. Therefore a vector represents only this label,
    both in the counts of the memory and as the target in replay: `labels` has one label
    per slot, and `class_counts` counts vectors. In contrast, ``samples`` counts the
    merged samples.

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
    draws = 0  # it uses ``rng`` instead, after the features are checked

    def __init__(
        self, size: int, num_classes: int, seed: Seed, *, unlabelled: str = "drop"
    ):
        if num_classes is None:
            raise ValueError(expected("num_classes of ExStream", None))
        super().__init__(size, num_classes, seed, unlabelled=unlabelled)
        parts = self.num_classes + (unlabelled == "class")
        share, rest = divmod(self.size, parts)
        self.quota = np.full(parts, share)
        self.quota[self.rng.permutation(parts)[:rest]] += 1
        self.samples = np.zeros(self.size, np.int64)
        self.prototypes: Any = np.zeros((self.size, 0), np.float32)
        # squared distances between the vectors of each full class, see `_measure`
        self._gaps: dict[int, np.ndarray] = {}

    def add_classes(self, count: int) -> None:
        """Refuse, because the memory is divided among the classes in advance."""
        raise TypeError(expected("all classes of ExStream in advance", f"{count} more"))

    def vectors(self, slots: np.ndarray) -> Any:
        """Return the vectors in some slots, for replay.

        Parameters
        ----------
        slots : int64 (K,)
            Filled slots, as `prslib.Memory.draw` returns them.

        Returns
        -------
        float32 (K, D)
            A copy of the vectors: a tensor if the features were tensors, and otherwise
            an array.
        """
        return take(self.prototypes, check_slots(slots, 0, self.size))

    def choose_batch(
        self, labels: np.ndarray, uniforms: np.ndarray, *, features: Any
    ) -> np.ndarray:
        """Add the samples one by one; return the slot of each sample's vector."""
        features = self._check(features, len(labels))
        ties = self.rng.random(len(labels))
        slots = np.full(len(labels), -1)
        for b, classes in self._taking_part(labels):
            self._count(classes)
            classes = [c for c in classes if self.quota[c] > 0]
            if classes:
                c = draw_rarest(classes, self._counts, ties[b])
                slots[b] = self._add(c, features[b])
        return slots

    def _check(self, features: Any, length: int) -> Any:
        """Check and return features (length, D); move the vectors to their device."""
        stored = self.prototypes
        shape = length, stored.shape[1] or np.shape(features)[-1]
        if is_tensor(features):
            features = features.detach().float()
            if features.shape != shape or not features.isfinite().all().cpu():
                got = f"shape {(*features.shape,)} or others"
                text = expected(f"finite numbers of shape {shape}", got)
                raise ValueError(f"features: {text}")
        else:
            features = finite_array("features", features, shape, np.float32)
        if type(features) is type(stored) and stored.shape[1]:
            return features
        prototypes = allocate(features, self.size)
        if stored.shape[1]:  # arrays so far and now tensors, or the other way round
            vectors = as_array("prototypes", stored).astype(np.float32)
            is_array = isinstance(features, np.ndarray)
            prototypes[:] = vectors if is_array else as_tensor(vectors, features)
        self.prototypes = prototypes
        return features

    def _add(self, c: int, x: Any) -> int:
        """Add a vector (D,); merge the closest two if the class is full (Alg. 1)."""
        if self._counts[c] < self.quota[c]:
            slot = len(self)
            self._store([c], slot)
            self.prototypes[slot] = x
            self.samples[slot] = 1
            return slot
        return self._merge(c, self.members(c), x)

    def _merge(self, c: int, slots: np.ndarray, x: Any) -> int:
        """Merge the closest two of a full class and a new vector; return the latter's slot."""
        size = len(slots)
        gaps = self._gaps.get(c)
        if gaps is None:  # the new vector has the last row
            gaps = self._gaps[c] = np.full((size + 1, size + 1), np.inf)
            for row, slot in enumerate(slots):
                self._measure(gaps, row, slots, self.prototypes[slot])
        self._measure(gaps, size, slots, x)
        second, first = divmod(int(gaps.argmin()), size + 1)  # the older of equal pairs
        other, count = x, 1
        if second < size:
            other, count = self.prototypes[slots[second]], self.samples[slots[second]]
        kept = slots[first]
        self.samples[kept] += count
        share = float(np.float32(count / self.samples[kept]))
        self.prototypes[kept] += share * (other - self.prototypes[kept])
        self._measure(gaps, first, slots, self.prototypes[kept])
        if second == size:
            return kept
        self.prototypes[slots[second]] = x
        self.samples[slots[second]] = 1
        self._measure(gaps, second, slots, x)
        return slots[second]

    def _measure(self, gaps: np.ndarray, row: int, slots: np.ndarray, x: Any) -> None:
        """Set the squared distances of one vector, below the diagonal of ``gaps``."""
        vectors = take(self.prototypes, slots)  # (K, D)
        if is_tensor(vectors):
            squares = (vectors - x).double().square().sum(1).cpu().numpy()
        else:
            squares = ((vectors.astype(np.float64) - x) ** 2).sum(axis=1)
        gaps[row, :row] = squares[:row]
        gaps[row + 1 : -1, row] = squares[row + 1 :]

    def state_dict(self) -> dict[str, Any]:
        """Return a copy of the state: arrays and numbers, which `np.savez` can save."""
        vectors = self.prototypes
        if is_tensor(vectors):
            vectors = vectors.cpu().numpy()
        return super().state_dict() | {"prototypes": vectors.copy()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state that `state_dict` returned; every vector keeps its slot."""
        super().load_state_dict(state)
        self.prototypes = np.asarray(state["prototypes"]).astype(np.float32)
        self._gaps = {}
