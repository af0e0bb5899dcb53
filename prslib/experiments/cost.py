"""Estimate what missing runs cost: their steps times a step measured on noise."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pandas as pd
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook
from tqdm import tqdm

from prslib.datasets import DATASETS, fingerprint, load_dataset, single_label
from prslib.datasets.base import SequentialDataset, Split, tasks_together
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
    "imbal-mnistseq": ((28, 28, 1), *MNIST),
    "imbal-mnistseq-first": ((28, 28, 1), *MNIST),
    "imbal-svhnseq": ((32, 32, 3), *SVHN),
    "imbal-svhnseq-first": ((32, 32, 3), *SVHN),
}
LEAST, MOST, SECONDS = 3, 30, 1.0  # measured steps of each kind of run, and their time
REPLAYED = 100  # samples in the memory of a measured run


def steps_of(config: RunConfig) -> int:
    """Count the training steps of a run; labels suffice."""
    settings = config.resolved
    task = load_dataset(config.dataset, images=False).train.task
    groups = tasks_together(settings["schedule"], settings["tasks_at_once"])
    images = [np.isin(task, group).sum() for group in groups]
    if METHODS[config.method].offline:
        images = [len(task)] * settings["epochs"]
    steps = sum(int(count) // settings["batch_size"] for count in images)
    if METHODS[config.method].sampler:  # a look at the memory's gradients: 20 at once
        steps += settings["variance_points"] * math.ceil(settings["memory_size"] / 20)
    return steps


def plan(
    names: Sequence[str],
    runs_of: Callable[[str], tuple[list[RunConfig], str]],
    store: Store,
) -> tuple[pd.DataFrame, list[str]]:
    """Count the missing runs of notebooks and their hours in a table; add remarks."""
    rows, asked_for, remarks = [], [], []
    with blanks_for_missing() as blanks:
        for name in names:
            configs, device = runs_of(name)
            for key, config in {config.hash: config for config in configs}.items():
                asked_for.append((name, key, config.dataset))
                if config.dataset in blanks or not store.path(config).exists():
                    rows.append((name, key, config, config.training, device))
        columns = ["notebook", "hash", "config", "training", "device"]
        missing = _with_costs(pd.DataFrame(rows, columns=columns), remarks)
    runs = pd.DataFrame(asked_for, columns=["notebook", "hash", "dataset"])
    table = [
        (name, len(some), *_total(missing[missing["notebook"] == name]))
        for name, some in runs.groupby("notebook", sort=False)
    ]
    each = missing.drop_duplicates("hash", keep="last")
    table.append(("all, each run once", runs["hash"].nunique(), *_total(each)))
    remarks += [
        f"{name}: labels and images missing; all its runs count as missing"
        for name in blanks
        if name in set(runs["dataset"])
    ]
    columns = ["notebook", "wanted", "missing", "steps", "hours"]
    return pd.DataFrame(table, columns=columns), remarks


def _with_costs(runs: pd.DataFrame, remarks: list[str]) -> pd.DataFrame:
    """Add steps and hours to runs; measure a step of each kind of run."""
    seconds, hours = {}, []
    steps = [steps_of(config) for config in runs["config"]]
    rows = zip(runs["config"], runs["device"], steps, strict=True)
    for config, device, count in tqdm(rows, "measuring", len(runs), unit="run"):
        kind = kind_of(config), device
        if kind not in seconds:
            try:
                seconds[kind] = measure_step(config, device)
            except (RuntimeError, ImportError) as error:  # memory; no torchvision
                seconds[kind] = math.nan
                settings = f"{config.method}, {config.resolved['model']}"
                remarks.append(f"{settings} on {device}: not measured, {error}")
        hours.append(seconds[kind] * count / 3600)
    return runs.assign(steps=steps, hours=hours)


def _total(runs: pd.DataFrame) -> tuple[int, int, float]:
    """Return number, steps and hours; runs trained as one count as the longest."""
    longest = runs.groupby("training")[["steps", "hours"]].max()
    return len(runs), int(longest["steps"].sum()), longest["hours"].sum(skipna=False)


def as_text(table: pd.DataFrame, remarks: Sequence[str]) -> str:
    """Return a plan as text: the table and the remarks."""
    text = table.to_string(
        index=False,
        float_format="{:,.3g}".format,
        na_rep="unknown",
        formatters={"steps": "{:,}".format},
    )
    hint = "Hours are for one run after another, without scoring."
    return "\n".join([text, "", hint, *remarks])


def kind_of(config: RunConfig) -> tuple:
    """Return what a run's pace depends on: inputs, method, network and batches."""
    settings, method = config.resolved, METHODS[config.method]
    # to choose slots by labels takes a few hundredths of a step
    slow = method.ewc or method.looks_at_model
    group = config.method if slow else method.sampler is not None
    names = ("model", "frozen_stages", "pretrained_stages", "precision")
    names = (*names, "batch_size", "replay_batch_size")
    return _shape(config), group, *(settings[name] for name in names)


def _shape(config: RunConfig) -> tuple[int, ...]:
    if config.dataset in PUBLISHED:
        return PUBLISHED[config.dataset][0]
    return load_dataset(config.dataset).train.images.shape[1:]


class _Enough(Exception):  # noqa: N818
    """Ends a run that has been measured."""


def measure_step(config: RunConfig, device: str = "cpu") -> float:
    """Return the seconds of a step: begin the run on noise and look at the clock."""
    from prslib.training.run import run

    on_gpu = device != "cpu" and torch.cuda.is_available()  # else on this machine's CPU
    plain = replace(
        config,
        memory_size=min(config.resolved["memory_size"], REPLAYED),
        weights=NONE,
        schedule=None,
        features_per_class=0,
        variance_points=0,
        precision=config.precision if on_gpu else "fp32",
    )
    times = []

    def tick(*_: object) -> None:
        if on_gpu:
            torch.cuda.synchronize()
        times.append(time.perf_counter())
        enough = len(times) == MOST or times[-1] - times[0] > SECONDS
        if len(times) >= LEAST and enough:
            raise _Enough

    hook = register_optimizer_step_post_hook(tick)
    try:
        with stand_in(_noise(plain)):
            run(plain, device if on_gpu else "cpu")
    except _Enough:
        pass
    finally:
        hook.remove()
    return float(np.median(np.diff(times)[1:]))


def _noise(config: RunConfig) -> SequentialDataset:
    """Make a data set with a run's classes and noise as its images."""
    dataset, shape = load_dataset(config.dataset, images=False), _shape(config)
    rng = np.random.default_rng(0)
    images = max(REPLAYED, 6 * config.resolved["batch_size"] * dataset.num_tasks)
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
def blanks_for_missing() -> Iterator[list[str]]:
    """Let blanks stand in for data sets whose labels are missing; yield their names."""
    missing = []
    for name in PUBLISHED:
        try:
            load_dataset(name, images=False)
        except FileNotFoundError:
            missing.append(name)
    with stand_in(*map(blank_dataset, missing)):
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
    return SequentialDataset(
        name=name,
        train=blank(images),
        tests=dict.fromkeys(test_sets, test),
        class_names=tuple(map(str, range(len(class_task)))),
        class_task=class_task,
        class_group=("majority",) * len(class_task),
    )
