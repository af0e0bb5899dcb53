"""Score settings on held-out training samples, and write the tables of studies.

The test set is a fifth of a data set's training samples, and seeds differ from the
report's.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

from prslib import DATASETS, METHODS, RunConfig, load_dataset, run
from prslib.datasets import Entry, SequentialDataset
from prslib.paths import figures_dir, replacing
from prslib.report.build import write_sums
from prslib.report.tables import final, scores_of

SEEDS = [100, 101, 102]  # not used in the report
SHARE = 5  # one in five samples is held out
SPLIT_SEED = 20200825
METRICS = ["C-F1", "O-F1", "mAP"]
# methods of the main table, without DER++ and ER-ACE
VOTERS = [name for name, row in METHODS.items() if row.rehearsal == "mean"]


def load_held_out(name: str, images: bool) -> SequentialDataset:
    """Load a data set and replace its test sets by held-out training samples."""
    data = load_dataset(name, images)
    order = np.random.default_rng(SPLIT_SEED).permutation(len(data.train))
    cut = len(order) // SHARE
    test = data.train.take(np.sort(order[:cut]))
    train = data.train.take(np.sort(order[cut:]))
    return replace(data, train=train, tests={DATASETS[name].recipe.test_set: test})


def score(
    name: str, method: str, seeds: Sequence[int] = SEEDS, **fields: object
) -> pd.Series:
    """Return a method's mean overall scores on the held-out samples, in percent."""
    recipe = replace(DATASETS[name].recipe, test_resamples=0)
    tried = f"{name}-held-out"
    DATASETS.setdefault(tried, Entry(partial(load_held_out, name), recipe))
    runs = [run(RunConfig(tried, method, seed=seed, **fields)) for seed in seeds]
    rows = final(scores_of(runs))
    rows = rows[(rows["group"] == "overall") & (rows["measure"] == "score")]
    return rows.groupby("metric")["value"].mean()[METRICS]


def save(table: pd.DataFrame, name: str) -> None:
    """Write a study's table to figures/studies and print it; keep other data sets' rows."""
    path = figures_dir("studies") / f"{name}.csv"
    if path.is_file() and "dataset" in table:
        before = pd.read_csv(path)
        table = pd.concat([before[~before["dataset"].isin(table["dataset"])], table])
    with replacing(path) as file:
        table.to_csv(file, index=False)
    write_sums(path.parent, [path])
    print(table.to_string(index=False))
