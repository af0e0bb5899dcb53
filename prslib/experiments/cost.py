"""Estimate what missing runs cost: their steps times the time of one."""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, lru_cache, partial

import numpy as np
import pandas as pd
import torch
from torch.utils.flop_counter import FlopCounterMode
from tqdm import tqdm

from prslib.datasets import DATASETS, load_dataset
from prslib.datasets.arrays import PIXELS
from prslib.datasets.base import SequentialDataset, Split
from prslib.experiments.store import Store, conditions_of
from prslib.models import MODELS
from prslib.models.weights import NONE
from prslib.samplers import SAMPLERS
from prslib.training.config import RunConfig
from prslib.training.device import Inputs, check_device, conditions, without_tf32
from prslib.training.exstream_gpu import features_for
from prslib.training.learner import Learner
from prslib.training.methods import METHODS
from prslib.training.rehearsal import REHEARSALS
from prslib.training.replay import HELD_OUT, Replay, stream
from prslib.training.run import begin, make_learner, on_gpu, one_thread, train

AT_ONCE = 10  # samples that fill a memory
TWO = 2  # samples whose operations are counted: batch norm needs more than one
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
STEPS_ON_GPU = 20  # the first are slow: see `prslib.training.device.Captured`
SLOW = 2  # first steps that do not count, where there are more
SECONDS = 1.0


def plan(
    notebooks: Sequence[tuple[str, list[RunConfig], str]],
    store: Store,
    tflops: float | None = None,
) -> str:
    """Lay out the missing runs of notebooks, their steps and hours, as text.

    Each notebook comes with its runs and their device. The hours follow from stored
    runs of the same kind on that device, else from a few steps that are timed here;
    with ``tflops``, from counted operations at that rate, in 10^12 a second.
    """
    labels_of = cache(partial(load_dataset, images=False))
    recorded = recorded_steps(notebooks, store)
    sources: dict[str, set[str]] = {}  # hashes of runs by where their hours are from
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
                if config.own_threshold:  # it trains a second time
                    steps += steps * (HELD_OUT - 1) // HELD_OUT
                kind = representative(config)
                if tflops:
                    seconds = count_operations(kind) / (tflops * 1e12)
                    source = f"operations that are counted, at {tflops:g} TFLOP/s"
                elif (kind, kind_of(device)) in recorded:
                    seconds = recorded[kind, kind_of(device)]
                    source = f"stored runs of the same kind on {device}"
                else:
                    seconds = measure_step(kind, device)
                    source = f"steps timed on {conditions_of(conditions(here(device)))}"
                    if kind_of(device) != kind_of(here(device)):
                        source += f", for want of {device}"
                sources.setdefault(source, set()).add(config.hash)
                row |= {"missing": 1, "steps": steps, "hours": steps * seconds / 3600}
            rows.append(row)
    runs = pd.DataFrame(rows).drop_duplicates(["notebook", "hash"])
    total = runs.drop_duplicates("hash").assign(notebook="all, each run once")
    # runs that share a training are trained as one
    trainings = pd.concat([runs, total]).groupby(["notebook", "training"], sort=False)
    counts = trainings[["runs", "missing"]].sum()
    table = counts.join(trainings[["steps", "hours"]].max())
    table = table.groupby("notebook", sort=False).sum().reset_index()
    lines = [table.to_string(index=False, float_format="{:,.3g}".format)]
    lines += [f"hours of {len(of)} runs: {source}" for source, of in sources.items()]
    return "\n".join(lines)


def recorded_steps(
    notebooks: Sequence[tuple[str, list[RunConfig], str]], store: Store
) -> dict[tuple[RunConfig, str], float]:
    """Return the median seconds of a step, scores included, by kind and device."""
    times: dict = {}
    for _, configs, _ in notebooks:
        for config in configs:
            record = store.record(config)
            if record and record["steps"]:
                key = representative(config), record["device"]
                step = record["seconds"] / record["steps"]
                times.setdefault(key, {})[config.training_hash] = step
    return {key: float(np.median(list(by.values()))) for key, by in times.items()}


def here(device: str) -> str:
    """Return the device whose steps can be timed: the CPU where that one is not."""
    with suppress(ValueError):
        return check_device(device)
    return "cpu"


def kind_of(device: str) -> str:
    """Return a device without its number, as records have it."""
    return here(device) if device == "auto" else device.partition(":")[0]


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
    """Return the seconds of a step: begin the run with a full memory and time steps."""
    device = here(device)
    precision = "fp32" if device == "cpu" else config.precision
    plain = replace(config, weights=NONE, precision=precision)
    dataset = with_inputs(config.dataset)
    times = [time.perf_counter()]
    least = STEPS if device == "cpu" else STEPS_ON_GPU
    on_gpu.clear()  # these inputs may be blank
    with one_thread(), without_tf32():
        progress = begin(plain, dataset, device)
        if progress.replay:
            fill(progress.learner, progress.replay, dataset)
        segments = stream(plain, dataset)
        for _ in train([plain], dataset, device, progress, segments, _unscored):
            if progress.step < len(times):  # it has scored
                continue
            if device.startswith("cuda"):
                torch.cuda.synchronize()
            times.append(time.perf_counter())
            if progress.step >= least and times[-1] - times[1] > SECONDS:
                break
    on_gpu.clear()
    steps = np.diff(times)
    return float(np.median(steps[SLOW:] if len(steps) > SLOW else steps))


def _unscored(*_arguments: object) -> None:
    """Score nothing: the steps are timed."""


def fill(learner: Learner, replay: Replay, dataset: SequentialDataset) -> None:
    """Fill a memory with random samples of all classes: most steps find a full one."""
    needs = replay.sampler.needs
    rng = np.random.default_rng(0)
    first = Inputs(dataset.train.loaded_inputs[:1], learner.device)
    width = learner.encode(first[np.zeros(1, int)]).flatten(1).shape[1]
    classes = np.eye(dataset.num_classes, dtype=bool)
    for start in range(0, replay.memory.size, AT_ONCE):
        numbers = np.arange(start, min(start + AT_ONCE, replay.memory.size))
        count = len(numbers)
        context: dict = {}
        if "features" in needs:
            vectors = torch.from_numpy(rng.random((count, width), np.float32))
            vectors = vectors.to(learner.device)
            context["features"] = features_for(replay.sampler, vectors)
        if "gradient_products" in needs:  # each gradient resembles no other
            context["gradient_products"] = partial(_eye, count)
        rows = rng.integers(len(dataset.train), size=count)
        labels = classes[numbers % dataset.num_classes]
        columns = learner.blank_columns(count, dataset.num_classes)
        replay.offer(rows, labels, columns, **context)


def _eye(count: int, subsets: np.ndarray) -> np.ndarray:
    return np.eye(len(subsets) + count)


def count_operations(config: RunConfig) -> float:
    """Return the floating-point operations of a step, of matrices and convolutions."""
    method = METHODS[config.method]
    settings = config.resolved
    batch = settings["batch_size"]
    batches = REHEARSALS[method.rehearsal].batches if method.rehearsal else 1
    replayed = batches * settings["replay_batch_size"] if method.sampler else 0
    samples = batch + replayed
    frozen = max(settings["frozen_stages"], settings.get(method.frozen, 0))
    usual = RunConfig(config.dataset, "Finetune", model=settings["model"])
    network = replace(usual, frozen_stages=frozen, weights=NONE)
    frozen_operations, operations = sample_operations(network)
    total = samples * operations
    # a sample's own gradient takes as many as its share of the batch's
    if method.ewc:
        total += samples * (operations - frozen_operations)
    needs = SAMPLERS[method.sampler].needs if method.sampler else ()
    if "features" in needs:
        total += batch * frozen_operations
    if "gradient_products" in needs:  # at most: a full memory often compares with fewer
        seed = np.random.SeedSequence(0)
        gss = config.sampler_for(with_inputs(config.dataset), seed)
        compared = getattr(gss, "subsets", 0) * getattr(gss, "subset_size", 0)
        total += (compared + batch) * operations
    return total


@cache
def sample_operations(config: RunConfig) -> tuple[float, float]:
    """Return a sample's operations in frozen stages, and in all of a training step."""
    dataset = with_inputs(config.dataset)
    learner = make_learner(config, dataset)
    learner.model.to("meta")  # tensors there have shapes alone: nothing is computed
    row = torch.from_numpy(dataset.train.loaded_inputs[:1])
    inputs = row.new_empty((TWO, *row.shape[1:]), device="meta")
    targets = torch.zeros(TWO, dataset.num_classes, device="meta")
    counts = []
    with FlopCounterMode(display=False) as counter:
        encoded = learner.encode(inputs)
        counts.append(counter.get_total_flops() / TWO)
        loss, _ = learner.objective(encoded, targets)
        weights = list(learner.upper.parameters())
        torch.autograd.grad(loss, weights, allow_unused=True)
        counts.append(counter.get_total_flops() / TWO)
    return counts[0], counts[1]


@lru_cache(maxsize=1)  # runs on one set follow each other
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
