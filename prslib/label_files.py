"""Read labels of a file, and tell what was understood."""

import csv
import io
import re
import sys
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np

from prslib.checks import (
    checked_names,
    decoded,
    expected,
    naming_extra,
    one_line,
    read_content,
    readable,
)
from prslib.labels import multi_hot

SHOWN_NAMES = 20  # of classes
# columns of class names, of which a cell may hold several
LABEL_COLUMNS = {
    *("label", "labels", "class", "classes", "category", "categories"),
    *("tag", "tags", "target", "targets"),
}
INDEX_COLUMN = "Unnamed: 0"  # of a data frame
# what cells of columns of 0 and 1 say beside numbers, in lower case; -1 is unknown
UNKNOWN = ("", "nan", "na", "n/a", "<na>", "none", "null")
WORDS = {"true": 1, "false": 0} | dict.fromkeys(UNKNOWN, -1)


def read_labels(file: Path | str) -> tuple[np.ndarray, tuple[str, ...] | None]:
    """Read labels and class names of a CSV, npz or npy file, or COCO's JSON.

    What was understood is printed to the standard error stream.

    Parameters
    ----------
    file : Path or str
        A CSV file has a header, and columns of 0 and 1 or one column called ``labels``
        with class names, several in a cell separated by ``|`` or ``;``. Empty cells,
        NaN and -1 are labels that are not known. It needs pandas. An npz file has an
        array ``labels`` and maybe ``names``, or one array. CSV and JSON may be packed
        by gzip.

    Returns
    -------
    labels : array (N, C) or (N,)
        As `preview` reads them.
    class_names : tuple of str or None
        None if the file names no classes.

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
        ".csv": read_csv,
        ".tsv": read_csv,
        ".npz": read_numpy,
        ".npy": read_numpy,
        ".json": read_coco,
    }
    kind = Path(file.name.lower().removesuffix(".gz")).suffix
    if kind not in kinds:
        what = f"a file that ends with {', '.join(kinds)}, or .csv.gz, .json.gz"
        raise ValueError(expected(what, file.name))
    with readable(f"labels in {file}", "see `prslib preview --help`"):
        labels, names, form = kinds[kind](file)
        rows = multi_hot(labels)
        if names is not None:
            names = tuple(checked_names(names))
            if len(names) != rows.shape[1]:
                raise ValueError(expected(f"{rows.shape[1]} class names", len(names)))
    unlabelled = len(rows) - np.count_nonzero(rows.any(axis=1))
    classes = f"{rows.shape[1]} classes"
    if names is not None:
        classes += f": {', '.join(names[:SHOWN_NAMES])}"
        classes += ", ..." if len(names) > SHOWN_NAMES else ""
    text = f"{file}: {form}; {len(rows)} rows, {unlabelled} without a label; {classes}"
    print(one_line(text), file=sys.stderr)
    return labels, names


def read_coco(file: Path) -> tuple[np.ndarray, Any, str]:
    """Read annotations in COCO's format."""
    from prslib.datasets.coco import read_instances

    _, labels, names = read_instances(file)
    return labels, names, "annotations in COCO's format"


def read_numpy(file: Path) -> tuple[np.ndarray, Any, str]:
    """Read one array, or the arrays ``labels`` and ``names``."""
    stored = np.load(file)
    if isinstance(stored, np.ndarray):
        return stored, None, f"an array {stored.shape}"
    arrays = dict(stored)
    if len(arrays) == 1:
        arrays = {"labels": next(iter(arrays.values()))}
    if "labels" not in arrays:
        raise ValueError(expected("an array 'labels'", ", ".join(arrays) or "none"))
    names = arrays["names"].ravel().tolist() if "names" in arrays else None
    return arrays["labels"], names, f"an array {arrays['labels'].shape}"


def read_csv(file: Path) -> tuple[np.ndarray, Any, str]:
    """Read columns of 0 and 1, or else one column of class names."""
    table, separator = read_table(file)
    form = f"{table.shape[1]} columns separated by {separator!r}"
    if table.shape[1] == 1:
        form = "one column"
    numbers = {name: read_numbers(table[name]) for name in table}
    first = table.columns[0]
    rows = {
        name: column == 1
        for name, column in numbers.items()
        if name != INDEX_COLUMN and np.isfinite(column).all() and (column >= 0).any()
    }
    others = [name for name in table if name not in rows]
    named = [name for name in others if name.lower() in LABEL_COLUMNS]
    if first in others and first not in [*named, INDEX_COLUMN]:
        check_samples(table[first])
    if len(rows) > 1:
        if others not in ([], [first]):
            what = "columns of 0 and 1 after one that names the samples"
            got = f"others in {', '.join(map(repr, others))}"
            raise ValueError(expected(what, got, "leave them out"))
        form += f", {len(rows)} of them with 0 and 1"
        return np.stack(list(rows.values()), axis=1), list(rows), form
    if len(named) != 1:
        got = ", ".join(table)
        if others:
            cells = table[others[-1]][np.isnan(numbers[others[-1]])]
            got += f", with {cells.iloc[0]!r}" if len(cells) else ""
        what = "columns of 0 and 1, or one called labels with class names"
        raise ValueError(expected(what, got))
    labels, names = read_names(table[named[0]])
    return labels, names, f"{form}, class names in {named[0]!r}"


def read_table(file: Path) -> tuple[Any, str]:
    """Read the cells of a CSV file as a frame of text; return its separator, too."""
    with naming_extra("data"):
        import pandas as pd

    text = unicodedata.normalize("NFC", decoded(read_content(file)))
    text = text.lstrip().removeprefix("# ")  # np.savetxt's header
    first_line = re.sub(r'"[^"]*"', "", text).partition("\n")[0]  # without names
    separator = max("\t;|,", key=first_line.count)  # a tab is in no name
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    lines = [[cell.strip() for cell in line] for line in reader if line]
    if len(lines) < 2:
        raise ValueError(
            expected("a header and a row per sample", f"{len(lines)} rows")
        )
    for number, line in enumerate(lines):
        if len(line) != len(lines[0]):
            what = f"{len(lines[0])} cells in row {number}"
            raise ValueError(expected(what, len(line)))
    if lines[0][-1] == "" and not any(line[-1] for line in lines):
        lines = [line[:-1] for line in lines]  # a comma ends each line
    header, *rows = lines
    if all(name.replace(".", "", 1).isdigit() for name in header):
        raise ValueError(expected("a header that names the classes", header))
    names = checked_names([header[0] or INDEX_COLUMN, *header[1:]])
    return pd.DataFrame(rows, columns=names, dtype=str), separator


def check_samples(samples: Any) -> None:
    """Refuse a row per label, in which a sample's name comes again."""
    repeated = samples[samples.duplicated()]
    if len(repeated):
        what = f"one row per sample in {samples.name!r}"
        raise ValueError(expected(what, f"{repeated.iloc[0]!r} in several"))


def read_numbers(cells: Any) -> np.ndarray:
    """Return cells as 0, 1, and -1 for unknown; NaN for what is none of them; (N,)."""
    import pandas as pd

    words = cells.str.lower().map(lambda cell: WORDS.get(cell, cell))
    numbers = pd.to_numeric(words, errors="coerce")
    return numbers.where(numbers.isin([0, 1, -1])).to_numpy(float)


def read_names(cells: Any) -> tuple[np.ndarray, list[str]]:
    """Return cells of class names, separated by | or ;, as rows (N, C) and names."""
    odd = cells[cells.str.contains(r"^[\[{]|,")]
    if len(odd):
        what = "class names separated by | or ;"
        raise ValueError(expected(what, repr(odd.iloc[0]), "write '|'.join(names)"))
    cells = cells.mask(cells.str.lower().isin(["nan", "-1"]), "")
    rows = cells.str.replace(r"\s*[|;]\s*", "|", regex=True).str.get_dummies("|")
    for name in rows:
        parts = set(re.split(r"[\s#/+&]+", name)) - {name}
        if len(parts & set(rows)) > 1:
            raise ValueError(expected("class names separated by | or ;", repr(name)))
    return rows.to_numpy() == 1, list(rows)
