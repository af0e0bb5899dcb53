"""Make a run's stream, and the sampler and memory that replay it.

What loads torch is loaded where it is needed: who reads stored runs checks their
configurations here, too.
"""

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from prslib.checks import Seed, expected, one_of
from prslib.datasets import SequentialDataset
from prslib.datasets.base import task_name, tasks_together, validate_schedule
from prslib.datasets.curation import feature_rows
from prslib.losses import LOSSES
from prslib.memory import Memory
from prslib.samplers import Sampler
from prslib.samplers.exstream import ExStream
from prslib.training.config import RunConfig
from prslib.training.methods import METHODS

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from prslib.training.device import Inputs

HELD_OUT = 5  # one training image of so many is held out to choose thresholds
# spawn key of those images, far from those of a run's other generators
HELD_OUT_STREAM = 1001


class Segment(NamedTuple):
    """The stream from one evaluation to the next: a task, or tasks trained together."""

    seen: tuple[int, ...]  # the tasks that are scored after it
    batches: np.ndarray  # (steps, B), rows of the training set


def stream(
    config: RunConfig,
    dataset: SequentialDataset,
    left_out: np.ndarray | Sequence[int] = (),
) -> list[Segment]:
    """Shuffle a run's stream into full batches (section "Experiments").

    Training images in the rows `left_out` are not in it.
    """
    settings = config.resolved
    task = dataset.train.task.copy()
    task[list(left_out)] = -1  # of no task
    schedule = settings["schedule"]
    at_once = settings["tasks_at_once"]
    rng = np.random.default_rng(seeds_of(config)["stream"])

    def shuffled_batches(tasks: Sequence[int]) -> np.ndarray:
        rows = np.flatnonzero(np.isin(task, tasks))
        size = settings["batch_size"]
        steps = len(rows) // size
        if steps == 0:
            what = f"batch_size up to the {len(rows)} images of task {task_name(tasks)}"
            raise ValueError(expected(f"{what} in {config.dataset}", size))
        return rng.permutation(rows)[: steps * size].reshape(steps, size)

    if METHODS[config.method].offline:  # Multitask (Appendix, "Baselines")
        tasks = tuple(sorted(schedule))
        epochs = [shuffled_batches(tasks) for _ in range(settings["epochs"])]
        return [Segment(tasks, np.concatenate(epochs))]
    return [
        Segment(tuple(schedule[: number * at_once]), shuffled_batches(tasks))
        for number, tasks in enumerate(tasks_together(schedule, at_once), start=1)
    ]


def held_out_rows(config: RunConfig, dataset: SequentialDataset) -> np.ndarray:
    """Draw the training images, int64 rows, that choose a run's thresholds."""
    seed = np.random.SeedSequence(config.seed, spawn_key=(HELD_OUT_STREAM,))
    order = np.random.default_rng(seed).permutation(len(dataset.train))
    return np.sort(order[: len(order) // HELD_OUT])


class Replay:
    """A sampler, the memory that it fills, and a generator for draws from it."""

    def __init__(
        self,
        sampler: Sampler,
        memory: Memory,
        seed: Seed,
        batch_size: int,
        draw: str = "uniform",
    ):
        self.sampler = sampler
        # of the column "index", rows of the training set, and a rehearsal's own
        self.memory = memory
        self.rng = np.random.default_rng(seed)
        self.batch_size = batch_size
        self.is_balanced = draw == "balanced"

    def draw(self, batches: int = 1) -> np.ndarray:
        """Draw the slots of a step's replay batches, one after another, int64 (R,)."""
        return np.concatenate([self._draw_one() for _ in range(batches)])

    def _draw_one(self) -> np.ndarray:
        if not self.is_balanced:
            return self.memory.draw(self.batch_size, self.rng)
        slots = self.memory.filled
        labels = self.sampler.labels[slots]
        return slots[balanced_draw(labels, self.batch_size, self.rng)]

    def kept(self, slots: np.ndarray) -> dict[str, Any]:
        """Return what the memory keeps of some slots (R,) beside their index."""
        names = [name for name in self.memory.names if name != "index"]
        return self.memory.read(slots, *names) if names else {}

    def join(
        self,
        encode: Callable,
        inputs: "Inputs",
        labels: "Inputs",
        new: np.ndarray,
        slots: np.ndarray,
    ) -> "tuple[Tensor, Tensor]":
        """Join new rows (B,) with replayed slots (R,), encoded, and their labels."""
        rows = np.concatenate([new, self.memory.read(slots, "index")["index"]])
        return encode(inputs[rows]), labels[rows]

    def offer(
        self,
        rows: np.ndarray,
        labels: np.ndarray,
        columns: dict[str, Any] | None = None,
        **context: Any,
    ) -> None:
        """Let the sampler place new samples, rows (B,) of the training set.

        ``columns`` are what the memory keeps of them beside their index.
        """
        slots = self.sampler.place(labels, **context)
        self.memory.write(slots, index=rows, **(columns or {}))


class VectorReplay(Replay):
    """Replay what ExStream keeps: what the lower stages gave, in place of inputs."""

    sampler: ExStream

    def join(
        self,
        encode: Callable,
        inputs: "Inputs",
        labels: "Inputs",
        new: np.ndarray,
        slots: np.ndarray,
    ) -> "tuple[Tensor, Tensor]":
        """Join new rows (B,), encoded, with the vectors in slots (R,)."""
        import torch

        from prslib.training.device import to_device

        encoded = encode(inputs[new])
        targets = labels[new]
        vectors = torch.as_tensor(self.sampler.vectors(slots))
        vectors = to_device(vectors, encoded.device).view(-1, *encoded.shape[1:])
        of_vectors = torch.from_numpy(self.sampler.labels_of(slots)).to(targets.dtype)
        of_vectors = to_device(of_vectors, targets.device)
        return torch.cat([encoded, vectors]), torch.cat([targets, of_vectors])


def balanced_draw(
    labels: np.ndarray, count: int, rng: np.random.Generator
) -> np.ndarray:
    """Draw a class, then a sample of it, until there are enough; int64 (count,).

    Labels are bool (M, C). Classes are equally likely each time, and so are the samples
    of a class; a sample that is drawn already is drawn again. That is a draw without
    replacement in proportion to the sum of 1 / l_i over a sample's labels. Exponential
    times with these rates end in the order of such a draw (Efraimidis and Spirakis
    2006).
    """
    class_counts = labels.sum(axis=0)  # (C,)
    rates = labels @ (1 / np.maximum(class_counts, 1))  # (M,)
    times = rng.exponential(size=len(labels)) / rates
    return np.argsort(times)[:count]


class StreamCounts:
    """Counts of the stream so far, for losses and rehearsals that take them."""

    def __init__(self, num_classes: int):
        self.class_freq = np.zeros(num_classes, np.float32)
        self.newest = np.zeros(num_classes, np.float32)  # of the newest samples alone
        self.seen = 0

    def add(self, labels: np.ndarray) -> None:
        """Count new samples, bool (B, C)."""
        self.newest = np.add.reduce(labels, axis=0, dtype=np.float32)
        self.class_freq += self.newest
        self.seen += len(labels)

    def context(
        self, asks: Collection[str], replay: Replay | None, device: "torch.device"
    ) -> dict[str, Any]:
        """Return what is asked for, as of this step."""
        context: dict[str, Any] = {}
        if not asks:
            return context
        import torch

        from prslib.training.device import to_device

        if "class_freq" in asks:
            context["class_freq"] = to_device(torch.tensor(self.class_freq), device)
        if "class_counts" in asks:
            counts = np.zeros_like(self.class_freq)
            if replay:
                counts += replay.sampler.class_counts
            context["class_counts"] = to_device(torch.tensor(counts), device)
        if "seen" in asks:
            context["seen"] = self.seen
        if "open_classes" in asks:  # stays on the host: see `Learner.loss`
            is_open = (self.newest > 0) | (self.class_freq == 0)
            context["open_classes"] = torch.from_numpy(is_open)
        return context


def make_replay(
    config: RunConfig, dataset: SequentialDataset, encoded: "Tensor | None" = None
) -> Replay | None:
    """Make a run's sampler and empty memory; None for a method without a memory.

    ``encoded`` is what the lower stages give for one sample, on the network's device.
    """
    seeds = seeds_of(config)
    sampler = config.sampler_for(dataset, seeds["sampler"])
    if sampler is None:
        return None
    settings = config.resolved
    memory = Memory(settings["memory_size"])
    if type(sampler) is ExStream and encoded is not None:
        from prslib.training.device import has_room
        from prslib.training.exstream_gpu import ExStreamOnGPU

        if has_room(encoded.device, memory.size * encoded.nbytes):
            sampler = ExStreamOnGPU(memory.size, dataset.num_classes, seeds["sampler"])
    count = settings["replay_batch_size"]
    kind = VectorReplay if isinstance(sampler, ExStream) else Replay
    return kind(sampler, memory, seeds["replay"], count, settings["draw"])


def check(config: RunConfig, dataset: SequentialDataset) -> None:
    """Raise ValueError where a configuration does not fit its data set."""
    settings = config.resolved
    one_of("test_set", settings["test_set"], dataset.tests)
    validate_schedule(settings["schedule"], dataset.num_tasks)
    labels = dataset.tests[settings["test_set"]].labels
    for tasks in tasks_together(settings["schedule"], settings["tasks_at_once"]):
        if not labels[:, np.isin(dataset.class_task, tasks)].any():
            what = f"test samples of task {task_name(tasks)} of {config.dataset}"
            raise ValueError(expected(what, f"none in {settings['test_set']}"))
    if config.features_per_class:
        feature_rows(dataset.tests[settings["test_set"]], config.features_per_class)
    _check_loss(config, dataset)
    stream(config, dataset)
    if config.own_threshold:
        stream(config, dataset, held_out_rows(config, dataset))
    images = len(dataset.train)
    for name in ("memory_size", "replay_batch_size", "variance_points"):
        if METHODS[config.method].sampler and settings[name] > images:
            what = f"{name} up to the {images} images of {config.dataset}"
            raise ValueError(expected(what, settings[name]))
    make_replay(config, dataset)


def _check_loss(config: RunConfig, dataset: SequentialDataset) -> None:
    """Refuse a loss that the data set does not name itself and that does not fit."""
    if config.loss is None and config.loss_options is None:
        return
    name = config.resolved["loss"]
    loss = LOSSES[name]
    if loss.one_label and not dataset.train.single_label:
        what = f"a data set of one label an image for the loss {name}"
        raise ValueError(expected(what, f"{config.dataset}, which has several"))
    rehearsal = METHODS[config.method].rehearsal
    if rehearsal and "replayed" in loss.asks:
        what = f"a loss that takes new and replayed samples alike for {rehearsal}"
        raise ValueError(expected(what, name))
    from prslib.losses.checking import check_fits

    check_fits(loss, dict(config.loss_options or ()), dataset.num_classes)


def without_training(config: RunConfig, dataset: SequentialDataset) -> Replay | None:
    """Return sampler and memory at the end of a run, from labels alone."""
    if METHODS[config.method].looks_at_model:
        what = "a method that looks at labels alone"
        raise ValueError(expected(what, config.method, "train it with run"))
    replay = make_replay(config, dataset)
    if replay is not None:
        for segment in stream(config, dataset):
            for batch in segment.batches:
                replay.offer(batch, dataset.train.labels[batch])
    return replay


def seeds_of(config: RunConfig) -> dict[str, np.random.SeedSequence]:
    """Return the seeds of a run's generators for stream, sampler, replay and model."""
    names = ("stream", "sampler", "replay", "model")
    spawned = np.random.SeedSequence(config.seed).spawn(len(names))
    return dict(zip(names, spawned, strict=True))
