"""Coverage of the image bootstrap: do its intervals hold the true difference of two methods?

Run ``python studies/interval_coverage.py``; six runs a data set and about ten minutes.
The images of a test set stand for all images there are. From them test sets of a size
in use are drawn, with replacement, and on each the runs of PRS and CRS of three seeds
are scored. It writes figures/studies/interval_coverage.csv: for each test set, size,
group and metric in how many of 100 sets the 95 % interval, of the chance of the images
alone, holds the difference that PRS has on average over all sets of that size
(`covered`), and in how many the difference on all images at once (`covered_whole`). The
two are apart where a score depends on the number of images: a precision of few images
is 0 or 1, and a class may have none. `both_zero` is the share of sets on which neither
method scores anything, whose interval is 0 to 0.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from joblib import Parallel, delayed
from scipy import special

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from saving import save

from prslib import RunConfig, load_dataset
from prslib.device import run_settings
from prslib.metrics import MAIN_METRICS, members_of_groups, score_rows
from prslib.resamples import image_draws
from prslib.train import Trainer, stream

SEEDS = (0, 1, 2)
SETS, DRAWS, LEVEL = 200, 100, 0.95
# data set, test set that stands for all images, images of the sets drawn from it
CASES = [
    ("cocoseq-mini", "both", 323),
    ("cocoseq-mini", "both", 816),
    ("cocoseq-mini", "open", 3199),
    ("reutersseq", "imbalanced", 2909),
]


def probabilities_of(dataset: str, test_set: str, method: str, seed: int) -> np.ndarray:
    """Train a run and return what it gives all images of a test set, (N, C)."""
    config = RunConfig(dataset, method, seed=seed)
    data, device = load_dataset(dataset), torch.device("cpu")
    test = data.tests[test_set]
    with run_settings(device):
        train_inputs = torch.from_numpy(data.train.inputs)
        trainer = Trainer(config, data, train_inputs, device)
        for _, batches, _ in stream(config, data.train.task):
            for new in batches:
                trainer.step(new)
        inputs = torch.from_numpy(test.inputs)
        return trainer.probabilities(inputs, np.arange(len(test)))


def scores_on(
    probabilities: np.ndarray, labels: np.ndarray, groups: tuple, draws: int
) -> np.ndarray:
    """Return the main scores of all groups, (cells, 1 + draws)."""
    weights = np.ones((1, len(labels)))
    weights = np.concatenate([weights, image_draws(len(labels), draws)])
    rows, _ = score_rows(probabilities, labels, groups, weights)
    return np.array([values for _, metric, values in rows if metric in MAIN_METRICS])


def one_set(
    number: int, images: int, outputs: list, labels: np.ndarray, groups: tuple
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the difference on a test set, its standard error, and who scores 0."""
    rows = np.random.default_rng(number).choice(len(labels), images)
    gaps = []
    largest = []
    for crs, prs in outputs:  # of a seed
        scores = [scores_on(p[rows], labels[rows], groups, DRAWS) for p in (crs, prs)]
        gaps.append(scores[1] - scores[0])
        largest.append(np.maximum(*scores)[:, 0])
    gap = np.mean(gaps, axis=0)
    return gap[:, 0], np.nanstd(gap[:, 1:], axis=1, ddof=1), np.max(largest, axis=0)


def coverage(dataset: str, test_set: str, images: int, pool: Parallel) -> pd.DataFrame:
    """Return how often the intervals of a test set's size hold the true difference."""
    data = load_dataset(dataset, images=False)
    labels, groups = data.tests[test_set].labels, data.class_group
    work = [(dataset, test_set, m, seed) for seed in SEEDS for m in ("CRS", "PRS")]
    trained = pool(delayed(probabilities_of)(*one) for one in work)
    outputs = list(zip(trained[::2], trained[1::2], strict=True))
    sets = pool(
        delayed(one_set)(number, images, outputs, labels, groups)
        for number in range(SETS)
    )
    gaps, errors, largest = (np.stack(column) for column in zip(*sets, strict=True))
    margin = errors * special.stdtrit(DRAWS - 1, (1 + LEVEL) / 2)
    whole = [
        scores_on(prs, labels, groups, 0) - scores_on(crs, labels, groups, 0)
        for crs, prs in outputs
    ]
    truths = {
        "covered": gaps.mean(axis=0),
        "covered_whole": np.mean(whole, axis=0)[:, 0],
    }
    cells = [(g, m) for g in members_of_groups(groups) for m in MAIN_METRICS]
    table = pd.DataFrame(cells, columns=["group", "metric"])
    for name, truth in truths.items():
        table[name] = 100 * (np.abs(gaps - truth) <= margin).mean(axis=0)
    table["both_zero"] = 100 * (largest == 0).mean(axis=0)
    for column, value in enumerate((dataset, test_set, images)):
        table.insert(column, ("dataset", "test_set", "images")[column], value)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    help_text = "processes (one for each core)"
    parser.add_argument("--workers", type=int, default=-1, help=help_text)
    pool = Parallel(parser.parse_args().workers)
    tables = []
    for dataset, test_set, images in CASES:
        tables.append(coverage(dataset, test_set, images, pool))
    save(pd.concat(tables).round(2), "interval_coverage")


if __name__ == "__main__":
    main()
