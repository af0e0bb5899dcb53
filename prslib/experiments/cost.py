"""Data sets without content: the published sizes of those that a machine may not have."""

from __future__ import annotations

import math
import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from tqdm import tqdm

from prslib.datasets import (
    DATASETS,
    fingerprint,
    load_dataset,
    single_label,
)
from prslib.datasets import coco as cocoseq
from prslib.datasets import digits as profiles
from prslib.datasets import nuswide as nuswideseq
from prslib.datasets.arrays import RESOLUTION
from prslib.datasets.base import SequentialDataset, Split
from prslib.experiments.store import Store
from prslib.experiments.workers import gpu_share, side_by_side
from prslib.models.networks import make_model
from prslib.models.weights import NONE
from prslib.report.notebook import given, wanted
from prslib.training.config import RunConfig
from prslib.training.device import place
from prslib.training.gradients import SAMPLES_AT_ONCE
from prslib.training.learner import SAMPLER_NEEDS
from prslib.training.methods import METHODS
from prslib.training.replay import make_replay, new_samples, replay_plan
from prslib.training.run import conditions, make_learner

NOTHING = "labels and images"
PROFILES = {
    "cocoseq": (profiles.COCOSEQ, cocoseq.PER_CLASS),
    "nuswideseq": (profiles.NUSWIDESEQ, nuswideseq.PER_CLASS),
}
IMAGE_SHAPES = {  # height, width, channels
    "cocoseq": (RESOLUTION, RESOLUTION, 3),
    "nuswideseq": (RESOLUTION, RESOLUTION, 3),
    "imbal-mnistseq": (28, 28, 1),
    "imbal-svhnseq": (32, 32, 3),
}


def blank_dataset(name: str) -> SequentialDataset:
    """Make a data set of the published size whose images and labels mean nothing; our own.

    Parameters
    ----------
    name : str
        A key of `IMAGE_SHAPES`.

    Returns
    -------
    SequentialDataset
        As many tasks, classes and training images as the real one, each with one label, and
        without pixels. Test sets of several labels have the balanced one's number of images at
        most, as an image stands for several classes.

    Examples
    --------
    >>> len(blank_dataset("cocoseq").train)
    35072
    """
    if name in single_label.SOURCES:
        source, digits = single_label.SOURCES[name], np.arange(single_label.CLASSES)
        parts = (source.train_counts, source.test_freq)
        train, test = ((None, np.repeat(digits, counts)) for counts in parts)
        return single_label.one_class_a_task(name, train, test, source.stands_for, divisor=1)
    tasks, per_class = PROFILES[name]
    class_task = np.repeat(np.arange(len(tasks)), [task.num_classes for task in tasks])
    train = _blank(class_task, [sum(task.labels_per_image) for task in tasks])
    test = _blank(class_task, [per_class * task.num_classes for task in tasks])
    return SequentialDataset(
        name=name,
        train=train,
        tests={"balanced": test, "imbalanced": test},
        class_names=tuple(map(str, range(len(class_task)))),
        class_task=class_task,
        class_group=("majority",) * len(class_task),
    )


def _blank(class_task: np.ndarray, images: list[int]) -> Split:
    """Return as many images of each task, its classes in turn."""
    task = np.repeat(np.arange(len(images)), images)
    classes = np.concatenate(
        [np.resize(np.flatnonzero(class_task == t), count) for t, count in enumerate(images)]
    )
    return Split(None, classes[:, None] == np.arange(len(class_task)), task)


@contextmanager
def blanks_for_missing() -> Iterator[dict[str, str]]:
    """Let blank data sets stand in, within the context, for those whose labels are not here.

    Yields
    ------
    dict of str to str
        What is missing of a data set by name, "labels and images" or "images"; of those that are
        whole there is no entry.
    """
    entries, sources = dict(DATASETS), dict(single_label.SOURCES)
    missing = {}
    for name in IMAGE_SHAPES:
        for images, what in ((True, "images"), (False, NOTHING)):
            try:
                load_dataset(name, images)
                break
            except FileNotFoundError:
                missing[name] = what
    blanks = {name: blank_dataset(name) for name, what in missing.items() if what == NOTHING}
    try:
        for name, dataset in blanks.items():
            DATASETS[name] = replace(entries[name], load=lambda _images, made=dataset: made)
            single_label.SOURCES.pop(name, None)  # so that no one looks for its files
        fingerprint.cache_clear()
        yield missing
    finally:
        DATASETS.update(entries)
        single_label.SOURCES.update(sources)
        fingerprint.cache_clear()


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

    def ask_model(name, batch, memory):
        return SAMPLER_NEEDS[name](learner, images, labels, batch, memory)

    plan = replay_plan(
        [np.arange(FILL)] + [new] * count,
        dataset.train.labels,
        **replay._asdict(),
        replay_batch_size=config.resolved["replay_batch_size"],
        ask_model=ask_model,
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


COLUMNS = ["notebook", "wanted", "missing", "steps", "hours"]
SAID = {
    NOTHING: "labels and images missing; all its runs count as missing, at the published size",
    "images": "images missing, so that its runs cannot be trained yet",
}


def plan(profile: str, names: Sequence[str], store: Store) -> tuple[pd.DataFrame, list[str]]:
    """Count a profile's missing runs and estimate how long they take; our own.

    Parameters
    ----------
    profile : str
        "smoke", "quick", "seeds" or "paper".
    names : sequence of str
        Notebooks of the profile.
    store : Store
        Where finished runs are.

    Returns
    -------
    DataFrame
        A row a notebook and one for all together, in which a run that several notebooks want
        counts once, and so do steps and hours of runs that are trained as one: notebook, wanted,
        missing, steps of training, hours (one run after another).
    list of str
        What a reader should know beside it: the hours side by side, missing data, notebooks that
        cannot say what they want, what could not be measured.
    """
    rows, remarks, missing, every, used, on = [], [], {}, {}, {}, {}
    with Paces() as paces, blanks_for_missing() as absent:
        for name in names:
            try:
                device = given(profile, name).get("device", "cpu")
                runs = {config.hash: config for config in wanted(name, profile)}
            except Exception as error:  # whatever is wrong with it, the others can be counted
                remarks.append(f"{name} cannot say what it wants: {type(error).__name__}: {error}")
                continue
            missing[name] = (
                len(runs),
                {
                    key: (config, device)
                    for key, config in runs.items()
                    if absent.get(config.dataset) == NOTHING or not store.path(config).exists()
                },
            )
            used |= {key: config.dataset for key, config in runs.items()}
        paces.measure([run for _, runs in missing.values() for run in runs.values()])
        for name, (count, runs) in missing.items():
            costs = {key: (run[0].training, paces.cost(*run)) for key, run in runs.items()}
            rows.append((name, count, len(costs), *_in_all(costs.values())))
            every |= costs
            on |= {key: (paces.here(device), config) for key, (config, device) in runs.items()}
    rows.append(("all, each run once", len(used), len(every), *_in_all(every.values())))
    named = set(used.values())
    remarks += [f"{name}: {SAID[what]}" for name, what in absent.items() if name in named]
    together = [_together(every, on)] if every else []
    remarks = [*together, *remarks, *dict.fromkeys(paces.remarks)]
    return pd.DataFrame(rows, columns=COLUMNS), remarks


def _in_all(costs: Iterable[tuple[str, tuple[int, float]]]) -> tuple[int, float]:
    """Add up steps and hours, of runs that are trained as one those of the longest."""
    trainings = {}
    for training, cost in costs:
        trainings[training] = np.maximum(trainings.get(training, 0), cost)
    steps, hours = sum(trainings.values(), np.zeros(2))
    return int(steps), hours


def _together(
    costs: dict[str, tuple[str, tuple[int, float]]], on: dict[str, tuple[str, RunConfig]]
) -> str:
    """Say how long all take with as many processes on each device as a sweep begins there."""
    hours, said = 0.0, []
    for device, name in (("cpu", "the CPU"), ("cuda", "the GPU")):
        configs = {key: config for key, (where, config) in on.items() if where == device}
        if configs:
            at_once = side_by_side(gpu_share(list(configs.values()), device))
            at_once = min(at_once, len({costs[key][0] for key in configs}))
            hours += _in_all(costs[key] for key in configs)[1] / at_once
            said.append(f"{at_once} side by side on {name}")
    return (
        f"Hours are for one run after another; with {' and then '.join(said)}, in all: "
        f"{in_hours(hours)}."
    )


class Paces:
    """The paces of this machine, each measured once.

    Notes
    -----
    Measuring is left to a process of its own: where the memory does not suffice, the system may
    kill it, and the plan goes on without this pace. It ends with this process, however that ends.
    """

    def __init__(self):
        self.known: dict[tuple, Pace | None] = {}
        self.remarks: list[str] = []
        self._process: ProcessPoolExecutor | None = None

    def __enter__(self):
        """Return itself."""
        return self

    def __exit__(self, *_error) -> None:
        """End the process."""
        if self._process is not None:
            self._process.shutdown()

    def measure(self, runs: Iterable[tuple[RunConfig, str]]) -> None:
        """Measure a pace for every kind among runs and their devices, with a progress bar."""
        kinds = {}
        for config, device in runs:
            if self.here(device) != device:
                self.remarks.append("there is no GPU here: measured on the CPU instead, one thread")
            kinds.setdefault(self._kind(config, device), (config, self.here(device)))
        with tqdm(kinds.items(), desc="measuring", unit="kind", disable=not kinds) as bar:
            for kind, run in bar:
                bar.set_postfix_str(_in_words(run[0]))
                pace = self.known[kind] = self._measure(*run)
                if pace is not None:
                    said = f"{1000 * pace.step:,.0f} ms a step ({run[1]})"
                    bar.write(f"{_in_words(run[0])}: {said}", file=sys.stderr)

    def cost(self, config: RunConfig, device: str) -> tuple[int, float]:
        """Return a run's steps and its hours; NaN where its pace could not be measured."""
        pace, work = self.known[self._kind(config, device)], work_of(config)
        return work.steps, math.nan if pace is None else pace.seconds(work) / 3600

    def here(self, device: str) -> str:
        """Return the device that stands for another on this machine: the CPU without a GPU."""
        return device if device == "cpu" or torch.cuda.is_available() else "cpu"

    def _kind(self, config: RunConfig, device: str) -> tuple:
        return *kind_of(config), self.here(device)

    def _measure(self, config: RunConfig, device: str) -> Pace | None:
        if self._process is None:
            context = multiprocessing.get_context("spawn")
            self._process = ProcessPoolExecutor(1, context, initializer=_end_with_parent)
        try:
            pace = self._process.submit(_measure_on_blanks, config, device).result()
        except BrokenProcessPool:
            self._process = None
            self.remarks.append(f"{_in_words(config)}: not measured, the memory does not suffice")
            return None
        except (RuntimeError, ImportError) as error:  # the GPU's memory; no torchvision
            self.remarks.append(f"{_in_words(config)}: not measured, {error}")
            return None
        return pace


def _in_words(config: RunConfig) -> str:
    shape = "x".join(map(str, image_shape(config.dataset)))
    return f"{config.method}, {config.resolved['model']} on {shape}"


def _end_with_parent() -> None:
    """End this process when the one that began it is gone, killed too; a pool's own stays."""

    def watch() -> None:
        multiprocessing.parent_process().join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _measure_on_blanks(config: RunConfig, device: str) -> Pace:
    with blanks_for_missing():
        return measure(config, device)


def as_text(table: pd.DataFrame, remarks: Sequence[str]) -> str:
    """Return a plan as text: the table and the remarks."""
    lines = [
        table.to_string(
            index=False,
            float_format=in_hours,
            na_rep="unknown",
            formatters={"steps": "{:,}".format},
        ),
        "",
        *remarks,
    ]
    return "\n".join(lines)


def in_hours(hours: float) -> str:
    """Return hours with three digits, or all of them where there are more; NaN is unknown.

    Examples
    --------
    >>> in_hours(0.0542), in_hours(12.345), in_hours(1264.4), in_hours(math.nan)
    ('0.0542', '12.3', '1,264', 'unknown')
    """
    if math.isnan(hours):
        return "unknown"
    return f"{hours:,.0f}" if hours >= 100 else f"{hours:.3g}"
