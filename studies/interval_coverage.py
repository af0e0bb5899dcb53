"""Coverage of the intervals: do those of PRS less CRS hold the true difference?

Run ``python studies/interval_coverage.py``: six runs on cocoseq-mini, scored on 60 test
sets that are drawn anew from the images of both test sets, with and without replacement;
two minutes. It writes figures/studies/interval_coverage.csv: for each group and metric
the share of test sets whose interval, of the chance of the images alone, holds the mean
difference of all sets (`covered`), the same without the sets on which both methods
score 0 (`covered_else`), and the share of those sets (`both_zero`), in percent.
"""

import sys
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from saving import save

from prslib import RunConfig, load_dataset
from prslib.metrics import evaluate
from prslib.resamples import class_draws, image_weights, resampled
from prslib.training import run as training
from prslib.training.device import Inputs

DATASET, SEEDS, RHO = "cocoseq-mini", (0, 1, 2), -0.03
SETS, IMAGES, DRAWS = 60, 323, 100  # IMAGES: as many as the balanced test set has
METRICS = ["C-F1", "O-F1", "mAP"]
POOLED = METRICS.index("O-F1")  # has weights of the images; the others of the classes
GROUPS = ["overall", "majority", "moderate", "minority"]
CELLS = [(group, metric) for group in GROUPS for metric in METRICS]


def images_and_labels(tests: dict) -> tuple[np.ndarray, np.ndarray]:
    """Return each image of the test sets once: float32 (N, D), bool (N, C)."""
    inputs = np.concatenate([split.inputs for split in tests.values()])
    labels = np.concatenate([split.labels for split in tests.values()])
    _, first = np.unique(inputs, axis=0, return_index=True)
    return inputs[first], labels[first]


def probabilities_of(method: str, seed: int) -> np.ndarray:
    """Train a run and return what it gives all images at its end, (N, C)."""
    inputs, _ = images_and_labels(load_dataset(DATASET).tests)
    scored, kept = training.score_tasks, []

    def noted(learner, *arguments):  # a run returns scores, not probabilities
        kept.append(learner.probabilities(Inputs(inputs)))
        return scored(learner, *arguments)

    power = {"rho": RHO} if method == "PRS" else {}
    with patch.object(training, "score_tasks", noted):
        training.run(RunConfig(DATASET, method, seed=seed, **power))
    return kept[-1]


def scores_on(
    probabilities: np.ndarray, labels: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the scores of the cells (12,) and their resamples (12, DRAWS)."""
    dataset = load_dataset(DATASET, images=False)
    names, groups = dataset.class_names, dataset.class_group
    rows = evaluate(probabilities, labels, names, groups)
    rows = rows.assign(trained_tasks=1, task="seen")
    draws = class_draws(rows, names, groups, labels.sum(axis=0), DRAWS)
    draws = draws.set_index(["group", "metric"])["draws"]
    values = rows.set_index(["group", "metric"])["value"]
    of_images = resampled(probabilities, labels, groups, weights)
    of_images = of_images.reshape(len(GROUPS), -1, DRAWS)[:, 5]  # O-F1 of each group
    drawn = np.stack([draws[cell] for cell in CELLS])
    drawn[POOLED :: len(METRICS)] = of_images
    return np.array([values[cell] for cell in CELLS]), drawn


def one_set(
    number: int, replace: bool, outputs: list, labels: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the difference on a test set, its standard error, and who scores 0."""
    rng = np.random.default_rng([number, replace])
    rows = rng.choice(len(labels), IMAGES, replace=replace)
    weights = image_weights(IMAGES, DRAWS)
    gaps, drawn, largest = 0, 0, 0
    for first, second in outputs:  # CRS and PRS of a seed
        scores = [scores_on(p[rows], labels[rows], weights) for p in (first, second)]
        gaps = gaps + (scores[1][0] - scores[0][0]) / len(outputs)
        drawn = drawn + (scores[1][1] - scores[0][1]) / len(outputs)
        largest = np.maximum(largest, np.maximum(scores[0][0], scores[1][0]))
    return gaps, drawn.std(axis=1, ddof=1), largest == 0


def main() -> None:
    pool = Parallel(-1)
    work = [(method, seed) for seed in SEEDS for method in ("CRS", "PRS")]
    trained = pool(delayed(probabilities_of)(*one) for one in work)
    outputs = list(zip(trained[::2], trained[1::2], strict=True))
    _, labels = images_and_labels(load_dataset(DATASET).tests)
    tables = []
    for replace in (False, True):
        sets = pool(
            delayed(one_set)(number, replace, outputs, labels) for number in range(SETS)
        )
        gaps, errors, zero = (np.stack([one[i] for one in sets]) for i in range(3))
        covers = np.abs(gaps - gaps.mean(axis=0)) < 1.96 * errors
        table = pd.DataFrame(CELLS, columns=["group", "metric"])
        table.insert(0, "replaced", replace)
        table["covered"] = 100 * covers.mean(axis=0)
        table["covered_else"] = 100 * (covers & ~zero).sum(axis=0) / (~zero).sum(axis=0)
        table["both_zero"] = 100 * zero.mean(axis=0)
        tables.append(table)
    save(pd.concat(tables).round(2), "interval_coverage")


if __name__ == "__main__":
    main()
