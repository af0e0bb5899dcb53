"""Keep samples of a stream for replay: a sampler and a memory that stay in step."""

from collections.abc import Mapping
from numbers import Integral
from typing import Any

import numpy as np

from prslib.checks import Seed, check_int, expected, generator_of
from prslib.labels import multi_hot
from prslib.memory import Memory, is_tensor
from prslib.samplers.base import Sampler, load_generator, save_generator


class Buffer:
    """A replay buffer: the samples that a sampler keeps, with their labels (Sec. 3.1).

    Parameters
    ----------
    sampler : Sampler
        Selects the samples to keep. It must be empty, as `make_sampler` returns it, and
        only the buffer should call its `place`.
    seed : int, SeedSequence or Generator
        Source of the draws of `sample`. They are independent of the random decisions of
        the sampler, even if both have the same integer as seed.

    Attributes
    ----------
    sampler : Sampler
        The sampler. Its ``class_freq`` counts the samples of each class in the stream,
        and its ``class_counts`` the samples of each class in the buffer.
    memory : Memory
        Stored columns, by slot.
    rng : Generator
        Random generator that `sample` uses.

    Raises
    ------
    ValueError
        If the sampler is not empty.
    TypeError
        If the sampler is ExStream, which keeps means of vectors instead of samples.

    See Also
    --------
    prslib.make_sampler : Samplers by name.
    prslib.Memory : A buffer without a sampler.

    Examples
    --------
    Nine of ten samples have class 0. CBRS keeps the sample with class 1:

    >>> from prslib import make_sampler
    >>> buffer = Buffer(make_sampler("cbrs", size=2, num_classes=2, seed=0))
    >>> labels = np.array([0, 0, 0, 0, 1, 0, 0, 0, 0, 0])
    >>> _ = buffer.add(labels, x=10.0 * np.arange(10))
    >>> 40.0 in buffer.sample(2)["x"]
    True
    >>> buffer.sampler.class_counts
    array([1, 1])
    """

    def __init__(self, sampler: Sampler, *, seed: Seed = 0):
        if len(sampler):
            raise ValueError(expected("an empty sampler", sampler))
        if hasattr(sampler, "vectors"):  # its slots hold means of several samples
            raise TypeError(expected("a sampler that keeps samples", sampler))
        self.sampler = sampler
        self.memory = Memory(sampler.size)
        if isinstance(seed, Integral):  # the draws differ from the sampler's
            entropy = check_int("seed", seed, least=0)
            seed = np.random.SeedSequence(entropy, spawn_key=(1,))
        self.rng = generator_of(seed)

    def __len__(self) -> int:
        """Return the number of stored samples."""
        return len(self.memory)

    def __bool__(self) -> bool:
        """Return True, even for an empty buffer."""
        return True

    def __repr__(self) -> str:
        """Return the sampler and the memory."""
        return f"<Buffer of {self.sampler!r} and {self.memory!r}>"

    def add(self, labels: Any, **columns: Any) -> np.ndarray:
        """Offer the next samples of the stream to the sampler, and store those it selects.

        Parameters
        ----------
        labels : array, tensor, data frame or sparse matrix
            Either class numbers (B,), or rows (B, C) of bool or of 0 and 1. In rows,
            NaN marks an unknown label.
        **columns : arrays or tensors (B, ...)
            Inputs and whatever else belongs to the samples, with one row per sample.
            The first call determines names, dtypes, devices and row shapes. Columns
            that the sampler ``needs`` are passed to the sampler and not stored.

        Returns
        -------
        int64 (B,)
            Slot of each sample, or -1 if it is not kept.

        Raises
        ------
        ValueError
            If the labels are invalid or a column does not fit. In this case, neither
            the sampler nor the memory has changed.
        TypeError
            If a column is neither an array nor a tensor, or if a column that the
            sampler needs is missing.

        Notes
        -----
        After a call that was interrupted, for example by Ctrl-C, the sampler and the
        memory may differ in the samples of this call. Load the last state, or start
        again.

        Examples
        --------
        >>> from prslib import make_sampler
        >>> buffer = Buffer(make_sampler("PRS", size=2, num_classes=3, seed=0))
        >>> buffer.add(np.array([[1, 0, 1], [0, 1, 0]]), x=np.array([0.5, 1.5]))
        array([0, 1])
        """
        needs = self.sampler.needs
        context = {name: columns[name] for name in columns.keys() & needs}
        columns = {name: columns[name] for name in columns if name not in needs}
        grows = self.sampler.grows
        rows = multi_hot(labels, None if grows else self.sampler.num_classes)
        if not is_plain(labels):
            labels = rows
        if labels.ndim == 1 or not grows:  # else `sample` reads the sampler's labels
            columns = {"labels": labels, **columns}
        self.memory.check(len(rows), columns)
        slots = self.sampler.place(rows, **context)
        self.memory.store(slots, columns)
        return slots

    def sample(self, n: int) -> dict[str, Any]:
        """Draw stored samples uniformly without replacement.

        Parameters
        ----------
        n : int
            Number of samples. If fewer are stored, all of them are drawn.

        Returns
        -------
        dict of str to array or tensor (n, ...)
            The columns and ``labels``. Labels that were added as arrays or tensors are
            returned in the form in which they were added, and all other labels as rows,
            bool (n, C). With ``num_classes=None``, rows are always returned as bool,
            with one column per class so far.

        Examples
        --------
        >>> from prslib import make_sampler
        >>> buffer = Buffer(make_sampler("PRS", size=2, num_classes=3, seed=0))
        >>> _ = buffer.add(np.array([2]), x=np.array([0.5]))
        >>> buffer.sample(10)
        {'labels': array([2]), 'x': array([0.5])}
        """
        slots = self.memory.draw(n, self.rng)
        columns = self.memory.read(slots)
        if "labels" in columns:
            return columns
        return {"labels": self.sampler.labels_of(slots), **columns}

    def state_dict(self) -> dict[str, Any]:
        """Return a copy of the state: numbers and arrays, which `np.savez` can save.

        Returns
        -------
        dict
            Numbers and arrays; a column of tensors is a tensor. For ``torch.save``,
            convert all values to tensors, because ``torch.load`` refuses arrays by
            default: ``{name: torch.as_tensor(value) for name, value in state.items()}``
        """
        state = {"generator": save_generator(self.rng)}
        for name, value in self.sampler.state_dict().items():
            state[f"sampler.{name}"] = value
        for name, value in self.memory.state_dict().items():
            state[f"memory.{name}"] = value
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state that `state_dict` returned.

        Parameters
        ----------
        state : mapping
            What `state_dict` returned, directly or loaded with `np.load` or
            `torch.load`.

        Raises
        ------
        ValueError
            If the state belongs to another sampler. The buffer is then unchanged.
        """
        rng = load_generator(np.asarray(state["generator"]))
        of_sampler = select(state, "sampler.")
        memory = Memory(self.memory.size)
        memory.load_state_dict(select(state, "memory."))
        self.sampler.load_state_dict(of_sampler)
        self.memory = memory
        self.rng = rng


def is_plain(labels: Any) -> bool:
    """Return whether labels are an array of numbers or a dense tensor."""
    if isinstance(labels, np.ndarray):
        return labels.dtype.kind in "biuf"
    return is_tensor(labels)


def select(state: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Return the entries whose names begin with a prefix, and remove the prefix."""
    return {
        name.removeprefix(prefix): value
        for name, value in state.items()
        if name.startswith(prefix)
    }
