"""Arguments, tables, pictures and blank images of the benchmarks."""

import argparse
import re
from collections.abc import Callable
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch

from prslib.datasets import DATASETS, Entry, SequentialDataset, Split
from prslib.paths import figures_dir
from prslib.report.style import STYLE


def parser(text: str) -> argparse.ArgumentParser:
    """Return a parser of arguments that shows the first line of a benchmark's text."""
    return argparse.ArgumentParser(description=text.splitlines()[0])


def device_name(device: torch.device) -> str:
    """Return a device's name for a file: "h100" for "NVIDIA H100 80GB HBM3"."""
    if device.type == "cpu":
        return "cpu"
    name = torch.cuda.get_device_name(device)
    card = re.search(r"\b[A-Z]+\d+[A-Z]*\b", name)
    return (card.group() if card else re.sub(r"\W+", "_", name)).lower()


def add_random_images(count: int, side: int, classes: int = 70) -> str:
    """Add a data set of random images, trained as COCOseq is; return its name."""
    rng = np.random.default_rng(0)
    pixels = rng.integers(256, size=(count, side, side, 3), dtype=np.uint8)
    chance = rng.pareto(1, classes).clip(0.02, 2) / 10
    labels = rng.random((count, classes)) < chance
    labels[:, 0] |= ~labels.any(axis=1)
    split = Split(pixels, labels, np.zeros(count, np.int64))
    names = tuple(map(str, range(classes)))
    groups = ("majority",) * classes
    task = np.zeros(classes, np.int64)
    tests = {"balanced": split}
    data = SequentialDataset("random", split, tests, names, task, groups)
    recipe = replace(DATASETS["cocoseq"].recipe, schedule=(0,))
    DATASETS["random"] = Entry(lambda images: data, recipe)
    return "random"


def show(table: pd.DataFrame, repetitions: int) -> None:
    """Print a table of medians."""
    print(f"PyTorch {torch.__version__}, one thread, medians of {repetitions}")
    print(table.to_string())


def write(
    table: pd.DataFrame,
    name: str,
    draw: Callable[[plt.Figure], None] | None = None,
    size: tuple[float, float] | None = None,
    float_format: str | None = None,
) -> None:
    """Write a table to figures/bench/NAME.csv and its picture to NAME.png."""
    folder = figures_dir("bench")
    folder.mkdir(parents=True, exist_ok=True)
    table.to_csv(folder / f"{name}.csv", index=False, float_format=float_format)
    if draw:
        plt.switch_backend("Agg")
        plt.style.use(STYLE)
        figure = plt.figure(figsize=size)
        draw(figure)
        figure.savefig(folder / f"{name}.png", metadata={"Software": None})
