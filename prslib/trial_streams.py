"""Make a stream from a user's samples, and hold out some of them for two tests."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from prslib.checks import as_array, expected
from prslib.datasets import Entry, Recipe, SequentialDataset, Split
from prslib.datasets.curation import draw_even, groups_by_mean
from prslib.datasets.features import HEAD, memory_size_of, standardise
from prslib.labels import read_array
from prslib.previews import read_rows

NAME = "your stream"  # of the data set, during a trial
SEED = 20201128  # draws the held-out samples and the balanced test
TEST_SHARE = 0.3
LEAST = 5  # samples that a class needs to be scored
SHOWN = 10  # names of classes or tasks in a note
MOST_CHANNELS = 4  # of an image; a larger last axis is rather the width
FEW_GROUPS = 10  # with fewer held-out groups, their variance is hardly known
# samples per class in the balanced test: PER_CLASS, or the quantile QUARTILE of the class
# sizes if that is larger
PER_CLASS = 10
QUARTILE = 0.25


@dataclass(frozen=True, eq=False)
class Stream:
    """A stream with its held-out samples."""

    data: SequentialDataset  # all classes in one task, whatever the order
    task: np.ndarray | None  # int64 (N,); None if samples come in the order of the rows
    is_scored: np.ndarray  # bool (C,)

    @property
    def recipe(self) -> Recipe:
        """The settings of a run: a head on features, or a network on images."""
        settings: dict[str, Any] = {"memory_size": memory_size_of(len(self.data.train))}
        tasks = 1 if self.task is None else self.task.max() + 1
        settings["schedule"] = tuple(range(tasks))
        if self.data.train.loaded_inputs.ndim == 2:
            settings |= HEAD
        else:
            settings |= {"model": "convnet", "test_resamples": HEAD["test_resamples"]}
        if self.data.train.single_label:
            settings["loss"] = "cross_entropy"
        return Recipe(**settings)

    @property
    def entry(self) -> Entry:
        """The row of `DATASETS` that a run's configuration reads."""
        return Entry(lambda images: self.data, self.recipe, data_source="other")


def make_stream(
    inputs: ArrayLike,
    labels: Any,
    task: ArrayLike | None,
    order: ArrayLike | None,
    groups: ArrayLike | None,
    class_names: Sequence[str] | None,
) -> tuple[Stream, list[str]]:
    """Hold out samples; return the stream, and notes on how it was interpreted."""
    values = read_array(labels)
    if values.dtype.kind == "f" and np.isnan(values).any():
        what = "labels that are all known"
        raise ValueError(expected(what, "NaN, which empty cells and -1 also mean"))
    rows, names = read_rows(labels, class_names)
    columns = {"inputs": inputs, "task": task, "order": order, "groups": groups}
    columns = check_columns(columns, len(rows))
    kept = np.flatnonzero(rows.any(axis=1))
    left_out = len(rows) - len(kept)
    if "order" in columns:
        kept = kept[np.argsort(columns["order"][kept], kind="stable")]
    columns = {name: column[kept] for name, column in columns.items()}
    is_present = rows.any(axis=0)
    rows, names = rows[kept][:, is_present], np.array(names)[is_present]
    is_scored = rows.sum(axis=0) >= LEAST
    is_test = hold_out(rows & is_scored, columns.get("groups"))
    is_scored &= rows[is_test].any(axis=0) & rows[~is_test].any(axis=0)
    if is_scored.sum() < 2:
        what = f"two classes with at least {LEAST} samples, not all in one group"
        raise ValueError(expected(what, f"classes of {rows.sum(axis=0).tolist()}"))
    made = split_stream(columns, rows, names, is_scored, is_test)
    notes = [describe(made, columns)]
    units = made.data.tests["imbalanced"].units.max() + 1
    if units < FEW_GROUPS:
        notes.append(
            f"The held-out samples come from only {units} groups, so that intervals are too "
            "narrow."
        )
    if left_out:
        notes.append(f"{left_out} samples without a label are left out.")
    if not is_scored.all():
        notes.append(
            f"Classes that have fewer than {LEAST} samples, or all samples in one group, "
            f"are not scored: {list_names(names[~is_scored])}."
        )
    if "groups" in columns:
        count = pd.Series(columns["groups"]).nunique()
        notes.append(f"Of {count} groups, {units} are held out.")
    return made, notes


def check_columns(columns: dict[str, Any], length: int) -> dict[str, np.ndarray]:
    """Return the given columns as arrays; refuse missing values and other lengths."""
    arrays = {name: as_array(name, x) for name, x in columns.items() if x is not None}
    if "order" in arrays and arrays["order"].dtype.kind in "OUS":
        # text such as 31/12/2021 would be sorted by its day; to numpy, 20211231 is a year
        try:
            dates = pd.to_datetime(arrays["order"], format="ISO8601", utc=True)
        except (ValueError, TypeError):
            what = "order as numbers, or as dates such as 2021-03-31"
            raise ValueError(expected(what, "other text")) from None
        arrays["order"] = dates.to_numpy()
    for name, column in arrays.items():
        if len(column) != length:
            raise ValueError(expected(f"{length} rows of {name}", len(column)))
        if name != "inputs" and (column.ndim > 1 or pd.isna(column).any()):
            what = f"one value of {name} for every sample"
            raise ValueError(expected(what, f"shape {column.shape} or missing values"))
    if {"task", "order"} <= {*arrays}:
        raise ValueError(expected("task or order", "both"))
    arrays["inputs"] = check_inputs(arrays["inputs"])
    return arrays


def list_names(names: np.ndarray) -> str:
    """Return some names for a note."""
    return ", ".join(map(str, names[:SHOWN])) + (", ..." if len(names) > SHOWN else "")


def describe(made: Stream, columns: dict[str, np.ndarray]) -> str:
    """Describe a stream and its tests."""
    how = "in the order of the rows"
    if "task" in columns:
        tasks = np.unique(columns["task"])
        how = f"in {len(tasks)} tasks ({list_names(tasks)})"
    elif "order" in columns:
        ends = map(str, columns["order"][[0, -1]].tolist())
        first, last = (end.removesuffix(" 00:00:00+00:00") for end in ends)
        how = f"sorted by the column order, from {first} to {last}"
    counts = {name: len(test) for name, test in made.data.tests.items()}
    return (
        f"The stream has {made.data.num_classes} classes and {len(made.data.train)} samples, "
        f"{how}. The imbalanced test has {counts['imbalanced']} held-out samples, "
        f"and the balanced test has {counts['balanced']} of them."
    )


def check_inputs(inputs: np.ndarray) -> np.ndarray:
    """Return features as float32 (N, D), or images of uint8 (N, H, W, channels)."""
    is_image = inputs.dtype == np.uint8 and inputs.ndim == 4
    if is_image and inputs.shape[3] <= MOST_CHANNELS:
        return inputs
    if inputs.ndim != 2 or inputs.dtype.kind not in "biuf":
        what = "features (N, D), or images of uint8 (N, H, W, channels)"
        raise ValueError(expected(what, f"{inputs.dtype} {inputs.shape}"))
    features = inputs.astype(np.float32)
    bad = np.flatnonzero(~np.isfinite(features).all(axis=1))
    if len(bad):
        raise ValueError(
            expected("finite features", f"NaN or infinity in sample {bad[0]}")
        )
    if features.size and features.min() == features.max():
        raise ValueError(expected("features that vary", features.flat[0]))
    return features


def hold_out(labels: np.ndarray, groups: np.ndarray | None) -> np.ndarray:
    """Draw 30 % of each class, rarest class first, bool (N,) (Sechidis et al. 2011).

    Groups are drawn as a whole; without groups, every sample is a group.
    """
    unit = np.arange(len(labels)) if groups is None else number_anew(groups)
    has = np.zeros((unit.max() + 1, labels.shape[1]), np.int64)
    np.add.at(has, unit, labels.astype(np.int64))
    is_test = np.zeros(len(has), bool)
    is_open = np.ones(len(has), bool)
    rng = np.random.default_rng(SEED)
    for c in np.argsort(has.sum(axis=0), kind="stable"):
        rest = TEST_SHARE * has[:, c].sum() - has[is_test, c].sum()
        units = rng.permutation(np.flatnonzero(is_open & (has[:, c] > 0)))
        for chosen in units:  # drawn if at least half of it is still needed
            if has[chosen, c] / 2 <= rest:
                is_test[chosen] = True
                rest -= has[chosen, c]
        is_open[units] = False
    return is_test[unit]


def split_stream(
    columns: dict[str, np.ndarray],
    labels: np.ndarray,
    names: np.ndarray,
    is_scored: np.ndarray,
    is_test: np.ndarray,
) -> Stream:
    """Split samples into the stream and two tests."""
    train, test = np.flatnonzero(~is_test), np.flatnonzero(is_test)
    in_test = labels[test][:, is_scored]
    number = max(PER_CLASS, int(np.quantile(in_test.sum(axis=0), QUARTILE)))
    rng = np.random.default_rng(SEED)
    alike = draw_even(in_test, number, rng, reserve=np.zeros(len(test), np.int64))
    tests = {"balanced": test[alike], "imbalanced": test}
    task = np.zeros(len(labels), np.int64)
    whole = Split(columns["inputs"], labels, task, columns.get("groups"))
    data = SequentialDataset(
        name=NAME,
        train=whole.take(train),
        tests={name: whole.take(rows) for name, rows in tests.items()},
        class_names=tuple(names.tolist()),
        class_task=np.zeros(labels.shape[1], np.int64),
        class_group=groups_by_mean(labels[train].sum(axis=0)),
    )
    if columns["inputs"].dtype == np.float32:
        data = standardise(data)
    task = None
    if "task" in columns:
        task = number_anew(columns["task"][train])
    return Stream(data, task, is_scored)


def number_anew(values: np.ndarray) -> np.ndarray:
    """Return the index of each value among the sorted distinct values, int64 (N,)."""
    return np.unique(values, return_inverse=True)[1]
