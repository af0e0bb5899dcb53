"""Store samples in the slots of a memory of fixed size."""

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from prslib.checks import check_int, expected


class Memory:
    """Store arrays and tensors in columns with one row per slot (Sec. 3.1).

    `Buffer` combines a sampler with a memory. A memory by itself is useful if samples
    are chosen or drawn in another way.

    Parameters
    ----------
    size : int
        Capacity m, in samples.

    Raises
    ------
    ValueError
        If ``size`` is below 1.
    TypeError
        If ``size`` is not an integer.

    See Also
    --------
    prslib.Buffer : Adds samples to a sampler and a memory together.

    Notes
    -----
    The first write determines the columns: their names, kinds (array or tensor), dtypes,
    devices and row shapes. Text may be longer in a later batch.

    Examples
    --------
    >>> memory = Memory(3)
    >>> memory.write([0, -1, 0], index=np.array([7, 8, 9]))
    >>> memory.read([0])
    {'index': array([9])}
    """

    def __init__(self, size: int):
        self.size = check_int("size", size, least=1)
        self._columns: dict[str, Any] | None = None  # until the first write
        self._is_filled = np.zeros(self.size, bool)
        self._order = np.empty(self.size, np.int64)  # filled slots come first
        self._count = 0

    def __len__(self) -> int:
        """Return the number of filled slots."""
        return self._count

    def __bool__(self) -> bool:
        """Return True, even for an empty memory."""
        return True

    @property
    def filled(self) -> np.ndarray:
        """The filled slots, in the order in which they were filled; int64 (len,), a copy."""
        return self._order[: self._count].copy()

    def __repr__(self) -> str:
        """Return the size, the number of filled slots and the columns."""
        columns = (self._columns or {}).items()
        kinds = [f"{name}: {describe(stored)}" for name, stored in columns]
        listed = "; ".join(kinds) or "none"
        return f"<Memory({self.size}), {len(self)} slots filled, columns {listed}>"

    def write(self, slots: Any, **columns: Any) -> None:
        """Store a row of every column in each slot (Algorithm 1, line 9).

        Parameters
        ----------
        slots : int (B,)
            Slot of each sample. Samples with the slot -1 are skipped. If several
            samples have the same slot, the last of them is kept.
        **columns : arrays or tensors (B, ...)
            The columns, with the same names, kinds, dtypes and row shapes at every
            write.

        Raises
        ------
        ValueError
            If a slot is out of range, or a column does not fit the slots or the first
            write. In this case, nothing is stored.
        TypeError
            If a column is neither an array nor a tensor, or contains objects.

        Examples
        --------
        Replace a column of filled slots, such as logits, and keep the others:

        >>> memory = Memory(3)
        >>> memory.write([0, 1], index=np.array([7, 8]), logits=np.zeros(2))
        >>> stored = memory.read([1])
        >>> memory.write([1], **stored | {"logits": np.array([0.5])})
        >>> memory.read([0, 1])
        {'index': array([7, 8]), 'logits': array([0. , 0.5])}
        """
        slots = check_slots(slots, -1, self.size)
        self.check(len(slots), columns)
        self.store(slots, columns)

    def check(self, length: int, columns: dict[str, Any]) -> None:
        """Refuse columns that do not fit each other or the first write."""
        names = columns if self._columns is None else self._columns
        if columns.keys() != names.keys():
            raise ValueError(f"columns: {expected(sorted(names), sorted(columns))}")
        for name, column in columns.items():
            check_kind(name, column)
            if tuple(column.shape[:1]) != (length,):
                got = f"shape {tuple(column.shape)}"
                raise ValueError(f"column {name!r}: {expected(f'{length} rows', got)}")
            kind, got = describe(names[name]), describe(column)
            if got != kind:
                raise ValueError(f"column {name!r}: {expected(kind, got)}")
            if self._columns is None and length:
                # raises an error for a dtype that torch cannot write
                first = np.zeros(1, np.int64)
                put(allocate(column, 1), first, take(column, first))

    def store(self, slots: np.ndarray, columns: dict[str, Any]) -> None:
        """Store a batch that `check` has checked."""
        if self._columns is None:
            self._columns = {
                name: allocate(column, self.size) for name, column in columns.items()
            }
        last = {slot: row for row, slot in enumerate(slots.tolist()) if slot >= 0}
        to = np.array(list(last), np.int64)
        rows = np.array(list(last.values()), np.int64)
        for name, column in columns.items():
            stored = self._columns[name]
            if isinstance(stored, np.ndarray):  # text may be longer
                longest = np.promote_types(stored.dtype, column.dtype)
                stored = stored.astype(longest, copy=False)
                self._columns[name] = stored
            if last:
                put(stored, to, take(column, rows))
        new = to[~self._is_filled[to]]
        if len(new):
            self._is_filled[new] = True
            self._order[self._count : self._count + len(new)] = new
            self._count += len(new)

    def draw(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Draw filled slots uniformly without replacement (Sec. 3.1, replay).

        Parameters
        ----------
        count : int
            Number of slots to draw. If fewer slots are filled, all filled slots are
            drawn, in random order.
        rng : Generator
            Source of the random numbers.

        Returns
        -------
        int64 (min(len, count),)
            Distinct slots.
        """
        count = min(count, len(self))
        # usually distinct, and much faster than choice
        while count * count < len(self):
            drawn = (rng.random(count) * len(self)).astype(np.int64)
            if len(set(drawn.tolist())) == count:
                return self._order[drawn]
        return self._order[rng.choice(len(self), count, replace=False)]

    def read(self, slots: Any, *names: str) -> dict[str, Any]:
        """Return the rows of all columns, or of some columns, in the given slots.

        Parameters
        ----------
        slots : int (K,)
            Filled slots, as `draw` returns them.
        *names : str
            Columns to read, by default all.

        Returns
        -------
        dict of str to array or tensor (K, ...)
            A copy of the rows, column by column.

        Raises
        ------
        ValueError
            If a slot is not filled.
        """
        slots = check_slots(slots, 0, self.size)
        empty = slots[~self._is_filled[slots]]
        if empty.size:
            raise ValueError(f"slots: {expected('filled slots', empty[0])}")
        columns = self._columns or {}
        return {name: take(columns[name], slots) for name in names or columns}

    def state_dict(self) -> dict[str, Any]:
        """Return a copy of the size, the filled slots and their rows.

        Returns
        -------
        dict
            Numbers and arrays; a column of tensors is a tensor.

        Examples
        --------
        >>> memory = Memory(3)
        >>> memory.write([2], index=np.array([7]))
        >>> memory.state_dict()
        {'size': 3, 'filled': array([2]), 'array.index': array([7])}
        """
        state = {"size": self.size, "filled": self.filled}
        for name, rows in self.read(self.filled).items():
            kind = "array" if isinstance(rows, np.ndarray) else "tensor"
            state[f"{kind}.{name}"] = rows
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state that `state_dict` returned.

        Parameters
        ----------
        state : mapping
            What `state_dict` returned, directly or loaded with `np.load` or
            `torch.load`. Tensors stay on their device.

        Raises
        ------
        ValueError
            If the state belongs to a memory of another size. The memory is then
            unchanged.
        """
        if state.get("size") != self.size:
            what = f"a memory of size {self.size}"
            raise ValueError(expected(what, state.get("size")))
        columns = {}
        for key, rows in state.items():
            kind, _, name = key.partition(".")
            if kind == "array":
                columns[name] = np.asarray(rows)
            if kind == "tensor":
                import torch

                columns[name] = torch.as_tensor(rows)
        fresh = Memory(self.size)
        if columns or len(state["filled"]):  # else there was no first write
            fresh.write(state["filled"], **columns)
        vars(self).update(vars(fresh))


def check_slots(slots: Any, least: int, size: int) -> np.ndarray:
    """Return slots as a new array, int64 (B,); refuse slots outside [least, size)."""
    slots = np.asarray(slots)
    if slots.ndim != 1 or (slots.size and slots.dtype.kind not in "iu"):
        got = f"{slots.dtype} {slots.shape}"
        raise ValueError(f"slots: {expected('integers (B,)', got)}")
    listed = slots.tolist()  # faster than array operations on few numbers
    if listed and not least <= min(listed) <= max(listed) < size:
        raise ValueError(f"slots: {expected(f'{least} to {size - 1}', listed)}")
    return slots.astype(np.int64)


def check_kind(name: str, column: Any) -> None:
    """Refuse a column that is neither an array of numbers or text nor a dense tensor."""
    is_array = isinstance(column, np.ndarray) and not column.dtype.hasobject
    is_masked = isinstance(column, np.ma.MaskedArray)  # the mask would be lost
    if is_masked or not (is_array or is_tensor(column)):
        what = "an array of numbers or text, or a dense tensor"
        got = f"{type(column).__name__} {getattr(column, 'dtype', '')}".strip()
        raise TypeError(f"column {name!r}: {expected(what, got)}")


def describe(column: Any) -> str:
    """Describe what all batches of a column must share: kind, dtype, device, row shape."""
    rows = tuple(column.shape[1:])
    if is_tensor(column):
        return f"tensor of {column.dtype} on {column.device}, rows {rows}"
    native = column.dtype.newbyteorder("=")
    dtype = {"U": "text", "S": "bytes"}.get(column.dtype.kind, native)
    return f"array of {dtype}, rows {rows}"


def is_tensor(column: Any) -> bool:
    """Return whether a column is a dense tensor of torch."""
    if isinstance(column, np.ndarray):
        return False
    return str(getattr(column, "layout", "")) == "torch.strided"


def allocate(column: Any, size: int) -> Any:
    """Return an empty column with ``size`` rows, otherwise like another column."""
    shape = (size, *column.shape[1:])
    if isinstance(column, np.ndarray):
        return np.zeros(shape, column.dtype.newbyteorder("="))
    # a tensor created in inference mode could not be written outside of it
    with sys.modules["torch"].inference_mode(False):
        return column.new_zeros(shape)


def take(column: Any, rows: np.ndarray) -> Any:
    """Return a copy of some rows of a column."""
    if isinstance(column, np.ndarray):
        return column[rows]
    return column.detach().index_select(0, as_tensor(rows, column))


def put(column: Any, slots: np.ndarray, rows: Any) -> None:
    """Write rows into some slots of a column."""
    if isinstance(column, np.ndarray):
        column[slots] = rows
    else:
        column[as_tensor(slots, column)] = rows  # index_copy_ supports fewer dtypes


def as_tensor(array: np.ndarray, like: Any) -> Any:
    """Return an array as a tensor on the device of ``like``; do not wait for a GPU."""
    tensor = sys.modules["torch"].from_numpy(array)
    if like.device.type in ("cpu", "mps"):
        return tensor.to(like.device)
    return tensor.pin_memory().to(like.device, non_blocking=True)
