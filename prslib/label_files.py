"""Read labels, inputs and tasks from files, and report how files were interpreted."""

import gzip
import io
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np

from prslib.checks import (
    check_names,
    expected,
    naming_extra,
    one_line,
    readable,
)
from prslib.labels import multi_hot

SHOWN_NAMES = 20  # names of classes in a message
SHOWN_CELLS = 3  # cells in an error
# names of a column with one or several class names per cell
LABEL_COLUMNS = {
    *("label", "labels", "class", "classes", "category", "categories"),
    *("tag", "tags", "target", "targets"),
}
# columns of the file of `--about`, and the arguments of `trial` that they become
ABOUT = {"task": "task", "order": "order", "group": "groups"}
LARGEST_FILE = 1 << 30  # characters of text
LARGEST_SIDE = 128  # pixels per side of an image for the small network
# words in columns of 0 and 1, in lower case, and their numbers; -1 means unknown
UNKNOWN = ("", "nan", "na", "n/a", "<na>", "none", "null")
WORDS = {"true": "1", "false": "0"} | dict.fromkeys(UNKNOWN, "-1")


def read_labels(file: Path | str) -> tuple[np.ndarray, list[str] | None]:
    """Read labels and class names from a CSV, npz, npy or COCO JSON file.

    A line about how the file was interpreted is printed to standard error.

    Parameters
    ----------
    file : Path or str
        A CSV file has a header and either one column of 0 and 1 per class or one column
        ``labels`` of class names, which are separated by ``|`` or ``;``. An empty cell,
        NaN and -1 are unknown labels. In a table of 0 and 1, columns of text such as
        dates are ignored, and so is a first column of sample names. An npz file
        contains an array ``labels`` and optionally ``names``, or a single array. CSV
        and JSON files may be compressed by gzip.

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
    readers = {
        ".csv": read_csv,
        ".tsv": read_csv,
        ".npz": read_numpy,
        ".npy": read_numpy,
        ".json": read_coco,
    }
    kind = kind_of(file)
    if kind not in readers:
        raise ValueError(expected(f"a file that ends with {', '.join(readers)}", file))
    with readable(f"labels in {file}"):
        labels, names, form = readers[kind](file)
        rows = multi_hot(labels)
    empty = (~rows.any(axis=1)).sum()
    shown = ", ".join(names[:SHOWN_NAMES]) if names else "numbers"
    text = f"{file}: {form}; {len(rows)} rows, {empty} without a label; "
    print(one_line(f"{text}{rows.shape[1]} classes: {shown}"), file=sys.stderr)
    return labels, names


def read_inputs(path: Path | str, labels: Path | str = "") -> np.ndarray:
    """Read features from an npy, npz, parquet or CSV file, or the images of a folder.

    A line about the columns of a table is printed to standard error.

    Parameters
    ----------
    path : Path or str
        An npz file contains an array ``inputs``, or a single array. Parquet files, which
        need the package pyarrow, and CSV files have one column per feature. The images of
        a folder have the same size, at most 128 pixels per side.
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
    if path.is_dir():
        table, _ = read_table(Path(labels))
        return read_images([path / name for name in table.iloc[:, 0]])
    kind = kind_of(path)
    if kind not in (".npy", ".npz", ".parquet", ".csv"):
        raise ValueError(expected("npy, npz, parquet, csv, or a folder", path))
    with readable(f"features in {path}"):
        if kind in (".npy", ".npz"):
            return load_array(path, "inputs")[0]
        import pandas as pd

        table = pd.read_csv(path) if kind == ".csv" else pd.read_parquet(path)
        if kind == ".csv" and not isinstance(table.index, pd.RangeIndex):
            what = "one cell per name in the header, with points in decimal numbers"
            raise ValueError(expected(what, "more cells"))
        # the index of a data frame
        table = table.drop(columns="Unnamed: 0", errors="ignore")
        names = ", ".join(map(str, table.columns[:SHOWN_NAMES]))
        text = f"{path}: {len(table)} rows, {table.shape[1]} features: {names}"
        print(one_line(text), file=sys.stderr)
        if others := list(table.select_dtypes(exclude=["number", "bool"])):
            raise ValueError(expected("columns of numbers", f"text in {others}"))
        return table.to_numpy(np.float32)


def kind_of(file: Path) -> str:
    """Return the suffix of a file, which is also ".csv" for labels.csv.gz."""
    return Path(file.name.lower().removesuffix(".gz")).suffix


def read_images(files: list[Path]) -> np.ndarray:
    """Read images of one size, uint8 (N, H, W, 3)."""
    from PIL import Image

    images = [np.asarray(Image.open(file).convert("RGB")) for file in files]
    sizes = sorted({image.shape[:2] for image in images})
    if len(sizes) > 1 or max(sizes[0]) > LARGEST_SIDE:
        what = f"images of one size, at most {LARGEST_SIDE} pixels per side"
        got = " and ".join(f"{width}x{height}" for height, width in sizes[:SHOWN_CELLS])
        advice = "resize them, or give features of a pretrained network"
        raise ValueError(expected(what, got, advice))
    return np.stack(images)


def read_about(file: Path | str) -> dict[str, Any]:
    """Read the columns task, order and group of a CSV file as arguments of `trial`."""
    import pandas as pd

    with readable(f"columns of {file}"):
        table = pd.read_csv(file)
    columns = [name for name in ABOUT if name in table]
    if not columns:
        what = f"a column called {', '.join(ABOUT)} in {file}"
        raise ValueError(expected(what, ", ".join(table)))
    return {ABOUT[name]: table[name].to_numpy() for name in columns}


def read_coco(file: Path) -> tuple[np.ndarray, list[str], str]:
    """Read annotations in COCO's format."""
    from prslib.datasets.coco import read_instances

    _, labels, names = read_instances(file)
    return labels, list(names), "annotations in COCO's format"


def read_numpy(file: Path) -> tuple[np.ndarray, list[str] | None, str]:
    """Read one array, or the arrays ``labels`` and ``names``."""
    labels, names = load_array(file, "labels")
    if names is not None:
        names = names.astype(str).tolist()
    return labels, names, f"an array {labels.shape}"


def load_array(file: Path, name: str) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the only array of a file, or one by its name, and the array ``names``."""
    stored = np.load(file)
    if isinstance(stored, np.ndarray):
        return stored, None
    if len(stored.files) == 1:
        name = stored.files[0]
    if name not in stored:
        raise ValueError(expected(f"an array {name}", ", ".join(stored.files)))
    return stored[name], stored.get("names")


def read_csv(file: Path) -> tuple[np.ndarray, list[str], str]:
    """Read one column of class names, or else columns of 0 and 1."""
    table, separator = read_table(file)
    if not len(table):
        raise ValueError(expected("rows of labels", "only a header"))
    form = f"a table {table.shape} separated by {separator!r}"
    numbers = table.apply(read_numbers)  # NaN for text
    is_label = numbers.isin([0, 1, -1])
    is_class = is_label.all()
    first = table.columns[0]
    named = [name for name in table if name.lower() in LABEL_COLUMNS]
    if table.shape[1] > 2:
        named = [name for name in named if not is_class[name]]
    if len(named) == 1:
        if first not in named:
            check_samples(table[first], f"[{named[0]!r}].agg('|'.join)")
        labels, names = read_names(table[named[0]])
        form += f", class names in {named[0]!r}{list_others(table, named)}"
        return labels, names, form
    if not is_class[first] and is_class[table.columns[1:]].any():
        check_samples(table[first], ".max()")
    # columns of text, such as names of samples or dates
    is_other = numbers.isna().all()
    is_other[first] = not is_class[first]
    names = table.columns[~is_other].tolist()
    wrong = [name for name in names if not is_class[name]]
    if wrong or len(names) < 2:
        what = "two or more columns of 0 and 1, or one called labels with class names"
        got, advice = f"columns {', '.join(wrong or table)}", ""
        cells = table.iloc[0]
        if wrong:
            cells = table.loc[~is_label[wrong[0]], wrong[0]]
            advice = "leave out columns that are not classes"
        got += f" with {', '.join(map(repr, cells[:SHOWN_CELLS]))}"
        raise ValueError(expected(what, got, advice))
    form += f", {len(names)} columns of 0 and 1{list_others(table, names)}"
    labels = numbers[names].to_numpy()
    return np.where(labels == -1, np.nan, labels), names, form


def list_others(table: Any, names: list[str]) -> str:
    """List, as text, the columns of a table that are not read."""
    others = [name for name in table if name not in names]
    return f", ignoring {', '.join(others)}" if others else ""


def read_table(file: Path) -> tuple[Any, str]:
    """Read the cells of a CSV file as a frame of text; also return the separator."""
    with naming_extra("data"):
        import pandas as pd

    text = read_text(file).strip("\n")
    # drop comments, Excel's line "sep=;", and the "# " before np.savetxt's header
    text = re.sub(r"\A((#[^\t;|,\n]*\n)+|sep=.*\n|# )", "", text)
    # separators within quotes do not count; a tab is never part of a name
    line, _, _ = re.sub(r'"[^"]*"', "", text).partition("\n")
    separator = max("\t;|,", key=line.count)
    cells = pd.read_csv(
        io.StringIO(text),
        sep=separator,
        header=None,
        dtype=str,
        keep_default_na=False,
        skipinitialspace=True,
        # a blank line is a sample without a label
        skip_blank_lines=False,
        # distinguishes a missing cell from an empty one
        engine="python",
    )
    if cells.shape[1] == 1:  # a blank line
        cells = cells.fillna("")
    short = cells.isna().any(axis=1)
    if short.any():
        what = f"{cells.shape[1]} cells in every row"
        raise ValueError(expected(what, f"fewer in row {short.argmax()}"))
    if not cells.iloc[0, 0]:  # the index of a data frame
        cells = cells.iloc[:, 1:]
    header = cells.iloc[0].tolist()
    if all(name.replace(".", "", 1).isdigit() for name in header):
        raise ValueError(expected("a header that names the classes", header))
    return cells.iloc[1:].set_axis(check_names(header), axis=1), separator


def read_text(file: Path) -> str:
    """Read UTF-8 text, perhaps compressed by gzip; refuse more than a gigabyte."""
    opener = gzip.open if file.suffix == ".gz" else open
    with opener(file, "rt", encoding="utf-8-sig") as stream:
        text = stream.read(LARGEST_FILE + 1)
    if len(text) > LARGEST_FILE:
        raise ValueError(expected("at most a gigabyte of text", "more"))
    return text


def check_samples(samples: Any, join: str) -> None:
    """Refuse repeated names of samples, which a table with one row per label has."""
    repeated = samples[samples.duplicated()]
    if len(repeated):
        what = f"one row per sample in {samples.name!r}"
        got = f"{repeated.iloc[0]!r} in several"
        advice = f"write frame.groupby({samples.name!r}, sort=False){join}"
        raise ValueError(expected(what, got, advice))


def read_numbers(cells: Any) -> Any:
    """Return cells as numbers, -1 for unknown and NaN for other text."""
    import pandas as pd

    return pd.to_numeric(cells.str.lower().replace(WORDS), errors="coerce")


def read_names(cells: Any) -> tuple[np.ndarray, list[str]]:
    """Return cells of class names, separated by | or ;, as rows (N, C) and names."""
    is_separated = cells.str.contains("[|;]").any()
    cells = cells.str.strip().replace(["nan", "NaN", "-1"], "")
    rows = cells.str.replace(r"\s*[|;]\s*", "|", regex=True).str.get_dummies("|")
    for name in rows:
        parts = set(re.split(r"\W+", name)) & set(rows) - {name}
        is_joined = len(parts) > 1 and not is_separated
        if "," in name or name[0] in "[{" or is_joined:
            what = "class names separated by | or ;"
            advice = f"write frame[{cells.name!r}] = ['|'.join(names) for names in ...]"
            raise ValueError(expected(what, repr(name), advice))
    return rows.to_numpy() == 1, list(rows)
