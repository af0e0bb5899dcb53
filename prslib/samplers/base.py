"""Define what every sampler offers, and share the checks and counts of label-only samplers.

Numba's cache does not see a change here in functions of other files: delete their __pycache__.
"""

import copy
import inspect
from abc import abstractmethod
from collections.abc import Sized
from numbers import Integral
from typing import Any, ClassVar, Protocol, runtime_checkable

import numba
import numpy as np

from prslib.checks import whole

BOOL = np.dtype(np.bool_)  # compared with in every call of ``place``; from np.bool_ it takes longer
Seed = int | np.random.SeedSequence | np.random.Generator


@runtime_checkable
class Sampler(Protocol):
    """Decide which samples of a stream the memory keeps, and where (Sec. 3).

    A sampler never holds images: it answers with slots, and ``prslib.memory.Memory`` stores
    there whatever the batch carries.

    Attributes
    ----------
    needs : frozenset of str
        Names of the keyword arguments that ``place`` wants beside the labels: ``"features"``,
        ``"gradient_products"`` or none. The learner computes and passes these alone.
    class_freq : int64 (C,)
        Samples of each class in the stream so far, n_i.
    class_counts : int64 (C,)
        Samples of each class in the memory, l_i.
    labels : bool (size, C)
        Labels of the sample in each slot; a slot that was never filled has none.
    """

    needs: frozenset[str]

    @property
    def class_freq(self) -> np.ndarray: ...  # noqa: D102

    @property
    def class_counts(self) -> np.ndarray: ...  # noqa: D102

    @property
    def labels(self) -> np.ndarray: ...  # noqa: D102

    def __len__(self) -> int:
        """Return the number of filled slots."""
        ...

    def place(self, labels: np.ndarray, **context: np.ndarray) -> np.ndarray:
        """Take a batch of the stream and return the slot of each sample (Algorithm 1).

        Parameters
        ----------
        labels : bool (B, C)
            Multi-hot labels in stream order. Not modified.
        **context : arrays (B, ...)
            What ``needs`` names, and nothing else.

        Returns
        -------
        int64 (B,)
            Slot of each sample, -1 for none; of equal slots the later sample holds it.
        """
        ...


class Base(Sized):
    """Check what every sampler is made from; show its counts; save and restore it."""

    _count: Any
    _freq: Any
    _held: Any

    def __init__(self, size: int, num_classes: int, seed: Seed):
        self.size = whole("size", size, least=1)
        self.num_classes = whole("num_classes", num_classes, least=1)
        self._rng = generator(seed)

    def __len__(self) -> int:
        """Return the number of filled slots."""
        return self._count

    @property
    def class_freq(self) -> np.ndarray:
        """Samples of each class in the stream so far, n_i; int64 (C,), a copy."""
        return self._freq.copy()

    @property
    def class_counts(self) -> np.ndarray:
        """Samples of each class in the memory, l_i; int64 (C,), a copy."""
        return self._held.copy()

    def _arguments(self) -> dict[str, Any]:
        """Return what the sampler was made with, beside its seed."""
        names = [name for name in inspect.signature(type(self)).parameters if name != "seed"]
        return {name: getattr(self, name) for name in names}

    def __repr__(self) -> str:
        """Return what the sampler was made with, and how many slots are filled."""
        arguments = ", ".join(f"{name}={value!r}" for name, value in self._arguments().items())
        return f"<{type(self).__name__}({arguments}), {len(self)} slots filled>"

    def state_dict(self) -> dict[str, Any]:
        """Return a copy of the whole state: arrays and plain values, the generator's included.

        Examples
        --------
        >>> from prslib import make_sampler
        >>> sampler, other = (make_sampler("crs", 2, num_classes=3, seed=seed) for seed in (0, 1))
        >>> other.load_state_dict(sampler.state_dict())
        >>> other
        <CRS(size=2, num_classes=3), 0 slots filled>
        """
        state = {"sampler": type(self).__name__, **self._arguments()}
        state["generator"] = self._rng.bit_generator.state
        for name, value in vars(self).items():
            if hasattr(value, "_fields"):  # a NamedTuple of arrays
                state |= {f"{name}.{field}": part for field, part in value._asdict().items()}
            elif name.startswith("_") and name != "_rng":
                state[name] = value
        return copy.deepcopy(state)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on as the sampler that ``state_dict`` was called of, slot by slot.

        Raises
        ------
        ValueError
            If the state is of another sampler, size, number of classes or option, or not whole.
        """
        own = self.state_dict()
        made = {name: own[name] for name in ("sampler", *self._arguments())}
        given = {name: state.get(name) for name in made}
        if given != made:
            raise ValueError(
                f"state: expected one of {made}, got one of {given}; make the sampler as it was"
            )
        alike = {name: np.asarray(own[name]).dtype.str for name in own if name[0] == "_"}
        found = {name: np.asarray(state[name]).dtype.str for name in state if name[0] == "_"}
        bits = getattr(np.random, state.get("generator", {}).get("bit_generator", ""), None)
        if alike != found or bits is None:
            wrong = sorted(name for name in alike | found if alike.get(name) != found.get(name))
            raise ValueError(
                f"state: expected what state_dict returned, got others for {wrong or 'generator'}"
            )
        state = copy.deepcopy(state)
        self._rng = np.random.Generator(bits())
        self._rng.bit_generator.state = state["generator"]
        for name, value in vars(self).items():
            if hasattr(value, "_fields"):
                parts = (state[f"{name}.{field}"] for field in value._fields)
                setattr(self, name, type(value)(*parts))
            elif name in found:
                setattr(self, name, state[name])


class Counted(Base):
    """Hold labels and counts in plain arrays, which a subclass keeps up to date."""

    listed: ClassVar[bool] = False  # labels are held as rows of class numbers, -1 beyond the last

    def __init__(self, size: int, num_classes: int, seed: Seed):
        super().__init__(size, num_classes, seed)
        self._count = 0
        self._freq = np.zeros(self.num_classes, np.int64)
        self._held = np.zeros(self.num_classes, np.int64)
        width, kind = (0, np.int32) if self.listed else (self.num_classes, np.bool_)
        self._labels = np.zeros((self.size, width), kind)

    @property
    def labels(self) -> np.ndarray:
        """Labels of the sample in each slot; bool (size, C), a copy."""
        if not self.listed:
            return self._labels.copy()
        labels = np.zeros((self.size, self.num_classes), np.bool_)
        slots, columns = np.nonzero(self._labels >= 0)
        labels[slots, self._labels[slots, columns]] = True
        return labels

    def _widen(self, row: np.ndarray) -> None:
        """Make room for samples of as many labels as a multi-hot row has."""
        more = row.sum() - self._labels.shape[1]
        self._labels = np.pad(self._labels, ((0, 0), (0, more)), constant_values=-1)


class LabelSampler(Base):
    """Share what samplers that look at labels alone have in common (Sec. 3).

    A subclass sets ``draws``, keeps its state in ``_decide`` and offers the counts as properties.

    Notes
    -----
    Each sample consumes ``draws`` uniform numbers whether or not it needs them. Where a stream is
    cut into batches therefore changes nothing: same stream, same seed, same slots. A sampler that
    decides a batch as a whole, such as OCDM, says so by ``decides_by_batch``.
    """

    needs: ClassVar[frozenset[str]] = frozenset()
    draws: ClassVar[int] = 1
    decides_by_batch: ClassVar[bool] = False

    def place(self, labels: np.ndarray) -> np.ndarray:
        """Take a batch of the stream and return the slot of each sample (Algorithm 1).

        Parameters and return value are those of `Sampler.place`. A sample with no label never
        enters and counts nowhere.

        Raises
        ------
        TypeError
            If ``labels`` is not boolean.
        ValueError
            If ``labels`` does not have the shape (B, C).
        """
        labels = check_labels(labels, self.num_classes)
        uniforms = self._rng.random((len(labels), self.draws))
        slots = np.empty(len(labels), np.int64)
        self._decide(labels, uniforms, slots)
        return slots

    @abstractmethod
    def _decide(self, labels: np.ndarray, uniforms: np.ndarray, slots: np.ndarray) -> None:
        """Write the slot of each sample into ``slots``."""


class Compiled(LabelSampler):
    """Show the counts in the named tuple of arrays that compiled functions keep."""

    _state: Any
    _count = property(lambda self: int(self._state.totals[0]))
    _freq = property(lambda self: self._state.class_freq)
    _held = property(lambda self: self._state.class_counts)


def generator(seed: Seed) -> np.random.Generator:
    """Return the generator of a sampler's decisions; raise TypeError for another kind of seed."""
    if isinstance(seed, bool) or not isinstance(seed, Seed | Integral):
        raise TypeError(
            f"seed: expected an int, SeedSequence or Generator, got {seed!r}; "
            "pass one, so that the run can be repeated"
        )
    if isinstance(seed, Integral):  # spawned from: a stream is often drawn from the int itself
        (seed,) = np.random.SeedSequence(int(seed)).spawn(1)
    return np.random.default_rng(seed)


def check_labels(labels: np.ndarray, num_classes: int) -> np.ndarray:
    """Return bool labels (B, C) as compiled code wants them, a copy where needed; refuse others."""
    if isinstance(labels, np.ma.MaskedArray) and np.ma.is_masked(labels):
        raise ValueError(
            "labels: expected yes or no for every class, got masked entries; fill them"
        )
    labels = np.asarray(labels, order="C")
    if labels.dtype != BOOL:
        advice = "convert multi-hot labels by .astype(bool)"
        if labels.ndim == 1 and labels.dtype.kind in "iu":
            advice = f"make class numbers y multi-hot: np.eye({num_classes}, dtype=bool)[y]"
        raise TypeError(f"labels: expected bool, got {labels.dtype}; {advice}")
    if labels.ndim != 2 or labels.shape[1] != num_classes:
        raise ValueError(
            f"labels: expected shape (B, {num_classes}), got {labels.shape}; "
            "pass one row a sample and one column a class"
        )
    return labels if labels.flags.writeable else labels.copy()


@numba.njit(cache=True, forceinline=True)
def read_labels(labels, b, own):
    """Write the classes of a multi-hot row into ``own``; return how many."""
    count = 0
    for c in range(labels.shape[1]):  # without a branch
        own[count] = c
        count += labels[b, c]
    return count


@numba.njit(cache=True)
def rarest(own, counts, uniform):
    """Return which of these classes has the least count, a random one of several; -1 for none."""
    ties, tied = 0, np.empty_like(own)
    for c in own:
        if ties == 0 or counts[c] <= counts[tied[0]]:
            ties = ties if ties and counts[c] == counts[tied[0]] else 0
            tied[ties] = c
            ties += 1
    return tied[int(uniform * ties)] if ties else -1
