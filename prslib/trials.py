"""Try samplers on a stream: which one to use for which score, and what it costs.

From top to bottom: `trial`, its configurations, and a run with its scores.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike

from prslib.checks import expected, one_of
from prslib.datasets import DATASETS
from prslib.device import check_device, put, run_settings
from prslib.losses import LOSSES
from prslib.metrics import evaluate_draws
from prslib.paths import cache_dir, replacing
from prslib.previews import BY_LABELS, Preview, preview
from prslib.resamples import draw_weights, weighted_mean
from prslib.rounding import set_deterministic
from prslib.runs import code_of, gather, train_here
from prslib.sources import hash_modules, stamp_package
from prslib.statistics import MEASURED, label_powers
from prslib.train import METHODS, RunConfig, Trainer
from prslib.train import stream as shuffle
from prslib.trial_answers import (
    BASE,
    ONE_LABEL,
    QUESTIONS,
    answer,
    compare_all,
    say_costs,
)
from prslib.trial_streams import NAME, Stream, make_stream

METRICS = ("mAP", "C-F1", "O-F1", "accuracy", "AP")
# fields of a run that would change nothing, because a trial uses its stream once
UNREAD = {"epochs", *MEASURED} - {"test_resamples"}


@dataclass(frozen=True, eq=False)
class Trial:
    """Comparison of samplers on a stream; its text names the best one for each score.

    Attributes
    ----------
    notes : list of str
        How the stream was interpreted, and what was left out.
    preview : Preview
        Content of each memory of the first size at the end of the stream, for CRS, CBRS,
        PRS and OCDM.
    scores : DataFrame
        One row per score, in percent: method, memory_size, seed, test_set, group, metric
        and value. A group is "overall", "majority", "moderate", "minority" or a class.
    differences : DataFrame
        Each sampler minus CRS in points, over all seeds: memory_size, method, test_set,
        group, metric, difference, the bounds `low` and `high` of its 95 % interval, and
        the number of seeds.
    answers : DataFrame
        One row per memory size, metric and test: the best sampler ("" if the result is
        inconclusive) and a sentence.
    costs : list of str
        What each named sampler loses against CRS on other scores.
    """

    notes: list[str]
    preview: Preview
    scores: pd.DataFrame
    differences: pd.DataFrame
    answers: pd.DataFrame
    costs: list[str]

    def __str__(self) -> str:
        """Return the notes, which sampler to use for which score, and the costs."""
        lines = [*self.notes, ""]
        for size, rows in self.answers.groupby("memory_size", sort=False):
            lines += [f"Memory of {size}:", *rows["sentence"], ""]
        return "\n".join([*lines, *self.costs])


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
    """Train a small network on a stream with each sampler, and compare them with CRS.

    A random 30 % of each class is held out. The network sees the other samples once, in
    batches of ten with ten samples from the memory; the last samples of a task, which fill
    no batch, are left out. It is scored on two held-out tests, an imbalanced and a balanced
    one. Each batch is also predicted before the network is trained on it (prequential
    evaluation).

    Parameters
    ----------
    inputs : array_like of shape (n_samples, n_features) or (n_samples, height, width, channels)
        Features, for a head with one hidden layer, or small images of type uint8, for a
        convolutional network.
    labels : array, tensor, data frame or sparse matrix
        Labels as in `preview`: rows of 0 and 1 of shape (n_samples, n_classes), or class
        numbers of shape (n_samples,).
    task : array_like of shape (n_samples,), optional
        Task of each sample. Tasks come in sorted order, and each seed shuffles the
        samples of a task.
    order : array_like of shape (n_samples,), optional
        Numbers, or dates such as 2021-03-31, that sort the stream. Without `task` and
        `order`, samples come in the order of the rows.
    groups : array_like of shape (n_samples,), optional
        Samples of one group, such as frames of one video, are all trained or all held
        out.
    class_names : sequence of str, optional
        Names of the classes, by default the columns of a data frame or numbers.
    memory_size : int or sequence of int, optional
        Capacity of the memory in samples; by default 5.7 % of the stream, as in the
        paper.
    samplers : sequence of str
        Keys of `METHODS`, each of which is compared with CRS.
    rho : sequence of float
        Powers of allocation of PRS. OCDM uses the first one.
    seeds : sequence of int
        Each sampler is trained once per seed.
    workers, device
        As in `run_all`.
    **fields
        Further fields of `RunConfig`, such as ``learning_rate=0.001``.

    Returns
    -------
    Trial
        Scores, differences, and a recommendation for each score.

    Raises
    ------
    ValueError
        Before any training, if inputs and labels differ in length, an input is NaN or
        infinite, a memory is not smaller than the stream, fewer than two classes have
        five samples, or a field of `RunConfig` is invalid.
    TypeError
        If `RunConfig` does not have a field, or a trial does not read it.

    See Also
    --------
    preview : Show what each memory contains, without training.

    Notes
    -----
    The rule that names a sampler is on the page :doc:`/own_data`. Runs are stored, so
    that a second trial trains only what is new.
    """
    device = check_device(str(device))
    made, notes = make_stream(inputs, labels, task, order, groups, class_names)
    sizes = list_sizes(memory_size, made)
    DATASETS[NAME] = made.entry
    try:
        configs = list_configs(sizes, samplers, rho, seeds, fields)
        check_fit(made, configs[0])
        scores = score_all(made, configs, workers, device)
        rows = np.concatenate([part.ravel() for part in order_rows(made, configs[0])])
    finally:
        del DATASETS[NAME]
    differences = compare_all(scores)
    questions = ONE_LABEL if made.data.train.single_label else QUESTIONS
    answers = pd.DataFrame(
        answer(made, scores, size, question)
        for size, question in product(sizes, questions)
    )
    costs = say_costs(answers, differences)
    methods = dict.fromkeys(config.method for config in configs)
    kept = preview(
        made.data.train.labels[rows],
        sizes[0],
        [name for name in methods if name.lower() in BY_LABELS],
        rho=rho[0],
        class_names=made.data.class_names,
    )
    # groups of the whole stream, as in the scores, even if its last samples fill no batch
    kept = replace(kept, class_group=made.data.class_group)
    columns = ["method", "memory_size", "seed", "test_set", "group", "metric", "value"]
    return Trial(notes, kept, scores[columns], differences, answers, costs)


def list_sizes(memory_size: Any, made: Stream) -> list[int]:
    """Return the sizes of the memory to try."""
    if memory_size is None:
        return [made.recipe.memory_size]
    length = len(made.data.train)
    sizes = np.atleast_1d(memory_size).tolist()
    if max(sizes, default=0) >= length:
        raise ValueError(expected(f"memories smaller than {length} samples", sizes))
    return sizes


def list_configs(
    sizes: Sequence[int],
    samplers: Sequence[str],
    rho: Sequence[float],
    seeds: Sequence[int],
    fields: dict[str, Any],
) -> list[RunConfig]:
    """List the runs: all samplers with the first seed, then all with the next."""
    for name in UNREAD & fields.keys():
        raise TypeError(expected("fields that a trial reads", name))
    with_memory = [name for name, row in METHODS.items() if row.sampler]
    variants: list[tuple[str, float | None]] = [(BASE, None)]
    for name in samplers:
        one_of("sampler", name, with_memory)
        powers = rho if METHODS[name].takes_rho else [None]
        if name != "PRS":
            powers = powers[:1]
        variants += [(name, power) for power in powers]
    variants = list(dict.fromkeys(variants))
    configs = [
        RunConfig(NAME, name, seed=seed, rho=power, memory_size=size, **fields)
        for size, seed, (name, power) in product(sizes, seeds, variants)
    ]
    if not configs or len(variants) < 2:
        raise ValueError(expected(f"a seed, size and sampler besides {BASE}", "none"))
    return configs


def check_fit(made: Stream, config: RunConfig) -> None:
    """Refuse a loss or a batch size that does not fit the stream."""
    settings = config.resolved
    if LOSSES[settings["loss"]].one_label and not made.data.train.single_label:
        raise ValueError(expected("a loss of several labels", settings["loss"]))
    if not all(map(len, order_rows(made, config))):
        size = settings["batch_size"]
        raise ValueError(expected(f"a batch of {size} samples in each task", "fewer"))


def score_all(
    made: Stream, configs: Sequence[RunConfig], workers: int | None, device: str
) -> pd.DataFrame:
    """Return the scores of all runs, in percent; train those that are not stored."""
    digest = joblib.hash((made, configs[0].resolved["test_resamples"]))
    stamp = stamp_package()
    paths = {}
    for config in configs:
        names = config.method, config.identity["loss"], config.identity["model"]
        code = code_of(*names, stamp), hash_modules([__name__], stamp)
        key = joblib.hash((digest, config.identity, code))
        paths[cache_dir() / "trials" / f"{key}.pkl"] = config
    missing = {path: config for path, config in paths.items() if not path.is_file()}
    if missing:
        train = partial(train_one, made)
        gather(train_here(missing, workers, device, train), missing)
    frames = []
    for path, config in paths.items():
        names = ("method", "rho", "memory_size", "seed")
        columns = {name: config.resolved[name] for name in names}
        frames.append(pd.read_pickle(path).assign(**columns))
    scores = pd.concat(frames, ignore_index=True)
    return label_powers(scores, [power for power in scores["rho"].unique() if power])


def train_one(made: Stream, device: str, path: Path, config: RunConfig) -> str | None:
    """Train and store a run in a worker process; return the text of its error, if any."""
    DATASETS[NAME] = made.entry
    set_deterministic()
    try:
        place = torch.device(device)
        with run_settings(place), replacing(path) as file:
            score(made, config, place).to_pickle(file)
    except Exception as error:
        return f"{config}: {type(error).__name__}: {error}"
    return None


def score(made: Stream, config: RunConfig, device: torch.device) -> pd.DataFrame:
    """Train on the stream and score; each batch is predicted before training on it."""
    data = made.data
    inputs = put(data.train.loaded_inputs, device)
    trainer = Trainer(config, data, inputs, device)
    before = np.full(data.train.labels.shape, np.nan, np.float32)  # (N, C)
    for rows in order_rows(made, config):
        for new in rows:
            before[new] = trainer.probabilities(inputs, new)
            trainer.step(new)
    seen = ~np.isnan(before).any(axis=1)  # the last samples may fill no batch
    once = np.ones((1, seen.sum()))
    scored = {"prequential": (before[seen], data.train.labels[seen], once)}
    for name, test in data.tests.items():
        rows = np.arange(len(test))
        probabilities = trainer.probabilities(put(test.loaded_inputs, device), rows)
        weights = draw_weights(test, config.resolved["test_resamples"])
        scored[name] = probabilities, test.labels, weights
    frames = [score_split(made, *scored[name]).assign(test_set=name) for name in scored]
    return pd.concat(frames, ignore_index=True)


def order_rows(made: Stream, config: RunConfig) -> Iterator[np.ndarray]:
    """Yield the batches of each task, as rows of the stream (steps, B)."""
    if made.task is None:
        size = config.resolved["batch_size"]
        steps = len(made.data.train) // size
        yield np.arange(steps * size).reshape(steps, size)
        return
    for _, batches, _ in shuffle(config, made.task):
        yield batches


def score_split(
    made: Stream, probabilities: np.ndarray, labels: np.ndarray, weights: np.ndarray
) -> pd.DataFrame:
    """Score the classes that are large enough, in percent, under weights (draws, N)."""
    data, used = made.data, made.is_scored
    names = np.array(data.class_names)[used].tolist()
    groups = np.array(data.class_group)[used].tolist()
    scores = probabilities[:, used], labels[:, used]
    scored = evaluate_draws(*scores, names, groups, weights)
    if data.train.single_label:
        right = probabilities.argmax(axis=1) == labels.argmax(axis=1)
        scored.append(("overall", "accuracy", weighted_mean(right, weights)))
    rows = [
        (group, metric, 100 * draws[0], (100 * draws[1:]).astype(np.float32))
        for group, metric, draws in scored
        if metric in METRICS
    ]
    return pd.DataFrame(rows, columns=["group", "metric", "value", "draws"])
