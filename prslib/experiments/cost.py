"""Estimate what missing runs cost: their steps times the time of a measured step."""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

import numpy as np
import pandas as pd
import torch
from numpy.lib.stride_tricks import as_strided
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
) -> str:
    """Lay out the missing runs of notebooks, their steps and hours, as text."""
    with blanks_for_missing() as blanks:
        rows = [
            (name, config.hash, config, device)
            for name in names
            for configs, device in [runs_of(name)]
            for config in configs
        ]
        runs = pd.DataFrame(rows, columns=["notebook", "hash", "config", "device"])
        runs = runs.drop_duplicates(["notebook", "hash"])
        missing = [
            config.dataset in blanks or not store.path(config).exists()
            for config in runs["config"]
        ]
        costs, remarks = _costs(runs[missing])
    runs = runs.join(costs)
    total = runs.drop_duplicates("hash", keep="last")
    total = total.assign(notebook="all, each run once")
    table = pd.concat([runs, total]).groupby("notebook", sort=False).apply(_total)
    names = {config.dataset for config in runs["config"]}.intersection(blanks)
    remarks += [
        f"{name}: labels and images missing; all its runs count as missing"
        for name in sorted(names)
    ]
    text = table.reset_index().to_string(
        index=False,
        float_format="{:,.3g}".format,
        na_rep="unknown",
        formatters=dict.fromkeys(["wanted", "missing", "steps"], "{:,.0f}".format),
    )
    hint = "Hours are for one run after another, without scoring."
    return "\n".join([text, "", hint, *remarks])


def _costs(runs: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Count the steps of runs; measure a step of each kind; return also remarks."""
    seconds, rows, remarks = {}, [], []
    pairs = zip(runs["config"], runs["device"], strict=True)
    for config, device in tqdm(pairs, "measuring", len(runs), unit="run"):
        kind = kind_of(config), device
        if kind not in seconds:
            try:
                seconds[kind] = measure_step(config, device)
            except (RuntimeError, ImportError) as error:  # memory; no torchvision
                seconds[kind] = math.nan
                settings = f"{config.method}, {config.resolved['model']}"
                remarks.append(f"{settings} on {device}: not measured, {error}")
        steps = steps_of(config)
        rows.append((config.training, steps, seconds[kind] * steps / 3600))
    columns = ["training", "steps", "hours"]
    return pd.DataFrame(rows, index=runs.index, columns=columns), remarks


def _total(runs: pd.DataFrame) -> pd.Series:
    """Count runs, steps and hours; runs trained as one count as the longest."""
    longest = runs.groupby("training")[["steps", "hours"]].max()
    counts = {"wanted": len(runs), "missing": runs["steps"].count()}
    return pd.Series(counts | longest.sum(skipna=False).to_dict())


def kind_of(config: RunConfig) -> tuple:
    """Return what a run's pace depends on: inputs, method, network and batches."""
    settings, method = config.resolved, METHODS[config.method]
    # to choose slots by labels takes a few hundredths of a step
    slow = method.ewc or method.looks_at_model
    group = config.method if slow else method.sampler is not None
    names = ("model", "frozen_stages", "pretrained_stages", "precision")
    names = (*names, "batch_size", "replay_batch_size")
    if config.dataset in PUBLISHED:
        shape = PUBLISHED[config.dataset][0]
    else:
        shape = load_dataset(config.dataset).train.images.shape[1:]
    return shape, group, *(settings[name] for name in names)


class _Enough(Exception):  # noqa: N818
    """Ends a run that has been measured."""


def measure_step(config: RunConfig, device: str = "cpu") -> float:
    """Return the seconds of a step: begin the run and look at the clock."""
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
    # the paper's images may be missing, or gigabytes: a few blank ones do
    names = PUBLISHED.keys() & {config.dataset}
    few = max(REPLAYED, MOST * config.resolved["batch_size"])
    try:
        with blanks(names, few), suppress(_Enough):
            run(plain, device if on_gpu else "cpu")
    finally:
        hook.remove()
    return float(np.median(np.diff(times)[1:]))


@contextmanager
def blanks_for_missing() -> Iterator[list[str]]:
    """Let blanks stand in for data sets whose labels are missing; yield their names."""
    missing = []
    for name in PUBLISHED:
        try:
            load_dataset(name, images=False)
        except FileNotFoundError:
            missing.append(name)
    with blanks(missing):
        yield missing


@contextmanager
def blanks(names: Iterable[str], most: int | None = None) -> Iterator[None]:
    """Let blanks take the place of data sets, with ``most`` images a task."""
    entries, sources = dict(DATASETS), dict(single_label.SOURCES)
    try:
        for name in names:
            blank = blank_dataset(name, most)
            load = lambda _images=True, blank=blank: blank  # noqa: E731
            DATASETS[name] = replace(entries[name], load=load)
            single_label.SOURCES.pop(name, None)  # no one looks for its files
        fingerprint.cache_clear()
        yield
    finally:
        DATASETS.update(entries)
        single_label.SOURCES.update(sources)
        fingerprint.cache_clear()


def blank_dataset(name: str, most: int | None = None) -> SequentialDataset:
    """Make a data set of the published size or less: one label an image, all alike."""
    shape, images, sizes, tests = PUBLISHED[name]
    class_task = np.repeat(np.arange(len(sizes)), sizes)
    noise = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    if len(shape) == 1:
        noise = noise.astype(np.float32)

    def blank(counts: Sequence[int]) -> Split:
        rows = [
            np.resize(np.flatnonzero(class_task == task), min(count, most or count))
            for task, count in enumerate(counts)
        ]
        classes = np.concatenate(rows)
        labels = classes[:, None] == np.arange(len(class_task))
        strides = (0, *noise.strides)  # all images are one, which takes no memory
        views = as_strided(noise, (len(classes), *shape), strides)
        return Split(views, labels, class_task[classes])

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
