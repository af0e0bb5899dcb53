"""Measure microseconds per sample of all samplers and of other libraries' buffers.

Run ``python bench/samplers.py``, which takes five minutes on one core, prints a table of
medians and writes figures/bench/samplers.csv. Each memory is first filled, which is not
timed, and then receives batches of 10, or one sample at a time. The three streams differ
in size: 70 classes with a memory of 2,000, 1,000 classes with 20,000, and 80 classes with
200,000. The first stream has COCOseq's labels if the folder ``PRSLIB_DATA`` contains them;
all other labels are drawn by Zipf's law. Contestants alternate, so that the machine is in
the same state for all. Times are CPU times.

Other libraries are included for the first stream if they can be run: Avalanche and CapyMOA
if they are installed, Mammoth from a checkout (``--mammoth DIR``), and CUTER's PRS and
OCDM, on the CPU, from its unpacked archive (``--cuter DIR``, the folder of
MultiLabelIncremental_prs.py). Their buffers also store a number per sample, whereas
prslib's samplers only return its slot.

GSS and ExStream need more than labels. ExStream receives random features, as wide as the
output of the frozen stages of the quick profile's convolutional network. GSS receives
products of gradients in which every batch opposes the memory, so that it considers all
batches. The times do not include the network.
"""

import argparse
import ast
import random
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from shared import parser, write

from prslib.datasets import DATASETS, load_dataset
from prslib.samplers import make_sampler

REPETITIONS = 5
ENOUGH = 0.4  # seconds of a contestant in a repetition
RHO = -0.03
OPTIONS = {"prs": {"rho": RHO}, "ocdm": {"rho": RHO}}
BATCHES = 10, 1
WIDTH = 6144  # of ExStream's features
SIZES = (70, 2000), (1000, 20_000), (80, 200_000)  # classes, memory
KEYS = ["stream", "classes", "memory", "contestant", "batch"]
Place = Callable[[int, int], object]  # places the rows from start to stop
Make = Callable[[int, np.ndarray], Place]  # from the memory's size and all labels


def ours(name: str, size: int, labels: np.ndarray) -> Place:
    """Return the `place` of a sampler that needs only labels."""
    options = OPTIONS.get(name, {})
    sampler = make_sampler(name, size, labels.shape[1], 0, **options)
    return lambda start, stop: sampler.place(labels[start:stop])


def exstream(size: int, labels: np.ndarray) -> Place:
    """Return ExStream's `place`, with random features."""
    rng = np.random.default_rng(0)
    features = rng.random((size + 1000, WIDTH), np.float32)
    sampler = make_sampler("exstream", size, labels.shape[1], 0)

    def place(start, stop):
        first = start % size
        rows = features[first : first + stop - start]
        return sampler.place(labels[start:stop], features=rows)

    return place


def gss(size: int, labels: np.ndarray) -> Place:
    """Return the `place` of GSS, with gradients opposed to the memory's."""
    rng = np.random.default_rng(0)
    subsets, batch = 10, 1000
    gradients = rng.standard_normal((subsets + batch, 64)) + 1.0
    gradients[subsets:] *= -1.0
    sampler = make_sampler("gss", size, labels.shape[1], 0)

    def place(start, stop):
        def products(asked):
            rows = gradients[subsets - len(asked) : subsets + stop - start]
            return rows @ rows.T

        return sampler.place(labels[start:stop], gradient_products=products)

    return place


def first_class(labels: np.ndarray) -> torch.Tensor:
    """Return one class per sample, for buffers that support no more."""
    return torch.from_numpy(labels.argmax(axis=1))


def mammoth(folder: str) -> dict[str, Make]:
    """Return Mammoth's reservoir, and its balanced reservoir for one label per sample."""
    sys.path.insert(0, folder)
    from utils.buffer import Buffer

    def make(strategy, convert, size, labels):
        buffer = Buffer(size, sample_selection_strategy=strategy)
        numbers, rows = torch.arange(len(labels))[:, None], convert(labels)
        return lambda start, stop: buffer.add_data(
            numbers[start:stop], labels=rows[start:stop]
        )

    return {
        "Mammoth reservoir": partial(make, "reservoir", torch.from_numpy),
        "Mammoth balanced": partial(make, "balancoir", first_class),
    }


def capymoa() -> dict[str, Make]:
    """Return CapyMOA's reservoir and its balanced buffer, for one label per sample."""
    from capymoa.ocl.util._replay import GreedySampler, ReservoirSampler

    def make(buffer_class, size, labels):
        buffer = buffer_class(size, 1)
        numbers, rows = torch.arange(len(labels))[:, None].float(), first_class(labels)
        return lambda start, stop: buffer.update(numbers[start:stop], rows[start:stop])

    return {
        "CapyMOA reservoir": partial(make, ReservoirSampler),
        "CapyMOA balanced": partial(make, GreedySampler),
    }


def avalanche() -> dict[str, Make]:
    """Return Avalanche's reservoir, which keeps views of a data set."""
    from avalanche.benchmarks.utils import as_classification_dataset
    from avalanche.training.storage_policy import ReservoirSamplingBuffer
    from torch.utils.data import TensorDataset

    def make(size, labels):
        data = TensorDataset(torch.arange(len(labels)), torch.from_numpy(labels))
        data.targets = list(data.tensors[1])
        dataset = as_classification_dataset(data)
        buffer = ReservoirSamplingBuffer(size)
        return lambda start, stop: buffer.update_from_dataset(
            dataset.subset(range(start, stop))
        )

    return {"Avalanche reservoir": make}


def cuter(folder: str) -> dict[str, Make]:
    """Return CUTER's PRS and OCDM, read from its files and run on the CPU."""
    torch.Tensor.cuda = lambda tensor: tensor
    scope = {"torch": torch, "np": np, "random": random, "F": torch.nn.functional}
    scope["print"] = lambda *values: None
    for name, file in (("PRS_Buffer", "prs"), ("OCDM_Buffer", "ocdm")):
        text = (Path(folder) / f"MultiLabelIncremental_{file}.py").read_text()
        for node in ast.parse(text).body:
            if isinstance(node, ast.ClassDef) and node.name == name:
                exec(compile(ast.Module([node], []), file, "exec"), scope)

    def prs(size, labels):
        classes = labels.shape[1]
        buffer = scope["PRS_Buffer"](classes, size)
        rows = torch.from_numpy(labels).float()
        numbers = torch.arange(len(labels))[:, None].float()
        more = 0, classes, torch.full((classes,), 1 / classes), rows.sum(dim=0)
        return lambda start, stop: buffer.add(
            numbers[start:stop], rows[start:stop].clone(), *more
        )

    def ocdm(size, labels):
        classes = labels.shape[1]
        buffer = scope["OCDM_Buffer"](size, classes, RHO)
        rows = torch.from_numpy(labels).float()
        numbers = torch.arange(len(labels))[:, None].float()
        return lambda start, stop: buffer.add(
            numbers[start:stop], rows[start:stop].clone(), stop, 0, classes
        )

    return {"CUTER's PRS": prs, "CUTER's OCDM": ocdm}


def peers(options: argparse.Namespace) -> dict[str, Make]:
    """Return the buffers of other libraries that can be run; name those that cannot."""
    buffers = mammoth(options.mammoth) if options.mammoth else {}
    for join in (capymoa, avalanche):
        try:
            buffers |= join()
        except ImportError as error:
            print(f"{join.__name__}: left out, {error}")
    if options.cuter:
        buffers |= cuter(options.cuter)
    return buffers


def zipf(length: int, num_classes: int) -> np.ndarray:
    """Draw labels, bool (length, C), 1.2 per sample, with class frequencies by Zipf's law."""
    rng = np.random.default_rng(0)
    share = 1 / np.arange(1, num_classes + 1)
    labels = rng.random((length, num_classes)) < 1.22 * share / share.sum()
    labels[~labels.any(axis=1), 0] = True
    return labels


def stream(num_classes: int, size: int) -> tuple[str, np.ndarray]:
    """Return the name and the labels of a stream."""
    if num_classes == 70:
        try:
            train = load_dataset("cocoseq", images=False).train
        except FileNotFoundError as error:
            print(f"COCOseq: labels are drawn instead; {error}")
        else:
            rng = np.random.default_rng(0)
            tasks = DATASETS["cocoseq"].recipe.schedule
            rows = [np.flatnonzero(train.task == task) for task in tasks]
            order = np.concatenate([rng.permutation(of_task) for of_task in rows])
            return "COCOseq", train.labels[order]
    return "Zipf", zipf(size + 30_000, num_classes)


def cost(place: Place, start: int, stop: int, batch: int) -> float:
    """Return microseconds per sample for placing rows from start to at most stop."""
    begin = time.process_time()
    first = start
    while start + batch <= stop and time.process_time() < begin + ENOUGH:
        place(start, start + batch)
        start += batch
    return 1e6 * (time.process_time() - begin) / (start - first)


def measure(makers: dict[str, Make], num_classes: int, size: int) -> pd.DataFrame:
    """Return microseconds per sample of each contestant, batch size and repetition."""
    name, labels = stream(num_classes, size)
    middle = (size + len(labels)) // 2
    rows = []
    for _ in range(REPETITIONS):
        for contestant, make in makers.items():
            place = make(size, labels)
            for start in range(0, size, 1000):  # fills the memory
                place(start, min(start + 1000, size))
            for batch, start in zip(BATCHES, (size, middle), strict=True):
                spent = cost(place, start, start + middle - size, batch)
                rows.append((name, num_classes, size, contestant, batch, spent))
    return pd.DataFrame(rows, columns=[*KEYS, "us"])


def main() -> None:
    """Measure, print the table and write it."""
    torch.set_num_threads(1)
    line = parser(__doc__)
    line.add_argument("--mammoth", metavar="DIR", help="a checkout of Mammoth")
    line.add_argument("--cuter", metavar="DIR", help="CUTER's unpacked files")
    others = peers(line.parse_args())
    on_all = {
        name.upper(): partial(ours, name) for name in ("crs", "cbrs", "prs", "ocdm")
    }
    on_first = on_all | {"GSS": gss, "ExStream": exstream} | others
    times = [measure(on_first, *SIZES[0])]
    times += [measure(on_all, *sizes) for sizes in SIZES[1:]]
    cells = pd.concat(times).groupby(KEYS, sort=False)["us"]
    table = cells.agg(us="median", lowest="min", highest="max")
    print(table["us"].unstack("batch").to_string(float_format="{:,.1f}".format))
    write(table.reset_index(), "samplers", float_format="%.4g")


if __name__ == "__main__":
    main()
