"""Read labels, inputs and tasks of files, and tell what was understood."""

import io
import re
import sys
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np

from prslib.checks import (
    LARGEST_FILE,
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
SHOWN_CELLS = 3
# columns of class names, of which a cell may hold several
LABEL_COLUMNS = {
    *("label", "labels", "class", "classes", "category", "categories"),
    *("tag", "tags", "target", "targets"),
}
# of a file that says where samples belong
ABOUT = ("task", "order", "group")
LARGEST_SIDE = 128  # pixels of an image that a small network learns
INDEX_COLUMN = "Unnamed: 0"  # of a data frame
# what cells of columns of 0 and 1 say beside numbers, in lower case; -1 is unknown
UNKNOWN = ("", "nan", "na", "n/a", "<na>", "none", "null")
WORDS = {"true": "1", "false": "0"} | dict.fromkeys(UNKNOWN, "-1")


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
        by gzip. Of any file a gigabyte at most is read.

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
            names = tuple(map(one_line, checked_names(names)))
            if len(names) != rows.shape[1]:
                raise ValueError(expected(f"{rows.shape[1]} class names", len(names)))
    unlabelled = len(rows) - np.count_nonzero(rows.any(axis=1))
    shown = ", ".join((names or ())[:SHOWN_NAMES])
    text = f"{file}: {form}; {len(rows)} rows, {unlabelled} without a label; "
    text += f"{rows.shape[1]} classes: {shown or 'numbers'}"
    text += ", ..." if len(names or ()) > SHOWN_NAMES else ""
    print(one_line(text), file=sys.stderr)
    return labels, names


def read_inputs(path: Path | str, labels: Path | str = "") -> np.ndarray:
    """Read features of an npy, npz, parquet or CSV file, or the images of a folder.

    Parameters
    ----------
    path : Path or str
        An npz file has an array ``inputs``, or one array. Parquet and CSV files have a
        column per feature, and parquet needs pyarrow. A folder has images of one size,
        at most 128 pixels a side.
    labels : Path or str
        The CSV file with the labels of a folder's images. Its first column has the file
        names.

    Returns
    -------
    array, float (N, D) or uint8 (N, H, W, channels)
        As `trial` reads them.

    Raises
    ------
    FileNotFoundError
        If a file is missing.
    ValueError
        If it is of another kind, or cannot be read.
    """
    path = Path(path)
    if path.is_dir():
        table, _ = read_table(Path(labels))
        return read_images([path / name for name in table.iloc[:, 0]])
    if not path.is_file():
        raise FileNotFoundError(expected(f"a file or a folder {path}", "none"))
    kind = Path(path.name.lower().removesuffix(".gz")).suffix
    with readable(f"features in {path}", "see `prslib trial --help`"):
        if kind in (".npy", ".npz"):
            stored = np.load(path)
            if isinstance(stored, np.ndarray):
                return stored
            name = "inputs" if len(stored.files) != 1 else stored.files[0]
            if name not in stored:
                raise ValueError(expected("an array 'inputs'", ", ".join(stored)))
            return stored[name]
        import pandas as pd

        if kind == ".parquet":
            return pd.read_parquet(path).to_numpy(np.float32)
        if kind == ".csv":
            table = pd.read_csv(path)
            return table.drop(columns=INDEX_COLUMN, errors="ignore").to_numpy(
                np.float32
            )
        raise ValueError(expected("npy, npz, parquet, csv, or a folder", path.name))


def read_images(files: list[Path]) -> np.ndarray:
    """Read images of one size, uint8 (N, H, W, 3)."""
    from PIL import Image

    images = []
    for file in files:
        if not file.is_file():
            what = "file names in the first column of the labels"
            raise FileNotFoundError(expected(what, f"{file}, which is not there"))
        with readable(f"an image {file}", "leave it out"), Image.open(file) as image:
            images.append(np.asarray(image.convert("RGB")))
    sizes = sorted({image.shape[:2] for image in images})
    if len(sizes) > 1 or max(sizes[0]) > LARGEST_SIDE:
        what = f"images of one size, at most {LARGEST_SIDE} pixels a side"
        got = " and ".join(f"{width}x{height}" for height, width in sizes[:SHOWN_CELLS])
        advice = "resize them, or give features of a pretrained network"
        raise ValueError(expected(what, got, advice))
    return np.stack(images)


def read_about(file: Path | str) -> dict[str, Any]:
    """Read the columns task, order and group of a CSV file, each if it is there."""
    import pandas as pd

    table = pd.read_csv(file)
    columns = {name: table[name].to_numpy() for name in ABOUT if name in table}
    if not columns:
        what = f"a column called {', '.join(ABOUT[:-1])} or {ABOUT[-1]} in {file}"
        raise ValueError(expected(what, ", ".join(map(str, table))))
    return {"groups" if name == "group" else name: columns[name] for name in columns}


def read_coco(file: Path) -> tuple[np.ndarray, Any, str]:
    """Read annotations in COCO's format."""
    from prslib.datasets.coco import read_instances

    _, labels, names = read_instances(file)
    return labels, names, "annotations in COCO's format"


def read_numpy(file: Path) -> tuple[np.ndarray, Any, str]:
    """Read one array, or the arrays ``labels`` and ``names``."""
    stored = np.load(io.BytesIO(read_content(file)))
    if isinstance(stored, np.ndarray):
        return stored, None, f"an array {stored.shape}"
    if sum(member.file_size for member in stored.zip.infolist()) > LARGEST_FILE:
        raise ValueError(expected("arrays of a gigabyte at most", "larger ones"))
    name = "labels" if len(stored.files) != 1 else stored.files[0]
    if name not in stored:
        raise ValueError(expected("an array 'labels'", ", ".join(stored) or "none"))
    names = stored["names"].ravel().tolist() if "names" in stored else None
    return stored[name], names, f"an array {stored[name].shape}"


def read_csv(file: Path) -> tuple[np.ndarray, Any, str]:
    """Read columns of 0 and 1, or else one column of class names."""
    table, separator = read_table(file)
    form = f"{table.shape[1]} columns separated by {separator!r}"
    if table.shape[1] == 1:
        form = "one column"
    numbers = table.apply(read_numbers)
    others = numbers.columns[numbers.isna().any()]
    first = table.columns[0]
    named = [name for name in table if name.lower() in LABEL_COLUMNS]
    if table.shape[1] > 2:
        named = [name for name in named if name in others]
    if len(named) == 1:
        samples = [name for name in table if name not in (INDEX_COLUMN, *named)]
        for name in samples[:1]:
            check_samples(table[name], f"[{named[0]!r}].agg('|'.join)")
        labels, names = read_names(table[named[0]])
        return labels, names, f"{form}, class names in {named[0]!r}"
    if first == INDEX_COLUMN or first in others:
        check_samples(table[first], ".max()")
        numbers = numbers.drop(columns=first)
    wrong = table[numbers.columns].to_numpy()[numbers.isna()].tolist()
    if wrong or numbers.shape[1] < 2:
        what = "columns of 0 and 1, or one called labels with class names"
        got = f"columns {', '.join(table)}"
        if wrong:
            got += f" with {', '.join(map(repr, wrong[:SHOWN_CELLS]))}"
        raise ValueError(expected(what, got))
    form += f", {numbers.shape[1]} of them with 0 and 1"
    return numbers.to_numpy() == 1, list(numbers), form


def read_table(file: Path) -> tuple[Any, str]:
    """Read the cells of a CSV file as a frame of text; return its separator, too."""
    with naming_extra("data"):
        import pandas as pd

    text = unicodedata.normalize("NFC", decoded(read_content(file)))
    text = re.sub(r"\r\n?", "\n", text).strip("\n")
    # a comment, and the first line of Excel and of np.savetxt
    text = re.sub(r"\A((#[^\t;|,\n]*\n)+|sep=.*\n|# )", "", text)
    # names may be in quotes; a tab is in no name
    line, _, _ = re.sub(r'"[^"]*"', "", text).partition("\n")
    separator = max("\t;|,", key=line.count)
    cells = pd.read_csv(
        io.StringIO(text),
        sep=separator,
        header=None,
        dtype=str,
        keep_default_na=False,
        skipinitialspace=True,
        # a sample without a label
        skip_blank_lines=False,
        # it tells a missing cell from an empty one
        engine="python",
    )
    if cells.shape[1] == 1:  # an empty line
        cells = cells.fillna("")
    short = cells.isna().any(axis=1)
    if short.any() or len(cells) < 2:
        what = f"a header and a row per sample, of {cells.shape[1]} cells each"
        got = f"fewer in row {short.argmax()}" if short.any() else "a header"
        raise ValueError(expected(what, got))
    header = cells.iloc[0].tolist()
    if all(name.replace(".", "", 1).isdigit() for name in header):
        raise ValueError(expected("a header that names the classes", header))
    names = checked_names([header[0] or INDEX_COLUMN, *header[1:]])
    return cells.iloc[1:].set_axis(names, axis=1), separator


def check_samples(samples: Any, join: str) -> None:
    """Refuse a table with a row per label, where the name of a sample is repeated."""
    repeated = samples[samples.duplicated()]
    if len(repeated) and samples.name != INDEX_COLUMN:
        what = f"one row per sample in {samples.name!r}"
        got = f"{repeated.iloc[0]!r} in several"
        advice = f"write frame.groupby({samples.name!r}, sort=False){join}"
        raise ValueError(expected(what, got, advice))


def read_numbers(cells: Any) -> Any:
    """Return cells as 0, 1, and -1 for unknown; NaN for what is none of them."""
    import pandas as pd

    numbers = pd.to_numeric(cells.str.lower().replace(WORDS), errors="coerce")
    return numbers.where(numbers.isin([0, 1, -1]))


def read_names(cells: Any) -> tuple[np.ndarray, list[str]]:
    """Return cells of class names, separated by | or ;, as rows (N, C) and names."""
    is_separated = cells.str.contains("[|;]").any()
    cells = cells.str.strip()
    cells = cells.where(~cells.str.lower().isin(["nan", "-1"]), "")
    rows = cells.str.replace(r"\s*[|;]\s*", "|", regex=True).str.get_dummies("|")
    for name in rows:
        parts = set(re.split(r"[\s#/+&]+", name)) & set(rows) - {name}
        is_joined = len(parts) > 1 and not is_separated
        if "," in name or name[0] in "[{" or is_joined:
            what = "class names separated by | or ;"
            advice = f"write frame[{cells.name!r}] = ['|'.join(names) for names in ...]"
            raise ValueError(expected(what, repr(name), advice))
    return rows.to_numpy() == 1, list(rows)
