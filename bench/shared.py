"""Arguments, tables and pictures of the benchmarks."""

import argparse
from collections.abc import Callable

import matplotlib.pyplot as plt
import pandas as pd
import torch

from prslib.paths import figures_dir
from prslib.report.style import STYLE


def parser(text: str) -> argparse.ArgumentParser:
    """Return a parser of arguments that shows the first line of a benchmark's text."""
    return argparse.ArgumentParser(description=text.splitlines()[0])


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
