"""Measure runs, for the ledger and notebooks: forgetting, features, accuracies, memories."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pandas as pd
from sklearn.metrics import silhouette_samples
from sklearn.neighbors import KNeighborsClassifier

from prslib import METHODS, Run, RunConfig, make_sampler
from prslib.datasets import DATASETS, GROUPS, SequentialDataset
from prslib.datasets.base import schedule_text
from prslib.datasets.curation import feature_rows
from prslib.metrics import forgetting, values_and_draws
from prslib.report.tables import OPEN, labels_of, merge_published, with_draws
from prslib.resamples import draw_weights, weighted_mean
from prslib.samplers import SAMPLERS, Sampler
from prslib.train import spawn_seeds, stream

DRAWN = "drawn for each seed"  # the order of the classes
# the forgetting of Table 1 and of Chaudhry et al.
FORGETTING = {"normalised": True, "plain": False}


def class_statistics(dataset: SequentialDataset) -> pd.DataFrame:
    """Count the images of every class in the stream (Figures "COCOseq", "NUS-WIDEseq")."""
    columns = {
        "dataset": dataset.name,
        "task": dataset.class_task,
        "class": dataset.class_names,
        "group": dataset.class_group,
        "images": dataset.class_freq,
    }
    frame = pd.DataFrame(columns)
    frame = frame.sort_values(
        ["task", "images"], ascending=[True, False], kind="stable"
    )
    return frame.reset_index(drop=True)


def class_test(dataset: str) -> str:
    """Return the test set of single classes: further images, if a data set has any."""
    has_more = OPEN in labels_of(dataset).tests
    return OPEN if has_more else DATASETS[dataset].recipe.test_set


def run_forgetting(run: Run) -> pd.DataFrame:
    """Measure the forgetting of every class of all tasks but the last, in both ways.

    Normalised forgetting is in percent of the best score, plain forgetting in points; NaN
    if a class was never learned. If the run has resamples, the column draws contains the
    values on them. Tasks are in the order of the schedule, classes from large to small.
    """
    dataset = labels_of(run.config.dataset)
    scores = with_draws(run)
    scores = scores[scores["test_set"] == class_test(dataset.name)]
    scores = scores[scores["metric"].isin(["AP", "F1"])]
    scores = scores[scores["group"].isin(dataset.class_names)]
    both = [
        forgetting(scores, f).assign(measure=name) for name, f in FORGETTING.items()
    ]
    measured = pd.concat(both).dropna(subset="unlearned")
    sizes = class_statistics(dataset).drop(columns="dataset").set_index("task")
    sizes = sizes.loc[[*run.config.resolved["schedule"]]].reset_index()
    sizes = sizes.rename(columns={"group": "class_group"})
    rows = sizes.merge(measured.rename(columns={"group": "class"}), on="class")
    place = pd.factorize(rows["class"])[0]
    columns = [name for name in ("value", "draws") if name in rows]
    return rows.assign(place=place, **{name: 100 * rows[name] for name in columns})


def size_correlations(rows: pd.DataFrame) -> pd.DataFrame:
    """Compute Spearman's correlation of forgetting with class size, task by task.

    The table is (tasks, 1 + draws). A row contains the correlation of a task, NaN if all
    values are equal, and the correlations on resampled test images. These omit classes
    that have no positive in the resample or were never learned in it.
    """
    keys = ["test_set", "measure", "metric", "task"]
    table = {}
    for place, classes in rows.groupby(keys, sort=False):
        values = values_and_draws(classes)  # (classes, 1 + draws)
        images = pd.Series(classes["images"].to_numpy(), values.index)
        sizes = values.mask(values.notna(), images, axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):  # all values are equal
            table[place] = sizes.rank().corrwith(values.rank())
    return pd.DataFrame(table).T


def labelled_images(config: RunConfig) -> pd.DataFrame:
    """List class and group of the images whose features a run stores, in their order."""
    dataset = labels_of(config.dataset)
    test = dataset.tests[DATASETS[config.dataset].recipe.test_set]
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


def features_of(run: Run) -> np.ndarray:
    """Return the features, float32 (N, D), of the images that `labelled_images` lists."""
    return run.features[DATASETS[run.config.dataset].recipe.test_set]


def separation(run: Run, neighbours: int) -> pd.DataFrame:
    """Measure how well features separate the classes, in percent, by group and overall.

    Distances are Euclidean. A silhouette of 100 means that classes are far apart, 0 that
    they overlap (section "Feature Analysis").
    """
    images = labelled_images(run.config)
    features, classes = features_of(run), images["class"].to_numpy()
    vote = KNeighborsClassifier(n_neighbors=neighbours, weights="distance")
    voted = vote.fit(features, classes).predict(None)  # by all other images
    images["kNN accuracy"] = 100.0 * (voted == classes)
    images["silhouette"] = 100 * silhouette_samples(features, classes)
    draws = run.config.resolved["test_resamples"]
    name = run.config.dataset
    test = labels_of(name).tests[DATASETS[name].recipe.test_set]
    table = []
    for group in (*images["group"].unique(), "overall"):
        used = images if group == "overall" else images[images["group"] == group]
        for metric in ("kNN accuracy", "silhouette"):
            values = used[metric].to_numpy()
            row = {"group": group, "metric": metric, "value": values.mean()}
            if draws:
                rows = used["image"].to_numpy()
                weights = draw_weights(test, draws)[1:, rows]
                row["draws"] = weighted_mean(values, weights)
            table.append(row)
    return pd.DataFrame(table)


def accuracies(runs: Iterable[Run]) -> pd.DataFrame:
    """Return accuracies on the whole test set in percent, with the paper's (Appendix)."""
    frames = []
    for run in runs:
        rows = run.scores.query("metric == 'accuracy' and task == 'all'")
        at_once = run.config.resolved["tasks_at_once"]
        order = schedule_text(run.config.schedule or (), at_once)
        frames.append(rows.assign(order=order or DRAWN))
    rows = pd.concat(frames, ignore_index=True)
    rows = rows.assign(measure="score", value=100 * rows["value"])
    columns = ["dataset", "test_set", "order", "method", "rho", "schedule", "seed"]
    columns += ["trained_tasks", "measure", "group", "metric", "value"]
    return merge_published(rows[columns], "mnist", "svhn")


def distances(rows: pd.DataFrame) -> pd.DataFrame:
    """Measure in points how far class orders are from the paper's table, nearest first."""
    cells = rows.groupby(["schedule", "method", "trained_tasks"], sort=False)
    gaps = (cells["value"].mean() - cells["published"].first()).abs().dropna()
    table = gaps.groupby("schedule", sort=False).agg(
        rms=lambda gap: np.sqrt((gap**2).mean()), largest="max", cells="size"
    )
    return table.sort_values("rms", kind="stable").reset_index()


def follows_from_labels(method: str) -> bool:
    """Return whether the content of a method's memory depends only on labels."""
    sampler = METHODS[method].sampler
    return sampler is not None and not SAMPLERS[sampler].needs


def place_stream(config: RunConfig) -> Iterator[tuple[Sampler, np.ndarray, int]]:
    """Apply a run's sampler to the labels of its stream, without training.

    After each batch, yield three things: the sampler; the position in the stream of each
    slot's sample, int64 (m,), -1 for an empty slot; and the number of samples so far.
    """
    settings = config.resolved
    method = METHODS[config.method]
    data = labels_of(config.dataset)
    options = dict(config.options)
    if method.takes_rho:
        options["rho"] = settings["rho"]
    _, seed, *_ = spawn_seeds(config)
    name, size = str(method.sampler), settings["memory_size"]
    sampler = make_sampler(name, size, data.num_classes, seed, **options)
    held = np.full(size, -1)
    seen = 0
    for _, batches, is_new in stream(config, data.train.task):
        for batch in batches[is_new]:
            slots = sampler.place(data.train.labels[batch])
            number = seen + np.arange(len(batch))
            held[slots[slots >= 0]] = number[slots >= 0]
            seen += len(batch)
            yield sampler, held, seen


def memory_shares(configs: Sequence[RunConfig], runs: Sequence[Run]) -> pd.DataFrame:
    """Compute each class's share of the labels in each memory and in the stream, in percent."""
    # memories without a run are computed from the labels
    trained = {repr(run.config): run.memory_labels.sum(axis=0) for run in runs}
    frames = []
    for name in dict.fromkeys(config.dataset for config in configs):
        dataset = labels_of(name)
        frames.append(_class_shares(dataset, dataset.class_freq, "Stream", 0))
        for config in [config for config in configs if config.dataset == name]:
            counts = trained.get(repr(config))
            if counts is None:
                *_, (sampler, _, _) = place_stream(config)
                counts = sampler.class_counts
            frames.append(_class_shares(dataset, counts, config.method, config.seed))
    return pd.concat(frames, ignore_index=True)


def memory_ages(configs: Sequence[RunConfig]) -> pd.DataFrame:
    """Compute which shares of a memory come from the quarters of tasks, in percent.

    There are four rows for each configuration whose memory follows from the labels. A
    task is divided in the order of its samples in the stream.
    """
    frames = []
    for config in configs:
        if not follows_from_labels(config.method):
            continue
        tasks = stream(config, labels_of(config.dataset).train.task)
        sizes = np.array([batches[is_new].size for _, batches, is_new in tasks])
        starts = np.cumsum(sizes) - sizes
        *_, (_, slots, _) = place_stream(config)
        sample = slots[slots >= 0]  # its number in the stream
        task = np.searchsorted(starts, sample, side="right") - 1
        quarter = 4 * (sample - starts[task]) // sizes[task]
        columns = {
            "dataset": config.dataset,
            "method": config.method,
            "seed": config.seed,
            "quarter": np.arange(1, 5),
            "share": 100 * np.bincount(quarter, minlength=4) / len(sample),
        }
        frames.append(pd.DataFrame(columns))
    return pd.concat(frames, ignore_index=True)


def _class_shares(
    dataset: SequentialDataset, counts: np.ndarray, method: str, seed: int
) -> pd.DataFrame:
    """Lay out one memory's shares by group; in a group, frequent classes come first."""
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


def draw_labels(
    chances: np.ndarray, samples: int, seed: int = 0, second_labels: float = 0.22
) -> np.ndarray:
    """Draw labels, bool (samples, C), in proportion to the `chances` of classes.

    A share of the samples, by default the share in COCOseq, draws a second label.
    """
    rng = np.random.default_rng(seed)
    bounds = np.cumsum(chances)
    drawn = np.searchsorted(bounds, rng.random((2, samples)) * bounds[-1], side="right")
    first, second = np.eye(len(chances), dtype=np.bool_)[drawn]  # (samples, C)
    second &= rng.random((samples, 1)) < second_labels
    return first | second
