"""Measure the share of replay in a training step: draw, join and place, method by method.

Run ``python bench/replay_share.py``; it writes figures/bench/replay_share.csv. The data
set is the quick profile's digits70seq with its network, memory of 500 full, one thread;
the clock counts that thread's own time. Place is with what GSS and ExStream ask of the
network. Join is the time to fetch the replayed half.
"""

import time

import numpy as np
import pandas as pd
import torch
from shared import parser, show, write

from prslib import METHODS, RunConfig, load_dataset
from prslib.datasets import SequentialDataset
from prslib.training.device import Inputs
from prslib.training.learner import context_of
from prslib.training.replay import make_replay, stream
from prslib.training.run import make_learner

REPETITIONS, STEPS = 20, 20
FILLING = 80  # steps until the memory is full
TARGET = 5.0  # percent, for samplers that look at labels alone


class Clock:
    """The steps of one method, and how long their parts take."""

    def __init__(self, method: str, dataset: SequentialDataset):
        config = RunConfig(method=method)
        self.learner = make_learner(config, dataset)
        self.replay = make_replay(config, dataset)
        self.inputs = Inputs(dataset.train.inputs)
        self.labels = Inputs(dataset.train.labels.astype(np.float32))
        self.multi_hot = dataset.train.labels
        batches = np.concatenate([s.batches for s in stream(config, dataset)])
        self.batches = iter(batches)
        for _ in range(FILLING):
            self.step()

    def step(self) -> np.ndarray:
        """Take a step as in a run; return the seconds of draw and place, join, all."""
        new, data, clock = next(self.batches), (self.inputs, self.labels), []
        clock.append(time.process_time())
        slots = self.replay.draw()
        clock.append(time.process_time())
        joined = self.learner.join(*data, new, slots, self.replay)
        clock.append(time.process_time())
        self.learner.join(*data, new)
        clock.append(time.process_time())
        self.learner.step(*joined)
        clock.append(time.process_time())
        context = context_of(self.replay, self.learner, *data, new)
        self.replay.offer(new, self.multi_hot[new], **context)
        clock.append(time.process_time())
        draw, join, alone, train, place = np.diff(clock)
        return np.array([draw + place, join - alone, draw + join + train + place])


def main() -> None:
    """Measure, print the table and write it."""
    parser(__doc__).parse_args()
    torch.set_num_threads(1)
    dataset = load_dataset("digits70seq")
    methods = [name for name, m in METHODS.items() if m.sampler and not m.rehearsal]
    clocks = {name: Clock(name, dataset) for name in methods}
    rows = []
    for _ in range(REPETITIONS):  # the methods take turns
        for name, clock in clocks.items():
            times = sum(clock.step() for _ in range(STEPS))
            draw_place, join, total = 1000 * times / STEPS
            share = 100 * (draw_place + join) / total
            rows.append((name, draw_place, join, total, share))
    columns = ["method", "draw_place_ms", "join_ms", "step_ms", "replay_percent"]
    table = pd.DataFrame(rows, columns=columns).groupby("method", sort=False)
    table = table.median().round(3)
    looking = [METHODS[method].looks_at_model for method in table.index]
    table["target_percent"] = np.where(looking, np.nan, TARGET)
    show(table, REPETITIONS)
    write(table.reset_index(), "replay_share")


if __name__ == "__main__":
    main()
