"""The order in which samples come: the stream, and with a memory the joined batch of every step."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from prslib.datasets import Split
from prslib.memory import Memory
from prslib.samplers import Sampler


@dataclass(frozen=True)
class Part:
    """The part of a stream up to the next evaluation.

    Parameters
    ----------
    seen : tuple of int
        The tasks that are scored after it.
    batches : ndarray of int64 (steps, B) or list of ndarray of int64
        Indices of training images for every step.
    """

    seen: tuple[int, ...]
    batches: np.ndarray | list[np.ndarray]


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
) -> Iterator[np.ndarray]:
    """Yield the joined batch of every step and keep the memory (Algorithm 1).

    A step's batch is yielded before its samples are placed, so the first one has nothing to
    replay. A sampler that looks at labels alone does not depend on the model: its plan can be
    listed ahead of training.

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

    Yields
    ------
    ndarray of int64, (B + min(len(memory), replay_batch_size),)
        Indices of the new samples, then of the replayed ones.
    """
    for batch in batches:
        replayed = memory.draw(replay_batch_size, rng)
        if len(replayed):
            yield np.concatenate([batch, memory.read(replayed)["index"]])
        else:
            yield batch
        memory.write(sampler.place(labels[batch]), index=batch)
