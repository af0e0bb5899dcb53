"""The order in which samples come: the stream, and with a memory the joined batch of every step."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from prslib.datasets import Split
from prslib.memory import Memory
from prslib.samplers import Sampler


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


def tasks_together(schedule, at_once: int) -> list[tuple[int, ...]]:
    """Cut a schedule into the tasks that are trained together (Appendix, single-label data).

    Parameters
    ----------
    schedule : sequence of int
        Order of the tasks.
    at_once : int
        Tasks that are trained together; the last group may be smaller.

    Returns
    -------
    list of tuple of int
        The groups in order, each sorted: within a group the stream is shuffled.

    Examples
    --------
    >>> tasks_together((3, 1, 0, 2), 2)
    [(1, 3), (0, 2)]
    """
    return [
        tuple(sorted(schedule[start : start + at_once]))
        for start in range(0, len(schedule), at_once)
    ]


def task_name(group) -> str:
    """Return what a task, or the tasks that are trained together, are called in scores: "1+2"."""
    return "+".join(map(str, group))


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
