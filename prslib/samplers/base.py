"""The base of all samplers: it checks labels, draws numbers and keeps the books."""

import copy
import inspect
from collections.abc import Iterator
from functools import partial
from numbers import Integral
from typing import Any, ClassVar, NoReturn

import numpy as np

from prslib.checks import bool_labels, whole
from prslib.samplers import books
from prslib.samplers.books import State, positions
from prslib.samplers.compiling import first_call
from prslib.samplers.states import check_alike, check_books, expect, restored_generator

Seed = int | np.random.SeedSequence | np.random.Generator


class Sampler:
    """Decide which samples of a stream the memory keeps, and where (Sec. 3).

    A sampler of one's own inherits from this class and defines `choose`. The base
    checks labels, draws random numbers, stores labels, keeps all counts, saves and
    restores them. A sampler never stores inputs: it answers with slots, and
    `prslib.Memory` stores there whatever belongs to the samples.

    Parameters
    ----------
    size : int
        Capacity of the memory m, in samples.
    num_classes : int
        Number of classes C.
    seed : int, SeedSequence or Generator
        Source of every random decision.

    Attributes
    ----------
    needs : frozenset of str
        Keyword arguments that `place` takes beside the labels: ``"features"``,
        ``"gradient_products"`` or none. A training run computes and passes these alone.
    draws : int
        Uniform numbers that `choose` gets for each sample.
    decides_by_batch : bool
        True for a sampler that defines `choose_batch` in place of `choose`. Where the
        stream is cut into batches then matters.
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
    decides_by_batch: ClassVar[bool] = False

    def __init__(self, size: int, num_classes: int, seed: Seed):
        self.size = whole("size", size, least=1)
        self.num_classes = whole("num_classes", num_classes, least=1)
        self.rng = make_generator(seed)
        self.state = State(
            seen=np.zeros(1, np.int64),
            filled=np.zeros(1, np.int64),
            class_freq=np.zeros(self.num_classes, np.int64),
            class_counts=np.zeros(self.num_classes, np.int64),
            classes=np.full((self.size, 1), -1, np.int32),
            members=np.zeros(0, np.int32),
            start=np.zeros(self.num_classes + 1, np.int64),
        )
        self._make_room(1)

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
        """Return the slots of a batch, for a sampler that decides it as a whole.

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
            As `choose` returns them, one after the other.
        """
        raise TypeError(f"{type(self).__name__}: expected a method choose_batch")

    def place(self, labels: np.ndarray, **context: Any) -> np.ndarray:
        """Take a batch of the stream and return the slot of each sample (Algorithm 1).

        A sample with no label never enters and counts nowhere.

        Parameters
        ----------
        labels : bool (B, C)
            Multi-hot labels in stream order. Not modified.
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
            If ``labels`` is not boolean, or ``context`` is not what ``needs`` names.
        ValueError
            If ``labels`` does not have the shape (B, C).
        """
        labels = bool_labels(labels, self.num_classes)
        if (context or self.needs) and context.keys() != self.needs:
            self._refuse(context)
        uniforms = self.rng.random((len(labels), self.draws))
        slots = np.empty(len(labels), np.int64)
        slots.fill(-1)  # in half the time of np.full
        self._decide(labels, uniforms, slots, **context)
        return slots

    def follow(self, y: np.ndarray, slot: int) -> None:
        """Count a sample and store its labels in a slot (Algorithm 1, lines 5 and 9).

        `place` does this itself. Call it to keep the books for another sampler's
        decisions.

        Parameters
        ----------
        y : bool (C,)
            Labels of the sample.
        slot : int
            Its slot, -1 for none.

        Raises
        ------
        ValueError
            If the slot is neither -1, nor filled, nor the next free one.
        """
        next_free = min(len(self), self.size - 1)
        if not isinstance(slot, Integral) or not -1 <= slot <= next_free:
            raise ValueError(
                f"{type(self).__name__}: expected a slot from -1 to {next_free}, "
                f"got {slot!r}; slots fill in order"
            )
        classes = np.flatnonzero(y)
        if len(classes) == 0:
            expect("the slot of a sample without a label", slot == -1, -1, slot)
            return
        if not books.has_room(self.state, classes):
            self._make_room(len(classes))
        books.count(self.state, classes)
        if slot >= 0:
            books.store(self.state, classes, slot)

    def __len__(self) -> int:
        """Return the number of filled slots."""
        return int(self.state.filled[0])

    @property
    def seen(self) -> int:
        """Samples of the stream that have a label."""
        return int(self.state.seen[0])

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
        """Return the labels of the samples in some slots, int64 (K,); bool (K, C)."""
        labels = np.zeros((len(slots), self.num_classes), np.bool_)
        classes = self.state.classes[slots]
        rows, columns = np.nonzero(classes >= 0)
        labels[rows, classes[rows, columns]] = True
        return labels

    def members(self, c: int) -> np.ndarray:
        """Return the slots of the samples with class c; int64 (l_c,), a copy."""
        return books.members_of(self.state, c).astype(np.int64)

    def __repr__(self) -> str:
        """Return the sampler's arguments, and how many slots are filled."""
        arguments = ", ".join(f"{name}={value!r}" for name, value in self._arguments())
        return f"<{type(self).__name__}({arguments}), {len(self)} slots filled>"

    def state_dict(self) -> dict[str, Any]:
        """Return a copy of the state: arrays, numbers, text, and the generator's dict.

        Returns
        -------
        dict
            The sampler's name and arguments, ``generator``, ``seen``, ``class_freq``,
            ``labels``, ``members`` (the slots of class 0, then of class 1, ...), and
            the sampler's further arrays and numbers.

        Examples
        --------
        >>> from prslib import make_sampler
        >>> sampler, other = (make_sampler("crs", 2, 3, seed) for seed in (0, 1))
        >>> _ = sampler.place(np.eye(3, dtype=bool)[:2])
        >>> other.load_state_dict(sampler.state_dict())
        >>> other
        <CRS(size=2, num_classes=3), 2 slots filled>
        """
        rows = positions(self.state.start, self.state.class_counts)
        entries = {
            "sampler": type(self).__name__,
            "generator": self.rng.bit_generator.state,
            "seen": self.seen,
            "class_freq": self.state.class_freq,
            "labels": self.labels,
            "members": self.state.members[rows],
        }
        return copy.deepcopy(entries | dict(self._arguments()) | dict(self._extras()))

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
            does not fit together as a whole. The sampler is then as it was.
        """
        expect("state", isinstance(state, dict), "a dict", type(state).__name__)
        mine = self.state_dict()
        for name in ("sampler", *dict(self._arguments())):
            expect(
                name, state.get(name) == mine[name], repr(mine[name]), state.get(name)
            )
        expect("entries", state.keys() == mine.keys(), sorted(mine), sorted(state))
        for name, value in mine.items():
            if name not in ("generator", "members"):
                check_alike(name, state[name], value)
        check_books(state)
        self.check_state(state)
        rng = restored_generator(state["generator"])
        extras = {name: copy.deepcopy(state[name]) for name, _ in self._extras()}
        labels = state["labels"]
        counts = labels.sum(axis=0)
        self.rng = rng
        self.state = State(
            seen=np.array([state["seen"]], np.int64),
            filled=np.array([labels.any(axis=1).sum()], np.int64),
            class_freq=state["class_freq"].copy(),
            class_counts=counts,
            classes=books.lists_of(labels),
            members=state["members"].copy(),
            start=np.concatenate([[0], counts.cumsum()]),
        )
        self._make_room(1)
        vars(self).update(extras)

    def check_state(self, state: dict[str, Any]) -> None:
        """Raise ValueError where a sampler's further arrays do not fit its labels."""

    def _refuse(self, context: dict[str, Any]) -> NoReturn:
        """Raise TypeError for other keywords of `place` than ``needs`` names."""
        names = sorted(self.needs)
        call = ", ".join(["labels", *(f"{name}=..." for name in names)])
        place = f"{type(self).__name__}.place"
        advice = f", help({place}) explains them" if names else ""
        raise TypeError(
            f"{place}: expected the keywords {names or 'none'}, got "
            f"{sorted(context) or 'none'}; call place({call}){advice}"
        )

    def _arguments(self) -> Iterator[tuple[str, Any]]:
        """Yield the constructor's arguments, without the seed."""
        for name in inspect.signature(type(self)).parameters:
            if name != "seed":
                yield name, getattr(self, name)

    def _extras(self) -> Iterator[tuple[str, Any]]:
        """Yield the arrays and numbers that this sampler adds to the state."""
        arguments = dict(self._arguments())
        for name, value in vars(self).items():
            plain = isinstance(value, np.ndarray | bool | int | float | str)
            if plain and name[0] != "_" and name not in arguments:
                yield name, value

    def _make_room(self, width: int) -> None:
        """Make room for ``width`` labels a sample, and more members of each class."""
        old = self.state
        more = max(width - old.classes.shape[1], 0)
        room = 2 * old.class_counts + 2 * self.size // self.num_classes + 8
        start = np.concatenate([[0], room.cumsum()])
        members = np.zeros(start[-1], np.int32)
        taken = old.members[positions(old.start, old.class_counts)]
        members[positions(start, old.class_counts)] = taken
        self.state = old._replace(
            classes=np.pad(old.classes, ((0, 0), (0, more)), constant_values=-1),
            members=members,
            start=start,
        )

    def _decide(
        self,
        labels: np.ndarray,
        uniforms: np.ndarray,
        slots: np.ndarray,
        **context: Any,
    ) -> None:
        """Write the slot of each sample, and follow."""
        if self.decides_by_batch:
            chosen = self.choose_batch(labels, uniforms, **context)
        for b in np.flatnonzero(labels.any(axis=1)):
            if self.decides_by_batch:
                slot = chosen[b]
            else:
                row = {name: values[b] for name, values in context.items()}
                slot = self.choose(labels[b], uniforms[b], **row)
            self.follow(labels[b], slot)
            slots[b] = slot

    def _run(self, place: Any, labels: np.ndarray, *arguments: Any) -> None:
        """Call a compiled loop over the stream, which stops where there is no room."""
        name = type(self).__name__
        call = place if place.overloads else partial(first_call, name, place)
        # a tuple reaches compiled code faster than State does
        done = call(tuple(self.state), 0, labels, *arguments)
        while done >= 0:
            self._make_room(int(labels[done].sum()))
            done = place(tuple(self.state), done, labels, *arguments)


def is_sampler(thing: object) -> bool:
    """Tell whether something offers all that a memory's user asks a sampler for."""
    names = ("place", "needs", "class_freq", "class_counts", "labels", "__len__")
    return all(hasattr(thing, name) for name in names)


def make_generator(seed: Seed) -> np.random.Generator:
    """Return the generator of a sampler's decisions; refuse another kind of seed."""
    if isinstance(seed, bool) or not isinstance(seed, Seed | Integral):
        raise TypeError(
            f"seed: expected an int, SeedSequence or Generator, got {seed!r}; "
            "pass one, so that the run can be repeated"
        )
    if isinstance(seed, Integral):  # a stream is often drawn from the same int: spawn
        (seed,) = np.random.SeedSequence(int(seed)).spawn(1)
    return np.random.default_rng(seed)
