"""Measure what a training step costs, and the least that the machine allows.

Run ``python bench/step.py --device cuda``: a step of ResNet-101 on 10 new and 10
replayed images of 256x256, in float32, TF32 and bfloat16; it writes
figures/bench/step_<device>.csv and .png. Without a GPU it measures a small network on
small images: ``python bench/step.py``.

All contestants take turns in one process, on random images. A step's parts come from
timing it up to the loss, up to the gradients, and whole; what fetches its images and
what the sampler needs are timed alone. The floors beside it: the step's multiplications
and additions over the rate of a large matrix product, and the bytes that its operations
read and write, each once, over the rate of a large copy. No fusion of operations is
assumed in the second one.
"""

import argparse
import re
import sys
import time
from collections.abc import Callable
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import matplotlib
import numpy as np
import pandas as pd
import torch

matplotlib.use("Agg")
ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import matplotlib.pyplot as plt
from floors import CLASSES, clock, floors

from prslib import make_model
from prslib.memory import Memory
from prslib.paths import figures_dir
from prslib.report.style import STYLE
from prslib.samplers import make_sampler
from prslib.training.config import PRECISIONS
from prslib.training.device import Inputs, Precision
from prslib.training.learner import Learner
from prslib.training.replay import Replay

NEW, REPLAYED, MEMORY = 10, 10, 2000
WARM_UP = 3  # steps before the first that counts
TRAINING = {
    "optimizer": "adam",
    "learning_rate": 1e-4,
    "loss": "multilabel_soft_margin",
}
PARTS = ("forward", "backward", "optimiser", "fetch", "sampler")
COLUMNS = ["way", "part", "ms", "low", "high"]


class Way(NamedTuple):
    """A way to take the same step."""

    precision: str
    searched: bool = False  # whether cuDNN tries its algorithms out instead of guessing
    compiled: bool = False  # whether torch.compile has fused its operations

    def __str__(self):
        extra = {"searched": self.searched, "compiled": self.compiled}
        return ", ".join([self.precision, *(name for name in extra if extra[name])])


BASE = Way("fp32")
ON_CPU = (BASE, Way("bf16"))
COMPILED = {"cpu": Way("fp32", compiled=True), "cuda": Way("bf16", compiled=True)}
ON_GPU = (*map(Way, PRECISIONS), Way("bf16", searched=True))


class Contestant:
    """A learner that takes its steps one way, cut off after each part."""

    def __init__(self, way: Way, options, images):
        self.way, self.device, self.images = way, torch.device(options.device), images
        shape = (options.image_size, options.image_size, 3)
        self.learner = Learner(
            make_model(options.model, shape, CLASSES, 0, "none"),
            **TRAINING,
            clip_value=5.0,
            device=options.device,
            precision=way.precision,
        )
        if way.compiled:
            if hasattr(self.learner.upper, "objective"):
                raise SystemExit(f"--compile: expected a network without an objective of its own, "
                                 f"got {options.model}; measure it without")  # fmt: skip
            self.learner.upper = torch.compile(self.learner.upper)
        rng = np.random.default_rng(0)
        self.plan = rng.integers(len(images), size=(options.steps, NEW + REPLAYED))
        multi_hot = rng.random((len(images), CLASSES)) < 0.04
        self.labels = Inputs(multi_hot.astype(np.float32), options.device)
        self.batch = images[self.plan[0]], self.labels[self.plan[0]]
        cut = {
            "forward": self.forward,
            "backward": self.backward,
            "optimiser": self.step,
        }
        self.cut = {
            part: partial(self.repeat, function) for part, function in cut.items()
        }
        self.cut["fetch"], self.cut["whole"] = self.fetch, self.whole
        for function in self.cut.values():
            with self.settings():
                for _ in range(1 + WARM_UP // options.steps):
                    function()

    @contextmanager
    def settings(self):
        """Compute as this way does."""
        before, torch.backends.cudnn.benchmark = (
            torch.backends.cudnn.benchmark,
            self.way.searched,
        )
        try:
            with Precision(self.way.precision).in_force():
                if (
                    self.way.searched
                ):  # bfloat16 does not look at it, but cuDNN's plans are kept
                    torch.backends.cudnn.conv.fp32_precision = (
                        "ieee"  # by it: not those guessed
                    )
                yield
        finally:
            torch.backends.cudnn.benchmark = before

    def forward(self, pixels, targets) -> None:
        self.learner.upper.train()
        self.learner.objective(self.learner.encode(pixels), targets)

    def backward(self, pixels, targets) -> None:
        self.learner.upper.train()
        loss = self.learner.objective(self.learner.encode(pixels), targets)
        self.learner.optimizer.zero_grad()
        loss.backward()

    def step(self, pixels, targets) -> None:
        self.learner.step(self.learner.encode(pixels), targets)

    def repeat(self, function: Callable) -> None:
        for _ in self.plan:
            function(*self.batch)

    def fetch(self) -> None:
        for rows in self.plan:
            _ = self.images[rows], self.labels[rows]

    def whole(self) -> None:
        self.learner.fit(self.images, self.labels, self.plan)

    def measure(self) -> dict[str, float]:
        """Return the milliseconds of a step up to each cut."""
        with self.settings():
            times = {part: clock(cut, self.device) for part, cut in self.cut.items()}
        return {
            part: 1000 * seconds / len(self.plan) for part, seconds in times.items()
        }


def sampler_times(repetitions: int, steps: int = 500) -> list[float]:
    """Return the milliseconds a step that PRS and the memory take on the host."""
    rng = np.random.default_rng(0)
    length = MEMORY + repetitions * steps * NEW
    multi_hot = (
        rng.random((length, CLASSES)) < rng.pareto(1, CLASSES).clip(0.02, 2) / 10
    )
    multi_hot[np.arange(length), rng.integers(CLASSES, size=length)] = True
    sampler = make_sampler("prs", MEMORY, CLASSES, 0)
    replay = Replay(sampler, Memory(MEMORY), 0, REPLAYED)
    batches = iter(np.arange(length).reshape(-1, NEW))

    def take_step() -> None:
        rows = next(batches)
        replay.draw()
        replay.place(rows, multi_hot[rows])

    for _ in range(MEMORY // NEW):
        take_step()
    times = []
    for _ in range(repetitions):
        start = time.perf_counter()
        for _ in range(steps):
            take_step()
        times.append(1000 * (time.perf_counter() - start) / steps)
    return times


def contest(options) -> pd.DataFrame:
    """Return the quartiles of every part of a step, way by way."""
    rng = np.random.default_rng(0)
    shape = (options.images, options.image_size, options.image_size, 3)
    images = Inputs(rng.integers(256, size=shape, dtype=np.uint8), options.device)
    kind = torch.device(options.device).type
    ways = ON_GPU if kind == "cuda" else ON_CPU
    if options.compile:
        ways = (*ways, COMPILED[kind])
    contestants = [Contestant(way, options, images) for way in ways]
    runs = {contestant: [] for contestant in contestants}
    for _ in range(options.repetitions):
        for contestant in contestants:
            runs[contestant].append(contestant.measure())
    planning = sampler_times(options.repetitions)
    rows = []
    for contestant, measured in runs.items():
        frame = pd.DataFrame(measured)
        frame["sampler"] = planning
        frame["optimiser"], frame["backward"] = (
            frame["optimiser"] - frame["backward"],
            frame["backward"] - frame["forward"],
        )
        for part in (*PARTS, "whole"):
            quartiles = frame[part].quantile([0.5, 0.25, 0.75])
            rows.append((str(contestant.way), part, *quartiles))
    return pd.DataFrame(rows, columns=COLUMNS)


def draw(table: pd.DataFrame, title: str) -> plt.Figure:
    """Draw the steps' parts, the steps as they run, and the floors."""
    plt.style.use(STYLE)
    ways = [way for way in table["way"].unique() if not way.startswith("floor")]
    parts = table.pivot(index="way", columns="part", values="ms")
    figure, ax = plt.subplots(figsize=(8, 1.6 + 0.42 * len(ways)))
    colours = ["#0072B2", "#56B4E9", "#009E73", "#F0E442", "#D55E00"]
    left = np.zeros(len(ways))
    for part, colour in zip(PARTS, colours, strict=True):
        width = parts.loc[ways, part].clip(lower=0).to_numpy()
        ax.barh(ways, width, left=left, color=colour, label=part)
        left += width
    whole = parts.loc[ways, "whole"]
    ax.plot(
        whole,
        ways,
        "|",
        color="black",
        markersize=16,
        markeredgewidth=2,
        label="as it runs",
    )
    base = whole[str(BASE)]
    for way, ms in whole.items():
        text = f"{ms:.3g} ms, x{base / ms:.1f}"
        ax.annotate(text, (max(ms, left[ways.index(way)]), way), (6, 0),
                    textcoords="offset points", va="center", fontsize=8)  # fmt: skip
    styles = {"arithmetic": ":", "traffic": "--"}
    for part, style in styles.items():
        ms = parts.loc["floor bf16", part]
        ax.axvline(
            ms,
            color="black",
            linestyle=style,
            linewidth=1,
            label=f"{part}, bf16: {ms:.2g} ms",
        )
    ax.set(title=title, xlabel="time of a training step (ms), medians")
    ax.set_xlim(0, 1.25 * max(whole.max(), left.max()))
    ax.grid(visible=False)
    ax.invert_yaxis()
    figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


def device_name(device: torch.device) -> str:
    """Return a device's name for a file: "h100" for "NVIDIA H100 80GB HBM3"."""
    if device.type == "cpu":
        return "cpu"
    name = torch.cuda.get_device_name(device)
    found = re.search(r"\b[A-Z]+\d+[A-Z]*\b", name)
    return (found.group() if found else re.sub(r"\W+", "_", name)).lower()


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Read the command line; without a GPU the size is a small one."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--device", default="cuda" if torch.cuda.is_available() else "cpu"
    )
    parser.add_argument("--model", help="by default resnet101, on a CPU convnet")
    parser.add_argument(
        "--image-size", type=int, help="in pixels, by default 256, on a CPU 32"
    )
    parser.add_argument(
        "--compile", action="store_true", help="measure torch.compile, too"
    )
    parser.add_argument(
        "--images", type=int, default=2000, help="to draw from (%(default)s)"
    )
    parser.add_argument(
        "--steps", type=int, default=5, help="timed together (%(default)s)"
    )
    parser.add_argument("--repetitions", type=int, default=20, help="(%(default)s)")
    options = parser.parse_args(arguments)
    small = torch.device(options.device).type == "cpu"
    options.model = options.model or ("convnet" if small else "resnet101")
    options.image_size = options.image_size or (32 if small else 256)
    return options


def main(arguments: list[str] | None = None) -> None:
    """Measure, print the table, write the numbers and the picture."""
    options = parse(arguments)
    torch.set_num_threads(1)
    device = torch.device(options.device)
    name = device_name(device)
    title = (
        f"{options.model}, {NEW} + {REPLAYED} images of {options.image_size}x{options.image_size}, "
        f"{name.upper()}"
    )
    print(
        f"{title}; PyTorch {torch.__version__}, medians of {options.repetitions} repetitions"
    )
    allowed = floors(options.model, options.image_size, NEW + REPLAYED, device)
    print(allowed.to_string(index=False, float_format="%.4g"))
    allowed = allowed.assign(way="floor " + allowed["precision"])[["way", "part", "ms"]]
    table = pd.concat([contest(options), allowed], ignore_index=True)
    print(table.pivot(index="way", columns="part", values="ms").round(3).to_string())
    folder = figures_dir("bench")
    folder.mkdir(parents=True, exist_ok=True)
    described = {
        "device": name,
        "model": options.model,
        "image_size": options.image_size,
    }
    table.assign(**described)[[*described, *COLUMNS]].to_csv(
        folder / f"step_{name}.csv", index=False, float_format="%.4g"
    )
    draw(table, title).savefig(folder / f"step_{name}.png", metadata={"Software": None})


if __name__ == "__main__":
    main()
