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
# samples per class in the balanced test: this quantile of the class sizes, if it is larger
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
        """The settings of a run: a head on features, or a network of images."""
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
    about = list_known(len(rows), task=task, order=order, groups=groups)
    samples = check_inputs(as_array("inputs", inputs), len(rows))
    about = about[rows.any(axis=1)]
    if "order" in about:
        about = about.loc[sort_key(about["order"]).sort_values(kind="stable").index]
    is_present = rows.any(axis=0)
    names = np.array(names)[is_present]
    whole = Split(
        samples[about.index],
        rows[about.index][:, is_present],
        np.zeros(len(about), np.int64),
        pd.factorize(about["groups"], sort=True)[0] if "groups" in about else None,
    )
    is_scored = whole.labels.sum(axis=0) >= LEAST
    is_test = hold_out(whole.labels & is_scored, whole.units)
    train, test = whole.take(~is_test), whole.take(is_test)
    is_scored &= train.labels.any(axis=0) & test.labels.any(axis=0)
    if is_scored.sum() < 2:
        what = f"two classes with at least {LEAST} samples, not all in one group"
        sizes = whole.labels.sum(axis=0).tolist()
        raise ValueError(expected(what, f"classes of {sizes}"))
    data = SequentialDataset(
        name=NAME,
        train=train,
        tests={"balanced": draw_balanced(test, is_scored), "imbalanced": test},
        class_names=tuple(names.tolist()),
        class_task=np.zeros(len(names), np.int64),
        class_group=groups_by_mean(train.labels.sum(axis=0)),
    )
    if samples.ndim == 2:
        data = standardise(data)
    in_task = None
    if "task" in about:
        in_task = pd.factorize(about["task"][~is_test], sort=True)[0]
    notes = [describe(data, about)]
    if len(about) < len(rows):
        notes.append(f"{len(rows) - len(about)} samples without a label are left out.")
    if not is_scored.all():
        notes.append(
            f"Classes that have fewer than {LEAST} samples, or all samples in one group, "
            f"are not scored: {list_names(names[~is_scored])}."
        )
    if "groups" in about:
        held_out = test.units.max() + 1
        few = ", so few that intervals are too narrow" if held_out < FEW_GROUPS else ""
        count = about["groups"].nunique()
        notes.append(f"Of {count} groups, {held_out} are held out{few}.")
    return Stream(data, in_task, is_scored), notes


def list_known(length: int, **columns: ArrayLike | None) -> pd.DataFrame:
    """Return the given columns, with a value for every sample."""
    arrays = {name: as_array(name, x) for name, x in columns.items() if x is not None}
    about = pd.DataFrame(arrays, index=range(length))
    if about.isna().any(axis=None):
        what = f"one value of {' and '.join(about)} for every sample"
        raise ValueError(expected(what, "missing values"))
    if {"task", "order"} <= {*about}:
        raise ValueError(expected("task or order", "both"))
    return about


def sort_key(order: pd.Series) -> pd.Series:
    """Return what sorts a column by time."""
    if order.dtype.kind != "O":
        return order
    # text such as 31/12/2021 would be sorted by its day; to numpy, 20211231 is a year
    try:
        return pd.to_datetime(order, format="ISO8601", utc=True)
    except ValueError:
        what = "order as numbers, or as dates such as 2021-03-31"
        raise ValueError(expected(what, "other text")) from None


def list_names(names: np.ndarray) -> str:
    """Return some names for a note."""
    return ", ".join(map(str, names[:SHOWN])) + (", ..." if len(names) > SHOWN else "")


def describe(data: SequentialDataset, about: pd.DataFrame) -> str:
    """Describe a stream and its tests."""
    how = "in the order of the rows"
    if "task" in about:
        tasks = np.unique(about["task"])
        how = f"in {len(tasks)} tasks ({list_names(tasks)})"
    elif "order" in about:
        first, last = about["order"].astype(str).iloc[[0, -1]]
        how = f"sorted by the column order, from {first} to {last}"
    counts = {name: len(test) for name, test in data.tests.items()}
    return (
        f"The stream has {data.num_classes} classes and {len(data.train)} samples, "
        f"{how}. The imbalanced test has {counts['imbalanced']} held-out samples, "
        f"and the balanced test has {counts['balanced']} of them."
    )


def check_inputs(inputs: np.ndarray, length: int) -> np.ndarray:
    """Return features as float32 (N, D), or images (N, H, W, channels)."""
    if len(inputs) != length:
        raise ValueError(expected(f"{length} rows of inputs", len(inputs)))
    if inputs.ndim == 2:
        inputs = inputs.astype(np.float32)
        bad = np.flatnonzero(~np.isfinite(inputs).all(axis=1))
        if len(bad):
            got = f"NaN or infinity in sample {bad[0]}"
            raise ValueError(expected("finite features", got))
    elif inputs.shape[-1] > MOST_CHANNELS:
        what = "features (N, D), or images of uint8 (N, H, W, channels)"
        raise ValueError(expected(what, f"{inputs.dtype} {inputs.shape}"))
    return inputs


def hold_out(labels: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """Draw 30 % of each class, bool (N,), the rarest first (Sechidis et al. 2011).

    `unit` numbers the group of each sample, which is drawn as a whole.
    """
    has = np.zeros((unit.max() + 1, labels.shape[1]), np.int64)
    np.add.at(has, unit, labels.astype(np.int64))
    is_test = np.zeros(len(has), bool)
    is_open = np.ones(len(has), bool)
    rng = np.random.default_rng(SEED)
    for c in np.argsort(has.sum(axis=0), kind="stable"):
        rest = TEST_SHARE * has[:, c].sum() - has[is_test, c].sum()
        units = rng.permutation(np.flatnonzero(is_open & (has[:, c] > 0)))
        for chosen in units:  # if at least half of it is still needed
            if has[chosen, c] / 2 <= rest:
                is_test[chosen] = True
                rest -= has[chosen, c]
        is_open[units] = False
    return is_test[unit]


def draw_balanced(test: Split, is_scored: np.ndarray) -> Split:
    """Draw about as many samples of each class that is scored."""
    labels = test.labels[:, is_scored]
    number = max(PER_CLASS, int(np.quantile(labels.sum(axis=0), QUARTILE)))
    rng = np.random.default_rng(SEED)
    reserve = np.zeros(len(test), np.int64)
    return test.take(draw_even(labels, number, rng, reserve))
