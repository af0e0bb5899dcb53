"""Estimate what missing runs cost: count their steps and measure a few on random images."""

import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from joblib.externals.loky import ProcessPoolExecutor
from tqdm import tqdm

from prslib.datasets import DATASETS, coco, digits, fingerprint, load_dataset, nuswide, single_label
from prslib.datasets.arrays import RESOLUTION
from prslib.datasets.base import SequentialDataset, Split
from prslib.experiments.store import Store
from prslib.experiments.workers import gpu_share, process_count
from prslib.models.networks import make_model
from prslib.models.weights import NONE
from prslib.paths import ending_with_us
from prslib.training.config import RunConfig
from prslib.training.device import Inputs
from prslib.training.gradients import SAMPLES_AT_ONCE
from prslib.training.learner import context_of
from prslib.training.methods import METHODS
from prslib.training.replay import make_replay, stream
from prslib.training.run import conditions, make_learner

FEATURES = "-features"  # ends the name of a data set of frozen features
MULTI_LABEL = {  # tasks, and test images a class, of data sets whose files may be missing
    "cocoseq": (digits.COCOSEQ, coco.PER_CLASS),
    "nuswideseq": (digits.NUSWIDESEQ, nuswide.PER_CLASS),
}
IMAGE_SHAPES = {  # height, width, channels; or the width of frozen features
    **dict.fromkeys(MULTI_LABEL, (RESOLUTION, RESOLUTION, 3)),
    **{name + FEATURES: (1280,) for name in MULTI_LABEL},
    **{name: source.shape for name, source in single_label.SOURCES.items()},
}
NOTHING = "labels and images missing; all its runs count as missing, at the published size"
LABELS = "images missing, so that its runs cannot be trained yet"

FILL = 100  # samples in memory before the first step: as many as GSS compares a batch with
FEW = (2, 2, 4, 4)  # images of the first steps; the first of each length warms up
SLOW = 2.0  # seconds a step from which these alone are measured: longer ones follow from them
AIM = 1.0  # seconds of measurement for each kind of run, where steps are faster
MOST = 50  # steps
IDLE = 10  # seconds without work after which the measuring process ends


def plan(
    names: Sequence[str], wanted: Callable[[str], tuple[list[RunConfig], str]], store: Store
) -> tuple[pd.DataFrame, list[str]]:
    """Count the missing runs of notebooks and their hours in a table; add remarks for readers."""
    remarks, counts, datasets, missing, paces = [], {}, {}, [], Paces()
    with blanks_for_missing() as absent:
        for name in names:
            try:
                configs, device = wanted(name)
                runs = {config.hash: config for config in configs}
            except Exception as error:  # whatever is wrong with it, the others can be counted
                remarks.append(f"{name} cannot say what it wants: {type(error).__name__}: {error}")
                continue
            counts[name] = len(runs)
            datasets |= {key: config.dataset for key, config in runs.items()}
            missing += [
                (name, key, config, paces.here(device))
                for key, config in runs.items()
                if absent.get(config.dataset) == NOTHING or not store.path(config).exists()
            ]
        paces.measure((config, device) for *_, config, device in missing)
        costs = [(*row, row[2].training, *paces.cost(*row[2:])) for row in missing]
    fields = ["notebook", "hash", "config", "device", "training", "steps", "hours"]
    costs = pd.DataFrame(costs, columns=fields)
    each = costs.drop_duplicates("hash", keep="last")
    rows = [(name, n, *_total(costs[costs["notebook"] == name])) for name, n in counts.items()]
    rows.append(("all, each run once", len(datasets), *_total(each)))
    named = set(datasets.values())
    remarks += [f"{name}: {what}" for name, what in absent.items() if name in named]
    hours = [_side_by_side(each)] if len(each) else []
    columns = ["notebook", "wanted", "missing", "steps", "hours"]
    return pd.DataFrame(rows, columns=columns), [*hours, *remarks, *dict.fromkeys(paces.remarks)]


def _total(costs: pd.DataFrame) -> tuple[int, int, float]:
    """Return number, steps and hours of runs; those of one training take as long as the longest."""
    longest = costs.groupby("training")[["steps", "hours"]].max()
    return len(costs), int(longest["steps"].sum()), longest["hours"].sum(skipna=False)


def _side_by_side(costs: pd.DataFrame) -> str:
    """Return a sentence on the hours with as many processes on each device as a sweep begins."""
    hours, parts = 0.0, []
    for device, name in (("cpu", "the CPU"), ("cuda", "the GPU")):
        runs = costs[costs["device"] == device]
        if len(runs):
            count = process_count(gpu_share(runs["config"], device))
            count = min(count, runs["training"].nunique())
            hours += _total(runs)[-1] / count
            parts.append(f"{count} side by side on {name}")
    return (
        f"Hours are for one run after another; with {' and then '.join(parts)}, in all: "
        f"{in_hours(hours)}."
    )


def as_text(table: pd.DataFrame, remarks: Sequence[str]) -> str:
    """Return a plan as text: the table and the remarks."""
    steps = {"steps": "{:,}".format}
    text = table.to_string(index=False, float_format=in_hours, na_rep="unknown", formatters=steps)
    return "\n".join([text, "", *remarks])


def in_hours(hours: float) -> str:
    """Return hours with at least three digits, "12.3" or "1,264"; NaN is "unknown"."""
    if math.isnan(hours):
        return "unknown"
    return f"{hours:,.0f}" if hours >= 100 else f"{hours:.3g}"


class Work(NamedTuple):
    """A run's training steps and scored images."""

    steps: int  # a measurement of the gradient variance counts one for each batch of the memory
    scored: int  # test images that go through the network, after all tasks together


class Pace(NamedTuple):
    """Seconds of a training step and of scoring one image."""

    step: float
    image: float


def work_of(config: RunConfig) -> Work:
    """Count the steps and scored images of a run; labels suffice."""
    settings, dataset = config.resolved, load_dataset(config.dataset, images=False)
    parts, test = stream(config, dataset), dataset.tests[settings["test_set"]]
    steps = sum(len(part.batches) for part in parts)
    if METHODS[config.method].sampler is not None:
        batches = math.ceil(settings["memory_size"] / SAMPLES_AT_ONCE)
        steps += settings["variance_points"] * batches
    seen = [len(test) if test.single_label else np.isin(test.task, p.seen).sum() for p in parts]
    return Work(steps, int(sum(seen)))


def kind_of(config: RunConfig) -> tuple:
    """Return what a run's pace depends on: size of an image, method, network and batches."""
    settings, method = config.resolved, METHODS[config.method]
    # choosing slots by labels takes a few hundredths of a step: such methods have one pace
    own = config.method if method.ewc or method.looks_at_model else method.sampler is not None
    names = ("model", "frozen_stages", "pretrained_stages", "batch_size", "replay_batch_size")
    return image_shape(config.dataset), own, *(settings[k] for k in (*names, "precision"))


@lru_cache
def image_shape(name: str) -> tuple[int, ...]:
    """Return the shape of a data set's images or features, its files here or not."""
    return IMAGE_SHAPES.get(name) or load_dataset(name).train.images.shape[1:]


class Paces:
    """Hold the paces of this machine, each measured once in a process that may be killed."""

    def __init__(self):
        self.known: dict[tuple, Pace | None] = {}
        self.remarks: list[str] = []
        self._process = ProcessPoolExecutor(1, timeout=IDLE, **ending_with_us())

    def measure(self, runs: Iterable[tuple[RunConfig, str]]) -> None:
        """Measure a pace for every kind among runs and their devices, with a progress bar."""
        kinds = {}
        for config, device in runs:
            kinds.setdefault((*kind_of(config), device), (config, device))
        with tqdm(kinds.items(), desc="measuring", unit="kind", disable=not kinds) as bar:
            for kind, (config, device) in bar:
                bar.set_postfix_str(_describe(config))
                pace = self.known[kind] = self._measure(config, device)
                if pace is not None:
                    step = f"{1000 * pace.step:,.0f} ms a step ({device})"
                    bar.write(f"{_describe(config)}: {step}", file=sys.stderr)

    def cost(self, config: RunConfig, device: str) -> tuple[int, float]:
        """Return a run's steps and its hours; NaN where its pace could not be measured."""
        pace, work = self.known[*kind_of(config), device], work_of(config)
        step, image = pace or (math.nan, math.nan)
        return work.steps, (step * work.steps + image * work.scored) / 3600

    def here(self, device: str) -> str:
        """Return the device to measure on: the CPU where there is no GPU."""
        if device == "cpu" or torch.cuda.is_available():
            return device
        self.remarks.append("there is no GPU here: measured on the CPU instead, one thread")
        return "cpu"

    def _measure(self, config: RunConfig, device: str) -> Pace | None:
        try:
            return self._process.submit(measure, config, device).result()
        except BrokenProcessPool:
            self._process = ProcessPoolExecutor(1, timeout=IDLE, **ending_with_us())
            self.remarks.append(f"{_describe(config)}: not measured, the memory does not suffice")
        except (RuntimeError, ImportError) as error:  # the GPU's memory; no torchvision
            self.remarks.append(f"{_describe(config)}: not measured, {error}")
        return None


def _describe(config: RunConfig) -> str:
    shape = "x".join(map(str, image_shape(config.dataset)))
    return f"{config.method}, {config.resolved['model']} on {shape}"


def measure(config: RunConfig, device: str = "cpu") -> Pace:
    """Time a few steps of a run on random images of the right size, its memory filled."""
    with blanks_for_missing(), conditions(config):
        return _measure(config, _random_images(config), device)


def _random_images(config: RunConfig) -> SequentialDataset:
    """Make a data set with a run's classes whose few images are noise."""
    dataset, rng = load_dataset(config.dataset, images=False), np.random.default_rng(0)
    count = FILL + config.resolved["batch_size"]
    classes = np.arange(count) % dataset.num_classes
    shape = (count, *image_shape(config.dataset))
    noise = rng.integers(0, 256, shape, dtype=np.uint8)
    noise = noise if len(shape) > 2 else noise.astype(np.float32)
    labels = classes[:, None] == np.arange(dataset.num_classes)
    split = Split(noise, labels, dataset.class_task[classes])
    return replace(dataset, train=split, tests={"balanced": split})


def _measure(config: RunConfig, dataset: SequentialDataset, device: str) -> Pace:
    name, train = config.resolved["model"], dataset.train
    model = make_model(name, train.images.shape[1:], dataset.num_classes, seed=0, weights=NONE)
    learner = make_learner(config, dataset, device, model)
    images = Inputs(train.images, device)
    labels = Inputs(train.labels.astype(np.float32), device)
    replay = make_replay(config, dataset)
    if replay is not None:  # what fills the memory is not trained on
        filling = np.arange(FILL)
        context = context_of(replay, learner, images, labels, filling)
        replay.place(filling, train.labels[filling], **context)

    def time_steps(batches, replay=None) -> np.ndarray:
        def take(tick: Callable) -> None:
            for batch in batches:
                slots = replay.draw() if replay else None
                learner.step(*learner.join(images, labels, batch, slots, replay))
                if replay:
                    context = context_of(replay, learner, images, labels, batch)
                    replay.place(batch, train.labels[batch], **context)
                tick()

        return _intervals(take, device)

    few = time_steps([np.arange(length) for length in FEW])
    step = few[1] + (few[3] - few[1]) / 2 * (_images_in_a_step(config, dataset) - 2)
    slow = step >= SLOW
    if not slow:
        count = int(np.clip(AIM / max(step, 1e-6), 3, MOST))
        new = np.arange(FILL, FILL + config.resolved["batch_size"])
        step = np.median(time_steps([new] * count, replay)[1:])
    # a GPU scores many images in the time of few
    rows = np.arange(1 if slow else 8 if learner.device.type == "cpu" else len(train))
    score = _intervals(lambda tick: [(learner.probabilities(images, rows), tick()) for _ in "12"])
    return Pace(float(step), min(score) / len(rows))


def _images_in_a_step(config: RunConfig, dataset: SequentialDataset) -> int:
    size, replay = config.resolved["batch_size"], make_replay(config, dataset)
    if replay is None:
        return size
    compares = "gradient_products" in replay.sampler.needs  # GSS: its batch, at most with FILL
    compared = FILL + size if compares else 0
    return size + config.resolved["replay_batch_size"] + compared


def _intervals(work: Callable, device: str = "cpu") -> np.ndarray:
    """Return the seconds between the calls that work makes to the function it is given."""
    times = [time.perf_counter()]

    def tick() -> None:
        if torch.device(device).type == "cuda":
            torch.cuda.synchronize(device)
        times.append(time.perf_counter())

    work(tick)
    return np.diff(times)


@contextmanager
def blanks_for_missing() -> Iterator[dict[str, str]]:
    """Let blank data sets stand in for missing ones; the value says what each of these lacks."""
    entries, sources = dict(DATASETS), dict(single_label.SOURCES)
    missing = {}
    for name in IMAGE_SHAPES:
        for images, what in ((True, LABELS), (False, NOTHING)):
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


def blank_dataset(name: str) -> SequentialDataset:
    """Make a data set of the published size, with one label an image and without pixels."""
    if name in single_label.SOURCES:
        source, classes = single_label.SOURCES[name], np.arange(single_label.CLASSES)
        counts = (source.train_counts, source.test_freq)
        train, test = ((None, np.repeat(classes, count)) for count in counts)
        return single_label.one_class_a_task(name, train, test, source.stands_for)
    tasks, per_class = MULTI_LABEL[name.removesuffix(FEATURES)]
    sizes = np.array([len(task.class_freq) for task in tasks])  # classes
    class_task = np.repeat(np.arange(len(tasks)), sizes)
    train = _blank(class_task, [sum(task.labels_per_image) for task in tasks])
    test = _blank(class_task, per_class * sizes)
    tests = {"balanced": test, "imbalanced": test}  # the latter is larger
    names, groups = tuple(map(str, range(len(class_task)))), ("majority",) * len(class_task)
    return SequentialDataset(name, train, tests, names, class_task, groups)


def _blank(class_task: np.ndarray, images: list[int]) -> Split:
    """Return as many images of each task, its classes in turn."""
    task = np.repeat(np.arange(len(images)), images)
    classes = np.concatenate(
        [np.resize(np.flatnonzero(class_task == t), count) for t, count in enumerate(images)]
    )
    return Split(None, classes[:, None] == np.arange(len(class_task)), task)
