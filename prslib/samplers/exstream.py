"""ExStream: class by class, the two closest feature vectors become one."""

from typing import ClassVar

import numba
import numpy as np

from prslib.samplers.base import Counted, Seed, check_labels, rarest


class ExStream(Counted):
    """Keep prototypes, each class in its own equal part of the memory (Hayes et al. 2019, Alg. 1).

    Unlike other samplers this one holds what it keeps, since it makes new vectors out of old ones:
    `vectors` gives them for replay.

    Parameters
    ----------
    size, num_classes, seed
        As in `make_sampler`; the classes are known in advance (Appendix, "Baselines").

    Notes
    -----
    A class's part is m // C slots; of the m mod C slots that are left, classes drawn at random get
    one each. A new vector takes a free slot of its class. Where none is free, the two vectors of
    the class that lie closest together in L2, the new one included, merge into their mean,
    weighted by how many samples each stands for. Of equal distances the one between older vectors
    is taken, where a vector is as old as the first in its slot.

    What the paper leaves open, and what we chose. It assigns a sample with several labels to "the
    fewest label in the current reservoir"; we count a class's slots in use, leave out labels whose
    class has no slot at all, and break ties at random. The vector stands for this one label, in
    the memory's counts and as the target when it is replayed: vectors that merge agree in no
    other. `labels` therefore has a single label a slot, and `class_counts` counts vectors, not the
    samples merged in them (`samples` counts those).

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

    def __init__(self, size: int, num_classes: int, seed: Seed):
        super().__init__(size, num_classes, seed)
        part, left = divmod(self.size, self.num_classes)
        self._quota = np.full(self.num_classes, part, np.int64)
        self._quota[self._rng.permutation(self.num_classes)[:left]] += 1
        most = part + (left > 0)
        self._slots = np.full((self.num_classes, most), -1, np.int64)  # by class
        self._gaps = np.full((self.num_classes, most, most), np.inf)  # squared distances, j < i
        self._samples = np.zeros(self.size, np.int64)
        self._vectors = np.empty((self.size, 0), np.float32)

    @property
    def quota(self) -> np.ndarray:
        """Slots of each class, m_i; int64 (C,), a copy."""
        return self._quota.copy()

    @property
    def samples(self) -> np.ndarray:
        """Return how many samples each slot's vector stands for; int64 (size,), a copy."""
        return self._samples.copy()

    def vectors(self, slots: np.ndarray) -> np.ndarray:
        """Return the vectors in filled slots, int64 (K,); float32 (K, D), a copy."""
        return self._vectors[slots]

    def place(self, labels: np.ndarray, *, features: np.ndarray) -> np.ndarray:
        """Take a batch of the stream and return the slot of each sample (Alg. 1).

        Parameters
        ----------
        labels : bool (B, C)
            As in `Sampler.place`.
        features : float32 (B, D)
            One vector a sample. Not modified.

        Returns
        -------
        int64 (B,)
            The slot that a sample fills or into whose vector it merges; -1 where none of its
            labels has a slot. When two older vectors merge they share the slot of the first, and
            the sample fills that of the second.

        Raises
        ------
        TypeError
            If ``labels`` is not boolean or ``features`` is not floating.
        ValueError
            If one of them does not have the right shape, or a feature is not finite.
        """
        labels = check_labels(labels, self.num_classes)
        features = self._check(features, len(labels))
        if not self._vectors.shape[1]:
            self._vectors = np.zeros((self.size, features.shape[1]), np.float32)
        slots = np.full(len(labels), -1, np.int64)
        self._count = _place(
            labels, features, self._rng.random(len(labels)), slots, self._count, self._quota,
            self._freq, self._held, self._slots, self._gaps, self._samples, self._labels,
            self._vectors,
        )  # fmt: skip
        return slots

    def _check(self, features: np.ndarray, length: int) -> np.ndarray:
        features = np.asarray(features)
        if features.dtype.kind != "f":
            raise TypeError(f"features: expected floating numbers, got {features.dtype}")
        width = self._vectors.shape[1]
        if features.ndim != 2 or len(features) != length or width not in (0, features.shape[1]):
            raise ValueError(
                f"features: expected shape ({length}, {width or 'D'}), got {features.shape}; "
                "pass one vector a sample, of one length throughout"
            )
        with np.errstate(over="ignore"):  # what is too large for float32 is refused below
            features = np.ascontiguousarray(features, np.float32)
        if not np.isfinite(features).all():
            raise ValueError(
                "features: expected finite float32 numbers, got others, which would stay in the "
                "memory; has the network diverged?"
            )
        return features


@numba.njit(cache=True)
def _place(
    labels, features, uniforms, slots, count, quota,
    freq, held, class_slots, gaps, samples, memory, vectors,
):  # fmt: skip
    """Fill ``slots`` and bring the memory up to date; return how many slots are filled."""
    for b in range(len(labels)):
        c = rarest(np.flatnonzero(labels[b] & (quota > 0)), held, uniforms[b])
        freq += labels[b]
        if c < 0:
            continue
        x, own = features[b], class_slots[c]
        distance = np.empty(held[c])
        for i in range(held[c]):
            distance[i] = _squared(vectors[own[i]], x)
        if held[c] < quota[c]:
            i, slot = held[c], count
            own[i] = slot
            held[c] += 1
            count += 1
            gaps[c, i, :i] = distance
            memory[slot, c] = True
            _fill(slot, x, vectors, samples)
        else:
            second, first = divmod(gaps[c].argmin(), gaps.shape[2])  # infinite: only one vector
            nearest = distance.argmin()
            slot = own[nearest]
            if distance[nearest] < gaps[c, second, first]:
                _merge(slot, x, 1, vectors, samples)
                _measure(gaps[c], nearest, own, held[c], vectors)
            else:
                slot = own[second]
                _merge(own[first], vectors[slot], samples[slot], vectors, samples)
                _fill(slot, x, vectors, samples)
                _measure(gaps[c], first, own, held[c], vectors)
                _measure(gaps[c], second, own, held[c], vectors)
        slots[b] = slot
    return count


@numba.njit(cache=True, fastmath={"reassoc", "contract"})
def _squared(x, y):
    """Return the squared distance; the sum may be regrouped, which makes it vectorised."""
    total = 0.0
    for k in range(len(x)):
        gap = np.float64(x[k]) - np.float64(y[k])
        total += gap * gap
    return total


@numba.njit(cache=True)
def _measure(gaps, i, own, held, vectors):
    """Bring the distances between vector ``i`` of a class and its others up to date."""
    for j in range(held):
        if j != i:
            gaps[max(i, j), min(i, j)] = _squared(vectors[own[i]], vectors[own[j]])


@numba.njit(cache=True)
def _merge(slot, x, weight, vectors, samples):
    share = weight / (samples[slot] + weight)
    for k in range(len(x)):
        vectors[slot, k] += np.float32(share) * (x[k] - vectors[slot, k])
    samples[slot] += weight


@numba.njit(cache=True)
def _fill(slot, x, vectors, samples):
    vectors[slot] = x
    samples[slot] = 1
