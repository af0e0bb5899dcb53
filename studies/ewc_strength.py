"""Choose the strength of EWC's penalty for a network that the paper does not have.

Run ``python studies/ewc_strength.py [DATASET ...]``; it takes about two minutes a data
set and writes figures/studies/ewc_strength.csv, in which other data sets keep their
rows. It chooses where nothing is reported: on other seeds, and on a random fifth of the
training images, held out as the test set. The strength with the highest mean of overall
C-F1, O-F1 and mAP is the `Recipe.ewc_lambda` of the data set.
"""

import argparse
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from saving import save

from prslib import DATASETS, load_dataset, run
from prslib.datasets import Entry, SequentialDataset, Split
from prslib.paths import figures_dir
from prslib.report.asked import Asked
from prslib.report.tables import final, scores_of

STRENGTHS = [
    0.15,
    1.5,
    15.0,
    150.0,
    1500.0,
    15000.0,
]  # five orders of magnitude, as in the paper
SEEDS = [100, 101, 102]  # no profile reports them
SHARE = 5  # one image of so many is held out
SPLIT_SEED = 20200825
METRICS = ["C-F1", "O-F1", "mAP"]


def held_out(name: str, images: bool) -> SequentialDataset:
    """Load a data set whose test set is a part of its training images."""
    data = load_dataset(name, images)
    order = np.random.default_rng(SPLIT_SEED).permutation(len(data.train))
    cut = len(order) // SHARE
    test, train = (
        rows_of(data.train, np.sort(rows)) for rows in np.split(order, [cut])
    )
    return replace(data, train=train, tests={DATASETS[name].recipe.test_set: test})


def rows_of(split: Split, rows: np.ndarray) -> Split:
    inputs = None if split.inputs is None else split.inputs[rows]
    return replace(
        split, inputs=inputs, labels=split.labels[rows], task=split.task[rows]
    )


def tried(name: str, strength: float, seed: int, device: str) -> pd.DataFrame:
    """Train EWC once on the training images that are left; return its overall scores in percent."""
    import prslib  # in the worker: the names above are copies there

    entry = Entry(partial(held_out, name), DATASETS[name].recipe)
    prslib.DATASETS[f"{name}-held-out"] = entry
    config = Asked(f"{name}-held-out", "EWC", ewc_lambda=strength, seed=seed)
    rows = final(scores_of([run(config, device)]))
    overall = rows[(rows["group"] == "overall") & (rows["measure"] == "score")]
    values = overall.set_index("metric")["value"][METRICS].round(2)
    cells = {"dataset": name, "ewc_lambda": strength, "seed": seed, **values}
    return pd.DataFrame([cells])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset", nargs="*", default=["digits70seq", "digits49seq"])
    parser.add_argument("--device", default="cpu")
    parser.add_argument(
        "--workers", type=int, default=-1, help="processes (one for each core)"
    )
    options = parser.parse_args()
    work = [
        delayed(tried)(name, strength, seed, options.device)
        for name in options.dataset
        for strength in STRENGTHS
        for seed in SEEDS
    ]
    scores = pd.concat(Parallel(n_jobs=options.workers)(work), ignore_index=True)
    path = figures_dir("studies") / "ewc_strength.csv"
    if path.is_file():
        before = pd.read_csv(path)
        scores = pd.concat([before[~before["dataset"].isin(options.dataset)], scores])
    save(scores, "ewc_strength")
    means = scores.groupby(["dataset", "ewc_lambda"], sort=False)[METRICS].mean()
    means["mean"] = means.mean(axis=1)
    print(means.round(1))
    for name, best in means["mean"].groupby("dataset", sort=False).idxmax().items():
        print(
            f"{name}: {best[1]:g}, its recipe has {DATASETS[name].recipe.ewc_lambda:g}"
        )


if __name__ == "__main__":
    main()
