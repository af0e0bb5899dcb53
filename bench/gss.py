"""Measure a training step with GSS, beside one with CRS and one with GSS in the plain way.

Run ``python bench/gss.py``; it writes figures/bench/gss.csv and gss.png. By its rules
GSS looks at 10 memory batches of 10 and at 10 new samples, after a step on 20: 6.5
times what CRS looks at. Ours stops after two memory batches where these already turn
the new samples away. The plain way takes one backward pass for each memory batch and
one for each new sample, as the method's own code does. One thread, memory full, the
contestants taking turns; the clock counts that thread's own time, so that other work on
the machine matters little. Images are scored once beforehand, as in a run after its
first task: from then on the allocator keeps large pieces of memory, where it gave them
back to the system after every step and had to ask for them again.
"""

import time
from functools import partial
from itertools import islice

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from shared import parser, show, write

from prslib import RunConfig, make_model
from prslib.memory import Memory
from prslib.report.style import HUES
from prslib.samplers import make_sampler
from prslib.training.device import Inputs
from prslib.training.learner import Learner, context_of
from prslib.training.replay import Replay

MOST = (20 + 10 * 10 + 10) / 20
TARGETS = {"convnet": 1.3 * MOST, "mlp": 4.0}
SIZE, BATCH, REPETITIONS = 500, 10, 30
STEPS = {"convnet": 4, "mlp": 40}  # of each contestant before the next has its turn
CONTESTANTS = {"CRS": "crs", "GSS": "gss", "GSS, one backward a sample": "gss"}


def one_backward_a_sample(replay, learner, inputs, labels, batch):
    """Compare gradients the plain way: a pass a memory batch, a pass a new sample."""

    def gradient(rows):
        learner.model.eval()
        scores = learner.model(learner.encode(inputs[rows]))
        loss = learner.loss(scores, labels[rows])
        gradients = torch.autograd.grad(loss, learner.parameters)
        return torch.cat([one.flatten() for one in gradients])

    def products(subsets):
        known = [replay.memory.read(slots)["index"] for slots in subsets]
        rows = torch.stack([gradient(rows) for rows in [*known, *batch[:, None]]])
        return (rows @ rows.T).double().numpy()

    return {"gradient_products": products}


NETWORKS = {"digits70seq": ((32, 32, 3), 70), "imbal-mnistseq": ((28, 28, 1), 10)}
TRAINING = "optimizer", "learning_rate", "loss", "clip_value", "norm_penalty"


def contest(dataset: str) -> pd.DataFrame:
    """Return the milliseconds of a step, a row for each contestant and repetition."""
    settings = RunConfig(dataset=dataset).resolved
    name, training = settings["model"], {key: settings[key] for key in TRAINING}
    shape, classes = NETWORKS[dataset]
    rng = np.random.default_rng(0)
    count = SIZE + (REPETITIONS + 2) * STEPS[name] * BATCH
    pixels = rng.integers(256, size=(count, *shape), dtype=np.uint8)
    multi_hot = np.eye(classes, dtype=bool)[rng.integers(classes, size=count)]
    inputs, labels = Inputs(pixels), Inputs(multi_hot.astype(np.float32))

    runs = {}
    for contestant, sampler in CONTESTANTS.items():
        learner = Learner(make_model(name, shape, classes, 0), **training)
        sampler = make_sampler(sampler, SIZE, classes, 0)
        replay = Replay(sampler, Memory(SIZE), 0, BATCH)
        for batch in np.arange(SIZE).reshape(-1, BATCH):
            context = context_of(replay, learner, inputs, labels, batch)
            replay.offer(batch, multi_hot[batch], **context)
        batches = iter(np.arange(SIZE, count).reshape(-1, BATCH))
        learner.probabilities(inputs)  # as in a run after its first task
        plain = "backward" in contestant
        way = one_backward_a_sample if plain else context_of
        runs[contestant] = learner, replay, batches, way
    rows = []
    for repetition in range(-2, REPETITIONS):  # the first two warm up
        for contestant, (learner, replay, batches, way) in runs.items():
            steps = list(islice(batches, STEPS[name]))
            start = time.process_time()
            for batch in steps:
                slots = replay.draw()
                learner.step(*learner.join(inputs, labels, batch, slots, replay))
                context = way(replay, learner, inputs, labels, batch)
                context = {need: context[need] for need in replay.sampler.needs}
                replay.offer(batch, multi_hot[batch], **context)
            ms = 1000 * (time.process_time() - start) / STEPS[name]
            if repetition >= 0:
                rows.append((name, contestant, repetition, ms))
    return pd.DataFrame(rows, columns=["model", "contestant", "repetition", "ms"])


def main() -> None:
    """Measure, print the table, write the numbers and the picture."""
    parser(__doc__).parse_args()
    torch.set_num_threads(1)
    times = pd.concat([contest(dataset) for dataset in NETWORKS], ignore_index=True)
    crs = times["ms"].where(times["contestant"] == "CRS")
    turn = times["model"], times["repetition"]
    times["crs_steps"] = times["ms"] / crs.groupby([*turn]).transform("max")
    table = times.groupby(["model", "contestant"], sort=False).agg(
        ms=("ms", "median"),
        crs_steps=("crs_steps", "median"),
        lowest=("crs_steps", "min"),
        highest=("crs_steps", "max"),
    )
    table["at_most"] = [MOST if "GSS" in name else 1 for _, name in table.index]
    table = table.reset_index()
    table["target"] = table["model"].map(TARGETS).where(table["contestant"] == "GSS")
    table = table.round(2)
    show(table, REPETITIONS)
    write(table, "gss", partial(draw, table), (9, 2.9))


def draw(table: pd.DataFrame, figure: plt.Figure) -> None:
    """Draw the steps' costs in CRS steps, with the most that may be looked at and the limit."""
    axes = figure.subplots(1, 2)
    for ax, (model, rows) in zip(axes, table.groupby("model", sort=False), strict=True):
        bars = ax.barh(rows["contestant"], rows["crs_steps"], color="0.35")
        for bar, steps in zip(bars, rows["crs_steps"], strict=True):
            at = 0.2, bar.get_y() + bar.get_height() / 2  # left of the limits
            ax.text(*at, f"{steps:.1f}", va="center", color="white", fontsize=9)
        seen = f"images that GSS looks at, over those of CRS: {MOST}"
        ax.axvline(MOST, color="black", linewidth=1, label=seen)
        limit = {"color": HUES[1], "linestyle": "--", "linewidth": 1.4}
        text = "most that GSS may cost, set beforehand"
        ax.axvline(TARGETS[model], label=text, **limit)
        ax.set(title=model, xlabel="cost of a training step (CRS steps)")
        ax.margins(x=0.15)
        ax.grid(visible=False)
        ax.invert_yaxis()
    axes[1].set_yticklabels([])
    handles, names = axes[1].get_legend_handles_labels()
    figure.suptitle("A training step of GSS and of CRS, one thread")
    figure.legend(handles, names, loc="outside lower center", ncols=2)


if __name__ == "__main__":
    main()
