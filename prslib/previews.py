"""Preview what memories would hold of a stream's labels, without training."""

import csv
import io
import re
import unicodedata
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from prslib.checks import (
    check_int,
    checked_names,
    decoded,
    expected,
    multi_hot,
    one_of,
    power,
    readable,
    unzipped,
    warn_of_alike,
)
from prslib.datasets.arrays import read_arrays
from prslib.datasets.coco import read_instances
from prslib.datasets.curation import class_groups
from prslib.samplers import SAMPLERS, make_sampler
from prslib.samplers.prs import partition

# those that look at labels alone
METHODS = tuple(name for name, sampler in SAMPLERS.items() if not sampler.needs)
MARKERS = "osD^"  # in a plot, of each method
MOST_NAMES = 80  # of classes, that a plot writes out
BATCH = 10  # of the stream, as in the paper
# what cells of columns of 0 and 1 say beside numbers, in lower case
WORDS = {"true": 1.0, "false": 0.0}
UNKNOWN = {"", "-1", "nan", "na", "n/a", "<na>", "none", "null"}
# names of a column of class names, of which a cell may hold several
LABEL_COLUMNS = {
    *("label", "labels", "class", "classes", "category", "categories"),
    *("tag", "tags", "target", "targets"),
}
INDEX_COLUMNS = {"", "Unnamed: 0"}  # of a data frame
ONE_ARRAY = b"\x93NUMPY"  # the first bytes of a file that np.save writes


@dataclass(frozen=True, eq=False)
class Preview:
    """The memory of each sampler at the end of a stream."""

    size: int
    class_names: tuple[str, ...]
    class_group: tuple[str, ...]
    # int64 (C,), samples of each class in the stream, n_i
    class_freq: np.ndarray
    # float64 (C,), the quota m_i of Eq. (1)
    quota: np.ndarray
    # int64 (C,) by method, samples of each class in its memory, l_i
    class_counts: dict[str, np.ndarray]
    samples: int
    unlabelled: int

    @property
    def imbalance(self) -> float:
        """The number of samples of the largest class over that of the smallest."""
        found = self.class_freq[self.class_freq > 0]
        return float(found.max() / found.min())

    @property
    def table(self) -> dict[str, list]:
        """Columns with a row a class, the most frequent first, for a data frame."""
        order = np.argsort(-self.class_freq, kind="stable")
        columns = {
            "class": np.array(self.class_names, dtype=object),
            "group": np.array(self.class_group, dtype=object),
            "stream": self.class_freq,
            "quota": self.quota,
            **self.class_counts,
        }
        return {name: values[order].tolist() for name, values in columns.items()}

    def plot(self, ax: Any) -> Any:
        """Draw the table's columns over the classes on axes of matplotlib; return them."""
        table = self.table
        places = np.arange(len(self.class_names))
        ax.plot(places, table["stream"], color="0.7", label="stream")
        ax.plot(places, table["quota"], "k:", label="quota")
        for method, marker in zip(self.class_counts, cycle(MARKERS), strict=False):
            ax.plot(places, table[method], marker, fillstyle="none", label=method)
        ax.set_yscale("symlog")  # some have none in memory
        ax.set(
            xlabel="class, the most frequent first", ylabel="samples", ylim=(0, None)
        )
        if len(places) <= MOST_NAMES:
            ax.set_xticks(places, table["class"], rotation=90)
        ax.legend()
        return ax

    def __str__(self) -> str:
        """Return the table by class, then by group."""
        table = self.table
        rows = [list(map(_text, row)) for row in zip(*table.values(), strict=True)]
        groups = np.array(self.class_group)
        for group in dict.fromkeys(table["group"]):
            sums = [
                np.sum(values[groups == group])
                for values in (self.class_freq, self.quota, *self.class_counts.values())
            ]
            rows.append([f"all {group}", group, *map(_text, sums)])
        lines = [list(table), *rows]
        columns = []
        for number, column in enumerate(zip(*lines, strict=True)):
            width = max(map(len, column))
            align = str.ljust if number < 2 else str.rjust
            columns.append([align(cell, width) for cell in column])
        text = ["  ".join(line).rstrip() for line in zip(*columns, strict=True)]
        about = f"{self.samples} samples, {self.unlabelled} of them without a label; "
        about += f"memory of {self.size}; imbalance {self.imbalance:.0f}:1"
        return "\n".join([about, *text])


def preview(
    labels: Any,
    size: int,
    methods: str | Sequence[str] = METHODS,
    *,
    rho: float = 0.0,
    seed: int = 0,
    class_names: Sequence[str] | None = None,
) -> Preview:
    """Return what each sampler's memory holds at the end of a stream (Algorithm 1).

    Parameters
    ----------
    labels : array_like
        Labels in the order of the stream, as `Sampler.place` takes them: multi-hot
        rows (N, C), class numbers (N,), or a list with the class numbers of each
        sample.
    size : int
        Capacity of the memories, in samples.
    methods : str or sequence of str
        Keys of ``SAMPLERS`` that look at labels alone.
    rho : float
        Power of allocation of PRS and OCDM.
    seed : int
        Seed of each sampler.
    class_names : sequence of str, optional
        Names of the C classes, by default those of a data frame's columns, or numbers.

    Returns
    -------
    Preview
        Its text is a table by class and group; ``table`` makes a data frame, and
        ``plot(ax)`` draws it.

    Raises
    ------
    ValueError
        If no sample has a label, names are too many or too few, a method is unknown or
        looks at more than labels, or a number is out of range.
    TypeError, ValueError
        If labels are of another kind, as in `Sampler.place`.

    Examples
    --------
    >>> rare = np.arange(1000) % 50 == 0
    >>> print(preview(np.stack([~rare, rare], axis=1), size=20, methods=["crs", "prs"]))
    1000 samples, 0 of them without a label; memory of 20; imbalance 49:1
    class         group     stream  quota  crs  prs
    0             majority     980   10.0   19   11
    1             minority      20   10.0    1    9
    all majority  majority     980   10.0   19   11
    all minority  minority      20   10.0    1    9
    """
    if class_names is None:
        class_names = getattr(labels, "columns", None)
    rows = _checked(labels, class_names)
    size = check_int("size", size, least=1)
    rho = power("rho", rho)
    names = range(rows.shape[1]) if class_names is None else class_names
    names = checked_names(names)
    warn_of_alike(names)
    class_freq = rows.sum(axis=0)
    counts = {}
    for method in [methods] if isinstance(methods, str) else methods:
        one_of("method", str(method).lower(), METHODS)
        options = {"rho": rho} if method.lower() in ("prs", "ocdm") else {}
        sampler = make_sampler(method, size, len(names), seed, **options)
        with warnings.catch_warnings():  # the text tells how many have no label
            warnings.simplefilter("ignore", UserWarning)
            for start in range(0, len(rows), BATCH):
                sampler.place(rows[start : start + BATCH])
        counts[method] = sampler.class_counts
    return Preview(
        size=size,
        class_names=tuple(names),
        class_group=class_groups(class_freq),
        class_freq=class_freq,
        quota=size * partition(class_freq, rho).astype(np.float64),
        class_counts=counts,
        samples=len(rows),
        unlabelled=int((~rows.any(axis=1)).sum()),
    )


def _checked(labels: Any, class_names: Sequence[str] | None) -> np.ndarray:
    """Return labels as bool (N, C); refuse what no memory can be filled with."""
    is_mapping = isinstance(class_names, Mapping)
    is_ordered = class_names is None or hasattr(class_names, "__getitem__")
    if is_mapping or not is_ordered:
        what = "a sequence of names in the order of the classes"
        got = type(class_names).__name__
        advice = "write list(class_names.values())" if is_mapping else "write a list"
        text = expected(what, got, advice)
        raise TypeError(f"class_names: {text}")
    count = None if class_names is None else len(checked_names(class_names))
    shape = getattr(labels, "shape", ())
    if count is not None and len(shape) > 1 and shape[1] != count:
        what = f"{shape[1]} class names"
        raise ValueError(f"class_names: {expected(what, count)}")
    rows = multi_hot(labels, count)
    if not rows.any():
        got = f"{len(rows)} samples without any"
        raise ValueError(f"labels: {expected('a sample with a label', got)}")
    return rows


def read_labels(file: Path | str) -> tuple[np.ndarray, tuple[str, ...] | None]:
    """Read labels and class names of a CSV, npz or npy file, or COCO's JSON.

    Parameters
    ----------
    file : Path or str
        A CSV file has a header, and columns of 0 and 1 or one column called ``labels``
        with class names, several in a cell separated by ``|`` or ``;``. Empty cells,
        NaN and -1 are what is not known. CSV and JSON may be packed by gzip. An npz
        file has an array ``labels`` and maybe ``names``, or one array.

    Returns
    -------
    labels : array (N, C) or (N,)
        As `preview` takes them.
    class_names : tuple of str or None
        None where the file names no classes.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is of another kind, or cannot be read.
    """
    file = Path(file)
    if not file.is_file():
        raise FileNotFoundError(expected(f"a file {file}", "none"))
    kinds = {
        ".csv": _read_csv,
        ".tsv": _read_csv,
        ".npz": _read_numpy,
        ".npy": _read_numpy,
        ".json": _read_coco,
    }
    kind = Path(file.name.lower().removesuffix(".gz")).suffix
    if kind not in kinds:
        what = f"a file that ends with {', '.join(kinds)}, or .csv.gz, .json.gz"
        raise ValueError(expected(what, file.name))
    labels, names = kinds[kind](file)
    with readable(f"labels in {file}", "see `prslib preview --help`"):
        _checked(labels, names)
    return labels, names


def _read_coco(file: Path) -> tuple[np.ndarray, tuple[str, ...]]:
    """Read annotations in COCO's format."""
    _, labels, names = read_instances(file)
    return labels, names


def _read_numpy(file: Path) -> tuple[np.ndarray, tuple[str, ...] | None]:
    """Read one array, or the arrays ``labels`` and ``names``."""
    advice = "save labels as numbers, and names as names.astype(str)"
    with open(file, "rb") as stream:
        is_one = stream.read(len(ONE_ARRAY)) == ONE_ARRAY
    if is_one:
        with readable(f"an array of labels in {file}", advice):
            return np.load(file), None
    stored = read_arrays(file, advice=advice)
    alone = stored.values() if len(stored) == 1 else ()
    if "labels" not in stored and not alone:
        what = f"an array 'labels' in {file}"
        raise ValueError(expected(what, ", ".join(stored) or "none"))
    labels = stored.get("labels", *alone)
    names = stored.get("names")
    if names is None:
        return labels, None
    text = np.char.decode(names, "utf-8") if names.dtype.kind == "S" else names
    return labels, tuple(text.astype(str).ravel().tolist())


def _read_csv(file: Path) -> tuple[np.ndarray, tuple[str, ...]]:
    """Read columns of 0 and 1, or else one column of class names."""
    with readable(f"labels in {file}", "see `prslib preview --help`"):
        header, cells = _table(decoded(unzipped(file.read_bytes())))
        columns = [_numbers(column) for column in cells.T]
        if header[0] in INDEX_COLUMNS:
            columns[0] = None
        is_label = np.array([column is not None for column in columns])
        if is_label.sum() > 1:
            _check_columns(header, is_label)
            names = np.array(header)[is_label].tolist()
            values = [column for column in columns if column is not None]
            return np.stack(values, axis=1) == 1, tuple(names)
        named = [k for k, name in enumerate(header) if name.lower() in LABEL_COLUMNS]
        if len(named) != 1:
            what = "columns of 0 and 1, or one called labels with class names"
            raise ValueError(expected(what, ", ".join(header)))
        column = cells[:, named[0]].tolist()
        for cell in column:
            if "," in cell or cell.startswith(("[", "{")):
                advice = "write '|'.join(names)"
                what = "class names divided by | or ;"
                raise ValueError(expected(what, repr(cell), advice))
    found = [re.split(r"\s*[|;]\s*", cell) for cell in column]
    found = [
        [name for name in classes if name.lower() not in UNKNOWN] for classes in found
    ]
    names = sorted({name for classes in found for name in classes})
    labels = np.zeros((len(found), len(names)), np.bool_)
    for row, classes in zip(labels, found, strict=True):
        row[[names.index(name) for name in classes]] = True
    return labels, tuple(names)


def _numbers(column: np.ndarray) -> np.ndarray | None:
    """Return the cells of a class as 1, 0 and NaN for unknown; None for other cells."""
    values = {cell: _number(cell) for cell in set(column.tolist())}
    known = [value for value in values.values() if value is not None]
    if len(known) < len(values) or np.isnan(known).all():
        return None
    return np.array([values[cell] for cell in column.tolist()], float)


def _number(cell: str) -> float | None:
    """Return what a cell of a class says: 1, 0, NaN for unknown, None for none of it."""
    word = cell.lower()
    if word in UNKNOWN:
        return np.nan
    try:
        number = WORDS[word] if word in WORDS else float(cell)
    except ValueError:
        return None
    if number == -1:
        return np.nan
    return number if number in (0, 1) else None


def _table(text: str) -> tuple[list[str], np.ndarray]:
    """Return the header and the cells (N, columns) of a CSV text."""
    text = unicodedata.normalize("NFC", text).removeprefix("# ")  # np.savetxt's header
    text = text.replace("\r\n", "\n").replace("\r", "\n").lstrip("\n")
    first_line = re.sub(r'"[^"]*"', "", text).partition("\n")[0]  # without names
    delimiter = max("\t;|,", key=first_line.count)  # a tab is in no name
    stream = csv.reader(io.StringIO(text), delimiter=delimiter, strict=True)
    lines = [[cell.strip() for cell in line] for line in stream if line]
    if len(lines) < 2:
        raise ValueError(expected("a header and a row a sample", f"{len(lines)} lines"))
    header, *rows = lines
    for number, row in enumerate(rows, start=1):
        if len(row) != len(header):
            what = f"{len(header)} cells in row {number}"
            raise ValueError(expected(what, len(row)))
    if all(_number(name) is not None for name in header):
        raise ValueError(expected("a header that names the classes", header))
    cells = np.array(rows)
    if header[-1] == "" and (cells[:, -1] == "").all():  # a comma ends each line
        return header[:-1], cells[:, :-1]
    return header, cells


def _check_columns(header: list[str], is_label: np.ndarray) -> None:
    """Refuse columns that are no labels, but for a first one, and repeated names."""
    others = [name for name, label in zip(header, is_label, strict=True) if not label]
    if others and others != header[:1]:
        what = "columns of 0 and 1 after one that names the samples"
        got = f"others in {', '.join(map(repr, others))}"
        raise ValueError(expected(what, got, "leave them out"))
    checked_names(np.array(header)[is_label].tolist())


def _text(value: Any) -> str:
    """Return a cell of the table."""
    return f"{value:.1f}" if isinstance(value, float) else str(value)
