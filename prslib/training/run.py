"""Train and score a run, from its configuration to its result."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd
import torch
from threadpoolctl import threadpool_limits

from prslib.checks import instance, seconds
from prslib.datasets import SequentialDataset, fingerprint, load_dataset
from prslib.datasets.base import tasks_together
from prslib.datasets.curation import feature_rows
from prslib.metrics import best_thresholds
from prslib.models.networks import Staged, make_model
from prslib.models.weights import weights_for_seed
from prslib.training import set_deterministic
from prslib.training.checkpoint import Checkpoint, Progress
from prslib.training.config import SAVE_EVERY, Run, RunConfig
from prslib.training.device import (
    Inputs,
    check_device,
    conditions,
    is_apart,
    without_tf32,
)
from prslib.training.gradients import memory_variance
from prslib.training.learner import (
    Learner,
    context_of,
    resampled_rows,
    score_tasks,
    with_run_columns,
)
from prslib.training.methods import METHODS
from prslib.training.replay import (
    Segment,
    StreamCounts,
    check,
    held_out_rows,
    make_replay,
    seeds_of,
    stream,
)
from prslib.training.validation import OWN

set_deterministic()  # before the first sum: whoever trains loads this module

Tasks = list[tuple[int, ...]]  # groups of tasks that are trained together
Score = Callable[[Learner, Tasks], Any]  # of the tasks seen so far

# what the last run has left on a GPU, for the next one on the same data set: inputs by
# the set's name, its fingerprint, the device and the split
on_gpu: dict[tuple[str, str, str, str], Inputs] = {}


def run(
    config: RunConfig,
    device: str = "cpu",
    checkpoint: str | PathLike | None = None,
    save_every: float = SAVE_EVERY,
) -> Run:
    """Train and score one configuration (section "Experimental Design").

    Parameters
    ----------
    config : RunConfig
        The configuration.
    device : str
        Where to compute: "cpu", "cuda", "cuda:1" for the second GPU, or "mps"; "auto"
        is a GPU where there is one.
    checkpoint : path-like, optional
        The file in which the run saves its state. If it exists, the run goes on from
        there, with the result of one without interruption; a file that does not fit
        gives a warning, and the run starts again. The caller deletes it.
    save_every : float
        Seconds from one checkpoint to the next.

    Returns
    -------
    Run
        Scores after every task and the memory at the end.

    Raises
    ------
    TypeError
        If ``config`` is no RunConfig, or ``save_every`` no number.
    ValueError
        Before any training, if the configuration does not fit the data set or the
        device is not there.

    Notes
    -----
    A run takes one thread. On a CPU the same configuration gives the same bytes on
    every machine with the same packages (`prslib.training.set_deterministic`), and many runs
    side by side are faster in total than one run on all cores. On a GPU float32 is not
    rounded to TF32.
    """
    instance("config", config, RunConfig)
    save_every = seconds("save_every", save_every)
    try:
        return run_at_once([config], device, checkpoint, save_every)[0]
    finally:
        on_gpu.clear()


def run_at_once(
    configs: Sequence[RunConfig],
    device: str = "cpu",
    checkpoint: str | PathLike | None = None,
    save_every: float = SAVE_EVERY,
) -> list[Run]:
    """Train once for runs that differ only in what they measure (`RunConfig.training_hash`).

    Each gets the bytes of `run`. Inputs stay on a GPU for the next call (`on_gpu`).
    """
    device = check_device(device)
    dataset = load_dataset(configs[0].dataset)
    for config in configs:
        check(config, dataset)
    saved = Checkpoint(checkpoint, configs, save_every)
    with one_thread(), without_tf32():
        inputs_of(configs[0], "train", dataset, device)  # before those of the test sets
        thresholds = {}
        if any(config.own_threshold for config in configs):
            thresholds = own_thresholds(configs[0], dataset, device)
        score = scorer(configs, dataset, device, thresholds)
        segments = stream(configs[0], dataset)
        progress = saved.resume(lambda: begin(configs[0], dataset, device))
        for _ in train(configs, dataset, device, progress, segments, score):
            saved.save_if_due(progress)
        runs = [result_of(config, dataset, device, progress) for config in configs]
        took = {"steps": progress.step, "seconds": round(progress.seconds, 3)}
        record = conditions(device) | took
    return [replace(one, record=record) for one in runs]


def inputs_of(
    config: RunConfig, split: str, dataset: SequentialDataset, device: str
) -> Inputs:
    """Return the inputs of "train" or of a test set; runs in a row share a GPU's copy."""
    splits = {"train": dataset.train, **dataset.tests}
    if not is_apart(torch.device(device)):
        return Inputs(splits[split].loaded_inputs, device)
    name = config.dataset
    source = name, fingerprint(name), device
    for key in [key for key in on_gpu if key[:3] != source]:
        del on_gpu[key]
    inputs = on_gpu.get((*source, split))
    if inputs is None:
        inputs = Inputs(splits[split].loaded_inputs, device)
    if inputs.is_resident:
        on_gpu[*source, split] = inputs
    return inputs


@contextmanager
def one_thread() -> Iterator[None]:
    """Set the process to one thread, and set it back."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        # threads of numpy's library wait for work on the cores of other runs
        with threadpool_limits(1, "blas"):
            yield
    finally:
        torch.set_num_threads(threads)


def begin(config: RunConfig, dataset: SequentialDataset, device: str) -> Progress:
    """Return the progress of a run before its first step."""
    learner = make_learner(config, dataset, device)
    first = Inputs(dataset.train.loaded_inputs[:1], device)
    encoded = learner.encode(first[np.zeros(1, np.int64)])
    return Progress(learner, make_replay(config, dataset, encoded))


def train(
    configs: Sequence[RunConfig],
    dataset: SequentialDataset,
    device: str,
    progress: Progress,
    segments: Sequence[Segment],
    score: Score,
) -> Iterator[None]:
    """Train on a stream with replay, score after each task; yield after each of both."""
    config = configs[0]  # they differ in measurements
    settings = config.resolved
    inputs = inputs_of(config, "train", dataset, device)
    labels = Inputs(dataset.train.labels.astype(np.float32), device)
    steps = sum(len(segment.batches) for segment in segments)
    measured_steps = set().union(*(variance_steps(one, steps) for one in configs))

    learner, replay = progress.learner, progress.replay
    counts = StreamCounts(dataset.num_classes)
    rehearsal = learner.rehearsal
    draws = rehearsal.batches if rehearsal else 1
    step = 0
    for number, segment in enumerate(segments):
        for batch in segment.batches:
            step += 1
            new_labels = dataset.train.labels[batch]
            if learner.asks:  # also of steps before an interruption
                counts.add(new_labels)
            if step <= progress.step:  # taken before an interruption
                continue

            kept = {}
            if replay:
                slots = replay.draw(draws)
                rows = learner.join(inputs, labels, batch, slots, replay)
                kept = replay.kept(slots) if rehearsal else {}
            else:
                rows = learner.join(inputs, labels, batch)
            learner.context = counts.context(learner.asks, replay, learner.device)
            columns = learner.step(*rows, len(batch), kept)
            if replay:
                context = context_of(replay, learner, inputs, labels, batch)
                replay.offer(batch, new_labels, columns, **context)

            if replay and step in measured_steps:
                progress.variances[step] = {
                    "images": step * settings["batch_size"],
                    "samples": len(replay.memory),
                    "value": memory_variance(learner, inputs, labels, replay),
                }

            progress.step = step
            yield

        already_scored = number < len(progress.scores)  # before an interruption
        if already_scored:
            continue
        groups = tasks_together(segment.seen, settings["tasks_at_once"])
        progress.scores.append(score(learner, groups))
        yield


def scorer(
    configs: Sequence[RunConfig],
    dataset: SequentialDataset,
    device: str,
    thresholds: dict[int, dict[str, float]],
) -> Score:
    """Return the function that scores a learner on the test sets of configurations."""
    draws = configs[0].resolved["test_resamples"]
    test_inputs = {
        name: inputs_of(configs[0], name, dataset, device)
        for name in dict.fromkeys(one.resolved["test_set"] for one in configs)
    }

    def score(learner: Learner, groups: Tasks) -> dict[str, pd.DataFrame]:
        chosen = thresholds.get(len(groups))
        return {
            name: score_tasks(
                learner, inputs, dataset.tests[name], dataset, groups, draws, chosen
            )
            for name, inputs in test_inputs.items()
        }

    return score


def own_thresholds(
    config: RunConfig, dataset: SequentialDataset, device: str
) -> dict[int, dict[str, float]]:
    """Choose a run's thresholds after so many groups of tasks (`RunConfig.own_threshold`).

    The run is trained a second time, on a stream without the held-out images. These
    choose, as far as their tasks have been seen.
    """
    config = replace(config, variance_points=0)
    train_set = dataset.train
    left_out = held_out_rows(config, dataset)
    inputs = inputs_of(config, "train", dataset, device)

    def choose(learner: Learner, groups: Tasks) -> tuple[int, dict[str, float]]:
        seen = np.isin(train_set.task[left_out], np.concatenate(groups))
        rows = left_out[seen]
        probabilities = learner.probabilities(inputs, rows)
        return len(groups), best_thresholds(probabilities, train_set.labels[rows])

    progress = begin(config, dataset, device)
    segments = stream(config, dataset, left_out)
    for _ in train([config], dataset, device, progress, segments, choose):
        pass
    return dict(progress.scores)


def variance_steps(config: RunConfig, steps: int) -> set[int]:
    """Return after which steps a run measures the gradient variance."""
    points = np.linspace(0, steps, config.variance_points + 1)
    return set(points.round().astype(int)[1:].tolist())


def result_of(
    config: RunConfig,
    dataset: SequentialDataset,
    device: str,
    progress: Progress,
) -> Run:
    """Return the result of a run that has ended: what its configuration asks for."""
    measurements: dict[str, Any] = {}
    test_set = config.resolved["test_set"]
    frames = [scores[test_set] for scores in progress.scores]
    scores = pd.concat(frames, ignore_index=True)
    if not config.own_threshold:  # another run of the same training asked for it
        scores = scores[~scores["metric"].str.endswith(f"({OWN})")].reset_index(
            drop=True
        )
    if config.resolved["test_resamples"]:
        rows = scores[resampled_rows(scores, config.class_draws)]
        # half a precision is 0.02 points; the first is the score itself
        draws = np.stack(rows["draws"])[:, 1:].astype(np.float16)
        measurements["resampled"] = pd.DataFrame(draws, rows.index)
    scores = scores.drop(columns="draws")
    if config.features_per_class:
        test = dataset.tests[test_set]
        rows = feature_rows(test, config.features_per_class)
        inputs = inputs_of(config, test_set, dataset, device)
        measurements["features"] = progress.learner.features(inputs, rows)
    steps = variance_steps(config, progress.step) & progress.variances.keys()
    if steps:
        rows = pd.DataFrame([progress.variances[step] for step in sorted(steps)])
        measurements["gradient_variance"] = with_run_columns(config, rows)
    memory_labels = np.zeros((0, dataset.num_classes), bool)
    if progress.replay:
        memory_labels = progress.replay.sampler.labels.copy()
    return Run(config, with_run_columns(config, scores), memory_labels, **measurements)


def make_learner(
    config: RunConfig, dataset: SequentialDataset, device: str = "cpu"
) -> Learner:
    """Make a run's untrained network and its optimiser."""
    settings = config.resolved
    method = METHODS[config.method]
    names = (
        "optimizer",
        "learning_rate",
        "loss",
        "clip_value",
        "norm_penalty",
        "precision",
    )
    return Learner(
        initial_model(config, dataset),
        **{name: settings[name] for name in names},
        frozen_stages=max(settings["frozen_stages"], settings.get(method.frozen, 0)),
        ewc_lambda=settings["ewc_lambda"] if method.ewc else None,
        loss_options=dict(config.loss_options or ()),
        rehearsal=config.make_rehearsal(),
        device=device,
    )


def initial_model(config: RunConfig, dataset: SequentialDataset) -> Staged:
    """Build a run's network: equal weights for equal seeds, whatever the method."""
    settings = config.resolved
    shape = dataset.train.loaded_inputs.shape[1:]
    seed = seeds_of(config)["model"]
    weights = weights_for_seed(settings["weights"], config.seed)
    return make_model(settings["model"], shape, dataset.num_classes, seed, weights)
