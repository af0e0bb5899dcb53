"""Measure the share of replay in a training step: draw, join and place, method by method.

Run ``python bench/replay_share.py``; it writes figures/bench/replay_share.csv. The data set is the
quick profile's digits70seq with its network, memory of 500 full, one thread; the clock counts that
thread's own time. Draw and place are the time until the plan gives the batches, as in a run ahead
of the steps for methods that look at labels alone, and from step to step for GSS and ExStream, with
what they ask of the network. Join is the time to fetch the replayed half.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from prslib import METHODS, RunConfig, load_dataset
from prslib.memory import Memory
from prslib.paths import figures_dir
from prslib.samplers import make_sampler
from prslib.training.learner import SAMPLER_NEEDS
from prslib.training.replay import online_stream, replay_plan
from prslib.training.run import make_learner

NEW, REPETITIONS, STEPS = 10, 20, 20
FILLING = 80  # steps until the memory is full
TARGET = 5.0  # percent, for samplers that look at labels alone


class Clock:
    """The steps of one method, and how long their parts take."""

    def __init__(self, method, dataset, images, labels):
        config = RunConfig(method=method)
        settings, rng = config.resolved, np.random.default_rng(0)
        self.images, self.labels = images, labels
        self.learner = make_learner(config, dataset)
        options = {name: settings[name] for name in METHODS[method].options}
        name, size = METHODS[method].sampler, settings["memory_size"]
        sampler = make_sampler(name, size, dataset.num_classes, 0, **options)
        parts = online_stream(dataset.train, settings["schedule"], NEW, rng)
        batches = np.concatenate([part.batches for part in parts])
        self.ahead = not sampler.needs
        self.plan = replay_plan(
            batches, dataset.train.labels, sampler, Memory(size), NEW, rng, self.ask_model
        )
        for _ in range(FILLING):
            self.learner.fit(images, labels, [next(self.plan)])

    def ask_model(self, name, batch, memory):
        return SAMPLER_NEEDS[name](self.learner, self.images, self.labels, batch, memory)

    def measure(self, steps: int) -> tuple[float, float, float]:
        """Return milliseconds a step: draw and place, join, everything."""
        plan = join = fit = 0.0
        at_once = steps if self.ahead else 1
        for _ in range(0, steps, at_once):
            start = time.process_time()
            batches = [next(self.plan) for _ in range(at_once)]
            plan += time.process_time() - start
            for batch in batches:
                planned = time.process_time()
                self.learner.fit(self.images, self.labels, [batch])
                ended = time.process_time()
                self.learner.join(self.images, self.labels, batch)
                joined = time.process_time()
                self.learner.join(self.images, self.labels, new_part(batch))
                alone = time.process_time() - joined
                fit += ended - planned
                join += joined - ended - alone
        return 1000 * plan / steps, 1000 * join / steps, 1000 * (plan + fit) / steps


def new_part(batch):
    """Return the indices of a joined batch's new samples."""
    return batch[:NEW] if isinstance(batch, np.ndarray) else batch.new


def main() -> None:
    """Measure, print the table and write it."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    torch.set_num_threads(1)
    dataset = load_dataset("digits70seq")
    images = torch.from_numpy(dataset.train.images)
    labels = torch.from_numpy(dataset.train.labels).float()
    methods = [name for name, method in METHODS.items() if method.sampler]
    clocks = {name: Clock(name, dataset, images, labels) for name in methods}
    rows = []
    for _ in range(REPETITIONS):  # the methods take turns
        for name, clock in clocks.items():
            plan, join, total = clock.measure(STEPS)
            rows.append((name, plan, join, total, 100 * (plan + join) / total))
    columns = ["method", "draw_place_ms", "join_ms", "step_ms", "replay_percent"]
    table = pd.DataFrame(rows, columns=columns).groupby("method", sort=False).median().round(3)
    table["target_percent"] = [np.nan if METHODS[m].looks_at_model else TARGET for m in table.index]
    print(f"PyTorch {torch.__version__}, one thread, medians of {REPETITIONS} repetitions")
    print(table.to_string())
    folder = figures_dir("bench")
    folder.mkdir(parents=True, exist_ok=True)
    table.to_csv(folder / "replay_share.csv")


if __name__ == "__main__":
    main()
