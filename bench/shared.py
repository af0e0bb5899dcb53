"""Arguments and tables of the benchmarks."""

import argparse

import pandas as pd
import torch

from prslib.paths import figures_dir, replacing
from prslib.report.build import write_sums


def parser(text: str) -> argparse.ArgumentParser:
    """Return an argument parser that describes a benchmark by its docstring's first line."""
    return argparse.ArgumentParser(description=text.splitlines()[0])


def show(table: pd.DataFrame, repetitions: int) -> None:
    """Print a table of medians."""
    print(f"PyTorch {torch.__version__}, one thread, medians of {repetitions}")
    print(table.to_string(float_format="{:.3g}".format))


def write(table: pd.DataFrame, name: str, float_format: str | None = None) -> None:
    """Write a table to figures/bench/NAME.csv."""
    path = figures_dir("bench") / f"{name}.csv"
    with replacing(path) as file:
        table.to_csv(file, index=False, float_format=float_format)
    write_sums(path.parent, [path])
