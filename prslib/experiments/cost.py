"""Estimate what missing runs cost: their steps times the time of a measured step."""

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from unittest.mock import patch

import numpy as np
import pandas as pd
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook
from tqdm import tqdm

from prslib.datasets import DATASETS, fingerprint, load_dataset, single_label
from prslib.datasets.base import SequentialDataset, Split, tasks_together
from prslib.experiments.store import Store
from prslib.models.weights import NONE
from prslib.training.checkpoint import Checkpoint
from prslib.training.config import SAVE_EVERY, RunConfig
from prslib.training.methods import METHODS
from prslib.training.run import conditions, train

COCOSEQ = [8365, 7814, 11603, 7290], [24, 18, 14, 14]
NUSWIDESEQ = [17672, 18402, 3622, 1926, 2372, 4730], [5, 6, 16, 12, 4, 6]
MNIST = [5923, 2281, 1053, 684, 456, 316, 269, 230, 178, 153], [1] * 10
SVHN = [4948, 4690, 1872, 948, 582, 401, 261, 206, 153, 120], [1] * 10
# shapes of images or features; images and classes of each task
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
# of a measured run: images of each task, and how many steps and seconds suffice
FEW, STEPS, SECONDS = 300, 3, 1.0


def steps_of(config: RunConfig) -> int:
    """Count the training steps of a run; labels suffice."""
    settings, method = config.resolved, METHODS[config.method]
    task = load_dataset(config.dataset, images=False).train.task
    groups = tasks_together(settings["schedule"], settings["tasks_at_once"])
    images = [np.isin(task, group).sum() for group in groups]
    if method.offline:
        images = [len(task)] * settings["epochs"]
    steps = sum(int(count) // settings["batch_size"] for count in images)
    if method.sampler:  # a look at the memory's gradients: 20 at once
        steps += settings["variance_points"] * math.ceil(settings["memory_size"] / 20)
    return steps


def plan(
    wanted: Sequence[tuple[str, list[RunConfig], str]],
    blanks: Sequence[str],
    store: Store,
) -> str:
    """Lay out the missing runs of notebooks, their steps and hours, as text.

    Each notebook comes with its runs and their device; ``blanks`` are the data sets
    that are not here, all of whose runs are missing.
    """
    rows, seconds = [], {}
    for name, configs, device in wanted:
        by_hash = {config.hash: config for config in configs}
        for config in tqdm(by_hash.values(), name, unit="run"):
            row = {"notebook": name, "hash": config.hash, "training": config.training}
            row |= {"runs": 1, "missing": 0, "steps": 0, "hours": 0.0}
            if config.dataset in blanks or not store.path(config).exists():
                kind = kind_of(config), device
                if kind not in seconds:
                    seconds[kind] = measure_step(config, device)
                row |= {"missing": 1, "steps": steps_of(config)}
                row["hours"] = row["steps"] * seconds[kind] / 3600
            rows.append(row)
    runs = pd.DataFrame(rows)
    total = runs.drop_duplicates("hash").assign(notebook="all, each run once")
    # runs that train alike are trained as one, the longest of them
    trainings = pd.concat([runs, total]).groupby(["notebook", "training"], sort=False)
    counts = trainings[["runs", "missing"]].sum()
    table = counts.join(trainings[["steps", "hours"]].max())
    table = table.groupby("notebook", sort=False).sum().reset_index()
    return table.to_string(index=False, float_format="{:,.3g}".format)


def kind_of(config: RunConfig) -> tuple:
    """Return what a run's pace depends on: inputs, method, network and batches."""
    settings, method = config.resolved, METHODS[config.method]
    inputs = PUBLISHED.get(config.dataset, (config.dataset,))[0]
    # to choose slots by labels takes a few hundredths of a step
    slow = method.ewc or method.looks_at_model
    group = config.method if slow else method.sampler is not None
    names = ("model", "frozen_stages", "pretrained_stages", "precision")
    names = (*names, "batch_size", "replay_batch_size")
    return inputs, group, *(settings[name] for name in names)


class _Enough(Exception):  # noqa: N818
    """Ends a run that has been measured."""


def measure_step(config: RunConfig, device: str = "cpu") -> float:
    """Return the seconds of a step: begin the run and look at the clock."""
    on_gpu = device != "cpu" and torch.cuda.is_available()  # else on this machine's CPU
    precision = config.precision if on_gpu else "fp32"
    plain = replace(config, weights=NONE, precision=precision)
    if config.dataset in PUBLISHED:  # gigabytes, where they are here
        dataset = blank_dataset(config.dataset)
    else:
        dataset = load_dataset(config.dataset)
    times = []

    def tick(*_: object) -> None:
        if on_gpu:
            torch.cuda.synchronize()
        times.append(time.perf_counter())
        if len(times) >= STEPS and times[-1] - times[0] > SECONDS:
            raise _Enough

    hook = register_optimizer_step_post_hook(tick)
    try:
        with conditions(plain), suppress(_Enough):
            no_checkpoint = Checkpoint(None, [plain], SAVE_EVERY)
            train([plain], dataset, "cuda" if on_gpu else "cpu", no_checkpoint)
    finally:
        hook.remove()
    return float(np.median(np.diff(times)[1:]))


@contextmanager
def blanks_for_missing() -> Iterator[list[str]]:
    """Let blanks stand in for data sets whose labels are missing; yield their names."""
    with patch.dict(DATASETS), patch.dict(single_label.SOURCES):  # restored at the end
        missing = []
        for name in PUBLISHED:
            try:
                load_dataset(name, images=False)
            except FileNotFoundError:
                load = partial(blank_dataset, name)
                DATASETS[name] = replace(DATASETS[name], load=load, identity=str)
                single_label.SOURCES.pop(name, None)  # no one looks for its files
                missing.append(name)
        try:
            yield missing
        finally:
            fingerprint.cache_clear()


def blank_dataset(name: str, images: bool = True) -> SequentialDataset:
    """Make labels of the published numbers, or a few blank images a task."""
    shape, counts, sizes = PUBLISHED[name]
    class_task = np.repeat(np.arange(len(sizes)), sizes)
    rows = [
        np.resize(np.flatnonzero(class_task == task), FEW if images else count)
        for task, count in enumerate(counts)
    ]
    classes = np.concatenate(rows)
    dtype = np.float32 if len(shape) == 1 else np.uint8
    inputs = np.ones((len(classes), *shape), dtype) if images else None
    one_hot = np.eye(len(class_task), dtype=bool)[classes]
    split = Split(inputs, one_hot, class_task[classes])
    return SequentialDataset(
        name=name,
        train=split,
        tests=dict.fromkeys(("balanced", "imbalanced", "full"), split),
        class_names=tuple(map(str, range(len(class_task)))),
        class_task=class_task,
        class_group=("majority",) * len(class_task),
    )
