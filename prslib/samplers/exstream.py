"""ExStream: class by class, the two closest feature vectors become one."""

from typing import Any, ClassVar

import numpy as np

from prslib.checks import bool_labels
from prslib.samplers import books
from prslib.samplers.base import Sampler, Seed
from prslib.samplers.compiling import compiled, in_any_order
from prslib.samplers.states import expect


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

    Notes
    -----
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

    def __init__(self, size: int, num_classes: int, seed: Seed):
        super().__init__(size, num_classes, seed)
        share, rest = divmod(self.size, self.num_classes)
        self.quota = np.full(self.num_classes, share, np.int64)
        self.quota[self.rng.permutation(self.num_classes)[:rest]] += 1
        self.samples = np.zeros(self.size, np.int64)
        self.prototypes = np.zeros((self.size, 0), np.float32)
        self._gaps = np.empty((0, 0, 0))
        self._measure_all()

    def vectors(self, slots: np.ndarray) -> np.ndarray:
        """Return the vectors in filled slots, int64 (K,); float32 (K, D), a copy."""
        return self.prototypes[slots]

    def place(
        self, labels: np.ndarray, *, features: np.ndarray | None = None
    ) -> np.ndarray:
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
            The slot that a sample fills or into whose vector it merges; -1 where none
            of its labels has a slot. When two older vectors merge they share the slot
            of the first, and the sample fills that of the second.

        Raises
        ------
        TypeError
            If ``labels`` is not boolean, or ``features`` is missing or not floating.
        ValueError
            If one of them does not have the right shape, or a feature is not finite.
        """
        labels = bool_labels(labels, self.num_classes)
        if features is None:
            self._refuse({})
        width = self.prototypes.shape[1]
        features = checked_features(features, len(labels), width)
        if width == 0:
            self.prototypes = np.zeros((self.size, features.shape[1]), np.float32)
        return super().place(labels, features=features)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on as the sampler whose `state_dict` this is; see `Sampler`."""
        before = self.prototypes
        width = getattr(state.get("prototypes"), "shape", (0,))[-1:]  # any width fits
        self.prototypes = np.zeros((self.size, *width), np.float32)
        try:
            super().load_state_dict(state)
        except ValueError:
            self.prototypes = before
            raise
        self._measure_all()

    def check_state(self, state: dict[str, Any]) -> None:
        """Refuse what does not fit a part of the memory for each class."""
        labels, quota, samples = state["labels"], state["quota"], state["samples"]
        share = self.size // self.num_classes
        right = quota.sum() == self.size and np.isin(quota, (share, share + 1)).all()
        expect("quota", right, f"{self.size} slots in equal shares", quota)
        right = (labels.sum(axis=1) <= 1).all() and (labels.sum(axis=0) <= quota).all()
        expect(
            "labels", right, "one a slot, and no more of a class than its quota", labels
        )
        right = ((samples > 0) == labels.any(axis=1)).all() and (samples >= 0).all()
        right = right and samples.sum() <= state["seen"]
        expect("samples", right, f"1 and more a slot, at most {state['seen']}", samples)
        finite = np.isfinite(state["prototypes"]).all()
        expect("prototypes", finite, "finite numbers", "others")

    def _decide(
        self,
        labels: np.ndarray,
        uniforms: np.ndarray,
        slots: np.ndarray,
        features: np.ndarray,
    ) -> None:
        mine = self.quota, self._gaps, self.samples, self.prototypes
        self._run(place, labels, features, uniforms[:, 0], slots, mine)

    def _measure_all(self) -> None:
        """Compute the squared distances between the vectors of each class, j < i."""
        most = self.quota.max()
        self._gaps = np.full((self.num_classes, most, most), np.inf)
        for c in range(self.num_classes):
            slots = books.members_of(self.state, c)
            for i in range(len(slots)):
                measure(self._gaps[c], i, slots[: i + 1], self.prototypes)


def checked_features(features: np.ndarray, length: int, width: int) -> np.ndarray:
    """Return features as float32 (B, D); refuse what is not finite."""
    features = np.asarray(features)
    if features.dtype.kind != "f":
        raise TypeError(f"features: expected floating numbers, got {features.dtype}")
    right = features.ndim == 2 and len(features) == length
    if not right or width not in (0, features.shape[1]):
        raise ValueError(
            f"features: expected shape ({length}, {width or 'D'}), "
            f"got {features.shape}; pass one vector a sample, of one length throughout"
        )
    with np.errstate(over="ignore"):  # what is too large for float32 is refused below
        features = np.ascontiguousarray(features, np.float32)
    if not np.isfinite(features).all():
        raise ValueError(
            "features: expected finite float32 numbers, got others, which would stay "
            "in the memory; has the network diverged?"
        )
    return features


@compiled
def place(arrays, begin, labels, features, uniforms, slots, mine):
    """Write the slots from ``begin`` on; return where a class has no room, else -1."""
    state = books.State(*arrays)
    quota, gaps, samples, vectors = mine
    scratch = np.empty(labels.shape[1] + 1, np.int64)
    for b in range(begin, len(labels)):
        classes = books.list_classes(labels[b], scratch)
        if len(classes) > 0:
            if not books.has_room(state, classes):
                return b
            books.count(state, classes)
            classes = classes[quota[classes] > 0]  # those that have slots
        if len(classes) > 0:
            c = books.rarest(classes, state.class_counts, uniforms[b])
            slots[b] = add(state, c, features[b], quota[c], gaps[c], samples, vectors)
    return -1


@compiled
def add(state, c, x, quota, gaps, samples, vectors):
    """Add a vector to a class; merge its two closest where it is full (Alg. 1)."""
    slots = books.members_of(state, c)
    if len(slots) < quota:
        slot = state.filled[0]
        books.store(state, np.array([c]), slot)
        vectors[slot], samples[slot] = x, 1
        measure(gaps, len(slots), books.members_of(state, c), vectors)
        return slot
    nearest, distance = 0, np.inf
    for i in range(len(slots)):
        gap = squared_distance(vectors[slots[i]], x)
        if gap < distance:
            nearest, distance = i, gap
    second, first = divmod(gaps.argmin(), gaps.shape[1])  # of the older vectors
    if distance < gaps[second, first]:
        merge(slots[nearest], x, 1, vectors, samples)
        measure(gaps, nearest, slots, vectors)
        return slots[nearest]
    keeps, gives = slots[first], slots[second]
    merge(keeps, vectors[gives], samples[gives], vectors, samples)
    vectors[gives], samples[gives] = x, 1
    measure(gaps, first, slots, vectors)
    measure(gaps, second, slots, vectors)
    return gives


@in_any_order
def squared_distance(x, y):
    """Return the squared distance of two float32 vectors, summed in float64."""
    total = 0.0
    for k in range(len(x)):
        gap = np.float64(x[k]) - np.float64(y[k])
        total += gap * gap
    return total


@compiled
def measure(gaps, i, slots, vectors):
    """Bring the distances between vector ``i`` of a class and its others up to date."""
    for j in range(len(slots)):
        if j != i:
            gap = squared_distance(vectors[slots[i]], vectors[slots[j]])
            gaps[max(i, j), min(i, j)] = gap


@compiled
def merge(slot, x, weight, vectors, samples):
    """Merge a vector that stands for ``weight`` samples into the one in a slot."""
    samples[slot] += weight
    share = np.float32(weight / samples[slot])
    for k in range(len(x)):
        vectors[slot, k] += share * (x[k] - vectors[slot, k])
