"""How long runs take on this machine, from a few real steps on random images."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
import torch

from prslib.batches import make_replay, new_samples
from prslib.config import RunConfig
from prslib.datasets import SequentialDataset, Split, load_dataset
from prslib.datasets.blank import IMAGE_SHAPES
from prslib.experiment import conditions, make_learner
from prslib.methods import METHODS
from prslib.models.build import make_model
from prslib.models.weights import NONE
from prslib.residence import place
from prslib.stream import replay_plan
from prslib.supply import SUPPLIES
from prslib.variance import SAMPLES_AT_ONCE

COMPARED = "gradient_products"  # what GSS asks of the network,
FILL = 100  # and the samples that it compares a batch with: in memory before the first step
SLOW = 2.0  # seconds a step from which one step is measured, after one to warm up,
SLOWEST = 10.0  # and from which none is, only steps on a few images, by which it is extrapolated
FEW = (2, 2, 4, 4)  # images; the first step of each length warms up
AIM = 1.0  # seconds of measurement for each kind of run, where steps are faster
MOST = 50  # steps

KIND = (  # what a run's pace depends on, beside the size of its images and what its method does
    *("model", "frozen_stages", "pretrained_stages", "batch_size", "replay_batch_size"),
    "precision",
)


class Work(NamedTuple):
    """What a run has to do.

    Parameters
    ----------
    steps : int
        Training steps; a measurement of the gradient variance counts one for each batch of the
        memory.
    scored : int
        Test images that go through the network, after all tasks together.
    """

    steps: int
    scored: int


class Pace(NamedTuple):
    """How fast a machine does it, in seconds.

    Parameters
    ----------
    step, image : float
        A training step, and the scoring of a test image.
    """

    step: float
    image: float

    def seconds(self, work: Work) -> float:
        """Return how long a run takes."""
        return self.step * work.steps + self.image * work.scored


def work_of(config: RunConfig) -> Work:
    """Count what a run has to do; labels suffice.

    Parameters
    ----------
    config : RunConfig
        The run.

    Returns
    -------
    Work
        Its steps and scored images.

    Examples
    --------
    >>> work_of(RunConfig(dataset="digits70tiny", method="CRS")).steps
    82
    """
    settings, dataset = config.resolved, _labels(config.dataset)
    parts, test = new_samples(config, dataset), dataset.tests[settings["test_set"]]
    steps = sum(len(part.batches) for part in parts)
    if METHODS[config.method].sampler is not None:
        batches = math.ceil(settings["memory_size"] / SAMPLES_AT_ONCE)
        steps += settings["variance_points"] * batches
    seen = [len(test) if test.single_label else np.isin(test.task, p.seen).sum() for p in parts]
    return Work(steps, int(sum(seen)))


def kind_of(config: RunConfig) -> tuple:
    """Return what a run's pace depends on: size of an image, model, method, batches, precision.

    Methods that leave the step as it is and look at labels alone have one pace, as choosing slots
    takes a few hundredths of a step; those without a memory have another. The number of classes,
    which makes a network's last layer alone larger, does not count.
    """
    settings, method = config.resolved, METHODS[config.method]
    own = config.method if method.ewc or method.looks_at_model else method.sampler is not None
    return image_shape(config.dataset), own, *(settings[name] for name in KIND)


def image_shape(name: str) -> tuple[int, int, int]:
    """Return height, width and channels of a data set's images, its files here or not."""
    return IMAGE_SHAPES.get(name) or _embedded_shape(name)


@lru_cache
def _embedded_shape(name: str) -> tuple[int, int, int]:
    return load_dataset(name).train.images.shape[1:]


def _labels(name: str) -> SequentialDataset:
    return load_dataset(name, images=False)


def measure(config: RunConfig, device: str = "cpu") -> Pace:
    """Take a few steps of a run on random images of the right size, its memory filled.

    Parameters
    ----------
    config : RunConfig
        The run; its weights are left random, which costs the same.
    device : str
        Where to compute, "cpu" or "cuda".

    Returns
    -------
    Pace
        One thread, as in a run; the median step.

    Notes
    -----
    Where a step takes long, steps on two and on four images are measured, and the line through
    them is followed to as many as a step looks at. GSS looks at its batch twice and at `FILL`
    samples of the memory.
    """
    dataset = random_images(config)
    with conditions(config):
        return _measure(config, dataset, device)


def random_images(config: RunConfig) -> SequentialDataset:
    """Make a data set with a run's classes whose few images are noise, to time steps on."""
    dataset, rng = _labels(config.dataset), np.random.default_rng(0)
    count = FILL + config.resolved["batch_size"]
    rows = np.arange(count) % dataset.num_classes
    shape = (count, *image_shape(config.dataset))
    noise = rng.integers(0, 256, shape, dtype=np.uint8)
    labels = rows[:, None] == np.arange(dataset.num_classes)
    split = Split(noise, labels, dataset.class_task[rows])
    return replace(dataset, train=split, tests={"balanced": split})


def _measure(config: RunConfig, dataset: SequentialDataset, device: str) -> Pace:
    settings, train = config.resolved, dataset.train
    model = make_model(
        settings["model"], train.images.shape[1:], dataset.num_classes, seed=0, weights=NONE
    )
    learner = make_learner(config, dataset, device, model)
    images, labels = place(train.images, device), torch.from_numpy(train.labels).float().to(device)
    fit = partial(learner.fit, images, labels)

    def take(count: int) -> np.ndarray:
        batches = _batches(config, dataset, learner, images, labels, count)
        return _intervals(lambda tick: fit(batches, tick), device)[1:]

    few = _intervals(lambda tick: fit([np.arange(length) for length in FEW], tick), device)
    steps = few[1:2] + (few[3] - few[1]) / 2 * (_images_in_a_step(config, dataset) - 2)
    slowest = steps[0] >= SLOWEST
    if not slowest:
        steps = take(2)
        if steps[0] < SLOW:
            steps = take(int(np.clip(AIM / steps[0], 3, MOST)))
    # a GPU scores many images in the time of few
    rows = np.arange(1 if slowest else 8 if learner.device.type == "cpu" else len(train))
    score = _intervals(lambda tick: [(learner.probabilities(images, rows), tick()) for _ in "12"])
    return Pace(float(np.median(steps)), min(score) / len(rows))


def _batches(config: RunConfig, dataset, learner, images, labels, count: int):
    """Return some steps' batches, ahead or step by step as in a run, the memory filled before."""
    size = config.resolved["batch_size"]
    new = np.arange(FILL, FILL + size)
    replay = make_replay(config, dataset)
    if replay is None:
        return [new] * count

    def supply(name, batch, memory):
        return SUPPLIES[name](learner, images, labels, batch, memory)

    plan = replay_plan(
        [np.arange(FILL)] + [new] * count,
        dataset.train.labels,
        **replay._asdict(),
        replay_batch_size=config.resolved["replay_batch_size"],
        supply=supply,
    )
    next(plan)  # what fills the memory is not trained on
    return plan if replay.sampler.needs else list(plan)


def _images_in_a_step(config: RunConfig, dataset: SequentialDataset) -> int:
    size, replay = config.resolved["batch_size"], make_replay(config, dataset)
    if replay is None:
        return size
    compared = FILL + size if COMPARED in replay.sampler.needs else 0
    return size + config.resolved["replay_batch_size"] + compared


def _intervals(work: Callable, device: str = "cpu") -> Sequence[float]:
    """Return the seconds between the calls that work makes to what it is given."""
    times = [time.perf_counter()]

    def tick() -> None:
        if torch.device(device).type == "cuda":
            torch.cuda.synchronize(device)
        times.append(time.perf_counter())

    work(tick)
    return np.diff(times)
