"""Keep what a batch carries in the slots of a memory of fixed size."""

import copy
import sys
from typing import Any

import numpy as np

from prslib.checks import (
    check_int,
    check_state,
    checksum,
    expected,
    one_line,
    same_setting,
)

# of tensors: those whose rows torch reads and writes, and pickle restores
DTYPES = {
    *("torch.bool", "torch.uint8", "torch.int8", "torch.int16", "torch.int32"),
    *("torch.int64", "torch.float16", "torch.bfloat16", "torch.float32"),
    *("torch.float64", "torch.complex64", "torch.complex128"),
}


class Memory:
    """A row of every column for each slot that a sampler assigns (Sec. 3.1).

    Parameters
    ----------
    size : int
        Capacity m, in samples.

    Raises
    ------
    ValueError
        If ``size`` is below 1.
    TypeError
        If it is not an integer.

    Notes
    -----
    The first write decides the columns: names, kinds (numpy array or torch tensor),
    dtypes, devices and row shapes. It allocates buffers for all ``size`` slots. Text
    may be longer in a later batch: its column grows.

    Examples
    --------
    >>> memory = Memory(3)
    >>> memory.write(np.array([0, -1, 0]), index=np.array([7, 8, 9]))
    >>> memory.read(np.array([0]))
    {'index': array([9])}
    """

    def __init__(self, size: int):
        self.size = check_int("size", size, least=1)
        self._columns: dict[str, Any] = {}
        # filled slots, in the order they filled, and to look them up
        self._filled = np.empty(0, np.int64)
        self._is_filled: set[int] = set()

    def __len__(self) -> int:
        """Return the number of filled slots."""
        return len(self._filled)

    @property
    def filled(self) -> np.ndarray:
        """The filled slots, in the order in which they filled; int64 (len,), a copy."""
        return self._filled.copy()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, of which there is none before the first write."""
        return tuple(self._columns)

    def __copy__(self) -> "Memory":
        """Return a copy that shares no columns."""
        return copy.deepcopy(self)

    def __repr__(self) -> str:
        """Return the size, the filled slots and the columns."""
        columns = [f"{name}: {_kind(of)}" for name, of in self._columns.items()]
        filled = f"{len(self)} slots filled"
        return f"<Memory({self.size}), {filled}, columns {', '.join(columns)}>"

    def state_dict(self) -> dict[str, Any]:
        """Return a copy of size, filled slots and columns, with a checksum."""
        state = {"size": self.size, "filled": self.filled, "columns": self._columns}
        return copy.deepcopy(state | {"checksum": checksum(state)})

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on as the memory whose `state_dict` this is.

        Parameters
        ----------
        state : dict
            What `state_dict` returned.

        Raises
        ------
        ValueError
            If it is of a memory of another size, or was changed. The memory is then as
            it was.
        TypeError
            If it is no dict.
        """
        check_state(state)
        if not same_setting(state.get("size"), self.size):
            got = one_line(state.get("size"))
            raise ValueError(expected(f"size {self.size}", got))
        is_memory = state.keys() == {"size", "filled", "columns", "checksum"}
        if not is_memory or not same_setting(state["checksum"], checksum(state)):
            what = "a state as state_dict returned it"
            got = "a changed one" if is_memory else f"entries {sorted(state)}"
            raise ValueError(expected(what, got))
        self._columns = copy.deepcopy(state["columns"])
        self._filled = state["filled"].copy()
        self._is_filled = set(self._filled.tolist())

    def write(self, slots: np.ndarray, **columns: Any) -> None:
        """Store a row of every column in each slot (Algorithm 1, line 9).

        Parameters
        ----------
        slots : int64 (B,)
            Slot of each sample; -1 is skipped, and of equal slots the last one is kept.
        **columns : arrays or tensors (B, ...)
            The same names, kinds, dtypes and row shapes at every write.

        Raises
        ------
        ValueError
            If a slot is out of range, there is no column, or one does not fit the slots
            or the first write.
        TypeError
            If a column is no array or tensor, or not of the first write's kind and
            dtype; if it is masked or sparse, or holds objects.
        """
        listed = _integers(slots).tolist()
        if listed and not -1 <= min(listed) <= max(listed) < self.size:
            slot = max(listed) if max(listed) >= self.size else min(listed)
            advice = "give memory and sampler one size"
            text = expected(f"-1 to {self.size - 1}", slot, advice)
            raise ValueError(f"slots: {text}")
        if not columns or columns.keys() != (self._columns or columns).keys():
            names = sorted(self._columns) or "at least one"
            raise ValueError(f"columns: {expected(f'{names}', sorted(columns))}")
        last = self._store(listed, columns)
        if new := [slot for slot in last if slot not in self._is_filled]:
            self._is_filled.update(new)
            self._filled = np.append(self._filled, new)

    def update(self, slots: np.ndarray, **columns: Any) -> None:
        """Store new rows of some columns in filled slots, the others stay.

        Parameters
        ----------
        slots : int64 (K,)
            Filled slots, as ``draw`` returns them. Of equal slots the last one is kept.
        **columns : arrays or tensors (K, ...)
            Some columns of the first write.

        Raises
        ------
        ValueError
            If a slot holds nothing or is no integer, a column is new, or one does not
            fit the slots or the first write.
        TypeError
            If a column is not of the first write's kind and dtype.

        Examples
        --------
        >>> memory = Memory(3)
        >>> memory.write(np.array([0, 1]), index=np.array([7, 8]), logits=np.zeros(2))
        >>> memory.update(np.array([1]), logits=np.array([0.5]))
        >>> memory.read(np.array([0, 1]))
        {'index': array([7, 8]), 'logits': array([0. , 0.5])}
        """
        slots = self._filled_slots(slots)
        if not columns or columns.keys() - self._columns.keys():
            what = f"some of {sorted(self._columns)}"
            raise ValueError(f"columns: {expected(what, sorted(columns))}")
        self._store(slots.tolist(), columns)

    def draw(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Draw filled slots uniformly without replacement (Sec. 3.1, replay).

        Parameters
        ----------
        count : int
            Number of slots. Where fewer are filled, all of them are drawn, in random
            order.
        rng : Generator
            Source of the draw.

        Returns
        -------
        int64 (min(len, count),)
            Distinct slots.

        Raises
        ------
        ValueError
            If ``count`` is negative.
        TypeError
            If ``count`` is no integer or ``rng`` no Generator.
        """
        if not isinstance(rng, np.random.Generator):
            what = "a Generator, np.random.default_rng(seed)"
            raise TypeError(f"rng: {expected(what, repr(rng))}")
        count = min(check_int("count", count, least=0), len(self))
        # most often distinct, and far quicker than choice
        while count * count < len(self):
            drawn = (rng.random(count) * len(self)).astype(np.int64)
            if len(set(drawn.tolist())) == count:
                return self._filled[drawn]
        return self._filled[rng.choice(len(self), count, replace=False)]

    def read(self, slots: np.ndarray, *names: str) -> dict[str, Any]:
        """Return the rows of every column, or of some, in the given slots.

        Parameters
        ----------
        slots : int64 (K,)
            Filled slots, as ``draw`` returns them.
        *names : str
            Columns to read, by default all.

        Returns
        -------
        dict of str to array or tensor (K, ...)
            A copy of the rows, column by column.

        Raises
        ------
        ValueError
            If a slot holds nothing or is no integer, or there is no such column.
        """
        slots = self._filled_slots(slots)
        if unknown := set(names) - self._columns.keys():
            what = f"some of {sorted(self._columns)}"
            raise ValueError(f"columns: {expected(what, sorted(unknown))}")
        rows = {}
        for name in names or self._columns:
            column = self._columns[name]
            rows[name] = _take(column, slots)
        return rows

    def _filled_slots(self, slots: np.ndarray) -> np.ndarray:
        """Return slots that hold a sample as int64 (K,); refuse others."""
        slots = _integers(slots)
        if not self._is_filled.issuperset(slots.tolist()):
            first = next(slot for slot in slots if slot not in self._is_filled)
            raise ValueError(f"slots: {expected('filled slots', first)}")
        return slots

    def _store(self, slots: list[int], columns: dict[str, Any]) -> dict[int, int]:
        """Store rows in slots but -1; return the row that each slot now holds."""
        for name, column in columns.items():
            _check(name, column, self._columns.get(name, column), len(slots))
        last = {slot: row for row, slot in enumerate(slots) if slot >= 0}
        to = np.array(list(last), np.int64)
        rows = np.array(list(last.values()), np.int64)
        for name, column in columns.items():
            if hasattr(column, "as_subclass"):
                column = _plain(column)
            stored = self._columns.get(name)
            if stored is None:
                stored = self._empty(column)
            elif stored.dtype != column.dtype and column.dtype.kind in "US":
                # where the new text is longer
                longest = np.promote_types(stored.dtype, column.dtype)
                stored = stored.astype(longest, copy=False)
            if last:
                # index_copy_ knows fewer dtypes
                stored[_index(to, stored)] = _take(column, rows)
            self._columns[name] = stored
        return last

    def _empty(self, column: Any) -> Any:
        """Return a buffer for rows like a column's."""
        shape = self.size, *column.shape[1:]
        if hasattr(column, "new_zeros"):  # on the same device
            return column.new_zeros(shape)
        return np.zeros(shape, _native(column.dtype))


def _plain(tensor: Any) -> Any:
    """Return a tensor without its graph, which would stay alive in the memory."""
    usual = sys.modules["torch"].Tensor  # others may have no copy
    return (tensor if type(tensor) is usual else tensor.as_subclass(usual)).detach()


def _take(column: Any, rows: np.ndarray) -> Any:
    """Return a copy of some rows of a column."""
    if isinstance(column, np.ndarray):
        return column[rows]
    return column.index_select(0, _index(rows, column))


def _index(rows: np.ndarray, column: Any) -> Any:
    """Return rows as the index of a column; on a GPU without a wait for it."""
    if isinstance(column, np.ndarray):
        return rows
    index = sys.modules["torch"].from_numpy(rows)
    if column.device.type in ("cpu", "mps"):
        return index.to(column.device)
    return index.pin_memory().to(column.device, non_blocking=True)


def _check(name: str, column: Any, first: Any, length: int) -> None:
    """Refuse a column that cannot be stored, or does not fit the first write."""
    is_array = isinstance(column, np.ndarray)
    if not is_array and not hasattr(column, "new_zeros"):
        advice = "write column.to_numpy(), or np.array(column)"
        text = expected("an array or a tensor", type(column).__name__, advice)
        raise TypeError(f"column {name!r}: {text}")
    if isinstance(column, np.ma.MaskedArray) or hasattr(column, "get_mask"):
        text = expected("an array or a tensor", "a masked one", "fill it")
        raise TypeError(f"column {name!r}: {text}")
    if is_array and column.dtype.hasobject and column.dtype.kind != "T":
        advice = "write column.astype(str) for text; of other objects store the number"
        text = expected("numbers or text", f"objects, {_kind(column)}", advice)
        raise TypeError(f"column {name!r}: {text}")
    if not is_array and not _is_dense(column):
        got = f"{column.layout}, {column.dtype}, on {column.device}"
        advice = "write to_dense(), dequantize(), int() or float()"
        text = expected("a dense tensor that torch indexes and saves", got, advice)
        raise TypeError(f"column {name!r}: {text}")
    same_kind = is_array == isinstance(first, np.ndarray)
    if not same_kind or not _one_dtype(column.dtype, first.dtype):
        arrays = [one for one in (column, first) if isinstance(one, np.ndarray)]
        is_text = len(arrays) == 2 and {one.dtype.kind for one in arrays} & set("UST")
        advice = "write text as np.dtypes.StringDType() every time" if is_text else ""
        text = expected(_kind(first), _kind(column), advice)
        raise TypeError(f"column {name!r}: {text}")
    shape = length, *first.shape[1:]
    if tuple(column.shape) != shape:
        text = expected(f"shape {shape}", tuple(column.shape))
        raise ValueError(f"column {name!r}: {text}")


def _is_dense(tensor: Any) -> bool:
    """Tell whether a tensor has a number of its own at every place, to read and write."""
    if tensor.is_nested or tensor.is_meta or str(tensor.dtype) not in DTYPES:
        return False
    return str(tensor.layout) == "torch.strided"


def _one_dtype(dtype: Any, first: Any) -> bool:
    """Tell whether rows of one dtype fit a column of another; text of any length."""
    if not isinstance(dtype, np.dtype):
        return dtype == first
    is_text = dtype.kind in "US" and dtype.kind == first.kind
    return is_text or _native(dtype) == _native(first)


def _native(dtype: np.dtype) -> np.dtype:
    """Return a dtype in the processor's byte order, the only one that pickle keeps."""
    return dtype if dtype.kind == "T" else dtype.newbyteorder("=")


def _integers(slots: np.ndarray) -> np.ndarray:
    """Return slots as int64 (B,), or raise ValueError."""
    is_masked = isinstance(slots, np.ma.MaskedArray)
    try:
        slots = np.asarray(slots)
    except (ValueError, TypeError, RuntimeError) as error:  # ragged; of another device
        text = expected("integers of shape (B,)", f"others ({one_line(error)})")
        raise ValueError(f"slots: {text}") from error
    is_empty = slots.shape == (0,)  # a list without an entry is of floats
    if is_masked or slots.ndim != 1 or (slots.dtype.kind not in "iu" and not is_empty):
        kind = "a masked array" if is_masked else f"{slots.dtype} {slots.shape}"
        raise ValueError(f"slots: {expected('integers of shape (B,)', kind)}")
    # torch refuses a negative stride, and warns of indices that are read-only
    return slots.astype(np.int64, order="C", copy=not slots.flags.writeable)


def _kind(column: Any) -> str:
    """Return what a column is made of; a `numpy.memmap` counts as an array."""
    name = "array" if isinstance(column, np.ndarray) else type(column).__name__
    return f"{name} of {column.dtype}"
