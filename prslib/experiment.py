"""One run, from a configuration to its scores."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from os import PathLike

import numpy as np
import pandas as pd
import torch

from prslib import metrics
from prslib.checkpoint import SAVE_EVERY, Checkpoint, Progress
from prslib.config import METHODS, RunConfig
from prslib.datasets import SequentialDataset, Split, load_dataset
from prslib.features import feature_rows
from prslib.learner import Learner
from prslib.memory import Memory
from prslib.models import make_model
from prslib.precision import PRECISIONS
from prslib.residence import Images, check_device, place
from prslib.samplers import make_sampler
from prslib.stream import (
    Part,
    Replay,
    after,
    offline_stream,
    online_stream,
    replay_plan,
    tasks_together,
)
from prslib.supply import SUPPLIES
from prslib.variance import memory_variance, watched


@dataclass(frozen=True)
class Run:
    """What a run leaves.

    Parameters
    ----------
    config : RunConfig
        What was asked for.
    scores : DataFrame
        Tidy: dataset, method, rho, memory_size, schedule, seed, trained_tasks, task, group, metric,
        value; rho is NaN and memory_size 0 where the method has none. A schedule reads "0,3,1,2",
        and "1+2,3+4" where tasks are trained together.
    memory_labels : ndarray of bool, (memory_size, C)
        Labels in memory at the end; (0, C) for a method without one. ExStream's vectors count
        once each, whatever the number of samples merged in them, for the one label they stand for.
    features : ndarray of float32, (N, D), or None
        What the head sees at the end, of the test images that `prslib.features.feature_rows`
        names; None where the configuration does not ask for it.
    gradient_variance : DataFrame or None
        Tidy: the run's columns as in the scores, images (of the stream, so far), samples (in
        memory), value (`prslib.variance.gradient_variance` over them); None where the configuration
        does not ask for it or the method has no memory.
    """

    config: RunConfig
    scores: pd.DataFrame
    memory_labels: np.ndarray
    features: np.ndarray | None = None
    gradient_variance: pd.DataFrame | None = None


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
        What to run.
    device : str
        Where to compute, "cpu" or "cuda".
    checkpoint : path-like, optional
        A file in which the run's state is saved as it goes on. If it is there already, the run
        begins where it says, and gives what it would have given without the interruption. It stays
        after the end, until the caller has put the result in a safe place.
    save_every : float
        Seconds between two savings.

    Returns
    -------
    Run
        Scores after every task and the memory at the end.

    Raises
    ------
    ValueError
        If the configuration does not fit the data set, the device is not there, ``save_every`` is
        not above 0 or the checkpoint is another run's, before any training.

    Notes
    -----
    One thread: the same configuration on the same machine gives the same bytes, and many runs side
    by side are faster in total than one run on all cores.
    """
    check_device(device)
    dataset = load_dataset(config.dataset)
    config.check(dataset)
    saved = Checkpoint(checkpoint, config.hash, save_every)
    with conditions(config):
        return _run(config, dataset, device, saved)


@contextmanager
def conditions(config: RunConfig) -> Iterator[None]:
    """Hold the process at one thread and at a run's precision; what was set before comes back."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with PRECISIONS[config.resolved["precision"]].in_force():
            yield
    finally:
        torch.set_num_threads(threads)


def _run(config: RunConfig, dataset: SequentialDataset, device: str, saved: Checkpoint) -> Run:
    settings, train = config.resolved, dataset.train
    test, at_once = dataset.tests[settings["test_set"]], settings["tasks_at_once"]
    shown = shown_images(config, dataset)
    learner = make_learner(config, dataset, device)
    images, test_images = place(train.images, device), place(test.images, device)
    labels = torch.from_numpy(train.labels).float().to(device)
    progress = Progress(learner, make_replay(config, dataset), config.variance_points > 0)
    saved.resume(progress)
    supply = partial(_supply, learner, images, labels)
    parts = stream_of(
        config, dataset, progress.replay, supply, progress.position, progress.stepwise
    )
    measure = partial(_measure, progress, settings["batch_size"], images, labels)
    done, marks = _marks(config, dataset, progress)
    for part in watched(parts, marks, measure, done):
        learner.fit(images, labels, part.batches, partial(saved.after_step, progress))
        groups = tasks_together(part.seen, at_once)
        progress.finish_part(score_tasks(learner, test_images, test, dataset, groups))
        saved.save_if_due(progress)
    return finished(config, dataset, progress, test_images, shown)


def shown_images(config: RunConfig, dataset: SequentialDataset) -> np.ndarray | None:
    """Return the rows of the test images whose features a run leaves; None where it leaves none."""
    test, per_class = (config.resolved[name] for name in ("test_set", "features_per_class"))
    return feature_rows(dataset.tests[test], per_class) if per_class else None


def finished(
    config: RunConfig,
    dataset: SequentialDataset,
    progress: Progress,
    test_images: Images,
    shown: np.ndarray | None,
) -> Run:
    """Return what a run leaves, when its last part is scored.

    Parameters
    ----------
    config : RunConfig
        The run.
    dataset : SequentialDataset
        Its data set, with images.
    progress : Progress
        Its state at the end.
    test_images : Images
        Of its test set.
    shown : ndarray of int64 or None
        As `shown_images` gives it.

    Returns
    -------
    Run
        Scores, memory, and what else the configuration asks for.
    """
    extras = {}
    frame = _with_run_columns(config, pd.concat(progress.scores, ignore_index=True))
    if shown is not None:
        extras["features"] = progress.learner.features(test_images, shown)
    if progress.variances:
        extras["gradient_variance"] = _with_run_columns(config, pd.DataFrame(progress.variances))
    return Run(config, frame, _labels_in(progress.replay, dataset), **extras)


def make_learner(
    config: RunConfig,
    dataset: SequentialDataset,
    device: str = "cpu",
    model: torch.nn.Module | None = None,
) -> Learner:
    """Make the untrained network of a run and its optimiser (Appendix, "Baselines").

    Parameters
    ----------
    config : RunConfig
        The run.
    dataset : SequentialDataset
        Its data set, with images.
    device : str
        Where to compute, "cpu" or "cuda".
    model : torch.nn.Module, optional
        The network, by default `initial_model`.

    Returns
    -------
    Learner
        Before the first step.
    """
    settings, method = config.resolved, METHODS[config.method]
    training = ("optimizer", "learning_rate", "loss", "clip_value", "norm_penalty", "precision")
    return Learner(
        initial_model(config, dataset) if model is None else model,
        **{name: settings[name] for name in training},
        frozen_stages=max(settings["frozen_stages"], settings.get(method.frozen, 0)),
        ewc_lambda=settings["ewc_lambda"] if method.ewc else None,
        device=device,
    )


def _supply(learner: Learner, images, labels, name: str, batch: np.ndarray, memory: Memory):
    return SUPPLIES[name](learner, images, labels, batch, memory)


def _measure(progress: Progress, batch_size: int, images, labels, step: int) -> None:
    sampler, memory, _ = progress.replay
    value = memory_variance(progress.learner, images, labels, memory, sampler)
    row = {"images": step * batch_size, "samples": len(memory), "value": value}
    progress.variances.append(row)


def _marks(config: RunConfig, dataset: SequentialDataset, progress: Progress):
    """Return the steps taken so far, and after how many the variance is still to be measured."""
    lengths = [len(part.batches) for part in new_samples(config, dataset)]
    finished, steps = progress.position
    marks = np.linspace(0, sum(lengths), config.variance_points + 1).round().astype(int)[1:]
    left = np.unique(marks)[len(progress.variances) :] if progress.replay else ()
    return sum(lengths[:finished]) + steps, left


def _labels_in(replay: Replay | None, dataset: SequentialDataset) -> np.ndarray:
    if replay is None:
        return np.zeros((0, dataset.num_classes), bool)
    return replay.sampler.labels.copy()


def initial_model(config: RunConfig, dataset: SequentialDataset) -> torch.nn.Module:
    """Build a run's network before its first step.

    Parameters
    ----------
    config : RunConfig
        The run.
    dataset : SequentialDataset
        Its data set, with images.

    Returns
    -------
    torch.nn.Module
        The same weights for the same seed, whatever the method.
    """
    shape, seed = dataset.train.images.shape[1:], _seeds(config)["model"]
    settings = config.resolved
    return make_model(settings["model"], shape, dataset.num_classes, seed, settings["weights"])


def _seeds(config: RunConfig) -> dict[str, np.random.SeedSequence]:
    names = ("stream", "sampler", "replay", "model")
    return dict(zip(names, np.random.SeedSequence(config.seed).spawn(len(names)), strict=True))


def plan(config: RunConfig, dataset: SequentialDataset) -> tuple[list[Part], np.ndarray]:
    """Compute every batch of a run and its memory at the end, without training (Algorithm 1).

    Samplers that look at labels alone do not depend on the model, so that their whole replay plan
    is known before the first step; images are not needed.

    Parameters
    ----------
    config : RunConfig
        The run, of a method that does not look at the model.
    dataset : SequentialDataset
        Its data set; labels suffice.

    Returns
    -------
    list of Part
        The joined batches (new and replayed indices) of every step, part by part.
    ndarray of bool, (memory_size, C)
        Labels in memory at the end; (0, C) for a method without a memory.

    Raises
    ------
    ValueError
        If the method looks at the model.

    Examples
    --------
    >>> dataset = load_dataset("digits70tiny", images=False)
    >>> plan(RunConfig(dataset="digits70tiny", method="CRS"), dataset)[1].shape
    (50, 70)
    """
    if METHODS[config.method].looks_at_model:
        known = ", ".join(name for name, row in METHODS.items() if not row.looks_at_model)
        raise ValueError(
            f"plan: expected a method that looks at labels alone ({known}), got {config.method}, "
            "whose memory depends on the model; train it with run"
        )
    replay = make_replay(config, dataset)
    return stream_of(config, dataset, replay), _labels_in(replay, dataset)


def make_replay(config: RunConfig, dataset: SequentialDataset) -> Replay | None:
    """Make a run's empty memory, its sampler and the generator that draws from it (Sec. 3).

    Parameters
    ----------
    config : RunConfig
        The run.
    dataset : SequentialDataset
        Its data set; labels suffice.

    Returns
    -------
    Replay or None
        None for a method without a memory.
    """
    settings, method, seeds = config.resolved, METHODS[config.method], _seeds(config)
    if method.sampler is None:
        return None
    size, options = settings["memory_size"], {name: settings[name] for name in method.options}
    sampler = make_sampler(method.sampler, size, dataset.num_classes, seeds["sampler"], **options)
    return Replay(sampler, Memory(size), np.random.default_rng(seeds["replay"]))


def new_samples(config: RunConfig, dataset: SequentialDataset) -> list[Part]:
    """Return a run's stream as it comes, before anything is replayed (Sec. "Experiments").

    Parameters
    ----------
    config : RunConfig
        The run.
    dataset : SequentialDataset
        Its data set; labels suffice.

    Returns
    -------
    list of Part
        The indices of every step's new samples, part by part.
    """
    settings, method = config.resolved, METHODS[config.method]
    train, schedule, batch_size = dataset.train, settings["schedule"], settings["batch_size"]
    rng = np.random.default_rng(_seeds(config)["stream"])
    if method.offline:
        return offline_stream(train, sorted(schedule), batch_size, settings["epochs"], rng)
    return online_stream(train, schedule, batch_size, rng, settings["tasks_at_once"])


def stream_of(
    config: RunConfig,
    dataset: SequentialDataset,
    replay: Replay | None,
    supply: Callable | None = None,
    position: tuple[int, int] = (0, 0),
    stepwise: bool = False,
) -> list[Part]:
    """Make the batches of a run: ahead of training, or for some methods step by step.

    Parameters
    ----------
    config : RunConfig
        The run.
    dataset : SequentialDataset
        Its data set; labels suffice.
    replay : Replay or None
        As `make_replay` gives it; filled as the batches are made.
    supply : callable, optional
        What `replay_plan` asks for a sampler that looks at the model.
    position : tuple of int
        Where an interrupted run goes on: parts of the stream that are finished, and steps taken in
        the next one. Of a stepwise stream, ``replay`` must be as it was then.
    stepwise : bool
        Whether to make the batches step by step: needed where the sampler looks at the model, or
        someone wants to look at the memory on the way.

    Returns
    -------
    list of Part
        The joined batches of every step from there on, part by part. Of a stepwise stream they are
        iterators, to be taken in order, each batch after the step on the one before.
    """
    parts, train = new_samples(config, dataset), dataset.train
    if replay is None:
        return after(parts, position)
    planned = partial(
        replay_plan, labels=train.labels, **replay._asdict(),
        replay_batch_size=config.resolved["replay_batch_size"],
    )  # fmt: skip
    if not stepwise:
        return after([Part(part.seen, list(planned(part.batches))) for part in parts], position)
    finished, steps = position
    unplaced = after(parts, (finished, max(steps - 1, 0)))
    return [
        Part(part.seen, planned(part.batches, supply=supply, begun=steps > 0 and i == 0))
        for i, part in enumerate(unplaced)
    ]


def score_tasks(
    learner: Learner, images: Images, test: Split, dataset: SequentialDataset, groups
) -> pd.DataFrame:
    """Score the test sets of the tasks seen so far, joined and one by one (Table 1).

    Single-label data have their accuracy beside these scores, and on the whole test set too, tasks
    yet to come included (Appendix, Tables of Imbal-MNISTseq and Imbal-SVHNseq).

    Parameters
    ----------
    learner : Learner
        The trained network.
    images : Images or Tensor
        The test images, uint8 (N, H, W, channels); a tensor on the learner's device.
    test : Split
        The test set.
    dataset : SequentialDataset
        Gives classes and groups their names.
    groups : sequence of tuple of int
        The tasks trained so far, in order, those that are trained together in one tuple.

    Returns
    -------
    DataFrame
        Columns trained_tasks, task ("seen" for the joined sets, "all" for the whole test set, "1"
        or "1+2" for one task or a pair), group, metric, value.
    """
    parts = {task_name(group): np.isin(test.task, group) for group in sorted(groups)}
    parts = {"seen": np.isin(test.task, [task for group in groups for task in group])} | parts
    wanted = np.flatnonzero(parts["seen"] | test.single_label)
    probabilities = learner.probabilities(images, wanted)
    frames = []
    for name, part in parts.items():
        scored = probabilities[part[wanted]], test.labels[part]
        frame = metrics.evaluate(*scored, dataset.class_names, dataset.class_group)
        frames.append(frame.assign(task=name))
    if test.single_label:
        parts["all"] = np.ones(len(test), bool)
        rows = [
            ("overall", "accuracy", metrics.accuracy(probabilities[part], test.labels[part]), name)
            for name, part in parts.items()
        ]
        frames.append(pd.DataFrame(rows, columns=["group", "metric", "value", "task"]))
    frame = pd.concat(frames, ignore_index=True).assign(trained_tasks=len(groups))
    return frame[["trained_tasks", "task", "group", "metric", "value"]]


def task_name(group) -> str:
    """Return what a task, or the tasks that are trained together, are called in scores: "1+2"."""
    return "+".join(map(str, group))


def _with_run_columns(config: RunConfig, scores: pd.DataFrame) -> pd.DataFrame:
    identity = config.identity
    groups = tasks_together(identity.get("schedule", ()), config.resolved["tasks_at_once"])
    columns = {
        "dataset": config.dataset,
        "method": config.method,
        "rho": identity.get("rho", np.nan),
        "memory_size": identity.get("memory_size", 0),
        "schedule": ",".join(map(task_name, groups)),
        "seed": config.seed,
    }
    return pd.concat([pd.DataFrame(columns, index=scores.index), scores], axis=1)
