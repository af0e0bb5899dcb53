"""Measure the cost of a training step, method by method, at the paper's size.

Run ``python bench/step.py --device cuda``: 10 new and 10 replayed random images of
256x256, ResNet-101, a full memory of 2000, and bfloat16, as in the paper profile. It
writes figures/bench/steps.csv with the milliseconds of a step and the peak memory on a
GPU. Without a GPU, try it with ``--model convnet --image-size 32 --memory 50``.
"""

import time
from dataclasses import replace

import numpy as np
import pandas as pd
import torch
from shared import parser, show, write

from prslib import METHODS, RunConfig, load_dataset
from prslib.datasets import DATASETS, Entry, SequentialDataset, Split
from prslib.device import put, run_settings
from prslib.train import Trainer

# CRS, CBRS and OCDM need only labels, like PRS; Multitask has the same steps as Finetune
LEFT_OUT = {"CRS", "CBRS", "OCDM", "Multitask"}
WITH_FULL_MEMORY, STEPS, BATCH, CLASSES = 500, 10, 10, 70


def add_random_images(side: int, number: int) -> str:
    """Add a data set of random images, trained as COCOseq is; return its name."""
    rng = np.random.default_rng(0)
    pixels = rng.integers(256, size=(number, side, side, 3), dtype=np.uint8)
    chance = rng.pareto(1, CLASSES).clip(0.02, 2) / 10
    labels = rng.random((number, CLASSES)) < chance
    labels[:, 0] |= ~labels.any(axis=1)
    split = Split(pixels, labels, np.zeros(number, np.int64))
    names = tuple(map(str, range(CLASSES)))
    groups = ("majority",) * CLASSES
    task = np.zeros(CLASSES, np.int64)
    data = SequentialDataset("random", split, {"balanced": split}, names, task, groups)
    recipe = replace(DATASETS["cocoseq"].recipe, schedule=(0,))
    DATASETS["random"] = Entry(lambda images: data, recipe)
    return "random"


def measure(config: RunConfig, device: torch.device) -> dict:
    """Return the median time of a stream's last steps, and the peak memory of all steps."""
    is_gpu = device.type == "cuda"
    if is_gpu:
        torch.cuda.reset_peak_memory_stats()
    seconds = []
    with run_settings(device):
        data = load_dataset(config.dataset)
        trainer = Trainer(config, data, put(data.train.inputs, device), device)
        for new in np.arange(len(data.train)).reshape(-1, BATCH):
            start = time.perf_counter()
            trainer.step(new)
            if is_gpu:
                torch.cuda.synchronize()
            seconds.append(time.perf_counter() - start)
    return {
        "ms": 1000 * np.median(seconds[-STEPS:]),
        "GB": torch.cuda.max_memory_allocated() / 1e9 if is_gpu else 0.0,
    }


def main() -> None:
    """Measure, print the table and write it."""
    line = parser(__doc__)
    default = "cuda" if torch.cuda.is_available() else "cpu"
    line.add_argument("--device", default=default)
    line.add_argument("--image-size", type=int, default=256)
    line.add_argument("--memory", type=int, default=2000)
    line.add_argument("--model", default="resnet101")
    options = line.parse_args()
    name = add_random_images(options.image_size, options.memory + WITH_FULL_MEMORY)
    fields = {"model": options.model, "weights": "none", "memory_size": options.memory}
    kinds = {
        method: RunConfig(name, method, **fields)
        for method in METHODS
        if method not in LEFT_OUT
    }
    if options.model.startswith("resnet"):
        kinds["EWC"].pretrained_stages = 6
    device = torch.device(options.device)
    rows = {method: measure(config, device) for method, config in kinds.items()}
    table = pd.DataFrame(rows).T.rename_axis("method")
    show(table, STEPS)
    write(table.reset_index(), "steps", float_format="%.4g")


if __name__ == "__main__":
    main()
