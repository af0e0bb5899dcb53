"""Measure what a step of every method and network costs on a GPU, at the paper's size.

Run ``python bench/card.py``: 10 new and 10 replayed random images of 256x256, a full
memory of 2000, the paper profile's bfloat16. It writes figures/bench/card_<device>.csv:
the milliseconds of a step and those in which the sampler decides, the largest memory on
the GPU, the operations of a step, and the rate at which they were done. Without a GPU,
``--model convnet --image-size 32 --memory 50`` tries it out.
"""

import time
from functools import partial

import numpy as np
import pandas as pd
import torch
from shared import add_random_images, device_name, parser, write
from torch.utils.flop_counter import FlopCounterMode

from prslib import RunConfig, load_dataset
from prslib.device import LAUNCHED_SINGLY, put, run_settings
from prslib.train import METHODS, Trainer

BY_LABELS = {"CRS", "CBRS", "OCDM", "PRS"}  # PRS stands for them
KINDS = {
    **{name: {"method": name} for name in METHODS if name not in BY_LABELS},
    "EWC": {"method": "EWC", "pretrained_stages": 6},
    "PRS": {"method": "PRS"},
    "PRS, Attention Consistency": {"model": "resnet101_attention_consistency"},
    "PRS, RNN-Attention": {"model": "resnet101_rnn_attention"},
}
KINDS.pop("Multitask")  # its step is Finetune's
IMAGES, STEPS, BATCH = 2500, 10, 10


class Clock:
    """Seconds in a sampler's decisions, step after step."""

    def __init__(self):
        self.seconds: list[float] = []

    def timed(self, place):
        def timed_place(*args, **context):
            start = time.perf_counter()
            slots = place(*args, **context)
            self.seconds.append(time.perf_counter() - start)
            return slots

        return timed_place


def fill(trainer: Trainer) -> None:
    """Fill the memory with random samples, without a step for each batch."""
    sampler, memory = trainer.sampler, trainer.memory
    blank = {"logits": torch.zeros(BATCH, 70, device=trainer.device)}
    columns = blank if trainer.method.rehearsal == "der++" else {}
    for start in range(0, memory.size, BATCH):
        new = np.arange(start, start + BATCH)
        needs = trainer.compute_needs(new, trainer.look_up(new)[0])
        if "gradient_products" in needs:  # each gradient resembles no other
            needs["gradient_products"] = lambda subsets: np.eye(len(subsets) + BATCH)
        slots = sampler.place(trainer.labels[new], **needs)
        memory.write(slots, index=new, **columns)


def measure(name: str, fields: dict, data: str, device: torch.device) -> dict:
    """Return a row: what steps of one kind took, and their operations."""
    config = RunConfig(data, weights="none", **fields)
    on_gpu = device.type == "cuda"
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    with run_settings(device):
        dataset = load_dataset(data)
        trainer = Trainer(config, dataset, put(dataset.train.inputs, device), device)
        clock = Clock()
        if trainer.sampler is not None:
            fill(trainer)
            trainer.sampler.place = clock.timed(trainer.sampler.place)
        rng = np.random.default_rng(0)
        step = partial(trainer.step, rng.integers(IMAGES, size=BATCH))
        as_in_a_run, trainer.take_step = trainer.take_step, trainer.descend
        with FlopCounterMode(display=False) as counter:
            step()
        trainer.take_step = as_in_a_run
        times = []
        for _ in range(LAUNCHED_SINGLY + 1 + STEPS):
            start = time.perf_counter()
            step()
            if on_gpu:
                torch.cuda.synchronize()
            times.append(time.perf_counter() - start)
    seconds = np.median(times[-STEPS:])
    operations = counter.get_total_flops()
    memory = torch.cuda.max_memory_allocated() if on_gpu else 0
    return {
        "kind": name,
        "ms": 1000 * seconds,
        "sampler_ms": 1000 * np.median(clock.seconds[-STEPS:] or [0.0]),
        "GB": memory / 1e9,
        "teraflop": operations / 1e12,
        "tflops": operations / 1e12 / seconds,
    }


def main() -> None:
    """Measure, print the table and write it."""
    line = parser(__doc__)
    default = "cuda" if torch.cuda.is_available() else "cpu"
    line.add_argument("--device", default=default)
    line.add_argument("--kinds", nargs="*", default=list(KINDS), choices=list(KINDS))
    line.add_argument("--image-size", type=int, default=256)
    line.add_argument("--memory", type=int, default=2000)
    line.add_argument("--model", help="in place of resnet101")
    options = line.parse_args()
    data = add_random_images(IMAGES, options.image_size)
    device = torch.device(options.device)
    rows = []
    for name in options.kinds:
        fields = {"memory_size": options.memory} | KINDS[name]
        if options.model:
            network = fields.get("model", "resnet101")
            fields["model"] = network.replace("resnet101", options.model)
            fields.pop("pretrained_stages", None)
        rows.append(measure(name, fields, data, device))
    table = pd.DataFrame(rows)
    name = device_name(device)
    print(f"PyTorch {torch.__version__}, {name.upper()}")
    print(table.to_string(index=False, float_format="{:.3g}".format))
    write(table.assign(device=name), f"card_{name}", float_format="%.4g")


if __name__ == "__main__":
    main()
