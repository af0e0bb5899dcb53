"""Estimate what missing runs cost: their steps times a step measured on noise."""

import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook
from tqdm import tqdm

from prslib.datasets import DATASETS, fingerprint, load_dataset, single_label
from prslib.datasets.base import SequentialDataset, Split, tasks_together
from prslib.experiments.pool import gpu_share, process_count
from prslib.experiments.store import Store
from prslib.models.weights import NONE
from prslib.training.config import RunConfig
from prslib.training.methods import METHODS

COCOSEQ = [8365, 7814, 11603, 7290], [24, 18, 14, 14], 100
NUSWIDESEQ = [17672, 18402, 3622, 1926, 2372, 4730], [5, 6, 16, 12, 4, 6], 50
MNIST = [5923, 2281, 1053, 684, 456, 316, 269, 230, 178, 153], [1] * 10, 1000
SVHN = [4948, 4690, 1872, 948, 582, 401, 261, 206, 153, 120], [1] * 10, 2603
# shapes of images or features; images and classes of each task, test images a class
PUBLISHED = {
    "cocoseq": ((256, 256, 3), *COCOSEQ),
    "nuswideseq": ((256, 256, 3), *NUSWIDESEQ),
    "cocoseq-features": ((1280,), *COCOSEQ),
    "nuswideseq-features": ((1280,), *NUSWIDESEQ),
    **{
        name: ((28, 28, 1), *MNIST)
        for name in ("imbal-mnistseq", "imbal-mnistseq-first")
    },
    **{name: ((32, 32, 3), *SVHN) for name in ("imbal-svhnseq", "imbal-svhnseq-first")},
}
NOTHING = "labels and images missing; all its runs count as missing"
LABELS = "images missing, so that its runs cannot be trained yet"

AIM, MOST = 1.0, 50  # seconds of measurement for each kind of run; steps
LARGE = 64 * 64  # pixels from which a CPU measures few images, as steps take seconds
FEW = {"batch_size": 2, "replay_batch_size": 2}
COMPARED = 100  # samples in memory with which GSS compares a batch


class Work(NamedTuple):
    """A run's training steps and scored images."""

    steps: (
        int  # a measurement of the gradient variance counts one a batch of the memory
    )
    scored: int  # test images that go through the network, after all tasks together


def work_of(config: RunConfig) -> Work:
    """Count the steps and scored images of a run; labels suffice."""
    settings, dataset = config.resolved, load_dataset(config.dataset, images=False)
    train, test = dataset.train, dataset.tests[settings["test_set"]]
    groups = tasks_together(settings["schedule"], settings["tasks_at_once"])
    seen = [sum(groups[: i + 1], ()) for i in range(len(groups))]
    parts = [np.isin(train.task, group).sum() for group in groups]
    if METHODS[config.method].offline:
        parts, seen = [len(train)] * settings["epochs"], seen[-1:]
    steps = sum(int(images) // settings["batch_size"] for images in parts)
    if METHODS[config.method].sampler is not None:
        steps += settings["variance_points"] * math.ceil(settings["memory_size"] / 20)
    scored = [
        len(test) if test.single_label else np.isin(test.task, tasks).sum()
        for tasks in seen
    ]
    return Work(steps, int(sum(scored)))


def plan(
    names: Sequence[str],
    runs_of: Callable[[str], tuple[list[RunConfig], str]],
    store: Store,
) -> tuple[pd.DataFrame, list[str]]:
    """Count the missing runs of notebooks and their hours in a table; add remarks."""
    remarks, rows = [], []
    with blanks_for_missing() as absent:
        for name in names:
            try:
                configs, device = runs_of(name)
                runs = {config.hash: config for config in configs}
            except Exception as error:  # the other notebooks can be counted
                text = (
                    f"{name} cannot say what it wants: {type(error).__name__}: {error}"
                )
                remarks.append(text)
                continue
            for key, config in runs.items():
                blank = absent.get(config.dataset) == NOTHING
                missing = blank or not store.path(config).exists()
                rows.append((name, key, config, config.training, device, missing))
        columns = ["notebook", "hash", "config", "training", "device", "missing"]
        runs = pd.DataFrame(rows, columns=columns)
        remarks += [
            f"{name}: {lacks}"
            for name, lacks in absent.items()
            if name in {config.dataset for config in runs["config"]}
        ]
        costs = _costs(runs[runs["missing"]], remarks)
    each = costs.drop_duplicates("hash", keep="last")
    table = [
        (name, len(some), *_total(costs[costs["notebook"] == name]))
        for name, some in runs.groupby("notebook", sort=False)
    ]
    table.append(("all, each run once", runs["hash"].nunique(), *_total(each)))
    if len(each):
        remarks.insert(0, _side_by_side(each))
    columns = ["notebook", "wanted", "missing", "steps", "hours"]
    return pd.DataFrame(table, columns=columns), remarks


def _costs(runs: pd.DataFrame, remarks: list[str]) -> pd.DataFrame:
    """Add steps and hours to runs; measure a step for each kind of run."""
    kinds = [
        (kind_of(config), device)
        for config, device in zip(runs["config"], runs["device"], strict=True)
    ]
    first = dict(zip(kinds, runs["config"], strict=True))
    seconds = {}
    how = {"desc": "measuring", "unit": "kind", "disable": not first}
    with tqdm(first.items(), **how) as bar:
        for (kind, device), config in bar:
            text = f"{config.method}, {config.resolved['model']} on {_shape(config)}"
            if device != "cpu" and not torch.cuda.is_available():
                remarks.append(
                    "there is no GPU here: measured on one thread, in float32"
                )
            try:
                seconds[kind, device] = measure_step(config, device)
                step = f"{1000 * seconds[kind, device]:,.0f} ms a step ({device})"
                bar.write(f"{text}: {step}", file=sys.stderr)
            except (RuntimeError, ImportError) as error:  # memory; no torchvision
                seconds[kind, device] = math.nan
                remarks.append(f"{text}: not measured, {error}")
    remarks[:] = dict.fromkeys(remarks)
    work = [work_of(config) for config in runs["config"]]
    hours = [
        # scoring an image takes a third of training on it
        seconds[kind] * (steps + scored / 3 / images_in_step(config)) / 3600
        for kind, config, (steps, scored) in zip(
            kinds, runs["config"], work, strict=True
        )
    ]
    return runs.assign(steps=[steps for steps, _ in work], hours=hours)


def _total(costs: pd.DataFrame) -> tuple[int, int, float]:
    """Return number, steps and hours; runs trained as one count as the longest."""
    longest = costs.groupby("training")[["steps", "hours"]].max()
    return len(costs), int(longest["steps"].sum()), longest["hours"].sum(skipna=False)


def _side_by_side(costs: pd.DataFrame) -> str:
    """Return a sentence on the hours with as many processes as a sweep begins."""
    hours, places = 0.0, []
    for device, runs in costs.groupby("device"):
        count = process_count(gpu_share(runs["config"], device))
        count = min(count, runs["training"].nunique())
        hours += _total(runs)[-1] / count
        places.append(
            f"{count} side by side on the {'CPU' if device == 'cpu' else 'GPU'}"
        )
    return (
        "Hours are for one run after another; with "
        f"{' and then '.join(places)}, in all: {in_hours(hours)}."
    )


def as_text(table: pd.DataFrame, remarks: Sequence[str]) -> str:
    """Return a plan as text: the table and the remarks."""
    formats = {"steps": "{:,}".format}
    text = table.to_string(
        index=False, float_format=in_hours, na_rep="unknown", formatters=formats
    )
    return "\n".join([text, "", *remarks])


def in_hours(hours: float) -> str:
    """Return hours with at least three digits, "12.3" or "1,264"; NaN is "unknown"."""
    if math.isnan(hours):
        return "unknown"
    return f"{hours:,.0f}" if hours >= 100 else f"{hours:.3g}"


def kind_of(config: RunConfig) -> tuple:
    """Return what a run's pace depends on: inputs, method, network and batches."""
    settings, method = config.resolved, METHODS[config.method]
    # to choose slots by labels takes a few hundredths of a step
    slow = method.ewc or method.looks_at_model
    group = config.method if slow else method.sampler is not None
    names = ("model", "frozen_stages", "pretrained_stages", "precision", *FEW)
    return _shape(config), group, *(settings[name] for name in names)


def _shape(config: RunConfig) -> tuple[int, ...]:
    if config.dataset in PUBLISHED:
        return PUBLISHED[config.dataset][0]
    return load_dataset(config.dataset).train.images.shape[1:]


def images_in_step(config: RunConfig, compared: int = COMPARED) -> int:
    """Return how many images go through the network in a step."""
    settings, method = config.resolved, METHODS[config.method]
    images = settings["batch_size"]
    images += settings["replay_batch_size"] if method.sampler else 0
    if method.sampler and method.looks_at_gradients:  # GSS
        images += settings["batch_size"] + compared
    return images


class _Enough(Exception):  # noqa: N818
    """Ends a run that has been measured."""


def measure_step(config: RunConfig, device: str = "cpu") -> float:
    """Return the seconds of a step: begin the run on noise and look at the clock."""
    from prslib.training.run import run

    device = device if torch.cuda.is_available() else "cpu"
    shape, fields, scale = _shape(config), {}, 1.0
    if device == "cpu" and math.prod(shape[:2]) > LARGE:
        few = replace(config, **FEW)
        scale, fields = images_in_step(config) / images_in_step(few, 2), FEW
    memory = min(config.resolved["memory_size"], COMPARED)
    plain = replace(
        config, **fields, memory_size=memory, weights=NONE,
        schedule=None, features_per_class=0, variance_points=0,
        precision="fp32" if device == "cpu" else config.precision,
    )  # fmt: skip
    times = []

    def tick(*_: object) -> None:
        if device != "cpu":
            torch.cuda.synchronize()
        times.append(time.perf_counter())
        if len(times) > 3 and (times[-1] - times[0] > AIM or len(times) > MOST):
            raise _Enough

    hook = register_optimizer_step_post_hook(tick)
    try:
        with stand_in(_noise(plain, shape)):
            run(plain, device)
    except _Enough:
        pass
    finally:
        hook.remove()
    return scale * float(np.median(np.diff(times)[1:]))


def _noise(config: RunConfig, shape: tuple[int, ...]) -> SequentialDataset:
    """Make a data set with a run's classes and noise as its images."""
    dataset = load_dataset(config.dataset, images=False)
    rng = np.random.default_rng(0)
    each = 6 * config.resolved["batch_size"]  # of a task
    images = max(COMPARED, each * dataset.num_tasks)
    _, first = np.unique(dataset.class_task, return_index=True)  # class of each task
    classes = first[np.arange(images) % len(first)]
    noise = rng.integers(0, 256, (images, *shape), dtype=np.uint8)
    noise = noise if len(shape) > 1 else noise.astype(np.float32)
    labels = classes[:, None] == np.arange(dataset.num_classes)
    train = Split(noise, labels, dataset.class_task[classes])
    few = slice(len(first))
    test = Split(noise[few], labels[few], train.task[few])
    return replace(dataset, train=train, tests=dict.fromkeys(dataset.tests, test))


@contextmanager
def stand_in(*datasets: SequentialDataset) -> Iterator[None]:
    """Let data sets take the place of those of the same name."""
    entries, sources = dict(DATASETS), dict(single_label.SOURCES)
    try:
        for dataset in datasets:
            load = lambda _images=True, made=dataset: made  # noqa: E731
            DATASETS[dataset.name] = replace(entries[dataset.name], load=load)
            single_label.SOURCES.pop(dataset.name, None)  # no one looks for its files
        fingerprint.cache_clear()
        yield
    finally:
        DATASETS.update(entries)
        single_label.SOURCES.update(sources)
        fingerprint.cache_clear()


@contextmanager
def blanks_for_missing() -> Iterator[dict[str, str]]:
    """Let blanks stand in for missing data sets; the value says what each lacks."""
    missing = {}
    for name in PUBLISHED:
        for images, lacks in ((True, LABELS), (False, NOTHING)):
            try:
                load_dataset(name, images)
                break
            except FileNotFoundError:
                missing[name] = lacks
    blanks = [blank_dataset(name) for name in missing if missing[name] == NOTHING]
    with stand_in(*blanks):
        yield missing


def blank_dataset(name: str) -> SequentialDataset:
    """Make a data set of the published size, with one label an image and no pixels."""
    _, images, sizes, tests = PUBLISHED[name]
    class_task = np.repeat(np.arange(len(sizes)), sizes)

    def blank(counts: Sequence[int]) -> Split:
        rows = [
            np.resize(np.flatnonzero(class_task == task), count)
            for task, count in enumerate(counts)
        ]
        classes = np.concatenate(rows)
        labels = classes[:, None] == np.arange(len(class_task))
        return Split(None, labels, class_task[classes])

    test = blank([tests * size for size in sizes])
    test_sets = ("full",) if max(sizes) == 1 else ("balanced", "imbalanced")
    names = tuple(map(str, range(len(class_task))))
    groups = ("majority",) * len(names)
    test_sets = dict.fromkeys(test_sets, test)
    return SequentialDataset(name, blank(images), test_sets, names, class_task, groups)
