"""The base of all samplers: it checks labels, draws numbers and keeps all counts."""

import copy
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from prslib.checks import Seed, expected, generator_of, multi_hot, whole
from prslib.samplers import books, states


class Sampler:
    """Decide which samples of a stream the memory keeps, and where (Sec. 3).

    A sampler of one's own inherits from this class and defines `choose`. The base
    checks labels, draws random numbers, stores labels, keeps all counts, saves and
    restores them. A sampler never stores inputs: it answers with slots, and
    `prslib.Memory` stores there whatever belongs to the samples. Several threads may
    use one sampler: a lock lets one at a time change it.

    Parameters
    ----------
    size : int
        Capacity of the memory m, in samples.
    num_classes : int or None
        Number of classes C. None where it is not known: classes are then added as they
        come.
    seed : int, SeedSequence or Generator
        Source of every random decision.

    Attributes
    ----------
    needs : frozenset of str
        Keyword arguments that `place` takes beside the labels: ``"features"``,
        ``"gradient_products"`` or none. A training run computes and passes these alone.
    draws : int
        Uniform numbers that `choose` gets for each sample.
    rng : Generator
        For further random decisions.

    Raises
    ------
    ValueError
        If ``size`` or ``num_classes`` is below 1.
    TypeError
        If one of them is not an integer, or ``seed`` cannot seed a generator.

    Notes
    -----
    Options are keyword-only parameters of ``__init__`` and attributes of the same name.
    A further attribute without a leading underscore that is an array or a number
    belongs to the state: `state_dict` saves it.

    Each sample takes ``draws`` uniform numbers whether or not it needs them. The same
    stream and seed therefore give the same slots, however the stream is cut.

    Examples
    --------
    >>> class Newest(Sampler):
    ...     def choose(self, y, u):
    ...         return self.seen % self.size
    >>> Newest(size=2, num_classes=3, seed=0).place(np.eye(3, dtype=bool))
    array([0, 1, 0])
    """

    needs: ClassVar[frozenset[str]] = frozenset()
    draws: ClassVar[int] = 1
    # compiled ones cannot, and the generator's state takes time to read
    _may_fail: ClassVar[bool] = True

    def __init__(self, size: int, num_classes: int | None, seed: Seed):
        self._lock = threading.RLock()
        self._grows = num_classes is None
        self.size = whole("size", size, least=1)
        self.num_classes = 0
        if num_classes is not None:
            self.num_classes = whole("num_classes", num_classes, least=1)
        self.rng = generator_of(seed)
        self._arrays = books.empty(self.size, self.num_classes)

    def choose(self, y: np.ndarray, u: np.ndarray, **row: np.ndarray) -> int:
        """Return the slot of the next sample, -1 to drop it.

        Parameters
        ----------
        y : bool (C,)
            Its labels, at least one. Not yet counted in `seen` and `class_freq`.
        u : float64 (draws,)
            Uniform numbers in [0, 1).
        **row
            The sample's row of each array that ``needs`` names.

        Returns
        -------
        int
            -1, a filled slot, or the next free one, which is ``len(self)``.
        """
        raise TypeError(f"{type(self).__name__}: expected a method choose(self, y, u)")

    def choose_batch(
        self, labels: np.ndarray, uniforms: np.ndarray, **context: Any
    ) -> np.ndarray:
        """Return the slots of a batch; by default those that `choose` returns.

        Override it to decide a batch as a whole, in place of `choose`. Where the stream
        is cut into batches then matters.

        Parameters
        ----------
        labels : bool (B, C)
            Labels in stream order. A sample without a label must get -1.
        uniforms : float64 (B, draws)
            Uniform numbers in [0, 1).
        **context
            As `place` gets it.

        Returns
        -------
        int64 (B,)
            As `choose` returns them, one after the other. `place` then calls `follow`
            for each, unless this method has done so.
        """
        slots = np.full(len(labels), -1)
        with self._as_before_on_error():
            for b in np.flatnonzero(labels.any(axis=1)):
                row = {name: values[b] for name, values in context.items()}
                slot = self.choose(labels[b], uniforms[b], **row)
                self.follow(labels[b], slot)
                slots[b] = slot
        return slots

    def place(self, labels: Any, **context: Any) -> np.ndarray:
        """Take a batch of the stream and return the slot of each sample (Algorithm 1).

        A sample with no label never enters and counts nowhere. After an error the
        sampler is as it was.

        Parameters
        ----------
        labels : array_like
            Labels in stream order, not modified: multi-hot (B, C), bool or 0 and 1 of
            any type; or class numbers, (B,); or a list with the class numbers of each
            sample.
        **context
            What ``needs`` names, and nothing else: an array with a row a sample, or
            what the sampler's page says.

        Returns
        -------
        int64 (B,)
            Slot of each sample, -1 for none. Of equal slots the later sample stays.

        Raises
        ------
        TypeError
            If ``labels`` is no array of numbers, or masked, or ``context`` is not what
            ``needs`` names.
        ValueError
            If ``labels`` has another shape, or values that are no labels.
        """
        labels = self._labels(labels)
        if (context or self.needs) and context.keys() != self.needs:
            what = f"the keywords {sorted(self.needs) or 'none'}"
            text = expected(what, sorted(context) or "none")
            raise TypeError(f"{type(self).__name__}.place: {text}")
        with self._lock:
            generator = self.rng.bit_generator.state if self._may_fail else None
            seen = self.seen
            try:
                uniforms = self.rng.random((len(labels), self.draws))
                slots = self.choose_batch(labels, uniforms, **context)
                if self.seen == seen:
                    self._follow_all(labels, slots)
            except BaseException:
                if generator:
                    self.rng.bit_generator.state = generator
                raise
        return slots

    def _labels(self, labels: Any) -> np.ndarray:
        """Return multi-hot labels, bool (B, C); add classes where they are new."""
        known = None if self._grows else self.num_classes
        labels = multi_hot(labels, known)
        if self._grows:
            self.add_classes(labels.shape[1])
            more = self.num_classes - labels.shape[1]
            labels = np.pad(labels, ((0, 0), (0, more)))
        return labels

    def _follow_all(self, labels: np.ndarray, slots: Any) -> None:
        """Follow a batch, all of it or, where a slot is wrong, nothing."""
        if (
            np.shape(slots) != (len(labels),)
            or np.asarray(slots).dtype.kind not in "iu"
        ):
            what = f"{len(labels)} whole numbers as slots"
            text = expected(what, repr(slots))
            raise TypeError(f"{type(self).__name__}.choose_batch: {text}")
        with self._as_before_on_error():
            for y, slot in zip(labels, slots, strict=True):
                self._follow(np.flatnonzero(y), slot)

    @contextmanager
    def _as_before_on_error(self) -> Iterator[None]:
        arrays = tuple(array.copy() for array in self._arrays)
        extras = copy.deepcopy(states.extras(self))
        try:
            yield
        except BaseException:
            self._arrays = arrays
            vars(self).update(extras)
            raise

    def add_classes(self, num_classes: int) -> None:
        """Let the sampler know ``num_classes`` classes in all; new ones have no sample.

        Decisions are those of a sampler that knew all classes from the start.

        Parameters
        ----------
        num_classes : int
            Number of classes C from now on. Fewer than before change nothing.

        Examples
        --------
        >>> from prslib import make_sampler
        >>> sampler = make_sampler("PRS", size=2, num_classes=None, seed=0)
        >>> sampler.place([[0], [0, 2]])
        array([0, 1])
        >>> sampler.class_counts
        array([2, 0, 1])
        """
        more = num_classes - self.num_classes
        if more <= 0:
            return
        with self._lock:
            for name, value in vars(self).items():
                if name in self.by_class:
                    vars(self)[name] = np.pad(value, (0, more))
            self._arrays = books.with_classes(self._arrays, num_classes)
            self.num_classes = num_classes

    by_class: ClassVar[tuple[str, ...]] = ()

    def follow(self, y: np.ndarray, slot: int) -> None:
        """Count a sample and store its labels in a slot (Algorithm 1, lines 5 and 9).

        `place` does this itself. Call it to keep the books for another sampler's
        decisions, and `place` no more: samplers that count for themselves, such as
        CBRS, are not told.

        Parameters
        ----------
        y : bool (C,)
            Labels of the sample.
        slot : int
            Its slot, -1 for none.

        Raises
        ------
        TypeError
            If ``y`` is not boolean.
        ValueError
            If ``y`` does not have the shape (C,), or the slot is neither -1, nor
            filled, nor the next free one.
        """
        y = self._one(y)
        with self._lock:
            self._follow(np.flatnonzero(y), slot)

    def _follow(self, classes: np.ndarray, slot: int) -> None:
        """Count a sample of some classes and store it in a slot."""
        last = min(len(self), self.size - 1) if len(classes) else -1
        if not isinstance(slot, Integral) or not -1 <= slot <= last:
            advice = "slots fill in order, the next free one is len(self)"
            text = expected(f"a whole number from -1 to {last}", repr(slot), advice)
            raise ValueError(f"{type(self).__name__}: {text}")
        if len(classes) == 0:
            return
        while not books.follow(self._arrays, classes, slot):
            self._arrays = books.enlarged(self._arrays, len(classes))

    def _one(self, y: Any) -> np.ndarray:
        """Return the labels of one sample, bool (C,)."""
        y = np.asarray(y)
        if y.dtype == bool:
            (y,) = self._labels(y[None])
            return y
        if y.ndim == 1 and len(y) == self.num_classes and np.isin(y, (0, 1)).all():
            what = "a sample's labels as bool, or its class numbers"
            advice = f"write np.array({y.tolist()}, dtype=bool) for multi-hot labels"
            raise ValueError(f"labels: {expected(what, y.tolist(), advice)}")
        (y,) = self._labels([y.ravel()])
        return y

    @property
    def state(self) -> books.State:
        """The counts and lists that the base keeps: views."""
        return books.state_of(self._arrays)

    def __len__(self) -> int:
        """Return the number of filled slots."""
        return int(self.state.filled[0])

    @property
    def seen(self) -> int:
        """Samples of the stream that have a label."""
        return int(self._arrays[0][0])

    @property
    def class_freq(self) -> np.ndarray:
        """Samples of each class in the stream so far, n_i; int64 (C,), a copy."""
        return self.state.class_freq.copy()

    @property
    def class_counts(self) -> np.ndarray:
        """Samples of each class in the memory, l_i; int64 (C,), a copy."""
        return self.state.class_counts.copy()

    @property
    def labels(self) -> np.ndarray:
        """Labels in each slot, none in a free one; bool (m, C), a copy."""
        return self.labels_of(np.arange(self.size))

    def labels_of(self, slots: np.ndarray) -> np.ndarray:
        """Return the labels of the samples in some slots, int64 (K,); bool (K, C).

        Raises
        ------
        IndexError
            If a slot is not within 0 .. m - 1, such as the -1 of a dropped sample.
        """
        return books.labels_of(self.state, within("slot", slots, self.size))

    def members(self, c: int) -> np.ndarray:
        """Return the slots of the samples with class c; int64 (l_c,), a copy.

        Raises
        ------
        IndexError
            If c is not within 0 .. C - 1.
        """
        within("class", c, self.num_classes)
        return books.members_of(self.state, c).astype(np.int64)

    def __repr__(self) -> str:
        """Return the sampler's arguments, and how many slots are filled."""
        values = states.arguments(self)
        arguments = ", ".join(f"{name}={values[name]!r}" for name in values)
        return f"<{type(self).__name__}({arguments}), {len(self)} slots filled>"

    def state_dict(self) -> dict[str, Any]:
        """Return a copy of the state: arrays, numbers, text, and the generator's dict.

        Returns
        -------
        dict
            The sampler's name and arguments, ``generator``, the arrays of the base's
            books, the sampler's further arrays and numbers, and a ``checksum``.

        Examples
        --------
        >>> from prslib import make_sampler
        >>> sampler, other = (make_sampler("crs", 2, 3, seed) for seed in (0, 1))
        >>> _ = sampler.place(np.eye(3, dtype=bool)[:2])
        >>> other.load_state_dict(sampler.state_dict())
        >>> other
        <CRS(size=2, num_classes=3), 2 slots filled>
        """
        with self._lock:
            return states.saved(self)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on as the sampler whose `state_dict` this is, slot by slot.

        Parameters
        ----------
        state : dict
            What `state_dict` returned.

        Raises
        ------
        ValueError
            If the state is of another sampler, size, number of classes or option, or
            was changed. The sampler is then as it was.
        """
        with self._lock:
            states.restore(self, state)

    def __getstate__(self) -> dict[str, Any]:
        """Leave the lock out of pickles and copies."""
        return {name: v for name, v in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take a lock of its own."""
        vars(self).update(state, _lock=threading.RLock())

    def _run(
        self, place: Any, labels: np.ndarray, uniforms: np.ndarray, *arguments: Any
    ) -> np.ndarray:
        """Call a compiled loop over a batch, which stops where there is no room."""
        slots = np.empty(len(labels), np.int64)
        batch = labels, uniforms, slots
        done = place(self._arrays, 0, batch, *arguments)
        while done >= 0:
            self._arrays = books.enlarged(self._arrays, int(labels[done].sum()))
            done = place(self._arrays, done, batch, *arguments)
        return slots


def within(name: str, index: Any, end: int) -> Any:
    """Return indices from 0 to ``end`` - 1; raise IndexError for others."""
    outside = np.asarray(index) if np.ndim(index) else np.array([index])
    outside = outside[(outside < 0) | (outside >= end)]
    if len(outside):
        what = f"a {name} from 0 to {end - 1}"
        advice = "leave out samples that are not kept: slots[slots >= 0]"
        raise IndexError(expected(what, outside[0], advice if name == "slot" else ""))
    return index
