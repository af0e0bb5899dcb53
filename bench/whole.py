"""Compare a whole run with a bare PyTorch loop with the same network, batch and memory.

Run ``python bench/whole.py --repeat 5``: PRS on cocoseq-mini (a head on features) and on
digits70seq (a small network on images). The contestants are the loop itself; prslib's
training without scores; and `prslib.run`, which scores all test sets after each task. All
of them use the same batches and initial weights, keep the same samples and replay the same
number. The loop has no checks, options or scores; a user could write it with
`prslib.make_sampler`. Contestants alternate, in one thread, whose CPU time is measured. It
writes figures/bench/whole_cpu.csv, which contains medians over the rounds of the seconds
and of the ratio to the loop in the same round.
"""

import time
from functools import partial

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from shared import parser, show, write

from prslib import RunConfig, load_dataset, make_sampler, run
from prslib.datasets import SequentialDataset
from prslib.device import run_settings
from prslib.train import Trainer, make_network, spawn_seeds, stream

LOOP = "bare loop"
DATASETS = ["cocoseq-mini", "digits70seq"]
CPU = torch.device("cpu")


def train_bare(config: RunConfig, data: SequentialDataset) -> None:
    """Train with PyTorch and a sampler, and nothing else."""
    settings = config.resolved
    _, sampler_seed, replay_seed, model_seed = spawn_seeds(config)
    network = make_network(config, data, model_seed)
    weights = list(network.parameters())
    rate = settings["learning_rate"]
    optimizer = torch.optim.Adam(weights, lr=rate, fused=True)
    inputs = torch.from_numpy(data.train.inputs)
    labels = torch.from_numpy(data.train.labels.astype(np.float32))
    size, replay = settings["memory_size"], settings["replay_batch_size"]
    rho = settings["rho"]
    sampler = make_sampler("PRS", size, data.num_classes, sampler_seed, rho=rho)
    memory = np.zeros(size, np.int64)
    rng = np.random.default_rng(replay_seed)
    for _, batches, _ in stream(config, data.train.task):
        for new in batches:
            filled = len(sampler)
            drawn = rng.choice(filled, min(replay, filled), replace=False)
            rows = torch.from_numpy(np.concatenate([new, memory[drawn]]))
            x = inputs[rows]
            if x.dtype == torch.uint8:
                x = x.permute(0, 3, 1, 2).float() / 255
            loss = F.multilabel_soft_margin_loss(network(x), labels[rows])
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_value_(weights, settings["clip_value"])
            optimizer.step()
            slots = sampler.place(data.train.labels[new])
            kept = slots >= 0
            memory[slots[kept]] = new[kept]


def train_unscored(config: RunConfig, data: SequentialDataset) -> None:
    """Train as a run does, and score nothing."""
    inputs = torch.from_numpy(data.train.inputs)
    trainer = Trainer(config, data, inputs, CPU)
    for _, batches, in_first in stream(config, data.train.task):
        for new, is_first in zip(batches, in_first, strict=True):
            trainer.step(new, is_first)


def measure(repeat: int) -> pd.DataFrame:
    """Return a row for each data set, contestant and round."""
    rows = []
    for name in DATASETS:
        config = RunConfig(name, "PRS", precision="fp32")
        data = load_dataset(name)
        contestants = {
            LOOP: partial(train_bare, config, data),
            "without scores": partial(train_unscored, config, data),
            "with scores": partial(run, config, "cpu"),
        }
        for turn in range(-1, repeat):  # the first one warms up
            seconds = {}
            for contestant, train in contestants.items():
                with run_settings(CPU):
                    start = time.thread_time()
                    train()
                    seconds[contestant] = time.thread_time() - start
            for contestant, value in seconds.items():
                if turn >= 0:
                    rows.append((name, contestant, value, value / seconds[LOOP]))
    return pd.DataFrame(rows, columns=["dataset", "contestant", "seconds", "ratio"])


def main() -> None:
    """Measure, print the table and write it."""
    line = parser(__doc__)
    line.add_argument("--repeat", type=int, default=5, help="rounds (%(default)s)")
    options = line.parse_args()
    torch.set_num_threads(1)
    rounds = measure(options.repeat).groupby(["dataset", "contestant"], sort=False)
    table = rounds[["seconds", "ratio"]].median().round(3)
    table["lowest"] = rounds["ratio"].min().round(3)
    table["highest"] = rounds["ratio"].max().round(3)
    show(table, options.repeat)
    write(table.reset_index(), "whole_cpu")


if __name__ == "__main__":
    main()
