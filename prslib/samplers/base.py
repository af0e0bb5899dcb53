"""The base of all samplers: it checks labels, draws numbers and keeps the books."""

from functools import partial
from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from prslib.checks import Seed, bool_labels, expected, generator_of, whole
from prslib.samplers import books, states
from prslib.samplers.compiling import first_call


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
            If ``labels`` is not boolean or masked, or ``context`` is not what ``needs``
            names.
        ValueError
            If ``labels`` does not have the shape (B, C).
        """
        labels = bool_labels(labels, self.num_classes)
        if (context or self.needs) and context.keys() != self.needs:
            what = f"the keywords {sorted(self.needs) or 'none'}"
            text = expected(what, sorted(context) or "none")
            raise TypeError(f"{type(self).__name__}.place: {text}")
        uniforms = self.rng.random((len(labels), self.draws))
        slots = np.empty(len(labels), np.int64)
        self._decide((labels, uniforms, slots), **context)
        return slots

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
        (y,) = bool_labels(np.asarray(y)[None], self.num_classes)
        classes = np.flatnonzero(y)
        last = min(len(self), self.size - 1) if len(classes) else -1
        if not isinstance(slot, Integral) or not -1 <= slot <= last:
            advice = "slots fill in order, the next free one is len(self)"
            text = expected(f"a whole number from -1 to {last}", repr(slot), advice)
            raise ValueError(f"{type(self).__name__}: {text}")
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
        return books.labels_of(self.state, slots)

    def members(self, c: int) -> np.ndarray:
        """Return the slots of the samples with class c; int64 (l_c,), a copy."""
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
        states.restore(self, state)

    def _decide(self, batch: books.Batch, **context: Any) -> None:
        """Write the slot of each sample, and follow."""
        labels, uniforms, slots = batch
        slots[:] = -1
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

    def _run(self, place: Any, batch: books.Batch, *arguments: Any) -> None:
        """Call a compiled loop over the stream, which stops where there is no room."""
        labels = batch[0]
        call = place if place.overloads else partial(first_call, self, place)
        done = call(self._arrays, 0, batch, *arguments)
        while done >= 0:
            self._arrays = books.enlarged(self._arrays, int(labels[done].sum()))
            done = place(self._arrays, done, batch, *arguments)
