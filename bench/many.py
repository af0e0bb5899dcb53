"""Measure how many MLP runs an hour finish: one at a time, and side by side.

Run ``python bench/many.py`` (``--device cuda`` on a GPU); it writes
figures/bench/many_DEVICE.csv and .png. A run is PRS on imbal-digits, 1152 steps of
10 + 10 images and five evaluations, with another seed each. "Processes" are as many as
`run_all` starts here, each with one thread. The contestants take turns. The clock is the
wall's, so that nothing else should be at work.
"""

import time
from functools import partial

import pandas as pd
import torch
from joblib import Parallel, cpu_count, delayed
from shared import parser, write

from prslib import MODELS, configs, run

ALONE = 2  # runs of those that take one after another


def seeds_of(count):
    return configs(dataset="imbal-digits", method="PRS", seed=list(range(count)))


def measure(device, rounds, pool):
    """Return a row for every contestant and round: runs an hour."""

    def one_at_a_time():
        for config in seeds_of(ALONE):
            run(config, device)
        return ALONE

    def processes():
        pool(delayed(run)(config, device) for config in seeds_of(pool.n_jobs))
        return pool.n_jobs

    contestants = {
        "one at a time": one_at_a_time,
        f"{pool.n_jobs} processes": processes,
    }
    rows = []
    for turn in range(-1, rounds):  # the first turn warms up and is not counted
        for name, train in contestants.items():
            start = time.perf_counter()
            count = train()
            if turn >= 0:
                rows.append((name, turn, 3600 * count / (time.perf_counter() - start)))
    return pd.DataFrame(rows, columns=["way", "round", "runs_an_hour"])


def draw(rows, name, figure):
    ax = figure.subplots()
    middle = rows.groupby("way", sort=False)["runs_an_hour"].median()
    ax.barh(middle.index, middle, color="0.8")
    ax.plot(rows["runs_an_hour"], rows["way"], "o", color="0.2", markersize=4)
    for way, value in middle.items():
        place = {"xycoords": ("axes fraction", "data"), "va": "center"}
        ax.annotate(f"{value:.0f}", (0.02, way), **place)
    ax.invert_yaxis()
    ax.set_xlim(left=0)
    ax.set_xlabel("runs an hour (bar: median, dots: rounds)")
    ax.set_title(f"An MLP on imbal-digits, {name}")


def main() -> None:
    """Measure, print the table and write it."""
    arguments = parser(__doc__)
    arguments.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    arguments.add_argument("--rounds", type=int, default=3)
    options = arguments.parse_args()
    device = options.device
    torch.set_num_threads(1)
    share = MODELS[seeds_of(1)[0].resolved["model"]].gpu_share
    # as many as `run_all` starts
    jobs = cpu_count() if device == "cpu" else min(cpu_count(), int(1 / share))
    with Parallel(n_jobs=jobs) as pool:
        rows = measure(device, options.rounds, pool)
    table = rows.groupby("way", sort=False)["runs_an_hour"].median().to_frame()
    table["times"] = table["runs_an_hour"] / table["runs_an_hour"].iloc[0]
    on_gpu = device == "cuda"
    name = torch.cuda.get_device_name() if on_gpu else f"{cpu_count()} cores"
    print(f"PyTorch {torch.__version__}, {name}, medians of {options.rounds} rounds")
    print(table.round(1).to_string())
    picture = partial(draw, rows, name)
    write(rows.assign(device=name), f"many_{device}", picture, (7, 3.2), "%.6g")


if __name__ == "__main__":
    main()
