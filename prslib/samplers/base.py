"""The base of all samplers: it checks labels, draws numbers and keeps all counts."""

import copy
import threading
from collections.abc import Generator
from contextlib import contextmanager
from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from prslib.checks import (
    MOST_CLASSES,
    Seed,
    check_int,
    expected,
    generator_of,
    is_list,
    multi_hot,
    one_line,
)
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
        Number of classes C; None where it is not known. Classes are then added as they
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
    by_class : tuple of str
        Names of the sampler's own arrays with an entry a class: `add_classes` appends
        zeros.
    rng : Generator
        For further random decisions.

    Raises
    ------
    ValueError
        If ``size`` or ``num_classes`` is below 1, or there are more than a million
        classes.
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
    by_class: ClassVar[tuple[str, ...]] = ()
    # a compiled choose_batch raises nothing; to read the generator's state takes longer
    # than its decisions
    _compiled: ClassVar[bool] = False
    _grows: bool = False  # classes are added as they come

    def __init__(self, size: int, num_classes: int | None, seed: Seed):
        self._lock = threading.RLock()
        self._grows = num_classes is None
        self.size = check_int("size", size, least=1)
        self.num_classes = 0
        if num_classes is not None:
            self.num_classes = _few(check_int("num_classes", num_classes, least=1))
        self.rng = generator_of(seed)
        self._arrays = books.empty(self.size, self.num_classes)

    def __init_subclass__(cls, **options: Any):
        """Let what inherits from a compiled sampler decide by the methods it replaces."""
        super().__init_subclass__(**options)
        if not cls._compiled or "_compiled" in vars(cls):
            return
        # a method may also come from another base class
        compiled: Any = next(c for c in cls.__mro__ if "_compiled" in vars(c))
        equations = {*dir(compiled)} - {*dir(Sampler)} | {"choose", "follow"}
        replaced = [
            name
            for name in equations
            if getattr(cls, name) is not getattr(compiled, name)
        ]
        if replaced and cls.choose_batch is compiled.choose_batch:
            cls.choose_batch = Sampler.choose_batch
        cls._compiled = cls.choose_batch is compiled.choose_batch

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
            As `choose` returns them, one after the other. `place` calls `follow` for
            each, unless this method has done so.
        """
        slots = np.full(len(labels), -1)
        labels = labels.view()
        labels.flags.writeable = False  # they may be the caller's own
        with self._unchanged_on_error():
            for b in np.flatnonzero(labels.any(axis=1)):
                row = {name: values[b] for name, values in context.items()}
                slot = self.choose(labels[b], uniforms[b], **row)
                self.follow(labels[b], slot)
                slots[b] = slot
        return slots

    def place(self, labels: Any, **context: Any) -> np.ndarray:
        """Take a batch of the stream and return the slot of each sample (Algorithm 1).

        A sample with no label never enters and counts nowhere. After an error the
        sampler is as it was, but for classes that it may have added.

        Parameters
        ----------
        labels : array_like
            Labels in stream order, not modified: multi-hot (B, C), bool or 0 and 1 of
            any type; or class numbers, (B,); or a list with the class numbers of each
            sample. In multi-hot rows NaN and -1 stand for labels that are not known:
            the sample counts for the classes with a 1 alone.
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
        if (context or self.needs) and context.keys() != self.needs:
            what = f"the keywords {sorted(self.needs) or 'none'}"
            text = expected(what, sorted(context) or "none")
            raise TypeError(f"{type(self).__name__}.place: {text}")
        with self._lock:
            labels = self._multi_hot(labels)
            shape = len(labels), self.draws
            if self._compiled:
                return self.choose_batch(labels, self.rng.random(shape))
            generator = self.rng.bit_generator.state
            seen = self.seen
            try:
                slots = self.choose_batch(labels, self.rng.random(shape), **context)
                if self.seen == seen:
                    slots = self._follow_batch(labels, slots)
            except BaseException:
                self.rng.bit_generator.state = generator
                raise
        return slots

    def add_classes(self, count: int) -> None:
        """Let the sampler know more classes, which have no sample yet.

        Decisions are those of a sampler that knew all classes from the start. A sampler
        with ``num_classes=None`` adds classes by itself.

        Parameters
        ----------
        count : int
            How many classes are added to C.

        Raises
        ------
        ValueError
            If ``count`` is negative.
        TypeError
            If it is not an integer.

        Examples
        --------
        >>> from prslib import make_sampler
        >>> sampler = make_sampler("PRS", size=2, num_classes=1, seed=0)
        >>> sampler.add_classes(2)
        >>> sampler.place([[0], [0, 2]])
        array([0, 1])
        >>> sampler.class_counts
        array([2, 0, 1])
        """
        count = check_int("count", count, least=0)
        if count == 0:
            return
        _few(self.num_classes + count)
        with self._lock:
            for name in self.by_class:
                values = getattr(self, name)  # (..., C)
                room = [(0, 0)] * (values.ndim - 1) + [(0, count)]
                setattr(self, name, np.pad(values, room))
            self._arrays = books.with_classes(self._arrays, self.num_classes + count)
            self.num_classes += count

    def follow(self, y: np.ndarray, slot: int) -> None:
        """Count a sample and store its labels in a slot (Algorithm 1, lines 5 and 9).

        `place` does this itself. Call `follow` alone to count the decisions of another
        sampler. It does not change further counts, such as those of CBRS.

        Parameters
        ----------
        y : bool (C,), or int, or list of int
            Labels of the sample: multi-hot, or its class numbers.
        slot : int
            Its slot, -1 for none.

        Raises
        ------
        TypeError, ValueError
            If ``y`` is no such labels, as for a batch.
        ValueError
            If the slot is neither -1, nor filled, nor the next free one.
        """
        with self._lock:
            classes = np.flatnonzero(self._one_sample(y))
            slot = self._checked_slot(slot, len(self) if len(classes) else -1)
            if len(classes) == 0:
                return
            while not books.follow(self._arrays, classes, slot):
                self._arrays = books.enlarged(self._arrays, len(classes))

    @property
    def state(self) -> books.State:
        """The counts and lists that the base keeps: views."""
        return books.state_of(self._arrays)

    def __len__(self) -> int:
        """Return the number of filled slots."""
        return int(self._arrays[0][1])  # the views of `state` take longer

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
        (c,) = within("class", [c], self.num_classes)
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
            The sampler's name and arguments, ``generator``, the arrays of the buffer
            state, the sampler's further arrays and numbers, and a ``checksum``.

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

    def __copy__(self) -> "Sampler":
        """Return a copy that shares no state."""
        return copy.deepcopy(self)

    def __getstate__(self) -> dict[str, Any]:
        """Leave the lock out of pickles and copies."""
        return {name: v for name, v in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take a lock of its own."""
        vars(self).update(state, _lock=threading.RLock())

    def _multi_hot(self, labels: Any) -> np.ndarray:
        """Return labels of a batch, bool (B, C); add classes that are new."""
        if not self._grows:
            return multi_hot(labels, self.num_classes)
        labels = multi_hot(labels, None)
        self.add_classes(max(0, labels.shape[1] - self.num_classes))
        missing = self.num_classes - labels.shape[1]
        return np.pad(labels, ((0, 0), (0, missing)))

    def _one_sample(self, y: Any) -> np.ndarray:
        """Return labels of one sample, bool (C,)."""
        if type(y) is np.ndarray and y.dtype == bool:
            if y.shape == (self.num_classes,):
                return y
            return self._multi_hot(y[None])[0]
        values = y.tolist() if hasattr(y, "tolist") else y
        return self._multi_hot([list(values) if is_list(values) else [values]])[0]

    def _follow_batch(self, labels: np.ndarray, slots: Any) -> np.ndarray:
        """Follow a batch, all of it or, where a slot is wrong, nothing."""
        slots = np.asarray(slots)
        is_whole = (
            slots.dtype.kind in "iu" or not slots.size
        )  # an empty list has floats
        if slots.shape != (len(labels),) or not is_whole:
            got = one_line(repr(slots))
            text = expected(f"{len(labels)} whole numbers as slots", got)
            raise TypeError(f"{type(self).__name__}.choose_batch: {text}")
        labelled = labels.any(axis=1)
        slots = np.where(labelled, slots, -1).astype(np.int64)
        listed = slots.tolist()
        filled = len(self)
        for slot in listed:
            self._checked_slot(slot, filled)
            filled = max(filled, slot + 1)
        for b in np.flatnonzero(labelled).tolist():
            self.follow(labels[b], listed[b])
        return slots

    def _checked_slot(self, slot: Any, filled: int) -> int:
        """Return the slot of a sample; refuse one that it cannot have."""
        last = min(filled, self.size - 1)
        is_whole = isinstance(slot, Integral) and not isinstance(slot, bool)
        if not is_whole or not -1 <= slot <= last:
            advice = "slots fill in order, the next free one is len(self)"
            text = expected(f"a whole number from -1 to {last}", repr(slot), advice)
            raise ValueError(f"{type(self).__name__}: {text}")
        return int(slot)

    @contextmanager
    def _unchanged_on_error(self) -> Generator[None]:
        """Put the state back as it was where the block raises."""
        arrays = tuple(array.copy() for array in self._arrays)
        extras = {name: copy.copy(v) for name, v in states.extras(self).items()}
        try:
            yield
        except BaseException:
            self._arrays = arrays
            vars(self).update(extras)
            raise

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


def within(name: str, index: Any, end: int) -> np.ndarray:
    """Return indices from 0 to ``end`` - 1, int64 (K,); raise IndexError for others."""
    values = np.asarray(index)
    if values.ndim != 1 or (values.size and values.dtype.kind not in "iu"):
        plural = "classes" if name == "class" else "slots"
        got = f"{values.dtype} {values.shape}"
        raise IndexError(expected(f"{plural} as whole numbers (K,)", got))
    if values.size and not 0 <= values.min() <= values.max() < end:
        outside = values[(values < 0) | (values >= end)].flat[0]
        advice = "leave out samples that are not kept: slots[slots >= 0]"
        what = f"a {name} from 0 to {end - 1}"
        raise IndexError(expected(what, outside, advice if name == "slot" else ""))
    return values.astype(np.int64, copy=False)


def _few(num_classes: int) -> int:
    """Return a number of classes; refuse one that is rather a class's own number."""
    if num_classes > MOST_CLASSES:
        advice = "number the classes from 0, np.unique(labels, return_inverse=True)"
        what = f"at most {MOST_CLASSES} classes"
        raise ValueError(expected(what, num_classes, advice))
    return num_classes
