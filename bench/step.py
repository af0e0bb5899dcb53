"""Measure what a training step costs, and the least that its arithmetic allows.

Run ``python bench/step.py --device cuda``: a step of ResNet-101 on 10 new and 10
replayed images of 256x256, in float32, on a GPU also rounded to TF32, and in bfloat16.
Without a GPU it measures a small network on small images. What fetches a step's images
and what the sampler needs are timed alone. The floor is the step's multiplications and
additions over the rate of a large matrix product. It writes
figures/bench/step_<device>.csv and .png.

Run ``python bench/step.py --kernels``: the milliseconds of a step in bfloat16, by kind of
kernel, on a GPU. It writes figures/bench/kernels_<device>.csv.

Run ``python bench/step.py --losses``: a whole step of training on cocoseq-mini, of CRS
with its head, with each loss in turn, with a draw balanced over classes, and of DER++
and ER-ACE. DER++ replays 20 samples, so a plain step that does is beside it, and its
times are over those of that step, too. Each takes some steps in every round; its times
are over those of the plain step of that round.
Losses of one label an image see the first label alone. It writes
figures/bench/step_losses.csv.
"""

import argparse
import re
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from shared import parser, write
from torch.utils.benchmark import Timer
from torch.utils.flop_counter import FlopCounterMode

from prslib import LOSSES, RunConfig, load_dataset, make_model, make_sampler
from prslib.datasets import SequentialDataset
from prslib.memory import Memory
from prslib.training.config import PRECISIONS
from prslib.training.device import (
    LAUNCHED_SINGLY,
    Captured,
    Inputs,
    without_tf32,
)
from prslib.training.learner import Learner
from prslib.training.replay import Replay, stream
from prslib.training.run import begin, train

NEW, REPLAYED, MEMORY, CLASSES = 10, 10, 2000, 70  # as on COCOseq
REHEARSING = ("DER++", "ER-ACE")
TWICE = f"{2 * REPLAYED} replayed"  # by a plain step, as many as DER++ replays
LOSS_STEPS, WARM_UP = 20, 25  # steps of a round, and before the first round
SIDE = {"cpu": 1024, "cuda": 8192}  # of the matrices whose product gives the rate
TF32 = "tf32"  # what a run leaves out: float32 whose products are rounded
# kinds of kernels by words in their names; the first that fits counts
KERNELS = {
    "batch norm": "batch_norm|bn_",
    "optimiser and clipping": "multi_tensor",
    "convolutions, matrix products": "xmma|nvjet|cutlass|cudnn|gemm|splitK|wgrad|dgrad",
    "additions, ReLU": "CUDAFunctor_add|BinaryFunctor|clamp|launch_clamp|relu|threshold",
    "copies and casts": "copy|Memcpy",
    "pooling": "pool",
}


def milliseconds(function: Callable, seconds: float) -> float:
    """Return the median time of a call, with all the work that it leaves to the device."""
    timer = Timer("function()", globals={"function": function})
    return 1000 * timer.blocked_autorange(min_run_time=seconds).median


def time_steps(options: argparse.Namespace) -> pd.DataFrame:
    """Return the milliseconds of a step and of its floor, precision by precision."""
    device = torch.device(options.device)
    shape = options.image_size, options.image_size, 3
    rng = np.random.default_rng(0)
    pixels = rng.integers(256, size=(options.images, *shape), dtype=np.uint8)
    multi_hot = rng.random((options.images, CLASSES)) < 0.04
    images = Inputs(pixels, device)
    labels = Inputs(multi_hot.astype(np.float32), device)

    def batch() -> tuple[torch.Tensor, torch.Tensor]:
        index = rng.integers(options.images, size=NEW + REPLAYED)
        return images[index], labels[index]

    rows = [("any", "fetch", milliseconds(batch, options.seconds))]
    names = [*PRECISIONS, TF32] if device.type == "cuda" else PRECISIONS
    for name in names:
        with nullcontext() if name == TF32 else without_tf32():
            rows += time_precision(name, batch, options)
    return pd.DataFrame(rows, columns=["precision", "part", "ms"])


def time_precision(
    name: str, batch: Callable, options: argparse.Namespace
) -> list[tuple[str, str, float]]:
    """Return rows with the milliseconds of the floor and of steps."""
    learner = make_learner(options, "fp32" if name == TF32 else name)
    inputs, targets = batch()

    def step() -> None:
        learner.step(learner.encode(inputs), targets)

    with FlopCounterMode(display=False) as counter:
        step()
    floor = counter.get_total_flops() / product_rate(name, learner.device)
    rows = [(name, "floor", 1000 * floor)]
    captured, learner.captured = learner.captured, None
    rows.append((name, "launched singly", milliseconds(step, options.seconds)))
    learner.captured = captured
    for _ in range(LAUNCHED_SINGLY + 1):
        step()
    rows.append((name, "step", milliseconds(step, options.seconds)))
    if options.compile:
        learner.upper = torch.compile(learner.upper)
        if learner.captured:
            learner.captured = Captured(learner._take_step, learner.device)
        for _ in range(LAUNCHED_SINGLY + 1):  # which compiles
            step()
        rows.append((name, "compiled", milliseconds(step, options.seconds)))
    return rows


def make_learner(options: argparse.Namespace, precision: str) -> Learner:
    """Return a network as the paper profile trains it."""
    shape = options.image_size, options.image_size, 3
    return Learner(
        make_model(options.model, shape, CLASSES, 0, "none"),
        optimizer="adam",
        learning_rate=1e-4,
        loss="multilabel_soft_margin",
        clip_value=5.0,
        device=options.device,
        precision=precision,
    )


def time_kernels(options: argparse.Namespace, steps: int = 20) -> pd.DataFrame:
    """Return the milliseconds of a step in bfloat16, kind of kernel by kind."""
    learner = make_learner(options, "bf16")
    side = options.image_size
    pixels = torch.randint(256, (NEW + REPLAYED, side, side, 3), dtype=torch.uint8)
    images = pixels.to(options.device)
    targets = torch.zeros(NEW + REPLAYED, CLASSES, device=options.device)
    for _ in range(LAUNCHED_SINGLY + 3):
        learner.step(learner.encode(images), targets)
    with torch.profiler.profile() as profile:
        for _ in range(steps):
            learner.step(learner.encode(images), targets)
        torch.cuda.synchronize(options.device)
    times = dict.fromkeys([*KERNELS, "others"], 0.0)
    for event in profile.key_averages():
        if event.device_type != torch.autograd.DeviceType.CUDA:
            continue  # an operation of the host, whose kernels are events of their own
        kinds = [kind for kind, words in KERNELS.items() if re.search(words, event.key)]
        times[(*kinds, "others")[0]] += event.self_device_time_total / 1000 / steps
    return pd.DataFrame(times.items(), columns=["kernels", "ms"])


def product_rate(precision: str, device: torch.device) -> float:
    """Return the operations a second of a large matrix product."""
    side = SIDE[device.type]
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    matrix = torch.randn(side, side, device=device).to(dtype)
    setting = torch.backends.cuda.matmul
    before = setting.fp32_precision
    if precision == TF32:  # which convolutions use by default, products of matrices not
        setting.fp32_precision = "tf32"
    rate = 2000 * side**3 / milliseconds(lambda: matrix @ matrix, 0.2)
    setting.fp32_precision = before
    return rate


def time_sampler(seconds: float) -> float:
    """Return the milliseconds a step that PRS and the memory take on the host."""
    rng = np.random.default_rng(0)
    chance = rng.pareto(1, CLASSES).clip(0.02, 2) / 10
    multi_hot = rng.random((20 * MEMORY, CLASSES)) < chance
    multi_hot[:, 0] |= ~multi_hot.any(axis=1)
    sampler = make_sampler("prs", MEMORY, CLASSES, 0)
    replay = Replay(sampler, Memory(MEMORY), 0, REPLAYED)
    replay.offer(np.arange(MEMORY), multi_hot[:MEMORY])

    def take_step() -> None:
        rows = rng.integers(len(multi_hot), size=NEW)
        replay.draw()
        replay.offer(rows, multi_hot[rows])

    return milliseconds(take_step, seconds)


def time_losses(runs: int) -> pd.DataFrame:
    """Return the time of a step with each loss, over that of the plain step."""
    dataset = load_dataset("cocoseq-mini")
    first = dataset.train.labels.argmax(axis=1)
    one_hot = np.eye(dataset.num_classes, dtype=bool)[first]
    one_label = replace(dataset, train=replace(dataset.train, labels=one_hot))
    plain = {False: "multilabel_soft_margin", True: "cross_entropy"}
    rows = []
    for seed in range(runs):
        usual = RunConfig("cocoseq-mini", "CRS", seed=seed)
        for is_one_label, dataset_of in {False: dataset, True: one_label}.items():
            configs = {
                name: replace(usual, loss=name)
                for name, loss in LOSSES.items()
                if loss.one_label == is_one_label
            }
            base = configs[plain[is_one_label]]
            if not is_one_label:
                configs["balanced draw"] = replace(base, draw="balanced")
                configs[TWICE] = replace(base, replay_batch_size=2 * REPLAYED)
                for method in REHEARSING:
                    configs[method] = replace(base, method=method)
            times = times_of_rounds(configs, dataset_of)  # (rounds, configurations)
            rows.append(over(times, base.loss))
            if not is_one_label:  # DER++ beside a step that trains as many samples
                rows.append(over(times[[TWICE, "DER++"]], TWICE))
    grouped = pd.concat(rows).groupby(["plain", "contestant"], sort=False)
    return grouped.median().reset_index().round({"times_plain": 3, "ms": 3})


def over(times: pd.DataFrame, plain: str) -> pd.DataFrame:
    """Return times (rounds, contestants) over those of one of them, in tidy rows."""
    table = times.div(times[plain], axis=0)
    table = table.melt(var_name="contestant", value_name="times_plain")
    return table.assign(ms=times.melt()["value"], plain=plain)


def times_of_rounds(
    configs: dict[str, RunConfig], dataset: SequentialDataset
) -> pd.DataFrame:
    """Return the milliseconds of a step, round by round, each in its turn."""
    trainings = {name: training(one, dataset) for name, one in configs.items()}
    any_config = next(iter(configs.values()))
    steps = sum(len(segment.batches) for segment in stream(any_config, dataset))
    for one in trainings.values():
        take(one, WARM_UP)
    rounds = []
    for _ in range((steps - WARM_UP) // LOSS_STEPS):
        row = {}
        for name, one in trainings.items():
            before = time.thread_time()  # whatever else the machine does
            take(one, LOSS_STEPS)
            row[name] = 1000 * (time.thread_time() - before) / LOSS_STEPS
        rounds.append(row)
    return pd.DataFrame(rounds)


def training(config: RunConfig, dataset: SequentialDataset) -> Iterator[None]:
    """Return the training of a run, which each `next` takes a step further."""
    progress = begin(config, dataset, "cpu")
    segments = stream(config, dataset)
    return train([config], dataset, "cpu", progress, segments, lambda *_: None)


def take(steps: Iterator[None], count: int) -> None:
    """Take some steps of a training."""
    for _ in range(count):
        next(steps)


def draw(table: pd.DataFrame, title: str, figure: plt.Figure) -> None:
    """Draw the milliseconds of every precision's steps, and of what they share."""
    ax = figure.subplots()
    names = table["part"].where(
        table["precision"] == "any", table["part"] + ", " + table["precision"]
    )
    ax.barh(names, table["ms"], color="0.8")
    for name, value in zip(names, table["ms"], strict=True):
        place = {"xycoords": ("axes fraction", "data"), "va": "center"}
        ax.annotate(f"{value:.3g}", (0.02, name), **place)
    ax.invert_yaxis()
    ax.set_xlim(left=0)
    ax.set_xlabel("milliseconds a step")
    ax.set_title(title)


def device_name(device: torch.device) -> str:
    """Return a device's name for a file: "h100" for "NVIDIA H100 80GB HBM3"."""
    if device.type == "cpu":
        return "cpu"
    name = torch.cuda.get_device_name(device)
    card = re.search(r"\b[A-Z]+\d+[A-Z]*\b", name)
    return (card.group() if card else re.sub(r"\W+", "_", name)).lower()


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Read the command line; without a GPU the size is a small one."""
    line = parser(__doc__)
    default = "cuda" if torch.cuda.is_available() else "cpu"
    line.add_argument("--device", default=default)
    line.add_argument("--model", help="by default resnet101, on a CPU convnet")
    size = "in pixels, by default 256, on a CPU 32"
    line.add_argument("--image-size", type=int, help=size)
    also = "measure torch.compile, too"
    line.add_argument("--compile", action="store_true", help=also)
    drawn = "to draw from (%(default)s)"
    line.add_argument("--images", type=int, default=2000, help=drawn)
    kinds = "measure kinds of kernels on a GPU, and nothing else"
    line.add_argument("--kernels", action="store_true", help=kinds)
    runs = "measure the losses side by side, in so many runs each"
    line.add_argument("--losses", type=int, nargs="?", const=10, help=runs)
    each = "of measuring each time (%(default)s)"
    line.add_argument("--seconds", type=float, default=5.0, help=each)
    options = line.parse_args(arguments)
    small = torch.device(options.device).type == "cpu"
    options.model = options.model or ("convnet" if small else "resnet101")
    options.image_size = options.image_size or (32 if small else 256)
    return options


def main(arguments: list[str] | None = None) -> None:
    """Measure, print the table and write it."""
    options = parse(arguments)
    torch.set_num_threads(1)
    if options.kernels:
        table = time_kernels(options)
        print(table.to_string(index=False, float_format="{:.3g}".format))
        name = device_name(torch.device(options.device))
        write(table, f"kernels_{name}", float_format="%.4g")
        return
    if options.losses:
        table = time_losses(options.losses)
        print(table.to_string(index=False))
        write(table, "step_losses")
        return
    table = time_steps(options)
    table.loc[len(table)] = "any", "sampler", time_sampler(options.seconds)
    name = device_name(torch.device(options.device))
    size = f"{options.image_size}x{options.image_size}"
    title = f"{options.model}, {NEW} + {REPLAYED} images of {size}, {name.upper()}"
    print(title)
    print(table.to_string(index=False, float_format="{:.3g}".format))
    run = {"device": name, "model": options.model, "image_size": options.image_size}
    picture = partial(draw, table, title)
    write(table.assign(**run), f"step_{name}", picture, (7, 3.6), "%.4g")


if __name__ == "__main__":
    main()
