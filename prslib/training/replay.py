"""Make a run's stream, and the sampler and memory that replay it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from prslib.checks import Seed
from prslib.datasets import SequentialDataset
from prslib.datasets.base import tasks_together
from prslib.memory import Memory
from prslib.samplers import Sampler
from prslib.training.config import RunConfig
from prslib.training.methods import METHODS


@dataclass(frozen=True)
class Segment:
    """The stream from one evaluation to the next: a task, or tasks trained together."""

    seen: tuple[int, ...]  # the tasks that are scored after it
    batches: np.ndarray  # (steps, B), rows of the training set


def stream(config: RunConfig, dataset: SequentialDataset) -> list[Segment]:
    """Shuffle a run's stream into full batches (section "Experiments")."""
    settings, task = config.resolved, dataset.train.task
    rng = np.random.default_rng(seeds_of(config)["stream"])
    if METHODS[config.method].offline:  # Multitask (Appendix, "Baselines")
        everything = np.arange(len(task))
        epochs = [
            _shuffled_batches(everything, settings["batch_size"], rng)
            for _ in range(settings["epochs"])
        ]
        return [Segment(tuple(sorted(settings["schedule"])), np.concatenate(epochs))]
    schedule, at_once = settings["schedule"], settings["tasks_at_once"]
    segments = []
    for number, tasks in enumerate(tasks_together(schedule, at_once), start=1):
        rows = np.flatnonzero(np.isin(task, tasks))
        batches = _shuffled_batches(rows, settings["batch_size"], rng)
        segments.append(Segment(tuple(schedule[: number * at_once]), batches))
    return segments


def _shuffled_batches(
    rows: np.ndarray, batch_size: int, rng: np.random.Generator
) -> np.ndarray:
    steps = len(rows) // batch_size
    return rng.permutation(rows)[: steps * batch_size].reshape(steps, batch_size)


class Replay:
    """A sampler, the memory that it fills, and a generator for draws from it."""

    def __init__(self, sampler: Sampler, memory: Memory, seed: Seed, batch_size: int):
        self.sampler = sampler
        self.memory = memory  # of one column, "index": rows of the training set
        self.rng = np.random.default_rng(seed)
        self.batch_size = batch_size

    def draw(self) -> np.ndarray:
        """Draw the slots of a step's replay batch, int64 (R,)."""
        return self.memory.draw(self.batch_size, self.rng)

    def place(self, rows: np.ndarray, labels: np.ndarray, **context: Any) -> None:
        """Let the sampler place new samples, rows (B,) of the training set."""
        self.memory.write(self.sampler.place(labels, **context), index=rows)

    def state_dict(self) -> dict:
        """Return the state of all three."""
        return {
            "sampler": self.sampler.state_dict(),
            "memory": self.memory.state_dict(),
            "rng": self.rng.bit_generator.state,
        }

    def load_state_dict(self, state: dict) -> None:
        """Go on where `state_dict` was called."""
        self.sampler.load_state_dict(state["sampler"])
        self.memory.load_state_dict(state["memory"])
        self.rng.bit_generator.state = state["rng"]


def make_replay(config: RunConfig, dataset: SequentialDataset) -> Replay | None:
    """Make a run's sampler and empty memory; None for a method without a memory."""
    seeds = seeds_of(config)
    sampler = config.sampler_for(dataset, seeds["sampler"])
    if sampler is None:
        return None
    settings = config.resolved
    memory = Memory(settings["memory_size"])
    return Replay(sampler, memory, seeds["replay"], settings["replay_batch_size"])


def without_training(config: RunConfig, dataset: SequentialDataset) -> Replay | None:
    """Return sampler and memory at the end of a run, from labels alone."""
    if METHODS[config.method].looks_at_model:
        alone = [name for name, row in METHODS.items() if not row.looks_at_model]
        raise ValueError(
            f"expected a method that looks at labels alone ({', '.join(alone)}), got "
            f"{config.method}, whose memory depends on the model; train it with run"
        )
    replay = make_replay(config, dataset)
    if replay is not None:
        for segment in stream(config, dataset):
            for batch in segment.batches:
                replay.place(batch, dataset.train.labels[batch])
    return replay


def seeds_of(config: RunConfig) -> dict[str, np.random.SeedSequence]:
    """Return the seeds of a run's generators for stream, sampler, replay and model."""
    names = ("stream", "sampler", "replay", "model")
    spawned = np.random.SeedSequence(config.seed).spawn(len(names))
    return dict(zip(names, spawned, strict=True))


def labels_in(replay: Replay | None, dataset: SequentialDataset) -> np.ndarray:
    """Return the labels in memory, bool (memory_size, C); (0, C) without a memory."""
    if replay is None:
        return np.zeros((0, dataset.num_classes), bool)
    return replay.sampler.labels.copy()
