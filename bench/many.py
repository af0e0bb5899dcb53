"""Measure how many MLP runs an hour finish: one at a time, and side by side.

Run ``python bench/many.py`` (``--device cuda`` on a GPU); it writes
figures/bench/many_DEVICE.csv and .png. A run is PRS on imbal-digits, 1152 steps of
10 + 10 images and five evaluations, with another seed each. "Processes" are as many as
a sweep begins here, each with one thread. The contestants take turns. The clock is the
wall's, so that nothing else should be at work. The committed numbers also have networks
stacked into one and a loop in plain numpy, which this version no longer has.
"""

import argparse
import sys
import time
from pathlib import Path

import matplotlib
import pandas as pd
import torch
from joblib import Parallel, cpu_count, delayed

matplotlib.use("Agg")
ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import matplotlib.pyplot as plt

from prslib.experiments.pool import gpu_share, process_count
from prslib.paths import figures_dir
from prslib.report.style import STYLE
from prslib.training.grids import configs
from prslib.training.run import run

DATASET = "imbal-digits"
ALONE = 2  # runs of those that take one after another


def wanted(count):
    return configs(dataset=DATASET, method="PRS", seed=list(range(count)))


def one_at_a_time(device):
    for config in wanted(ALONE):
        run(config, device)
    return ALONE


def at_once(device):
    """Return how many processes a sweep begins on this machine."""
    return process_count(gpu_share(wanted(1), device))


def processes(pool, count):
    def train(device):
        pool(delayed(run)(config, device) for config in wanted(count))
        return count

    return train


def measure(device, rounds, pool):
    """Return a row for every contestant and round: runs an hour."""
    contestants = {
        "one at a time": one_at_a_time,
        f"{pool.n_jobs} processes": processes(pool, pool.n_jobs),
    }
    rows = []
    for turn in range(-1, rounds):  # the first turn warms up and is not counted
        for name, train in contestants.items():
            start = time.perf_counter()
            count = train(device)
            if turn >= 0:
                rows.append((name, turn, 3600 * count / (time.perf_counter() - start)))
    return pd.DataFrame(rows, columns=["way", "round", "runs_an_hour"])


def draw(rows, device):
    plt.style.use(STYLE)
    figure, ax = plt.subplots(figsize=(7, 3.2))
    middle = rows.groupby("way", sort=False)["runs_an_hour"].median()
    ax.barh(middle.index, middle, color="0.8")
    ax.plot(rows["runs_an_hour"], rows["way"], "o", color="0.2", markersize=4)
    for name, value in middle.items():
        ax.annotate(
            f"{value:.0f}",
            (0.02, name),
            xycoords=("axes fraction", "data"),
            va="center",
        )
    ax.invert_yaxis()
    ax.set_xlim(left=0)
    ax.set_xlabel("runs an hour (bar: median, dots: rounds)")
    ax.set_title(f"An MLP on {DATASET}, on a {device.upper()}")
    return figure


def main() -> None:
    """Measure, print the table and write it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    with Parallel(n_jobs=at_once(options.device)) as pool:
        rows = measure(options.device, options.rounds, pool)
    table = rows.groupby("way", sort=False)["runs_an_hour"].median().to_frame()
    table["times"] = table["runs_an_hour"] / table["runs_an_hour"].iloc[0]
    name = (
        torch.cuda.get_device_name()
        if options.device == "cuda"
        else f"{cpu_count()} cores"
    )
    print(f"PyTorch {torch.__version__}, {name}, medians of {options.rounds} rounds")
    print(table.round(1).to_string())
    folder = figures_dir("bench")
    folder.mkdir(parents=True, exist_ok=True)
    rows.assign(device=name).to_csv(
        folder / f"many_{options.device}.csv", index=False, float_format="%.6g"
    )
    figure = draw(rows, options.device)
    figure.savefig(folder / f"many_{options.device}.png", metadata={"Software": None})


if __name__ == "__main__":
    main()
