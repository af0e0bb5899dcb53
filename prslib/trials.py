"""Try samplers on a stream: which one to take for which score, and what it costs.

From top to bottom: `trial`, the stream and its tests, a run, and what the runs answer.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, cast

import joblib
import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike
from scipy import special

from prslib.checks import as_array, check_int, expected, items, one_of
from prslib.datasets import DATASETS, Entry, Recipe, SequentialDataset, Split
from prslib.datasets.curation import class_groups, draw_even
from prslib.datasets.features import HEAD, standardised
from prslib.datasets.reuters import memory_size_of
from prslib.device import check_device, put, run_settings
from prslib.labels import read_array
from prslib.losses import LOSSES
from prslib.metrics import evaluate_draws
from prslib.paths import cache_dir, replacing
from prslib.previews import METHODS as BY_LABELS
from prslib.previews import Preview, preview, read_rows
from prslib.resamples import image_draws
from prslib.rounding import set_deterministic
from prslib.runs import code_of, counting, gather, train_here
from prslib.scoring import score_accuracy
from prslib.sources import hash_names, stamp_package
from prslib.statistics import LEVEL, MEASURED, Interval, interval
from prslib.train import METHODS, RunConfig, Trainer
from prslib.train import stream as shuffle

NAME = "trial"  # of the data set, while it is tried
SEED = 20201128  # draws the held-out samples and the balanced test
TEST_SHARE = 0.3
LEAST = 5  # samples of a class that is scored
SHOWN = 10  # names of classes in a note
MOST_CHANNELS = 4  # of an image; more are the width of one with its channels first
PER_CLASS = 10  # samples of a class in the balanced test, or more if most have more
QUARTILE = 0.25  # of the classes, whose size decides how many
SMALL, LARGE = 0.5, 2.0  # classes over the mean class: below minority, from majority
BASE = "CRS"
TESTS = {
    "balanced": "classes alike",
    "imbalanced": "as the stream comes",
    "prequential": "tested, then trained",
}
# what is asked: a metric on a test
QUESTIONS = [
    ("mAP", "balanced"),
    ("C-F1", "balanced"),
    ("mAP", "imbalanced"),
    ("C-F1", "imbalanced"),
    ("O-F1", "imbalanced"),
]
ONE_LABEL = [
    ("mAP", "balanced"),
    ("accuracy", "balanced"),
    ("mAP", "imbalanced"),
    ("accuracy", "imbalanced"),
]
METRICS = ("mAP", "C-F1", "O-F1", "accuracy")
# fields of a run that would change nothing, as a trial sees its stream once
UNREAD = {"epochs"} | {*MEASURED} - {"test_resamples"}
MANY_SEEDS = 20  # with which the size of a test that would tell is computed
MOST_SAMPLES = 1_000_000  # of a test that somebody may collect


@dataclass(frozen=True, eq=False)
class Stream:
    """A stream with its held-out samples."""

    data: SequentialDataset  # all classes in one task, whatever the order
    task: np.ndarray | None  # int64 (N,); None if samples come in the order of the rows
    is_scored: np.ndarray  # bool (C,)
    recipe: Recipe

    @property
    def questions(self) -> list[tuple[str, str]]:
        """What is asked: a metric and a test each."""
        return ONE_LABEL if self.data.train.single_label else QUESTIONS


@dataclass(frozen=True, eq=False)
class Trial:
    """What samplers would do on a stream; its text is the answer.

    Parameters
    ----------
    notes : list of str
        What was understood of the stream, and what was left out.
    preview : Preview
        What each memory of the first size holds at the end of the stream.
    scores : DataFrame
        A row per score, in percent: method, memory_size, seed, test_set, group, metric
        and value. A group is "overall", "majority", "moderate", "minority" or a class.
    differences : DataFrame
        Each sampler minus CRS in points, over all seeds: memory_size, method, test_set,
        group, metric, difference, the ends `low` and `high` of its 95 % interval, seeds.
    answers : DataFrame
        A row per memory size, metric and test: which sampler to take ("" if the trial
        cannot tell), and a sentence.
    costs : list of str
        What each sampler that is named loses against CRS.
    """

    notes: list[str]
    preview: Preview
    scores: pd.DataFrame
    differences: pd.DataFrame
    answers: pd.DataFrame
    costs: list[str]

    def __str__(self) -> str:
        """Return what was understood, and what to take for which score."""
        lines = [*self.notes, ""]
        for size, rows in self.answers.groupby("memory_size", sort=False):
            lines += [f"Memory of {size}:", *rows["sentence"], ""]
        return "\n".join([*lines, *self.costs])

    def plot(self, ax: Any, memory_size: int | None = None) -> Any:
        """Draw each sampler minus CRS with its interval on axes of matplotlib; return them."""
        size = memory_size or self.differences["memory_size"].iloc[0]
        asked = self.answers[self.answers["memory_size"] == size]
        names = [f"{row.metric}, {TESTS[row.test_set]}" for row in asked.itertuples()]
        rows = self.differences.merge(asked[["memory_size", "metric", "test_set"]])
        rows = rows[rows["group"] == "overall"]
        methods = rows["method"].unique()
        keys = zip(asked["metric"], asked["test_set"], strict=True)
        places = {key: place for place, key in enumerate(keys)}
        for number, (method, cells) in enumerate(rows.groupby("method", sort=False)):
            keys = zip(cells["metric"], cells["test_set"], strict=True)
            y = np.array([places[key] for key in keys])
            y = y + 0.15 * (number - (len(methods) - 1) / 2)
            ends = [
                cells["difference"] - cells["low"],
                cells["high"] - cells["difference"],
            ]
            ax.errorbar(cells["difference"], y, xerr=ends, fmt="o", label=method)
        ax.axvline(0, color="black", linewidth=0.8)
        ax.set_yticks(range(len(names)), names)
        ax.invert_yaxis()
        ax.set_xlabel(f"minus {BASE} (points)")
        ax.legend()
        return ax


def trial(
    inputs: ArrayLike,
    labels: Any,
    *,
    task: ArrayLike | None = None,
    order: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    class_names: Sequence[str] | None = None,
    memory_size: int | Sequence[int] | None = None,
    samplers: Sequence[str] = ("CBRS", "PRS", "OCDM"),
    rho: Sequence[float] = (0.0, 0.5),
    seeds: Sequence[int] = range(5),
    workers: int | None = None,
    device: str = "cpu",
    **fields: Any,
) -> Trial:
    """Train a small network on a stream under each sampler, and compare them with CRS.

    A random 30 % of each class is held out. The network sees the others once, ten at a
    time with ten from the memory, and is scored on the held-out samples: as they come,
    and on a part in which classes are alike. It also predicts each batch before it
    learns it (prequential evaluation).

    Parameters
    ----------
    inputs : array_like, (N, D) or (N, H, W, channels)
        Features, which a head with one hidden layer learns, or small images of uint8,
        which a convolutional network learns.
    labels : array, tensor, data frame or sparse matrix
        Labels as `preview` reads them: rows (N, C) of 0 and 1, or class numbers (N,).
    task : array_like, (N,), optional
        The task of each sample. Tasks come in sorted order, and the samples of a task in
        one that each seed draws.
    order : array_like, (N,), optional
        What sorts the stream: numbers, or dates such as 2021-03-31. Without `task` and
        `order` the samples come in the order of the rows.
    groups : array_like, (N,), optional
        Samples of one group, such as frames of one video, are all in the stream or all
        held out.
    class_names : sequence of str, optional
        Names of the C classes, by default those of a data frame's columns, or numbers.
    memory_size : int or sequence of int, optional
        Samples in memory; by default the paper's share of the stream, 5.7 %.
    samplers : sequence of str
        Keys of `METHODS`, each of which is compared with CRS.
    rho : sequence of float
        Powers of allocation of PRS. OCDM has the first.
    seeds : sequence of int
        A run of every sampler for each.
    workers, device
        As in `run_all`.
    **fields
        Further fields of `RunConfig`, such as ``learning_rate=0.001``.

    Returns
    -------
    Trial
        Its text says which sampler to take for which score and what it costs, or that
        the trial cannot tell. See `docs/own_data.md` for the rule.

    Raises
    ------
    ValueError
        Before any training, if inputs and labels differ in length, an input is NaN or
        all are equal, a memory is larger than the stream, there is one task, no class
        has five samples, or as in `RunConfig`.
    """
    device = check_device(str(device))
    made, notes = make_stream(inputs, labels, task, order, groups, class_names)
    sizes = list_sizes(memory_size, made)
    DATASETS[NAME] = entry_of(made)
    try:
        configs = list_configs(sizes, samplers, rho, seeds, fields)
        check_fit(made, configs[0])
        scores = run_all(made, configs, workers, device)
        order = [part.ravel() for part in order_rows(made, configs[0])]
    finally:
        del DATASETS[NAME]
    differences = compare_all(scores)
    answers = pd.DataFrame(
        answer(made, scores, size, question)
        for size, question in product(sizes, made.questions)
    )
    costs = say_costs(answers, differences)
    labels = made.data.train.labels[np.concatenate(order)]
    names = [name for name in scores["method"].unique() if name.lower() in BY_LABELS]
    kept = preview(labels, sizes[0], names, class_names=made.data.class_names)
    kept = replace(kept, class_group=made.data.class_group)  # as in the scores
    columns = ["method", "memory_size", "seed", "test_set", "group", "metric", "value"]
    return Trial(notes, kept, scores[columns], differences, answers, costs)


def make_stream(
    inputs: ArrayLike,
    labels: Any,
    task: ArrayLike | None,
    order: ArrayLike | None,
    groups: ArrayLike | None,
    class_names: Sequence[str] | None,
) -> tuple[Stream, list[str]]:
    """Hold out samples; return the stream, and what was understood."""
    rows, names = read_labels(labels, class_names)
    columns = {"inputs": inputs, "task": task, "order": order, "groups": groups}
    columns = {name: as_array(name, x) for name, x in columns.items() if x is not None}
    for name, column in columns.items():
        if len(column) != len(rows):
            what = f"{name} of {len(rows)} samples, as many as labels"
            raise ValueError(expected(what, len(column)))
        if name != "inputs" and pd.isna(column).any():
            raise ValueError(expected(f"{name} of every sample", "missing values"))
    if {"task", "order"} <= {*columns}:
        raise ValueError(expected("task or order", "both"))
    columns["inputs"] = check_inputs(columns["inputs"])
    if "order" in columns:
        columns["order"] = read_order(columns["order"])
    notes = []
    is_labelled = rows.any(axis=1)
    if not is_labelled.all():
        notes.append(f"{(~is_labelled).sum()} samples without a label are left out.")
        columns = {name: column[is_labelled] for name, column in columns.items()}
        rows = rows[is_labelled]
    kept = rows.any(axis=0)
    rows, names = rows[:, kept], np.array(names)[kept]
    if "order" in columns:
        place = np.argsort(columns["order"], kind="stable")
        columns = {name: column[place] for name, column in columns.items()}
        rows = rows[place]
    is_scored = rows.sum(axis=0) >= LEAST
    if not is_scored.any():
        what = f"a class with at least {LEAST} samples"
        raise ValueError(expected(what, f"at most {rows.sum(axis=0).max()}"))
    if not is_scored.all():
        small = names[~is_scored]
        plural = "es" if len(small) > 1 else ""
        more = ", ..." if len(small) > SHOWN else ""
        notes.append(
            f"{len(small)} class{plural} with fewer than {LEAST} samples trained but "
            f"not scored: {', '.join(small[:SHOWN])}{more}."
        )
    is_test = hold_out(rows & is_scored, columns.get("groups"))
    return split_stream(columns, rows, names, is_scored, is_test, notes)


def read_labels(
    labels: Any, class_names: Sequence[str] | None
) -> tuple[np.ndarray, list[str]]:
    """Return labels, bool (N, C), and the names of the classes; refuse unknown labels."""
    values = read_array(labels)
    if getattr(values, "dtype", None) is not None and values.dtype.kind == "f":
        data = values.data if hasattr(values, "tocoo") else values
        if np.isnan(data).any():
            raise ValueError(
                expected("labels that are all known", "NaN", "a trial scores them")
            )
    return read_rows(labels, class_names)


def check_inputs(inputs: np.ndarray) -> np.ndarray:
    """Return features as float32 (N, D), or images of uint8 (N, H, W, channels)."""
    if inputs.dtype == np.uint8 and inputs.ndim == 4:
        if inputs.shape[3] > MOST_CHANNELS:
            what = "images (N, H, W, channels)"
            raise ValueError(expected(what, inputs.shape, "move the channels last"))
        return inputs
    if inputs.ndim != 2 or inputs.dtype.kind not in "biuf":
        what = "features (N, D), or images of uint8 (N, H, W, channels)"
        raise ValueError(expected(what, f"{inputs.dtype} {inputs.shape}"))
    with np.errstate(over="ignore"):  # told as infinity
        features = inputs.astype(np.float32)
    bad = np.flatnonzero(~np.isfinite(features).all(axis=1))
    if len(bad):
        got = f"NaN or infinity in {len(bad)} samples, the first at index {bad[0]}"
        raise ValueError(expected("finite features", got))
    if features.min() == features.max():
        raise ValueError(expected("features that vary", f"{features[0, 0]} everywhere"))
    return features


def read_order(order: np.ndarray) -> np.ndarray:
    """Return what sorts a stream; dates that are text become dates."""
    if order.dtype.kind not in "OUS":
        return order
    # text such as 31/12/2021 would be sorted by its day
    try:
        return pd.to_datetime(order, format="ISO8601", utc=True).to_numpy()
    except (ValueError, TypeError):
        what = "order as numbers, or dates such as 2021-03-31"
        raise ValueError(expected(what, order[0])) from None


def hold_out(labels: np.ndarray, groups: np.ndarray | None) -> np.ndarray:
    """Draw 30 % of each class, bool (N,), the rarest first (Sechidis et al. 2011).

    Groups are drawn as a whole, and so is a sample without a group.
    """
    unit = np.arange(len(labels))
    if groups is not None:
        unit = np.unique(groups, return_inverse=True)[1]
    number = unit.max() + 1
    has = np.zeros((number, labels.shape[1]), np.int64)
    np.add.at(has, unit, labels.astype(np.int64))
    is_test = np.zeros(number, bool)
    is_open = np.ones(number, bool)
    rng = np.random.default_rng(SEED)
    for c in np.argsort(has.sum(axis=0), kind="stable"):
        wanted = TEST_SHARE * has[:, c].sum() - has[is_test, c].sum()
        units = rng.permutation(np.flatnonzero(is_open & (has[:, c] > 0)))
        for drawn in units:  # if at least half of it is still wanted
            if has[drawn, c] / 2 <= wanted:
                is_test[drawn] = True
                wanted -= has[drawn, c]
        is_open[units] = False
    return is_test[unit]


def split_stream(
    columns: dict[str, np.ndarray],
    labels: np.ndarray,
    names: np.ndarray,
    is_scored: np.ndarray,
    is_test: np.ndarray,
    notes: list[str],
) -> tuple[Stream, list[str]]:
    """Split samples into the stream and two tests; say what they are."""
    train, test = np.flatnonzero(~is_test), np.flatnonzero(is_test)
    task = None
    how = "in the order of the rows"
    if "task" in columns:
        found, task = np.unique(columns["task"][train], return_inverse=True)
        if len(found) < 2:
            what = "a task column with at least two tasks"
            raise ValueError(expected(what, "one", "leave it out"))
        how = f"in {len(found)} tasks"
    elif "order" in columns:
        how = "in the order of its column"
    scored = labels[test] & is_scored
    counts = scored[:, is_scored].sum(axis=0)
    found = labels[train][:, is_scored].sum(axis=0)
    lacks = np.flatnonzero((counts == 0) | (found == 0))
    if len(lacks):
        what = "samples of each class in the stream and in the test"
        advice = "give smaller groups, or leave the class out"
        name = names[is_scored][lacks[0]]
        raise ValueError(expected(what, f"all of {name!r} in one of them", advice))
    number = max(PER_CLASS, int(np.quantile(counts, QUARTILE)))
    rng = np.random.default_rng(SEED)
    reserve = np.zeros(len(test), np.int64)
    alike = test[draw_even(scored[:, is_scored], number, rng, reserve)]
    inputs = columns["inputs"]
    if inputs.dtype == np.float32:
        inputs = standardised(inputs, inputs[train])

    def split(rows: np.ndarray) -> Split:
        return Split(inputs[rows], labels[rows], np.zeros(len(rows), np.int64))

    freq = labels[train].sum(axis=0)
    mean = freq[freq > 0].mean()
    data = SequentialDataset(
        name=NAME,
        train=split(train),
        tests={"balanced": split(alike), "imbalanced": split(test)},
        class_names=tuple(names.tolist()),
        class_task=np.zeros(labels.shape[1], np.int64),
        class_group=class_groups(freq, SMALL * mean, LARGE * mean),
    )
    notes.insert(
        0,
        f"Stream of {len(train)} samples {how}, {len(names)} classes; tested on "
        f"{len(test)} held-out samples as the stream comes, and on {len(alike)} of them "
        "with classes alike.",
    )
    return Stream(data, task, is_scored, make_recipe(data, task)), notes


def make_recipe(data: SequentialDataset, task: np.ndarray | None) -> Recipe:
    """Return the settings of a run: a head on features, or a network of images."""
    settings: dict[str, Any] = {"memory_size": memory_size_of(len(data.train))}
    settings["schedule"] = tuple(range(1 if task is None else task.max() + 1))
    if data.train.loaded_inputs.ndim == 2:
        settings |= HEAD
    else:
        settings |= {"model": "convnet", "test_resamples": HEAD["test_resamples"]}
    if data.train.single_label:
        settings["loss"] = "cross_entropy"
    return Recipe(**settings)


def list_sizes(memory_size: Any, made: Stream) -> list[int]:
    """Return the sizes of the memory."""
    if memory_size is None:
        return [made.recipe.memory_size]
    length = len(made.data.train)
    sizes = np.atleast_1d(memory_size).tolist()
    for size in sizes:
        check_int("memory_size", size, least=1)
        if size >= length:
            what = f"a memory smaller than the stream of {length} samples"
            raise ValueError(expected(what, size))
    return sizes


def list_configs(
    sizes: Sequence[int],
    samplers: Sequence[str],
    rho: Sequence[float],
    seeds: Sequence[int],
    fields: dict[str, Any],
) -> list[RunConfig]:
    """List the runs, all samplers of a seed before the next."""
    if unread := sorted(UNREAD & fields.keys()):
        what = "fields that a trial reads"
        raise TypeError(expected(what, ", ".join(unread), "leave them out"))
    with_memory = [name for name, row in METHODS.items() if row.sampler]
    variants: list[tuple[str, float | None]] = [(BASE, None)]
    for name in items("samplers", samplers):
        one_of("sampler", name, with_memory)
        powers = items("rho", rho) if METHODS[name].takes_rho else [None]
        variants += [
            (name, power) for power in (powers if name == "PRS" else powers[:1])
        ]
    variants = list(dict.fromkeys(variants))
    if len(variants) < 2:
        raise ValueError(expected(f"a sampler beside {BASE}", "none"))
    seeds = items("seeds", seeds)
    if not len(seeds):
        raise ValueError(expected("at least one seed", "none"))
    return [
        RunConfig(NAME, name, seed=seed, rho=power, memory_size=size, **fields)
        for size, seed, (name, power) in product(sizes, seeds, variants)
    ]


def check_fit(made: Stream, config: RunConfig) -> None:
    """Refuse a loss and a batch that do not fit the stream."""
    settings = config.resolved
    if LOSSES[settings["loss"]].one_label and not made.data.train.single_label:
        what = "a loss of several labels per sample"
        raise ValueError(expected(what, settings["loss"]))
    if not sum(map(len, order_rows(made, config))):
        what = f"batch_size up to the stream of {len(made.data.train)} samples"
        raise ValueError(expected(what, settings["batch_size"]))


def entry_of(made: Stream) -> Entry:
    """Return the row of `DATASETS` that a run's configuration reads."""
    return Entry(lambda images: made.data, made.recipe, data_source="other")


def run_all(
    made: Stream, configs: Sequence[RunConfig], workers: int | None, device: str
) -> pd.DataFrame:
    """Return the scores of all runs, in percent; train those that are not stored."""
    digest = joblib.hash((made, configs[0].resolved["test_resamples"]))
    paths = {}
    for config in configs:
        names = config.method, config.identity["loss"], config.identity["model"]
        stamp = stamp_package()
        code = code_of(*names, stamp), hash_names([(__name__, "train_one")], stamp)
        key = joblib.hash((digest, config.identity, code))
        paths[cache_dir() / "trials" / f"{key}.pkl"] = config
    missing = {path: config for path, config in paths.items() if not path.is_file()}
    if missing:
        steps = [
            len(made.data.train) // each.resolved["batch_size"] for each in configs
        ]
        with counting(steps[: len(missing)]) as counts:
            train = partial(train_one, made)
            gather(train_here(missing, counts, workers, device, train), missing)
    frames = []
    for path, config in paths.items():
        method = config.method
        if method == "PRS" and config.rho:
            method = f"PRS, rho {config.rho:g}"
        columns = {"memory_size": config.resolved["memory_size"], "seed": config.seed}
        frames.append(pd.read_pickle(path).assign(method=method, **columns))
    return pd.concat(frames, ignore_index=True)


def train_one(
    made: Stream, device: str, counts: Path, number: int, path: Path, config: RunConfig
) -> str | None:
    """Train and store a run in a worker process; return the text of its error, if any."""
    DATASETS[NAME] = entry_of(made)
    set_deterministic()
    done = np.memmap(counts, np.int64, "r+")
    try:
        place = torch.device(device)
        with run_settings(place), replacing(path) as file:
            score(made, config, place, done[number : number + 1]).to_pickle(file)
    except Exception as error:
        return f"{config}: {type(error).__name__}: {error}"
    return None


def score(
    made: Stream, config: RunConfig, device: torch.device, done: np.ndarray
) -> pd.DataFrame:
    """Train on the stream, each batch predicted before it is learnt, and score."""
    data = made.data
    inputs = put(data.train.loaded_inputs, device)
    trainer = Trainer(config, data, inputs, device)
    before = np.full(data.train.labels.shape, np.nan, np.float32)  # (N, C)
    for rows in order_rows(made, config):
        for new in rows:
            before[new] = trainer.probabilities(inputs, new)
            trainer.step(new)
            done[0] = trainer.steps
        trainer.check_finite()
    seen = ~np.isnan(before).any(axis=1)  # not the rest that fills no batch
    frames = [
        score_split(made, before[seen], data.train.labels[seen], 0, "prequential")
    ]
    resamples = config.resolved["test_resamples"]
    for name, test in data.tests.items():
        rows = np.arange(len(test))
        found = trainer.probabilities(put(test.loaded_inputs, device), rows)
        frames.append(score_split(made, found, test.labels, resamples, name))
    return pd.concat(frames, ignore_index=True)


def order_rows(made: Stream, config: RunConfig) -> Iterator[np.ndarray]:
    """Yield the batches of a task, rows of the stream (steps, B)."""
    if made.task is None:
        size = config.resolved["batch_size"]
        steps = len(made.data.train) // size
        yield np.arange(steps * size).reshape(steps, size)
        return
    for _, batches, _ in shuffle(config, made.task):
        yield batches


def score_split(
    made: Stream,
    probabilities: np.ndarray,
    labels: np.ndarray,
    resamples: int,
    test_set: str,
) -> pd.DataFrame:
    """Score the classes that are large enough, in percent, with resamples."""
    data, used = made.data, made.is_scored
    weights = np.ones((1, len(labels)))
    weights = np.concatenate([weights, image_draws(len(labels), resamples)])
    names = np.array(data.class_names)[used].tolist()
    groups = np.array(data.class_group)[used].tolist()
    frames = [
        evaluate_draws(probabilities[:, used], labels[:, used], names, groups, weights)
    ]
    if data.train.single_label:
        right = probabilities.argmax(axis=1) == labels.argmax(axis=1)
        frames.append(score_accuracy("all", right, weights))
    rows = pd.concat(frames, ignore_index=True)
    rows = rows[rows["metric"].isin([*METRICS, "AP"])]
    values = [100 * draws for draws in rows["draws"]]
    columns = {"test_set": test_set, "value": [float(draws[0]) for draws in values]}
    rows = rows[["group", "metric"]].assign(**columns)
    return rows.assign(draws=[draws[1:].astype(np.float32) for draws in values])


def compare_all(scores: pd.DataFrame) -> pd.DataFrame:
    """Return each sampler minus CRS over seeds, a row per memory, test, group and metric."""
    table = []
    keys = ["memory_size", "test_set", "group", "metric"]
    for key, rows in scores.groupby(keys, sort=False):
        values = values_by_method(rows)
        for method in [name for name in values if name != BASE]:
            gap = interval((values[method] - values[BASE])[:, None])
            numbers = {"difference": gap.effect, "low": gap.low, "high": gap.high}
            place = dict(zip(keys, cast(tuple, key), strict=True))
            row = place | {"method": method} | numbers
            table.append(row | {"seeds": gap.seeds})
    return pd.DataFrame(table)


def values_by_method(rows: pd.DataFrame) -> dict[str, np.ndarray]:
    """Return each method's values with their resamples, (S, 1 + draws), by seed."""
    found = {}
    for method, of_method in rows.sort_values("seed").groupby("method", sort=False):
        draws = np.stack(of_method["draws"])
        found[str(method)] = np.column_stack([of_method["value"], draws])
    return found


def answer(made: Stream, scores: pd.DataFrame, size: int, question: tuple) -> dict:
    """Name the sampler to take for one score, or say what would tell."""
    metric, test_set = question
    rows = scores[(scores["group"] == "overall") & (scores["memory_size"] == size)]
    rows = rows[(rows["metric"] == metric) & (rows["test_set"] == test_set)]
    values = values_by_method(rows)
    rivals = [name for name in values if name != BASE]
    level = 1 - (1 - LEVEL) / len(rivals)  # of all of them together
    ranked = sorted(values, key=lambda name: -values[name][:, 0].mean())
    above = [name for name in ranked if gap_of(values, name, BASE, level).low > 0]
    below = [name for name in rivals if gap_of(values, name, BASE).high < 0]
    row = {"memory_size": size, "metric": metric, "test_set": test_set}
    place = f"{metric}, {TESTS[test_set]}:"
    if ranked[0] in above:
        best, *others = above
        alike = [name for name in others if gap_of(values, best, name).low <= 0]
        also = f" ({' and '.join(alike)}: not significantly behind)" if alike else ""
        text = f"{place} take {best}{also}; {best} minus {BASE} is "
        text += f"{gap_of(values, best, BASE)}."
        return row | {"take": best, "alike": ", ".join(alike), "sentence": text}
    rival = next(name for name in ranked if name != BASE)
    gap = gap_of(values, rival, BASE)
    if ranked[0] == BASE and len(below) == len(rivals):
        text = f"{place} take {BASE}; {rival}, the next, minus {BASE} is {gap}."
        return row | {"take": BASE, "alike": "", "sentence": text}
    text = f"{place} the trial cannot tell; {rival} minus {BASE} is {gap}. "
    samples = len(made.data.tests[test_set])
    text += say_needed(values[rival] - values[BASE], samples, level)
    return row | {"take": "", "alike": "", "sentence": text}


def gap_of(
    values: dict[str, np.ndarray], method: str, than: str, level: float = LEVEL
) -> Interval:
    """Return a method minus another one; no seed is certain of itself."""
    if method == than:
        return interval(np.zeros((1, 1, 1)), level=level)
    return interval((values[method] - values[than])[:, None], level=level)


def say_needed(gaps: np.ndarray, samples: int, level: float) -> str:
    """Say how many test samples would tell a difference, (S, 1 + draws), from 0."""
    if len(gaps) < 2:
        return "It needs at least two seeds."
    of_seeds = gaps[:, 0].var(ddof=1) / MANY_SEEDS
    of_samples = gaps[:, 1:].mean(axis=0).var(ddof=1)
    quantile = special.stdtrit(MANY_SEEDS - 1, (1 + level) / 2)
    left = (gaps[:, 0].mean() / quantile) ** 2 - of_seeds
    if left <= 0 or samples * of_samples / left > MOST_SAMPLES:
        return f"With {MANY_SEEDS} seeds no test would tell so small a difference."
    needed = samples * of_samples / left
    if needed <= samples:
        return f"If that is the true difference, {MANY_SEEDS} seeds would tell."
    digits = 1 - int(np.floor(np.log10(needed)))
    return (
        f"If that is the true difference, {MANY_SEEDS} seeds and about "
        f"{max(round(needed, digits), samples + 1):,.0f} test samples (now {samples:,}) would tell."
    )


def say_costs(answers: pd.DataFrame, differences: pd.DataFrame) -> list[str]:
    """Say what each sampler that is named loses clearly against CRS."""
    asked = answers[["memory_size", "metric", "test_set"]]
    overall = differences[differences["group"] == "overall"].merge(asked)
    majority = differences[differences["group"] == "majority"].merge(asked)
    lost = pd.concat([overall, majority[majority["metric"] == "C-F1"]])
    lost = lost[lost["high"] < 0]
    sentences = []
    named = answers.loc[~answers["take"].isin(["", BASE]), ["memory_size", "take"]]
    for size, method in named.drop_duplicates().itertuples(index=False):
        rows = lost[(lost["method"] == method) & (lost["memory_size"] == size)]
        costs = [
            f"{row.difference:+.1f} points of {row.metric} "
            f"{'of the majority classes, ' if row.group == 'majority' else ''}"
            f"{TESTS[row.test_set]}"
            for row in rows.itertuples()
        ]
        text = ", ".join(costs) if costs else "nothing that this trial shows"
        sentences.append(f"With a memory of {size} {method} costs {text}.")
    return sentences
