"""The order in which samples come: the stream, and with a memory the joined batch of every step."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from prslib.datasets import SequentialDataset, Split
from prslib.datasets.base import tasks_together
from prslib.memory import Memory
from prslib.samplers import Sampler, make_sampler
from prslib.training.config import RunConfig
from prslib.training.methods import METHODS


class Joined(NamedTuple):
    """A step's batch whose replayed part is no longer an image of the stream (ExStream).

    Parameters
    ----------
    new : ndarray of int64, (B,)
        Indices of the new samples.
    vectors : ndarray of float32, (R, D)
        What the frozen part of the network gave for the replayed ones.
    labels : ndarray of bool, (R, C)
        Their labels.
    """

    new: np.ndarray
    vectors: np.ndarray
    labels: np.ndarray


class Replay(NamedTuple):
    """All that replay changes as a run goes on.

    Parameters
    ----------
    sampler : Sampler
        Decides where a new sample goes.
    memory : Memory
        Keeps the indices.
    rng : numpy.random.Generator
        Draws the replayed samples.
    """

    sampler: Sampler
    memory: Memory
    rng: np.random.Generator


@dataclass(frozen=True)
class Part:
    """The part of a stream up to the next evaluation.

    Parameters
    ----------
    seen : tuple of int
        The tasks that are scored after it.
    batches : iterable of ndarray of int64 or Joined
        Indices of training images for every step; an array (steps, B), a list, or an iterator
        that needs the step taken before it gives the next batch.
    """

    seen: tuple[int, ...]
    batches: Iterable[np.ndarray | Joined]


def after(parts: list[Part], position: tuple[int, int]) -> list[Part]:
    """Return what is left of a stream whose batches are listed.

    Parameters
    ----------
    parts : list of Part
        All of it.
    position : tuple of int
        Parts that are finished, and steps taken in the next one.

    Returns
    -------
    list of Part
        The first without the steps that were taken.

    Examples
    --------
    >>> after([Part((0,), ["a", "b"]), Part((0, 1), ["c", "d"])], (1, 1))
    [Part(seen=(0, 1), batches=['d'])]
    """
    finished, steps = position
    return [
        Part(part.seen, part.batches[0 if i else steps :])
        for i, part in enumerate(parts[finished:])
    ]


def online_stream(train: Split, schedule, batch_size: int, rng, at_once: int = 1) -> list[Part]:
    """Return the tasks one after another, each shuffled and seen once (section "Experiments").

    Parameters
    ----------
    train : Split
        The training images.
    schedule : sequence of int
        Order of the tasks.
    batch_size : int
        New samples a step; an incomplete last batch of a task is dropped.
    rng : numpy.random.Generator
        Draws the order within a task.
    at_once : int
        Tasks that are trained together, shuffled into one.

    Returns
    -------
    list of Part
        One a task, or one a group of `at_once` tasks.
    """
    return [
        Part(
            tuple(schedule[: (i + 1) * at_once]),
            _shuffled_batches(np.flatnonzero(np.isin(train.task, tasks)), batch_size, rng),
        )
        for i, tasks in enumerate(tasks_together(schedule, at_once))
    ]


def offline_stream(train: Split, schedule, batch_size: int, epochs: int, rng) -> list[Part]:
    """Return all training images shuffled, epoch after epoch: Multitask (Appendix, "Baselines").

    Parameters
    ----------
    train : Split
        The training images.
    schedule : sequence of int
        The tasks that are scored at the end.
    batch_size : int
        Samples a step; an incomplete last batch of an epoch is dropped.
    epochs : int
        How often each image is seen.
    rng : numpy.random.Generator
        Draws the order of every epoch.

    Returns
    -------
    list of Part
        A single one.
    """
    everything = np.arange(len(train))
    shuffled = [_shuffled_batches(everything, batch_size, rng) for _ in range(epochs)]
    return [Part(tuple(schedule), np.concatenate(shuffled))]


def _shuffled_batches(indices: np.ndarray, batch_size: int, rng) -> np.ndarray:
    steps = len(indices) // batch_size
    return rng.permutation(indices)[: steps * batch_size].reshape(steps, batch_size)


def replay_plan(
    batches: np.ndarray,
    labels: np.ndarray,
    sampler: Sampler,
    memory: Memory,
    replay_batch_size: int,
    rng,
    supply: Callable[[str, np.ndarray, Memory], Any] | None = None,
    begun: bool = False,
) -> Iterator[np.ndarray | Joined]:
    """Yield the joined batch of every step and keep the memory (Algorithm 1).

    A step's batch is yielded before its samples are placed, so the first one has nothing to
    replay. A sampler that looks at labels alone does not depend on the model: its plan can be
    listed ahead of training. One that looks at the model is asked when the next batch is, that is
    after the step, and its plan must be taken step by step.

    Parameters
    ----------
    batches : ndarray of int64, (steps, B)
        The stream's batches of training indices.
    labels : ndarray of bool, (N, C)
        Labels of the training images.
    sampler : Sampler
        Decides where a new sample goes.
    memory : Memory
        Keeps the indices; filled in place.
    replay_batch_size : int
        Samples to replay a step, drawn uniformly without replacement.
    rng : numpy.random.Generator
        Draws the replayed samples.
    supply : callable, optional
        Takes a name of the sampler's ``needs``, the new indices and the memory, and returns what
        `Sampler.place` gets under that name.
    begun : bool
        Whether the step on the first batch has been taken before the run was interrupted: it is
        not yielded again, and what is left to do is to place its samples.

    Yields
    ------
    ndarray of int64, (B + min(len(memory), replay_batch_size),)
        Indices of the new samples, then of the replayed ones; a `Joined` where the sampler keeps
        vectors of its own.
    """
    for step, batch in enumerate(batches):
        if step or not begun:
            yield _joined(batch, memory.draw(replay_batch_size, rng), sampler, memory)
        context = {name: supply(name, batch, memory) for name in sampler.needs}
        memory.write(sampler.place(labels[batch], **context), index=batch)


def _joined(batch: np.ndarray, replayed: np.ndarray, sampler, memory) -> np.ndarray | Joined:
    if not len(replayed):
        return batch
    if hasattr(sampler, "vectors"):
        return Joined(batch, sampler.vectors(replayed), sampler.labels[replayed])
    return np.concatenate([batch, memory.read(replayed)["index"]])


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
    >>> from prslib import load_dataset
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
    return stream_of(config, dataset, replay), labels_in(replay, dataset)


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
    settings, method, seeds = config.resolved, METHODS[config.method], seeds_of(config)
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
    rng = np.random.default_rng(seeds_of(config)["stream"])
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


def seeds_of(config: RunConfig) -> dict[str, np.random.SeedSequence]:
    """Return where a run's generators for stream, sampler, replay and model begin."""
    names = ("stream", "sampler", "replay", "model")
    return dict(zip(names, np.random.SeedSequence(config.seed).spawn(len(names)), strict=True))


def labels_in(replay: Replay | None, dataset: SequentialDataset) -> np.ndarray:
    """Return the labels in memory, bool (memory_size, C); (0, C) without a memory."""
    if replay is None:
        return np.zeros((0, dataset.num_classes), bool)
    return replay.sampler.labels.copy()
