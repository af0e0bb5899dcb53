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
from dataclasses import replace
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from shared import add_random_images, device_name, parser, write
from torch.utils.benchmark import Timer
from torch.utils.flop_counter import FlopCounterMode

from prslib import LOSSES, RunConfig, load_dataset, make_sampler
from prslib.datasets import SequentialDataset
from prslib.device import LAUNCHED_SINGLY, Captured, put, run_settings, take
from prslib.memory import Memory
from prslib.train import Trainer, stream

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
    data = add_random_images(options.images, options.image_size)
    rng = np.random.default_rng(0)
    names = ["fp32", "bf16", TF32] if device.type == "cuda" else ["fp32", "bf16"]
    rows = []
    for name in names:
        with run_settings(device):
            if name == TF32:
                torch.backends.cudnn.conv.fp32_precision = "tf32"
            trainer = make_trainer(data, options, "fp32" if name == TF32 else name)

            def batch(trainer: Trainer = trainer) -> tuple[torch.Tensor, ...]:
                index = rng.integers(options.images, size=NEW + REPLAYED)
                tensors = trainer.inputs, trainer.targets
                return tuple(take(tensor, index, device) for tensor in tensors)

            if not rows:
                rows.append(("any", "fetch", milliseconds(batch, options.seconds)))
            rows += time_precision(name, trainer, batch(), options)
    return pd.DataFrame(rows, columns=["precision", "part", "ms"])


def time_precision(
    name: str, trainer: Trainer, tensors: tuple, options: argparse.Namespace
) -> list[tuple[str, str, float]]:
    """Return rows with the milliseconds of the floor and of steps."""
    inputs, targets = tensors

    def step() -> None:
        trainer.take_step(trainer.encode(inputs), targets)

    as_in_a_run, trainer.take_step = trainer.take_step, trainer.descend
    with FlopCounterMode(display=False) as counter:
        step()
    floor = counter.get_total_flops() / product_rate(name, trainer.device)
    rows = [(name, "floor", 1000 * floor)]
    rows.append((name, "launched singly", milliseconds(step, options.seconds)))
    trainer.take_step = as_in_a_run
    warm_up(step)
    rows.append((name, "step", milliseconds(step, options.seconds)))
    if options.compile:
        trainer.upper = torch.compile(trainer.upper)
        if isinstance(as_in_a_run, Captured):
            trainer.take_step = Captured(trainer.descend, trainer.device)
        warm_up(step)  # which compiles
        rows.append((name, "compiled", milliseconds(step, options.seconds)))
    return rows


def warm_up(step: Callable) -> None:
    """Take steps until their launches are recorded."""
    for _ in range(LAUNCHED_SINGLY + 1):
        step()


def make_trainer(data: str, options: argparse.Namespace, precision: str) -> Trainer:
    """Return a network as the paper profile trains it."""
    fields = {"model": options.model, "weights": "none", "precision": precision}
    config = RunConfig(data, "CRS", **fields)
    dataset, device = load_dataset(data), torch.device(options.device)
    return Trainer(config, dataset, put(dataset.train.inputs, device), device)


def time_kernels(options: argparse.Namespace, steps: int = 20) -> pd.DataFrame:
    """Return the milliseconds of a step in bfloat16, kind of kernel by kind."""
    device = torch.device(options.device)
    data = add_random_images(options.images, options.image_size)
    with run_settings(device):
        trainer = make_trainer(data, options, "bf16")
        rows = np.arange(NEW + REPLAYED)
        images = take(trainer.inputs, rows, device)
        targets = take(trainer.targets, rows, device)
        for _ in range(LAUNCHED_SINGLY + 3):
            trainer.take_step(trainer.encode(images), targets)
        with torch.profiler.profile() as profile:
            for _ in range(steps):
                trainer.take_step(trainer.encode(images), targets)
            torch.cuda.synchronize(device)
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
    sampler, memory = make_sampler("prs", MEMORY, CLASSES, 0), Memory(MEMORY)

    def offer(rows: np.ndarray) -> None:
        memory.write(sampler.place(multi_hot[rows]), index=rows)

    def take_step() -> None:
        memory.draw(REPLAYED, rng)
        offer(rng.integers(len(multi_hot), size=NEW))

    offer(np.arange(MEMORY))

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
    trainings = {name: training(config, dataset) for name, config in configs.items()}
    any_config = next(iter(configs.values()))
    segments = stream(any_config, dataset.train.task)
    steps = sum(len(batches) for _, batches, _ in segments)
    for steps_of in trainings.values():
        take_steps(steps_of, WARM_UP)
    rounds = []
    for _ in range((steps - WARM_UP) // LOSS_STEPS):
        row = {}
        for name, steps_of in trainings.items():
            before = time.thread_time()  # whatever else the machine does
            take_steps(steps_of, LOSS_STEPS)
            row[name] = 1000 * (time.thread_time() - before) / LOSS_STEPS
        rounds.append(row)
    return pd.DataFrame(rounds)


def training(config: RunConfig, dataset: SequentialDataset) -> Iterator[None]:
    """Train a run; each `next` takes a step."""
    inputs = torch.from_numpy(dataset.train.inputs)
    trainer = Trainer(config, dataset, inputs, torch.device("cpu"))
    for _, batches, _ in stream(config, dataset.train.task):
        for new in batches:
            yield trainer.step(new)


def take_steps(steps: Iterator[None], count: int) -> None:
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
