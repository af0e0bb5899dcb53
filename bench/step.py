"""Measure the cost of a training step, method by method, at the paper's size.

Run ``python bench/step.py --device cuda``: 10 new and 10 replayed random images of
256x256, ResNet-101, a full memory of 2000, and bfloat16, as in the paper profile. It
writes figures/bench/methods_<device>.csv with the milliseconds of a step and of the
sampler in it, the peak memory on a GPU, and the operations of a step in TFLOP. With
``--compile``, torch.compile compiles the trained stages. Without a GPU, try it with
``--model convnet --image-size 32 --memory 50``.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import torch
from shared import device_name, parser, show, write
from torch.utils.flop_counter import FlopCounterMode

from prslib import METHODS, RunConfig, load_dataset
from prslib.datasets import DATASETS, Entry, SequentialDataset, Split
from prslib.device import LAUNCHED_SINGLY, put, run_settings
from prslib.train import Trainer

# CRS, CBRS and OCDM need only labels, like PRS; a step of Multitask is one of Finetune
LEFT_OUT = {"CRS", "CBRS", "OCDM", "Multitask"}
NETWORKS = ("resnet101_attention_consistency", "resnet101_rnn_attention")
IMAGES, STEPS, BATCH, CLASSES = 2500, 10, 10, 70


def add_random_images(side: int) -> str:
    """Add a data set of random images, trained as COCOseq is; return its name."""
    rng = np.random.default_rng(0)
    pixels = rng.integers(256, size=(IMAGES, side, side, 3), dtype=np.uint8)
    chance = rng.pareto(1, CLASSES).clip(0.02, 2) / 10
    labels = rng.random((IMAGES, CLASSES)) < chance
    labels[:, 0] |= ~labels.any(axis=1)
    split = Split(pixels, labels, np.zeros(IMAGES, np.int64))
    names = tuple(map(str, range(CLASSES)))
    groups = ("majority",) * CLASSES
    task = np.zeros(CLASSES, np.int64)
    data = SequentialDataset("random", split, {"balanced": split}, names, task, groups)
    recipe = replace(DATASETS["cocoseq"].recipe, schedule=(0,))
    DATASETS["random"] = Entry(lambda images: data, recipe)
    return "random"


def fill(trainer: Trainer) -> None:
    """Fill the memory with random samples, without a step for each batch."""
    columns = {}
    if trainer.method.rehearsal == "der++":
        columns["logits"] = torch.zeros(BATCH, CLASSES, device=trainer.device)
    for start in range(0, trainer.memory.size, BATCH):
        new = np.arange(start, start + BATCH)
        needs = trainer.compute_needs(new, trainer.look_up(new)[0])
        if "gradient_products" in needs:  # orthogonal gradients
            needs["gradient_products"] = lambda subsets: np.eye(len(subsets) + BATCH)
        slots = trainer.sampler.place(trainer.labels[new], **needs)
        trainer.memory.write(slots, index=new, **columns)


def time_calls(function: Callable, seconds: list[float]) -> Callable:
    """Return the function, which now also appends the duration of each call."""

    def timed(*arguments, **keywords):
        start = time.perf_counter()
        result = function(*arguments, **keywords)
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
        return result

    return timed


def measure(config: RunConfig, device: torch.device, compiles: bool) -> dict:
    """Return the time, memory and operations of steps of one kind."""
    is_gpu = device.type == "cuda"
    if is_gpu:
        torch.cuda.reset_peak_memory_stats()
    steps: list[float] = []
    decisions: list[float] = []
    with run_settings(device):
        data = load_dataset(config.dataset)
        trainer = Trainer(config, data, put(data.train.inputs, device), device)
        if trainer.sampler is not None:
            fill(trainer)
            place = time_calls(trainer.sampler.place, decisions)
            trainer.sampler.place = place
        new = np.random.default_rng(0).integers(IMAGES, size=BATCH)
        take_step, trainer.take_step = trainer.take_step, trainer.descend
        with FlopCounterMode(display=False) as counter:
            trainer.step(new)
        trainer.take_step = take_step
        if compiles:
            trainer.upper.compile()
        step = time_calls(partial(trainer.step, new), steps)
        for _ in range(LAUNCHED_SINGLY + 1 + STEPS):
            step()
    return {
        "ms": 1000 * np.median(steps[-STEPS:]),
        "sampler_ms": 1000 * np.median(decisions[-STEPS:] or [0.0]),
        "GB": torch.cuda.max_memory_allocated() / 1e9 if is_gpu else 0.0,
        "teraflop": counter.get_total_flops() / 1e12,
    }


def list_kinds(options: argparse.Namespace, data: str) -> dict[str, RunConfig]:
    """Return a configuration for each row of the table."""
    fields = {"weights": "none", "memory_size": options.memory}
    base = RunConfig(data, "PRS", model=options.model, **fields)
    kinds = {name: replace(base, method=name) for name in METHODS}
    kinds = {name: kinds[name] for name in kinds if name not in LEFT_OUT}
    if options.model == "resnet101":
        kinds["EWC"].pretrained_stages = 6
        kinds |= {f"PRS, {name}": replace(base, model=name) for name in NETWORKS}
    return kinds


def main() -> None:
    """Measure, print the table and write it."""
    line = parser(__doc__)
    default = "cuda" if torch.cuda.is_available() else "cpu"
    line.add_argument("--device", default=default)
    line.add_argument("--compile", action="store_true")
    line.add_argument("--image-size", type=int, default=256)
    line.add_argument("--memory", type=int, default=2000)
    line.add_argument("--model", default="resnet101")
    options = line.parse_args()
    device = torch.device(options.device)
    kinds = list_kinds(options, add_random_images(options.image_size))
    rows = {name: measure(kinds[name], device, options.compile) for name in kinds}
    table = pd.DataFrame(rows).T.rename_axis("kind")
    show(table, STEPS)
    write(table.reset_index(), f"methods_{device_name(device)}", float_format="%.4g")


if __name__ == "__main__":
    main()
