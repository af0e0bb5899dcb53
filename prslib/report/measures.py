"""Measure runs: forgetting of classes, neighbours in features, accuracies, memories.

The ledger and the notebooks share these.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from prslib import Run, RunConfig
from prslib.datasets import GROUPS, SequentialDataset
from prslib.datasets.base import task_name, tasks_together
from prslib.datasets.curation import feature_rows
from prslib.metrics import forgetting
from prslib.report.tables import beside, labels_of
from prslib.training.replay import without_training

DRAWN = "another for each seed"  # order of the classes
FORGETTING = {"normalised": True, "plain": False}  # Table 1's, and Chaudhry et al.'s


def class_statistics(dataset: SequentialDataset) -> pd.DataFrame:
    """Count the images of every class in the stream (Figures "COCOseq", "NUS-WIDEseq")."""
    columns = {
        "dataset": dataset.name,
        "task": dataset.class_task,
        "class": dataset.class_names,
        "group": dataset.class_group,
        "images": dataset.class_freq,
    }
    frame = pd.DataFrame(columns).sort_values("images", ascending=False, kind="stable")
    return frame.sort_values("task", kind="stable", ignore_index=True)


def run_forgetting(run: Run) -> pd.DataFrame:
    """Measure the forgetting of every class of all tasks but the last, by both `FORGETTING`.

    In percent of the best score, or in points; NaN where a class was never learned.
    Tasks are in the order of the schedule, classes from large to small.
    """
    dataset = labels_of(run.config.dataset)
    scores = run.scores[run.scores["metric"].isin(["AP", "F1"])]
    scores = scores[scores["group"].isin(dataset.class_names)]
    both = [
        forgetting(scores, f).assign(measure=name) for name, f in FORGETTING.items()
    ]
    measured = pd.concat(both).dropna(subset="unlearned")
    sizes = class_statistics(dataset).drop(columns="dataset")
    in_turn = [sizes[sizes["task"] == t] for t in run.config.resolved["schedule"]]
    sizes = pd.concat(in_turn).rename(columns={"group": "class_group"})
    rows = sizes.merge(measured.rename(columns={"group": "class"}), on="class")
    place = pd.factorize(rows["class"])[0]
    return rows.assign(value=100 * rows["value"], place=place)


def size_correlations(
    rows: pd.DataFrame, weights: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Correlate forgetting with class size by rank (Spearman), task by task.

    NaN without a rank. With weights of the classes, a column each, the column draws has
    the correlation under each.
    """
    keys = ["dataset", "method", "seed", "measure", "metric", "task"]
    table = []
    for key, classes in rows.dropna(subset="value").groupby(keys, sort=False):
        row = dict(zip(keys, key, strict=True))
        ranks = classes[["images", "value"]].rank()
        row["correlation"] = ranks["images"].corr(ranks["value"])
        if weights is not None:
            row["draws"] = _correlations(ranks, weights[classes["class"]].to_numpy())
        table.append(row)
    return pd.DataFrame(table)


def _correlations(ranks: pd.DataFrame, weights: np.ndarray) -> np.ndarray:
    """Return the correlation of two columns (n, 2) under each of the weights (draws, n)."""
    weights = weights / weights.sum(axis=1, keepdims=True)
    ranks = (ranks - ranks.mean()).to_numpy()
    mean = weights @ ranks  # (draws, 2)
    square = weights @ ranks**2 - mean**2
    product = weights @ ranks.prod(axis=1) - mean.prod(axis=1)
    with np.errstate(invalid="ignore"):  # all alike
        return product / np.sqrt(square.prod(axis=1))


def labelled_images(config: RunConfig) -> pd.DataFrame:
    """Return class and group of every image whose features a run stores, in the same order."""
    dataset = labels_of(config.dataset)
    test = dataset.tests[config.resolved["test_set"]]
    rows = feature_rows(test, config.features_per_class)
    classes = test.labels[rows].argmax(axis=1)
    columns = {
        "dataset": config.dataset,
        "method": config.method,
        "seed": config.seed,
        "image": rows,
        "class": classes,
        "class_name": np.array(dataset.class_names)[classes],
        "group": np.array(dataset.class_group)[classes],
    }
    return pd.DataFrame(columns)


def neighbour_votes(run: Run, neighbours: int) -> pd.DataFrame:
    """Add the kNN accuracy of each image: 100 where its nearest others vote for its class."""
    from sklearn.neighbors import KNeighborsClassifier

    images = labelled_images(run.config)
    vote = KNeighborsClassifier(n_neighbors=neighbours, weights="distance")
    voted = vote.fit(run.features, images["class"].to_numpy()).predict(None)
    return images.assign(**{"kNN accuracy": 100.0 * (voted == images["class"])})


def accuracies(configs: Sequence[RunConfig], runs: Sequence[Run]) -> pd.DataFrame:
    """Pick accuracies on the whole test set in percent, beside the paper's (Appendix)."""
    frames = []
    for config, run in zip(configs, runs, strict=True):
        rows = run.scores.query("metric == 'accuracy' and task == 'all'")
        groups = tasks_together(config.schedule or (), config.resolved["tasks_at_once"])
        order = ",".join(map(task_name, groups)) or DRAWN  # "1+7,0+2,8+9,3+5,4+6"
        frames.append(rows.assign(order=order))
    rows = pd.concat(frames, ignore_index=True)
    rows = rows.assign(measure="score", value=100 * rows["value"])
    columns = ["dataset", "order", "method", "schedule", "seed", "trained_tasks"]
    columns += ["measure", "group", "metric", "value"]
    return beside(rows[columns], "mnist", "svhn")


def distances(rows: pd.DataFrame) -> pd.DataFrame:
    """Measure each order's distance to the paper's progression in points, the nearest first."""
    cells = rows.groupby(["schedule", "method", "trained_tasks"], sort=False)
    gaps = (cells["value"].mean() - cells["published"].first()).abs().dropna()
    table = gaps.groupby("schedule", sort=False).agg(
        rms=lambda gap: np.sqrt((gap**2).mean()), largest="max", cells="size"
    )
    return table.sort_values("rms", kind="stable").reset_index()


def memory_shares(configs: Sequence[RunConfig], runs: Sequence[Run]) -> pd.DataFrame:
    """Compute each class's share of the labels in each memory and in the stream, in percent."""
    # memories of which there is no run follow from labels alone
    trained = {run.config.hash: run.memory_labels.sum(axis=0) for run in runs}
    frames = []
    for name in dict.fromkeys(config.dataset for config in configs):
        dataset = labels_of(name)
        frames.append(_class_shares(dataset, dataset.class_freq, "Stream", 0))
        for config in [config for config in configs if config.dataset == name]:
            counts = trained.get(config.hash)
            if counts is None:
                counts = without_training(config, dataset).sampler.class_counts
            frames.append(_class_shares(dataset, counts, config.method, config.seed))
    return pd.concat(frames, ignore_index=True)


def _class_shares(
    dataset: SequentialDataset, counts: np.ndarray, method: str, seed: int
) -> pd.DataFrame:
    """Lay out one memory's shares, group by group, each from its most frequent class on."""
    rank = [GROUPS.index(group) for group in dataset.class_group]
    columns = {
        "dataset": dataset.name,
        "method": method,
        "seed": seed,
        "class": dataset.class_names,
        "class_rank": np.lexsort([-dataset.class_freq, rank]).argsort(),
        "group": dataset.class_group,
        "task": dataset.class_task,
        "share": 100 * counts / counts.sum(),
    }
    return pd.DataFrame(columns).sort_values("class_rank")
