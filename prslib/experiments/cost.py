"""Estimate what missing runs cost: their steps times the time of a measured step."""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pandas as pd
import torch
from tqdm import tqdm

from prslib.datasets import DATASETS, load_dataset
from prslib.datasets.arrays import PIXELS
from prslib.datasets.base import SequentialDataset, Split
from prslib.experiments.store import Store
from prslib.models import MODELS
from prslib.models.weights import NONE
from prslib.training.config import RunConfig
from prslib.training.methods import METHODS
from prslib.training.replay import stream
from prslib.training.run import begin, one_thread, train

BLANK = 1000  # images in place of those that are not here
FEATURES = np.dtype((np.float32, (1280,)))  # as `prslib prepare features` makes them
# what a step's time depends on
PACE = (
    "dataset",
    "method",
    "model",
    "frozen_stages",
    "pretrained_stages",
    "precision",
    "batch_size",
    "replay_batch_size",
)
# a measured run ends after so many steps that took so many seconds
STEPS = 3
SECONDS = 1.0


def plan(notebooks: Sequence[tuple[str, list[RunConfig], str]], store: Store) -> str:
    """Lay out the missing runs of notebooks, their steps and hours, as text.

    Each notebook comes with its runs and their device.
    """
    labels_of = cache(partial(load_dataset, images=False))
    rows = []
    for name, configs, device in notebooks:
        for config in tqdm(configs, name, unit="run"):
            row = {
                "notebook": name,
                "hash": config.hash,
                "training": config.training_hash,
            }
            row |= {"runs": 1, "missing": 0, "steps": 0, "hours": 0.0}
            if not store.path(config).exists():
                segments = stream(config, labels_of(config.dataset))
                steps = sum(len(segment.batches) for segment in segments)
                seconds = steps * measure_step(representative(config), device)
                row |= {"missing": 1, "steps": steps, "hours": seconds / 3600}
            rows.append(row)
    runs = pd.DataFrame(rows).drop_duplicates(["notebook", "hash"])
    total = runs.drop_duplicates("hash").assign(notebook="all, each run once")
    # runs that train alike are trained as one
    trainings = pd.concat([runs, total]).groupby(["notebook", "training"], sort=False)
    counts = trainings[["runs", "missing"]].sum()
    table = counts.join(trainings[["steps", "hours"]].max())
    table = table.groupby("notebook", sort=False).sum().reset_index()
    return table.to_string(index=False, float_format="{:,.3g}".format)


def representative(config: RunConfig) -> RunConfig:
    """Return the configuration whose step is measured for all of the same pace."""
    fields = {name: getattr(config, name) for name in PACE}
    method = METHODS[config.method]
    if method.looks_at_model or method.ewc:
        fields["options"] = config.options
    elif method.sampler:
        # to choose slots by labels takes a few hundredths of a step; only the released
        # PRS, which is not compiled, takes more
        fields["method"] = "CRS"
    return RunConfig(**fields, weights=NONE)


@cache
def measure_step(config: RunConfig, device: str = "cpu") -> float:
    """Return the seconds of a step: begin the run and look at the clock."""
    if not torch.cuda.is_available():  # its CPU is measured instead
        device = "cpu"
    precision = "fp32" if device == "cpu" else config.precision
    plain = replace(config, weights=NONE, precision=precision)
    dataset = with_inputs(config.dataset)
    times = []
    with one_thread():
        progress = begin(plain, dataset, device)
        for _ in train([plain], dataset, device, progress):
            if device != "cpu":
                torch.cuda.synchronize()
            times.append(time.perf_counter())
            if len(times) >= STEPS and times[-1] - times[0] > SECONDS:
                break
    return float(np.median(np.diff(times)[1:]))


def with_inputs(name: str) -> SequentialDataset:
    """Load a data set, or some of its labels with blank inputs where it has none here."""
    with suppress(FileNotFoundError):
        return load_dataset(name)
    dataset = load_dataset(name, images=False)
    on_features = MODELS[DATASETS[name].recipe.model].on_features
    blank = np.ones(BLANK, FEATURES if on_features else PIXELS)
    rows = np.linspace(0, len(dataset.train) - 1, BLANK).astype(int)  # of all tasks
    few = Split(blank, dataset.train.labels[rows], dataset.train.task[rows])
    return replace(dataset, train=few, tests=dict.fromkeys(dataset.tests, few))
