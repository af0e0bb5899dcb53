"""Score settings on held-out training samples, and write the tables of studies.

A fifth of a data set's training samples is the test set, and no seed of the report is
used.
"""

import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from prslib import DATASETS, METHODS, load_dataset, run
from prslib.datasets import Entry, SequentialDataset, Split
from prslib.paths import figures_dir, replacing
from prslib.report.asked import Asked
from prslib.report.build import write_sums
from prslib.report.tables import final, scores_of

SEEDS = [100, 101, 102]  # no profile reports them
SHARE = 5  # one sample of so many is held out
SPLIT_SEED = 20200825
METRICS = ["C-F1", "O-F1", "mAP"]
# of the main table; not the methods that rehearse otherwise
VOTERS = [name for name, row in METHODS.items() if row.rehearsal == "mean"]


def held_out(name: str, images: bool) -> SequentialDataset:
    """Load a data set whose test set is a part of its training samples."""
    data = load_dataset(name, images)
    order = np.random.default_rng(SPLIT_SEED).permutation(len(data.train))
    cut = len(order) // SHARE
    test = choose_rows(data.train, np.sort(order[:cut]))
    train = choose_rows(data.train, np.sort(order[cut:]))
    return replace(data, train=train, tests={DATASETS[name].recipe.test_set: test})


def choose_rows(split: Split, rows: np.ndarray) -> Split:
    """Return some samples of a split."""
    inputs = None if split.inputs is None else split.inputs[rows]
    return Split(inputs, split.labels[rows], split.task[rows])


def score(
    name: str, method: str, seeds: Sequence[int] = SEEDS, **fields: object
) -> pd.Series:
    """Return a method's mean overall scores on what is held out, in percent."""
    recipe = replace(DATASETS[name].recipe, test_resamples=0)
    tried = f"{name}-held-out"
    DATASETS.setdefault(tried, Entry(partial(held_out, name), recipe))
    runs = [run(Asked(tried, method, seed=seed, **fields)) for seed in seeds]
    rows = final(scores_of(runs))
    rows = rows[(rows["group"] == "overall") & (rows["measure"] == "score")]
    return rows.groupby("metric")["value"].mean()[METRICS]


def save(table: pd.DataFrame, name: str) -> None:
    """Write a study's table to figures/studies and print it; other data sets stay."""
    path = figures_dir("studies") / f"{name}.csv"
    if path.is_file() and "dataset" in table:
        before = pd.read_csv(path)
        table = pd.concat([before[~before["dataset"].isin(table["dataset"])], table])
    with replacing(path) as file:
        table.to_csv(file, index=False)
    write_sums(path.parent, [path])
    print(table.to_string(index=False))
