"""Read labels, inputs and tasks from files, and report how files were interpreted."""

import sys
from pathlib import Path
from typing import Any

import numpy as np

from prslib.checks import check_names, expected, naming_extra, one_line, readable
from prslib.labels import multi_hot

SHOWN_NAMES = 20  # names of columns in a message
LABEL_COLUMNS = ("label", "labels")  # of class names
# columns of the file of `--about`, and the arguments of `trial` that they become
ABOUT = {"task": "task", "order": "order", "group": "groups"}
# words in columns of 0 and 1, in lower case, and their numbers; -1 means unknown
WORDS = {"true": "1", "false": "0"}
WORDS |= dict.fromkeys(["", "nan", "na", "n/a", "<na>", "null", "none"], "-1")


def read_labels(file: Path | str) -> tuple[np.ndarray, list[str] | None]:
    """Read labels and class names from a CSV, npz, npy or COCO JSON file.

    A line about how the file was interpreted is printed to standard error.

    Parameters
    ----------
    file : Path or str
        A CSV file has a header and either one column per class, which contains 0s and
        1s, or one column ``labels``, which contains class names separated by ``|`` or
        ``;``. Empty cells, NaN and -1 are unknown labels, and so is NA in a table of 0s
        and 1s. Empty lines, columns of text such as dates, and a first column of sample
        names are ignored. CSV files may be compressed by gzip. An npz file contains an
        array ``labels`` and optionally ``names``.

    Returns
    -------
    labels : ndarray of shape (n_samples, n_classes) or (n_samples,)
        Labels in a form that `preview` and `trial` accept.
    class_names : list of str or None
        None if the file names no classes.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file has another format or cannot be read.
    """
    file = Path(file)
    kind = kind_of(file)
    with readable(f"labels in {file}"):
        if kind == ".csv":
            labels, names = read_csv(file)
        elif kind in (".npz", ".npy"):
            labels, names = load_array(file, "labels")
        elif kind == ".json":
            from prslib.datasets.coco import read_instances

            _, labels, names = read_instances(file)
        else:
            raise ValueError(expected("a csv, npz, npy or json file", kind))
        rows = multi_hot(labels, len(names) if names else None)
    empty = (~rows.any(axis=1)).sum()
    form = f"{len(rows)} rows, {empty} without a label"
    if unknown := np.count_nonzero((labels != labels).any(axis=-1)):  # NaN
        form += f", {unknown} with unknown labels"
    form += f"; {rows.shape[1]} classes"
    say_names(file, form, names or ["numbers"])
    return labels, names


def read_inputs(path: Path | str, labels: Path | str = "") -> np.ndarray:
    """Read features from an npy, npz, parquet or CSV file, or the images of a folder.

    A line about the columns of a table is printed to standard error.

    Parameters
    ----------
    path : Path or str
        An npz file contains an array ``inputs``. CSV and parquet files have one column
        per feature; parquet files need the package pyarrow. The images of a folder are
        small and all have the same size.
    labels : Path or str
        CSV file with the labels of a folder's images, whose first column contains the
        file names.

    Returns
    -------
    ndarray of shape (n_samples, n_features) or (n_samples, height, width, 3)
        Inputs in a form that `trial` accepts; images are of type uint8.

    Raises
    ------
    FileNotFoundError
        If a file is missing.
    ValueError
        If the file has another format or cannot be read.
    """
    path = Path(path)
    kind = kind_of(path)
    with readable(f"inputs in {path}"):
        if path.is_dir():
            names = read_cells(Path(labels)).iloc[:, 0]
            return np.stack([read_pixels(path / name) for name in names])
        if kind in (".npy", ".npz"):
            return load_array(path, "inputs")[0]
        if kind == ".csv":
            table = read_table(path)
        elif kind == ".parquet":
            import pandas as pd

            table = pd.read_parquet(path)
        else:
            raise ValueError(expected("npy, npz, parquet, csv, or a folder", kind))
        form = f"{len(table)} rows, {table.shape[1]} features"
        say_names(path, form, table.columns)
        return table.to_numpy(np.float32)


def read_pixels(file: Path) -> np.ndarray:
    """Return an image as uint8 (H, W, 3)."""
    from PIL import Image

    with Image.open(file) as image:
        if image.mode[0] in "IF":  # as RGB, numbers above 255 would all be 255
            what = f"8 bits per channel in {file.name}"
            raise ValueError(expected(what, f"mode {image.mode}"))
        return np.asarray(image.convert("RGB"))


def read_about(file: Path | str) -> dict[str, Any]:
    """Read the columns task, order and group of a CSV file as arguments of `trial`."""
    with readable(f"columns of {file}"):
        table = read_table(Path(file))
    columns = [name for name in ABOUT if name in table]
    if not columns:
        raise ValueError(expected(f"a column {', '.join(ABOUT)} in {file}", [*table]))
    others = [name for name in table if name not in ABOUT]
    if others:
        say_names(Path(file), "ignoring the columns", others)
    return {ABOUT[name]: table[name].to_numpy() for name in columns}


def kind_of(file: Path) -> str:
    """Return the suffix of a file, which is also ".csv" for labels.csv.gz."""
    return Path(file.name.lower().removesuffix(".gz")).suffix


def say_names(file: Path, form: str, names: Any) -> None:
    """Print how a file was interpreted, and some names of its columns."""
    shown = ", ".join(map(str, names[:SHOWN_NAMES]))
    print(one_line(f"{file}: {form}: {shown}"), file=sys.stderr)


def load_array(file: Path, name: str) -> tuple[np.ndarray, list[str] | None]:
    """Return an npy file's array, or a named array of an npz file and its ``names``."""
    stored = np.load(file)
    if isinstance(stored, np.ndarray):
        return stored, None
    names = stored["names"].astype(str).tolist() if "names" in stored else None
    return stored[name], names


def read_csv(file: Path) -> tuple[np.ndarray, list[str]]:
    """Read one column of class names, or else columns of 0 and 1."""
    table = read_cells(file)
    columns = [name for name in LABEL_COLUMNS if name in table][:1]
    if columns:
        labels, names = read_names(table[columns[0]])
    else:
        labels, names = read_columns(table)
        columns = names
    others = [name for name in table if name not in columns]
    first = table.columns[0]
    # a table with one row per label would seem to have too many samples
    if first in others and table[first].duplicated().any():
        advice = "if these are no names of samples, move the column to the end"
        what = f"one row per sample in {first!r}"
        raise ValueError(expected(what, "several", advice))
    if others:
        say_names(file, "ignoring the columns", others)
    return labels, names


def read_with_pandas(file: Path, **options: Any) -> Any:
    """Read a CSV file as a data frame, with the separator that makes the most columns."""
    with naming_extra("data"):
        import pandas as pd

    def count_columns(separator: str) -> int:
        return pd.read_csv(file, sep=separator, nrows=0).shape[1]

    separator = max("\t;|,", key=count_columns)
    try:
        return pd.read_csv(file, sep=separator, skipinitialspace=True, **options)
    except pd.errors.ParserError as error:
        line = pd.read_csv(file, sep="\0", nrows=0, engine="python").columns[0]
        what = f"{str(error).strip()}; the first line is {line!r}"
        raise ValueError(what) from error


def read_table(file: Path) -> Any:
    """Read columns of numbers, dates or text."""
    table = read_with_pandas(file)
    # pandas uses the cells of an additional column as the index
    if list(table.index) != list(range(len(table))):
        what = "one cell per name in the header, with points in decimal numbers"
        raise ValueError(expected(what, "more cells"))
    # the index of a written data frame
    return table.drop(columns="Unnamed: 0", errors="ignore")


def read_cells(file: Path) -> Any:
    """Read cells as text, even 3 and NA, which may be names of classes."""
    cells = read_with_pandas(file, header=None, dtype=str, na_filter=False)
    if not cells.iloc[0, 0]:  # the index of a written data frame
        cells = cells.iloc[:, 1:]
    header = check_names(cells.iloc[0])
    if all(name.replace(".", "", 1).isdigit() for name in header):
        raise ValueError(expected("a header that names the classes", header))
    # with one name too many in the header, all names would belong to other columns
    if len(cells) > 1 and (cells.iloc[1:, -1] == "").all():
        what = "one cell per name in the header"
        raise ValueError(expected(what, f"none below {header[-1]!r}"))
    return cells.iloc[1:].set_axis(header, axis=1)


def read_names(cells: Any) -> tuple[np.ndarray, list[str]]:
    """Return cells of class names, separated by | or ;, as rows (N, C) and names."""
    cells = cells.str.strip().replace(["nan", "NaN", "-1"], "")
    cells = cells.str.replace(r"\s*[|;]\s*", "|", regex=True)
    rows = cells.str.get_dummies("|")
    wrong = [name for name in rows if "," in name or name[0] in "[{"]
    if wrong:
        raise ValueError(expected("class names separated by | or ;", repr(wrong[0])))
    return rows.to_numpy() == 1, list(rows)


def read_columns(table: Any) -> tuple[np.ndarray, list[str]]:
    """Return columns of 0 and 1 as rows (N, C), NaN if unknown, and their names."""
    import pandas as pd

    def read_numbers(column: Any) -> Any:
        codes, texts = pd.factorize(column)  # each distinct text is read once
        words = pd.Series(texts).str.lower().replace(WORDS)
        numbers = pd.to_numeric(words, errors="coerce")  # NaN for other text
        return pd.Series(numbers.to_numpy()[codes], column.index)

    numbers = table.apply(read_numbers)
    is_class = numbers.isin([0, 1, -1]).all()
    # text, such as names of samples or dates, and columns without a known label
    is_other = (numbers.isna() | (numbers == -1)).all()
    first = table.columns[0]
    is_other[first] |= not is_class[first]
    names = table.columns[~is_other].tolist()
    if names and pd.to_numeric(pd.Series(names), errors="coerce").isin([0, 1]).all():
        what = "a header that names the classes, not 0 and 1"
        raise ValueError(expected(what, [*table]))
    wrong = [name for name in names if not is_class[name]]
    if wrong or len(names) < 2:
        what = "two or more columns of 0 and 1, or one called labels with class names"
        # the first wrong cell of each column, or else the first row
        is_wrong = ~numbers[wrong].isin([0, 1, -1])
        cells = {name: table[name][is_wrong[name]].iloc[0] for name in wrong}
        raise ValueError(expected(what, cells or table.head(1).to_dict("records")))
    return numbers[names].replace(-1, np.nan).to_numpy(float), names
