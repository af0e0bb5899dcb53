"""Measure what a step of every method and network costs on a GPU, at the paper's size.

Run ``python bench/card.py``: 10 new and 10 replayed images of 256x256, a full memory of
2000. It times steps as `python -m prslib plan` does, on blank images with COCOseq's
labels, in the paper profile's bfloat16. It writes figures/bench/card_<device>.csv: the
milliseconds of a step and those in which the sampler decides, the largest memory on the
GPU, the operations that ``plan --tflops`` counts, and the rate at which they were done.
"""

import os
import tempfile
import time
from pathlib import Path

import pandas as pd
import torch
from shared import parser, write
from step import device_name

from prslib.datasets.features import MINI
from prslib.datasets.prepared import Selection
from prslib.experiments.cost import count_operations, measure_step
from prslib.samplers.base import Sampler
from prslib.training.config import RunConfig
from prslib.training.methods import METHODS

# one sampler by labels stands for the others, as in `plan`
BY_LABELS = {
    name for name, row in METHODS.items() if not (row.looks_at_model or row.rehearsal)
}
KINDS = {
    **{name: {"method": name} for name in METHODS if name not in BY_LABELS},
    "Finetune": {"method": "Finetune"},
    "EWC": {"method": "EWC", "pretrained_stages": 6},
    "PRS": {"method": "PRS"},
    "PRS, Attention Consistency": {"model": "resnet101_attention_consistency"},
    "PRS, RNN-Attention": {"model": "resnet101_rnn_attention"},
}


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


def measure(name: str, fields: dict, device: str) -> dict:
    """Return a row: what steps of one kind took, and their operations."""
    config = RunConfig("cocoseq", weights="none", **fields)
    clock = Clock()
    place = Sampler.place
    Sampler.place = clock.timed(place)
    try:
        if device != "cpu":
            torch.cuda.reset_peak_memory_stats()
        seconds = measure_step.__wrapped__(config, device)
        memory = 0 if device == "cpu" else torch.cuda.max_memory_allocated()
    finally:
        Sampler.place = place
    operations = count_operations(config)
    in_steps = clock.seconds[-3:]  # those before have filled the memory
    sampler = sorted(in_steps)[len(in_steps) // 2] if in_steps else 0.0
    return {
        "kind": name,
        "ms": 1000 * seconds,
        "sampler_ms": 1000 * sampler,
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
    options = line.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "cocoseq").mkdir()
        Selection.load(MINI).save(Path(folder) / "cocoseq" / "labels.npz")
        os.environ["PRSLIB_DATA"] = folder
        rows = [measure(name, KINDS[name], options.device) for name in options.kinds]
    table = pd.DataFrame(rows)
    name = device_name(torch.device(options.device))
    print(f"PyTorch {torch.__version__}, {name.upper()}")
    print(table.to_string(index=False, float_format="{:.3g}".format))
    write(table.assign(device=name), f"card_{name}", float_format="%.4g")


if __name__ == "__main__":
    main()
