"""Compare a training step with each loss, DER++ and ER-ACE with a plain step.

Run ``python bench/losses.py``: steps of CRS on cocoseq-mini, which trains a head on
features. In every round, each contestant trains for 20 steps, and its time is divided by
the time of plain steps in the same round. DER++ replays 20 samples and is also compared
with a plain step that replays 20. Losses for one label per sample receive the first label.
It writes figures/bench/step_losses.csv.
"""

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd
import torch
from shared import parser, show, write

from prslib import LOSSES, RunConfig, load_dataset
from prslib.datasets import SequentialDataset
from prslib.train import Trainer, stream

DATASET = "cocoseq-mini"
SEVERAL, ONE = "multilabel_soft_margin", "cross_entropy"  # losses of plain steps
TWICE = "20 replayed"  # plain steps with as many replayed samples as DER++
STEPS, WARM_UP = 20, 25  # steps in a round, and before the first round


def train_steps(config: RunConfig, data: SequentialDataset) -> Iterator[None]:
    """Train a run, one step per `next`."""
    inputs = torch.from_numpy(data.train.inputs)
    trainer = Trainer(config, data, inputs, torch.device("cpu"))
    for _, batches, _ in stream(config, data.train.task):
        for new in batches:
            yield trainer.step(new)


def time_rounds(
    configs: dict[str, RunConfig], data: SequentialDataset, plain: str
) -> pd.DataFrame:
    """Return milliseconds per step by round, also as a multiple of the plain step."""
    trainings = {name: train_steps(config, data) for name, config in configs.items()}
    for steps in trainings.values():
        for _ in range(WARM_UP):
            next(steps)
    rows = []
    for _ in range((len(data.train) // 10 - WARM_UP) // STEPS - 1):
        ms = {}
        for name, steps in trainings.items():
            before = time.thread_time()  # independent of other processes
            for _ in range(STEPS):
                next(steps)
            ms[name] = 1000 * (time.thread_time() - before) / STEPS
        rows += [(plain, name, value / ms[plain], value) for name, value in ms.items()]
        if TWICE in ms:
            rows.append((TWICE, "DER++", ms["DER++"] / ms[TWICE], ms["DER++"]))
    return pd.DataFrame(rows, columns=["plain", "contestant", "times_plain", "ms"])


def measure(seed: int) -> pd.DataFrame:
    """Return the times of all losses in runs of one seed."""
    data = load_dataset(DATASET)
    one_hot = np.eye(data.num_classes, dtype=bool)[data.train.labels.argmax(axis=1)]
    one_label = replace(data, train=replace(data.train, labels=one_hot))
    base = RunConfig(DATASET, "CRS", seed=seed)
    several = [name for name in LOSSES if not LOSSES[name].one_label]
    single = [name for name in LOSSES if LOSSES[name].one_label]
    contestants = {name: replace(base, loss=name) for name in several}
    contestants["balanced draw"] = replace(base, draw="balanced")
    contestants[TWICE] = replace(base, replay_batch_size=20)
    contestants["DER++"] = replace(base, method="DER++")
    contestants["ER-ACE"] = replace(base, method="ER-ACE")
    of_one = {name: replace(base, loss=name) for name in single}
    parts = [
        time_rounds(contestants, data, SEVERAL),
        time_rounds(of_one, one_label, ONE),
    ]
    return pd.concat(parts)


def main() -> None:
    """Measure, print the table and write it."""
    line = parser(__doc__)
    line.add_argument("--runs", type=int, default=10, help="seeds (%(default)s)")
    options = line.parse_args()
    torch.set_num_threads(1)
    rounds = pd.concat([measure(seed) for seed in range(options.runs)])
    table = rounds.groupby(["plain", "contestant"], sort=False).median().round(3)
    show(table, options.runs)
    write(table.reset_index(), "step_losses")


if __name__ == "__main__":
    main()
