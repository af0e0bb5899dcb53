"""The base of all samplers: it checks labels, keeps counts and draws random numbers."""

import inspect
import json
import warnings
from collections.abc import Mapping, Sequence
from operator import index
from typing import Any, ClassVar

import numpy as np

from prslib.checks import Seed, check_int, expected, generator_of, one_of
from prslib.labels import MOST_CLASSES, multi_hot
from prslib.memory import check_slots
from prslib.samplers.label_sets import NONE, LabelSets

UNLABELLED = ("drop", "class")


class Sampler:
    """Select the samples of a stream that a memory keeps, and their slots (Sec. 3).

    A custom sampler inherits from this class and defines `choose`. The base class
    checks labels, draws random numbers, keeps all counts, and saves and restores the
    state. A sampler does not store inputs. Instead, it returns slots, in which
    `prslib.Memory` stores whatever belongs to the samples. Use a sampler in one thread
    only.

    Parameters
    ----------
    size : int
        Capacity of the memory m, in samples.
    num_classes : int or None
        Number of classes C. If it is None, classes are added when they first occur.
    seed : int, SeedSequence or Generator
        Source of every random decision.
    unlabelled : {"drop", "class"}
        Whether samples without a label are dropped, with a warning, or form an
        additional class. The latter requires ``num_classes``.

    Attributes
    ----------
    grows : bool
        Whether classes are added when they first occur.
    needs : frozenset of str
        Keyword arguments that `place` requires with the labels: ``"features"``,
        ``"gradient_products"`` or none. A training run computes no other arguments.
    draws : int
        Number of uniform numbers that `choose` receives for each sample.
    by_class : tuple of str
        Names of the sampler's arrays whose last axis has one entry per class.
        `add_classes` appends zeros to these arrays.
    rng : Generator
        Generator for further random decisions.
    seen : int
        Number of samples of the stream so far, not including dropped samples.
    dropped : int
        Number of samples that were dropped because they have no label.

    Raises
    ------
    ValueError
        If ``size`` or ``num_classes`` is below 1, if there are more than a million
        classes, or if ``seed`` is negative.
    TypeError
        If ``size`` or ``num_classes`` is not an integer, or ``seed`` cannot seed a
        generator.

    Notes
    -----
    An option of a sampler is a keyword-only parameter of ``__init__`` whose value is
    stored in an attribute of the same name. All attributes that are arrays or numbers
    belong to the state, which `state_dict` returns.

    Each sample consumes ``draws`` uniform numbers, even if `choose` does not use them.
    The same stream and seed therefore give the same slots, however the stream is
    divided into batches. The exception is a sampler whose `choose_batch` processes a
    batch as a whole.

    Examples
    --------
    >>> class Newest(Sampler):
    ...     def choose(self, y, u):
    ...         return (self.seen - 1) % self.size
    >>> Newest(size=2, num_classes=3, seed=0).place(np.eye(3, dtype=bool))
    array([0, 1, 0])
    """

    needs: ClassVar[frozenset[str]] = frozenset()
    draws: ClassVar[int] = 1
    by_class: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        size: int,
        num_classes: int | None,
        seed: Seed,
        *,
        unlabelled: str = "drop",
    ):
        self.size = check_int("size", size, least=1)
        self.unlabelled = one_of("unlabelled", unlabelled, UNLABELLED)
        self.grows = num_classes is None
        if self.grows and unlabelled == "class":
            raise ValueError("unlabelled='class' needs num_classes, got None")
        self.num_classes = 0
        if num_classes is not None:
            self.num_classes = check_int("num_classes", num_classes, 1, MOST_CLASSES)
        self.rng = generator_of(seed)
        self.seen = 0
        self.dropped = 0
        self._sets = LabelSets(self.size)
        self._filled = 0
        # n_i and l_i of the classes; the last entry is for samples without a label
        self._freq = np.zeros(self.num_classes + 1, np.int64)
        self._counts = np.zeros(self.num_classes + 1, np.int64)

    def choose(self, y: np.ndarray, u: np.ndarray, **row: Any) -> int:
        """Return the slot of the next sample, or -1 if it is not stored.

        Parameters
        ----------
        y : bool (C,)
            Labels of the sample, which must not be modified. `seen` and `class_freq`
            already include the sample (Algorithm 1, line 5).
        u : float64 (draws,)
            Uniform numbers in [0, 1).
        **row
            For each array named in ``needs``, the sample's row.

        Returns
        -------
        int
            -1, a filled slot, or the next free slot, which is ``len(self)``.
        """
        name = type(self).__name__
        raise TypeError(f"{name}: expected a method choose(self, y, u), got none")

    def choose_batch(
        self, labels: np.ndarray, uniforms: np.ndarray, **context: Any
    ) -> np.ndarray:
        """Return the slots of a batch, by calling `choose` for each sample in order.

        Override this method instead of `choose` to process a batch as a whole. The new
        method must end with ``return self.follow(labels, slots)``, which counts the
        samples and stores their labels.

        Parameters
        ----------
        labels : bool (B, C)
            Labels in the order of the stream.
        uniforms : float64 (B, draws)
            Uniform numbers in [0, 1).
        **context
            As in `place`.

        Returns
        -------
        int64 (B,)
            Slot of each sample, as `choose` returns it.
        """
        slots = [-1] * len(labels)
        row = {}
        for b, classes in self._taking_part(labels):
            self._count(classes)
            if context:
                row = {name: values[b] for name, values in context.items()}
            slots[b] = self._enter(classes, self.choose(labels[b], uniforms[b], **row))
        return np.array(slots, np.int64)

    def place(self, labels: Any, **context: Any) -> np.ndarray:
        """Select which samples of a batch are stored, and in which slots (Algorithm 1).

        Samples without a label are neither stored nor counted in ``seen``, unless the
        option ``unlabelled`` is "class".

        Parameters
        ----------
        labels : array, tensor, data frame or sparse matrix
            Labels in the order of the stream. They are either class numbers (B,), or
            rows (B, C) of bool or of 0 and 1. In rows, NaN marks an unknown label and
            is treated as 0.
        **context : array_like (B, ...)
            One array for each name in ``needs``, unless the sampler documents another
            kind of argument.

        Returns
        -------
        int64 (B,)
            Slot of each sample, or -1 if it is not stored. If a slot occurs twice, it
            contains the later sample.

        Raises
        ------
        ValueError
            If ``labels`` has another shape or other values, or if a keyword argument
            has another number of rows. In this case, no sample is counted.
        TypeError
            If the names of the keyword arguments are not the names in ``needs``.

        Warns
        -----
        UserWarning
            When the first sample without a label is dropped.

        Examples
        --------
        >>> from prslib import make_sampler
        >>> sampler = make_sampler("PRS", size=2, num_classes=3, seed=0)
        >>> sampler.place(np.array([[1, 0, 1], [0, 1, 0]]))
        array([0, 1])
        """
        if context.keys() != self.needs:
            text = expected(f"the keywords {sorted(self.needs)}", sorted(context))
            raise TypeError(f"{type(self).__name__}.place: {text}")
        rows = multi_hot(labels, None if self.grows else self.num_classes)
        for name, values in context.items():
            shape = getattr(values, "shape", ())
            if shape and shape[0] != len(rows):
                raise ValueError(f"{name}: {expected(f'{len(rows)} rows', shape[0])}")
        rows = self._widen(rows)
        uniforms = self.rng.random((len(rows), self.draws))
        seen = self.seen
        slots = self.choose_batch(rows, uniforms, **context)
        dropped = len(rows) - (self.seen - seen)
        if dropped and not self.dropped:
            text = "samples without a label are dropped; unlabelled='class' keeps them"
            warnings.warn(f"{type(self).__name__}: {text}", stacklevel=2)
        self.dropped += dropped
        return slots

    def follow(self, labels: np.ndarray, slots: Any) -> np.ndarray:
        """Count a batch and store its labels in slots (Algorithm 1, lines 5 and 9).

        Parameters
        ----------
        labels : bool (B, C)
            Labels in the order of the stream.
        slots : int (B,)
            Slot of each sample, or -1 if it is not stored.

        Returns
        -------
        int64 (B,)
            The slots, with -1 for samples that are dropped because they have no label.

        Raises
        ------
        ValueError
            If a slot is neither -1, nor filled, nor the next free one.
        """
        taken = np.full(len(labels), -1)
        for b, classes in self._taking_part(labels):
            self._count(classes)
            taken[b] = self._enter(classes, slots[b])
        return taken

    def add_classes(self, count: int) -> None:
        """Add classes that have no sample yet.

        Decisions are the same as if all classes had been known from the start. A sampler
        with ``num_classes=None`` adds classes by itself. If a `Buffer` receives rows of
        labels, use such a sampler instead of this method, because the rows that are
        already stored keep their length.

        Parameters
        ----------
        count : int
            Number of classes to add.

        Raises
        ------
        ValueError
            If ``count`` is negative, or the option ``unlabelled`` is "class".
        TypeError
            If ``count`` is not an integer.

        Examples
        --------
        >>> from prslib import make_sampler
        >>> sampler = make_sampler("PRS", size=2, num_classes=1, seed=0)
        >>> sampler.add_classes(2)
        >>> sampler.place(np.array([[1, 0, 0], [1, 0, 1]]))
        array([0, 1])
        >>> sampler.class_counts
        array([2, 0, 1])
        """
        count = check_int("count", count, least=0)
        if self.unlabelled == "class":
            raise ValueError("expected all classes in advance with unlabelled='class'")
        check_int("num_classes", self.num_classes + count, 0, MOST_CLASSES)
        for name in ("_freq", "_counts", *self.by_class):
            values = getattr(self, name)  # (..., C)
            room = [(0, 0)] * (values.ndim - 1) + [(0, count)]
            setattr(self, name, np.pad(values, room))
        self.num_classes += count

    def __len__(self) -> int:
        """Return the number of filled slots."""
        return self._filled

    def __bool__(self) -> bool:
        """Return True, even for an empty sampler."""
        return True

    @property
    def unlabelled_seen(self) -> int:
        """Number of samples without a label, whether dropped or counted as a class."""
        return self.dropped + int(self._freq[-1])

    @property
    def class_freq(self) -> np.ndarray:
        """Number n_i of samples of each class in the stream; a copy, int64 (C,)."""
        return self._freq[: self.num_classes].copy()

    @property
    def class_counts(self) -> np.ndarray:
        """Number l_i of samples of each class in the memory; a copy, int64 (C,)."""
        return self._counts[: self.num_classes].copy()

    @property
    def labels(self) -> np.ndarray:
        """Labels in each slot, all False in a free slot; a copy, bool (m, C)."""
        return self._sets.rows(self._sets.of_slot, self.num_classes + 1)[:, :-1]

    def labels_of(self, slots: np.ndarray) -> np.ndarray:
        """Return the labels of stored samples.

        Parameters
        ----------
        slots : int (K,)
            Filled slots.

        Returns
        -------
        bool (K, C)

        Raises
        ------
        ValueError
            If a slot is not between 0 and m - 1. For example, -1 raises this error.
        """
        sets = self._sets.of_slot[check_slots(slots, 0, self.size)]
        return self._sets.rows(sets, self.num_classes + 1)[:, :-1]

    def members(self, c: int) -> np.ndarray:
        """Return the slots of the stored samples of a class.

        Parameters
        ----------
        c : int
            Number of the class.

        Returns
        -------
        int64 (l_c,)
            Slots in ascending order.
        """
        return self._sets.slots_of(self._sets.with_class(c))

    def classes_of(self, y: np.ndarray) -> list[int]:
        """Return the class numbers of a sample with the labels ``y``, bool (C,).

        A sample without a label has no class or, with ``unlabelled="class"``, the
        additional class C.
        """
        classes = y.nonzero()[0].tolist()
        if not classes and self.unlabelled == "class":
            return [self.num_classes]
        return classes

    def __repr__(self) -> str:
        """Return the sampler's arguments and the number of filled slots."""
        return f"<{self._arguments()}, {self._filled} slots filled>"

    def state_dict(self) -> dict[str, Any]:
        """Return a copy of the state: arrays, which `np.savez` can save.

        Returns
        -------
        dict of str to array
            Numbers are stored as arrays without dimensions. Text, such as the sampler's
            arguments, is stored as an array of bytes.

        Examples
        --------
        >>> from prslib import make_sampler
        >>> sampler, other = (make_sampler("crs", 2, 3, seed) for seed in (0, 1))
        >>> _ = sampler.place(np.eye(3, dtype=bool)[:2])
        >>> other.load_state_dict(sampler.state_dict())
        >>> other
        <CRS(size=2, num_classes=3, unlabelled='drop'), 2 slots filled>
        """
        return {
            "sampler": to_bytes(self._arguments()),
            "generator": save_generator(self.rng),
            "slot_classes": self._sets.classes[self._sets.of_slot[: len(self)]],
            # as an array, a number keeps its dtype when it is converted to a tensor
            **{name: np.array(value) for name, value in self._numbers().items()},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state that `state_dict` returned; every sample keeps its slot.

        Parameters
        ----------
        state : mapping
            What `state_dict` returned, directly or loaded with `np.load`. Values may be
            tensors.

        Raises
        ------
        ValueError
            If the state belongs to another kind of sampler, or to a sampler with
            another size, number of classes or option. The sampler is then unchanged.
        """
        state = {name: np.asarray(value).copy() for name, value in state.items()}
        saved = to_text(state["sampler"]) if "sampler" in state else "no sampler"
        if saved != self._arguments():
            raise ValueError(expected(f"a state of {self._arguments()}", saved))
        names = self.state_dict().keys()
        if state.keys() != names:
            raise ValueError(expected(f"a state with {sorted(names)}", sorted(state)))
        numbers = {name: state[name] for name in self._numbers()}
        self.rng = load_generator(state["generator"])
        self._sets = LabelSets(self.size)
        for slot, classes in enumerate(state["slot_classes"]):
            self._sets.put(classes[classes != NONE].tolist(), slot)
        for name, value in numbers.items():
            setattr(self, name, value if value.ndim else value.item())

    def _arguments(self) -> str:
        """Return the call that makes the sampler, without its seed."""
        names = [*inspect.signature(type(self)).parameters]
        values = {name: getattr(self, name) for name in names if name != "seed"}
        if self.grows:
            values["num_classes"] = None
        listed = ", ".join(f"{name}={value!r}" for name, value in values.items())
        return f"{type(self).__name__}({listed})"

    def _numbers(self) -> dict[str, Any]:
        """Return all attributes that are numbers or arrays."""
        kinds = np.ndarray | np.generic | bool | int | float
        attributes = vars(self).items()
        return {name: value for name, value in attributes if isinstance(value, kinds)}

    def _widen(self, rows: np.ndarray) -> np.ndarray:
        """Add the new classes in rows; return rows with one column per known class."""
        more = rows.shape[1] - self.num_classes
        if more > 0:
            self.add_classes(more)
        if more < 0:
            rows = np.pad(rows, ((0, 0), (0, -more)))
        return rows

    def _taking_part(self, labels: np.ndarray) -> list[tuple[int, list[int]]]:
        """Return the row number and the classes of each sample that is not dropped."""
        return [
            (b, classes)
            for b in range(len(labels))
            if (classes := self.classes_of(labels[b]))
        ]

    def _count(self, classes: Sequence[int]) -> None:
        """Count a sample in n_i (Algorithm 1, line 5)."""
        self.seen += 1
        for c in classes:
            self._freq[c] += 1

    def _enter(self, classes: Sequence[int], slot: Any) -> int:
        """Put a sample in the slot that was chosen for it, if any; return the slot."""
        slot = index(slot)
        if slot == -1:
            return slot
        last = min(self._filled, self.size - 1)
        if not 0 <= slot <= last:
            raise ValueError(expected(f"a slot from -1 to {last}", slot))
        self._store(classes, slot)
        return slot

    def _store(self, classes: Sequence[int], slot: int) -> None:
        """Put a sample in a slot, replacing any sample there (lines 9 and 16)."""
        self._remove(slot)
        self._sets.put(classes, slot)
        for c in classes:
            self._counts[c] += 1
        self._filled = max(self._filled, slot + 1)

    def _remove(self, slot: int) -> Sequence[int]:
        """Free a slot if it is filled; return the classes of its sample."""
        classes = self._sets.take(slot)
        for c in classes:
            self._counts[c] -= 1
        return classes


def draw_rarest(classes: Sequence[int], counts: np.ndarray, u: float) -> int:
    """Return the class with the lowest count; ties are broken at random."""
    if len(classes) == 1:
        return classes[0]
    least = min(counts.item(c) for c in classes)
    ties = [c for c in classes if counts.item(c) == least]
    return ties[int(u * len(ties))]


def save_generator(rng: np.random.Generator) -> np.ndarray:
    """Return the state of any random generator as bytes, uint8."""
    return to_bytes(json.dumps(rng.bit_generator.state, default=np.ndarray.tolist))


def load_generator(array: np.ndarray) -> np.random.Generator:
    """Return the generator whose state `save_generator` returned."""
    state = json.loads(to_text(array))
    rng = np.random.Generator(getattr(np.random, state["bit_generator"])())
    rng.bit_generator.state = state
    return rng


def to_bytes(text: str) -> np.ndarray:
    """Return text as an array of its bytes, uint8."""
    return np.frombuffer(text.encode(), np.uint8).copy()


def to_text(array: np.ndarray) -> str:
    """Return the text whose bytes an array contains."""
    return array.astype(np.uint8).tobytes().decode()
