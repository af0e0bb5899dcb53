"""Make the batches of a run: the stream's samples, joined with those drawn from memory."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from prslib.datasets import SequentialDataset, Split
from prslib.datasets.base import tasks_together
from prslib.memory import Memory
from prslib.samplers import Sampler
from prslib.training.config import RunConfig
from prslib.training.methods import METHODS


class VectorBatch(NamedTuple):
    """A step's batch that replays vectors in place of images (ExStream)."""

    new: np.ndarray  # (B,), indices of the new samples
    vectors: np.ndarray  # (R, D), what the frozen part of the network gave for the replayed ones
    labels: np.ndarray  # (R, C)


class Replay(NamedTuple):
    """All that replay changes in the course of a run."""

    sampler: Sampler
    memory: Memory  # of indices of training images
    rng: np.random.Generator  # draws the replayed samples


@dataclass(frozen=True)
class Part:
    """The part of a stream up to the next evaluation."""

    seen: tuple[int, ...]  # the tasks that are scored after it
    # Indices for every step: an array (steps, B), a list, or an iterator whose next batch depends
    # on the step taken before.
    batches: Iterable[np.ndarray | VectorBatch]


def after(parts: list[Part], position: tuple[int, int]) -> list[Part]:
    """Return the rest of a listed stream, after some parts and some steps of the next one."""
    finished, steps = position
    rest = enumerate(parts[finished:])
    return [Part(part.seen, part.batches[0 if i else steps :]) for i, part in rest]


def online_stream(train: Split, schedule, batch_size: int, rng, at_once: int = 1) -> list[Part]:
    """Return the tasks in order, ``at_once`` together, shuffled and seen once, in full batches."""
    return [
        Part(
            tuple(schedule[: (i + 1) * at_once]),
            _shuffled_batches(np.flatnonzero(np.isin(train.task, tasks)), batch_size, rng),
        )
        for i, tasks in enumerate(tasks_together(schedule, at_once))
    ]


def offline_stream(train: Split, schedule, batch_size: int, epochs: int, rng) -> list[Part]:
    """Return all images in one part, shuffled in every epoch: Multitask (Appendix, "Baselines")."""
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
    ask_model: Callable[[str, np.ndarray, Memory], Any] | None = None,
    begun: bool = False,
) -> Iterator[np.ndarray | VectorBatch]:
    """Yield every step's new and replayed indices, then place the new in memory (Algorithm 1)."""
    # After the step a sampler gets what it needs from ask_model, given the name, the new indices
    # and the memory. If the first step was begun before an interruption, only its samples are still
    # to be placed.
    for step, batch in enumerate(batches):
        if step or not begun:
            yield joined(batch, memory.draw(replay_batch_size, rng), sampler, memory)
        context = {name: ask_model(name, batch, memory) for name in sampler.needs}
        memory.write(sampler.place(labels[batch], **context), index=batch)


def joined(batch: np.ndarray, replayed: np.ndarray, sampler, memory) -> np.ndarray | VectorBatch:
    """Join new indices with what the replayed slots of the memory hold."""
    if not len(replayed):
        return batch
    if hasattr(sampler, "vectors"):
        return VectorBatch(batch, sampler.vectors(replayed), sampler.labels[replayed])
    return np.concatenate([batch, memory.read(replayed)["index"]])


def plan(config: RunConfig, dataset: SequentialDataset) -> tuple[list[Part], np.ndarray]:
    """Compute the batches of a run and the labels in memory at its end, from labels alone."""
    if METHODS[config.method].looks_at_model:
        known = ", ".join(name for name, row in METHODS.items() if not row.looks_at_model)
        raise ValueError(
            f"plan: expected a method that looks at labels alone ({known}), got {config.method}, "
            "whose memory depends on the model; train it with run"
        )
    replay = make_replay(config, dataset)
    return stream_of(config, dataset, replay), labels_in(replay, dataset)


def make_replay(config: RunConfig, dataset: SequentialDataset) -> Replay | None:
    """Make a run's sampler, empty memory and generator; None for a method without a memory."""
    seeds = seeds_of(config)
    sampler = config.sampler_for(dataset, seeds["sampler"])
    if sampler is None:
        return None
    memory = Memory(config.resolved["memory_size"])
    return Replay(sampler, memory, np.random.default_rng(seeds["replay"]))


def new_samples(config: RunConfig, dataset: SequentialDataset) -> list[Part]:
    """Return a run's stream before anything is replayed (section "Experiments")."""
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
    ask_model: Callable | None = None,
    position: tuple[int, int] = (0, 0),
    stepwise: bool = False,
) -> list[Part]:
    """Make the batches of a run: ahead of training, or each after the step on the one before."""
    # Stepwise batches are needed where the sampler looks at the model, or someone measures the
    # memory. An interrupted run goes on at a position, parts finished and steps taken in the next
    # one; a stepwise replay must be as it was then.
    parts, train = new_samples(config, dataset), dataset.train
    if replay is None:
        return after(parts, position)
    size = config.resolved["replay_batch_size"]
    planned = partial(replay_plan, labels=train.labels, **replay._asdict(), replay_batch_size=size)
    if not stepwise:
        return after([Part(part.seen, list(planned(part.batches))) for part in parts], position)
    finished, steps = position
    unplaced = after(parts, (finished, max(steps - 1, 0)))
    return [
        Part(part.seen, planned(part.batches, ask_model=ask_model, begun=steps > 0 and i == 0))
        for i, part in enumerate(unplaced)
    ]


def seeds_of(config: RunConfig) -> dict[str, np.random.SeedSequence]:
    """Return the seeds of a run's generators for stream, sampler, replay and model."""
    names = ("stream", "sampler", "replay", "model")
    return dict(zip(names, np.random.SeedSequence(config.seed).spawn(len(names)), strict=True))


def labels_in(replay: Replay | None, dataset: SequentialDataset) -> np.ndarray:
    """Return the labels in memory, bool (memory_size, C); (0, C) without a memory."""
    if replay is None:
        return np.zeros((0, dataset.num_classes), bool)
    return replay.sampler.labels.copy()
