"""Samples a second of every sampler, beside Avalanche's buffers and plain numpy.

``make bench`` (or ``python bench/samplers.py``): a minute or two on a core. Prints a
table and writes ``figures/bench/samplers.csv`` and ``.png``.

Streams of 70 classes: digits70seq (8741 samples) and, where the folder ``PRSLIB_DATA``
has COCOseq's labels, COCOseq (35072 samples, schedule 0, 3, 1, 2). A memory of 2000 is
filled first and not timed; then come batches of 10: the rest of the stream for compiled
samplers, its first 500 samples for the slow. Five repetitions, in each of which the
contestants take turns; medians. Avalanche (``pip install -e '.[bench]'``) keeps views
of a data set, not labels alone, so PRS is timed as an Avalanche buffer too. "In one
piece" gives the rest of the stream at once, as Avalanche does at the end of an
experience. Its class-balanced buffer takes one label a sample and is given the first.
A scan of the labels by numpy, in one piece, says what reading them alone takes.

GSS and ExStream look at more than labels. What they look at is made of random numbers
beforehand and given to them: features of the width that the quick profile's conv net
has where ExStream freezes it; inner products of gradients in which every batch opposes
the memory, so that GSS considers them all, its dearest case. Their rows are the sampler
alone, without the network; `bench/gss.py` and `bench/replay_share.py` time them in
training.

``--scale`` measures time and space against the size of the memory and the number of
classes instead, and writes ``figures/bench/samplers_scale.csv`` and ``.png``: three
labels a sample, of classes by Zipf's law; batches of 10 right after the memory is full,
when most samples enter. Time is the processor's, as others may be at work on the
machine. Of space both are given, the arrays of the sampler and what its process, one
for each, grew by at most; ten minutes.
"""

import multiprocessing
import resource
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from prslib.samplers.reference import ReferencePRS
from prslib.samplers.released import ReleasedPRS
from shared import parser, write

from prslib.datasets import DATASETS, load_dataset
from prslib.report.style import METHOD_STYLES, join_panels, styles_of
from prslib.samplers import SAMPLERS, make_sampler

ROOT = Path(__file__).resolve().parents[1]
sys.path += [str(ROOT / "tests" / "helpers"), str(ROOT / "examples")]

import cbrs_twin
import ocdm_twin

NAMES = {"crs": "CRS", "prs": "PRS", "cbrs": "CBRS", "ocdm": "OCDM"}
RHO = -0.03
OPTIONS = {"prs": {"rho": RHO}, "ocdm": {"rho": RHO}}
SIZE = 2000
BATCH = 10
REPETITIONS = 5
SLOW = 500  # samples of the slow contestants
WIDTH = 6144  # of ExStream's features
POOL = 3000  # how many of them, used again and again
# of the measurement against size
SIZES = 500, 2000, 20_000, 100_000, 1_000_000  # of the memory
CLASSES = 10, 70, 300, 1000, 3000, 10_000  # with a memory of SCALED
SCALED = 20_000
LARGEST = 1_000_000, 10_000  # memory and classes
PLAIN_CELLS = 1_500_000  # memory times classes, at most, of plain numpy
TIMED = 100_000  # samples, unless they take longer than
ENOUGH = 1.0  # seconds


class Contestant(NamedTuple):
    """Who is timed: ``make(labels, seed)`` returns a cut of the stream and what takes a piece."""

    name: str
    method: str
    kind: str  # "ours", "plain" or "Avalanche"
    make: Callable[[np.ndarray, int], tuple[Callable, Callable]]
    samples: int | None = None  # how many are timed, None for all
    batch: int | None = BATCH  # None for one piece


class PlainCRS:
    """Reservoir sampling as it is written down."""

    def __init__(self, size: int, num_classes: int, seed: int):
        self.rng, self.seen = np.random.default_rng(seed), 0
        self.memory = np.zeros((size, num_classes), bool)

    def place(self, labels: np.ndarray) -> None:
        for label in labels:
            slot = self.seen
            if self.seen >= len(self.memory):
                slot = self.rng.integers(self.seen + 1)
            self.seen += 1
            if slot < len(self.memory):
                self.memory[slot] = label


PLAIN = {
    "crs": PlainCRS,
    "prs": ReferencePRS,
    "cbrs": cbrs_twin.Twin,
    "ocdm": ocdm_twin.Twin,
}


def on_labels(sampler_class: Callable, **options) -> Callable:
    """Return what makes a sampler that takes labels alone."""

    def make(labels, seed):
        return labels.__getitem__, sampler_class(SIZE, 70, seed, **options).place

    return make


def scan(labels, seed):
    """Make what reads every label once, the least that a sampler has to do."""
    return labels.__getitem__, lambda piece: piece.any(axis=1)


def on_features(labels, seed):
    """Make ExStream, and pieces of the stream with features from one pool."""
    pool = np.random.default_rng(seed).random((POOL, WIDTH), np.float32)
    sampler = make_sampler("exstream", SIZE, 70, seed)

    def cut(part):
        start = part.start % (POOL - SIZE + 1)
        return labels[part], pool[start : start + part.stop - part.start]

    return cut, lambda piece: sampler.place(piece[0], features=piece[1])


def on_gradients(labels, seed):
    """Make GSS, given the products of gradients that all oppose those of the memory."""
    rng = np.random.default_rng(seed)
    known, sampler = 10, make_sampler("gss", SIZE, 70, seed)
    gradients = rng.standard_normal((known + BATCH, 64)) + 1.0
    gradients[known:] *= -1.0
    products = gradients @ gradients.T

    def place(piece):
        def some(subsets):
            rows = slice(known - len(subsets), known + len(piece))
            return products[rows, rows]

        return sampler.place(piece, gradient_products=some)

    return labels.__getitem__, place


def on_views(make_buffer: Callable, one_label: bool = False) -> Callable:
    """Return what makes an Avalanche buffer; its pieces of the stream are cut ahead of time."""
    import torch
    from avalanche.benchmarks.utils import as_classification_dataset
    from torch.utils.data import TensorDataset

    torch.set_num_threads(1)

    def make(labels, seed):
        torch.manual_seed(seed)
        targets = torch.from_numpy(labels.argmax(1) if one_label else labels)
        data = TensorDataset(torch.arange(len(labels)), targets)
        data.targets = targets.tolist() if one_label else list(targets)
        dataset = as_classification_dataset(data)

        def cut(part):
            return dataset.subset(range(part.start, part.stop))

        return cut, make_buffer(seed).update_from_dataset

    return make


def in_one_piece(contestant: Contestant) -> Contestant:
    """Return the contestant that gets the rest of the stream at once."""
    name = f"{contestant.name}, one piece"
    return contestant._replace(name=name, samples=None, batch=None)


def contestants() -> list[Contestant]:
    """Return who takes part; without Avalanche a line says so."""
    ours, plain = [], []
    for key, name in NAMES.items():
        options = OPTIONS.get(key, {})
        make = on_labels(SAMPLERS[key], **options)
        ours.append(Contestant(name, name, "ours", make))
        make = on_labels(PLAIN[key], **options)
        plain.append(Contestant(f"{name} in plain numpy", name, "plain", make, SLOW))
    authors = on_labels(ReleasedPRS, rho=RHO)
    listed = [
        *ours,
        *map(in_one_piece, ours[:3]),
        Contestant("PRS, authors' variant", "PRS", "ours", authors, SLOW),
        Contestant("GSS, gradient products given", "GSS", "ours", on_gradients, SLOW),
        Contestant("ExStream, features given", "ExStream", "ours", on_features, SLOW),
        *plain,
        Contestant("a scan of the labels, one piece", "", "plain", scan, batch=None),
    ]
    try:
        return listed + avalanche()
    except ImportError:
        print("Avalanche: left out, not installed; pip install -e '.[bench]'")
        return listed


def avalanche() -> list[Contestant]:
    """Return Avalanche's buffers and ours in its form."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from avalanche.training import storage_policy as policy
        from avalanche_buffer import SamplerBuffer

    def prs(seed):
        return SamplerBuffer(make_sampler("prs", SIZE, 70, seed, rho=RHO))

    reservoir = on_views(lambda _: policy.ReservoirSamplingBuffer(SIZE))
    balanced = on_views(lambda _: policy.ClassBalancedBuffer(SIZE), one_label=True)
    peers = [
        Contestant("Avalanche reservoir", "", "Avalanche", reservoir, SLOW),
        Contestant("Avalanche class-balanced", "", "Avalanche", balanced, SLOW),
    ]
    return [
        Contestant(
            "PRS as an Avalanche buffer", "PRS", "Avalanche", on_views(prs), SLOW
        ),
        *peers,
        *map(in_one_piece, peers),
    ]


def rate(contestant: Contestant, stream: np.ndarray, seed: int) -> float:
    """Fill the memory, then return samples a second over the samples that follow."""
    cut, place = contestant.make(stream, seed)
    place(cut(slice(0, SIZE)))
    end = min(SIZE + (contestant.samples or len(stream)), len(stream))
    step = contestant.batch or end - SIZE
    pieces = [cut(slice(i, min(i + step, end))) for i in range(SIZE, end, step)]
    start = time.perf_counter()
    for piece in pieces:
        place(piece)
    return (end - SIZE) / (time.perf_counter() - start)


def streams() -> dict[str, np.ndarray]:
    """Return the labels of each stream in its order, bool (N, 70); a line for one left out."""
    rng, streams = np.random.default_rng(0), {}
    for name in ("digits70seq", "cocoseq"):
        try:
            train = load_dataset(name, images=False).train
        except FileNotFoundError as error:
            print(f"{name}: left out; {error}")
            continue
        tasks = DATASETS[name].recipe.schedule
        order = [rng.permutation(np.flatnonzero(train.task == task)) for task in tasks]
        streams[name] = train.labels[np.concatenate(order)]
    return streams


def measure(taking_part: list[Contestant], stream: np.ndarray) -> pd.DataFrame:
    """Return one row a contestant: the median and range of its rate, and two ratios."""
    for contestant in taking_part:
        if contestant.kind == "ours":
            rate(contestant._replace(samples=BATCH), stream, 0)  # compile
    rates = pd.DataFrame(
        {one.name: rate(one, stream, seed) for one in taking_part}
        for seed in range(REPETITIONS)
    )

    rows = []
    for name, method, kind, *_ in taking_part:
        speed = rates[name]
        row = {"contestant": name, "kind": kind, "method": method}
        row |= {
            "samples_per_s": speed.median(),
            "lowest": speed.min(),
            "highest": speed.max(),
        }
        plain, peer = f"{method} in plain numpy", "Avalanche reservoir"
        row["times_plain"] = (speed / rates.get(plain, np.nan)).median()
        row["times_avalanche"] = (speed / rates.get(peer, np.nan)).median()
        rows.append(row)
    return pd.DataFrame(rows)


def draw(table: pd.DataFrame, figure: plt.Figure) -> None:
    """Draw the median of each contestant as a dot and the range as a line, fastest on top."""
    names = table.groupby("stream", sort=False)
    axes = figure.subplots(1, len(names), squeeze=False, sharex=True, sharey=True)[0]
    first = table[table["stream"] == table["stream"].iloc[0]]
    order = first.sort_values("samples_per_s")["contestant"]
    markers = {"ours": "o", "plain": "s", "Avalanche": "D"}
    for ax, (stream, rows) in zip(axes, names, strict=True):
        rows = rows.set_index("contestant").loc[order]
        for y, row in enumerate(rows.itertuples()):
            colour = METHOD_STYLES.get(row.method, {"color": "#666666"})["color"]
            ax.plot([row.lowest, row.highest], [y, y], color=colour, linewidth=2)
            fill = colour if row.kind == "ours" else "white"
            dot = {"color": colour, "markerfacecolor": fill, "markersize": 8}
            ax.plot(row.samples_per_s, y, marker=markers[row.kind], **dot)
            place = {"xytext": (7, 0), "textcoords": "offset points", "va": "center"}
            rounded = float(f"{row.samples_per_s:.2g}")
            ax.annotate(f"{rounded:,.0f}", (row.highest, y), **place)
        ax.set(xscale="log", xlabel="samples/s (log scale)", title=stream)
        ax.set_yticks(range(len(rows)), rows.index)
        ax.grid(axis="x")
        # room for the numbers
        ax.set_xlim(table["lowest"].min() / 2, 60 * table["highest"].max())
    kinds = {"ours": "prslib", "plain": "plain numpy"}
    for kind, label in (kinds | {"Avalanche": "in Avalanche"}).items():
        style = {"marker": markers[kind], "linestyle": "", "markersize": 8}
        fill = "0.4" if kind == "ours" else "white"
        ax.plot([], [], label=label, color="0.4", markerfacecolor=fill, **style)
    join_panels(figure, "Samples that a sampler takes, median and range, one thread")


def zipf(length: int, num_classes: int, rng: np.random.Generator) -> np.ndarray:
    """Return labels of three classes a sample, bool (length, C), the first class the commonest."""
    stream = np.zeros((length, num_classes), bool)
    share = np.cumsum(1 / np.arange(1, num_classes + 1))
    while (few := np.flatnonzero(np.count_nonzero(stream, axis=1) < 3)).size:
        stream[few, np.searchsorted(share, share[-1] * rng.random(len(few)))] = True
    return stream


class AvalancheReservoir:
    """Avalanche's reservoir of views, which takes labels as ours do."""

    def __init__(self, size: int, num_classes: int, seed: int):
        from avalanche.training.storage_policy import ReservoirSamplingBuffer

        self.cut, self.take = on_views(lambda _: ReservoirSamplingBuffer(size))(
            np.zeros((1000, num_classes), bool), seed
        )

    def place(self, labels: np.ndarray) -> None:
        self.take(self.cut(slice(0, len(labels))))  # it looks at no label


SCALABLE = {
    **{name: SAMPLERS[key] for key, name in NAMES.items()},
    "PRS in plain numpy": ReferencePRS,
    "Avalanche reservoir": AvalancheReservoir,
}


def cost(name: str, size: int, classes: int) -> dict[str, float]:
    """Return microseconds a sample once the memory is full, and megabytes."""
    rng = np.random.default_rng(0)
    SCALABLE[name](BATCH, classes, 0).place(zipf(1000, classes, rng))  # compile
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    sampler = SCALABLE[name](size, classes, 0)
    for i in range(0, size, 1000):
        sampler.place(zipf(min(1000, size - i), classes, rng))
    taken, spent = 0, 0.0
    while taken < TIMED and spent < ENOUGH:
        stream, start, begin = zipf(1000, classes, rng), 0, time.process_time()
        while start < len(stream) and time.process_time() < begin + ENOUGH:
            sampler.place(stream[start : start + BATCH])
            start += BATCH
        taken, spent = taken + start, spent + time.process_time() - begin
    arrays = [*vars(sampler).values(), *getattr(sampler, "state", ())]
    array_bytes = sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))
    grew = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return {
        "us_per_sample": 1e6 * spent / taken,
        "process_grew_megabytes": grew / 1e3,  # kilobytes on Linux
        "megabytes": array_bytes / 1e6 if array_bytes else np.nan,
    }


def measure_scale() -> pd.DataFrame:
    """Return one row for each sampler, size of the memory and number of classes."""
    rows, alone = [], multiprocessing.get_context("spawn")  # a process each
    sizes = [(m, c) for c in (70, 1000) for m in SIZES]
    sizes += [(SCALED, c) for c in CLASSES]
    for size, classes in dict.fromkeys([*sizes, LARGEST]):
        names = [*NAMES.values()]
        names += ["PRS in plain numpy"] * (size * classes < PLAIN_CELLS)
        names += ["Avalanche reservoir"] * (classes == 70 and size <= SCALED)
        for name in names:
            row = {"memory": size, "classes": classes, "sampler": name}
            with alone.Pool(1) as pool:
                rows.append(row | pool.apply(cost, (name, size, classes)))
            print(*rows[-1].values(), flush=True)
    return pd.DataFrame(rows)


def draw_scale(table: pd.DataFrame, figure: plt.Figure) -> None:
    """Draw time against memory and classes, and space against memory, a line a sampler."""
    styles = styles_of(NAMES.values())
    plain = {"linestyle": "--", "markerfacecolor": "white"}
    styles["PRS in plain numpy"] = styles["PRS"] | plain
    peer = {"color": "#666666", "marker": "D", "markerfacecolor": "white"}
    styles["Avalanche reservoir"] = peer
    time = "us_per_sample", "processor time (µs/sample)", ""
    space = "megabytes", "state (MB)", ", space"
    panels = [("classes", 70, time), ("classes", 1000, time)]
    panels += [("memory", SCALED, time), ("classes", 1000, space)]
    for ax, (same, value, (y, ylabel, more)) in zip(
        figure.subplots(2, 2).flat, panels, strict=True
    ):
        if same == "classes":
            x, xlabel, title = "memory", "memory (samples)", f"{value:,} classes"
        else:
            x, xlabel, title = "classes", "classes", f"memory of {value:,} samples"
        panel = table[table[same] == value].sort_values(x)
        for name, style in styles.items():
            line = panel[panel["sampler"] == name]
            if len(line) > 1:
                ax.plot(line[x], line[y], label=name, **style)
        ax.set(xscale="log", yscale="log", xlabel=xlabel, ylabel=ylabel)
        ax.set_title(title + more)
    join_panels(figure, "Time and space of the samplers, from when the memory is full")


def main() -> None:
    """Measure, print the table, write it and draw it."""
    arguments = parser(__doc__)
    text = "time and space against size instead"
    arguments.add_argument("--scale", action="store_true", help=text)
    if arguments.parse_args().scale:
        table = measure_scale()
        return write(
            table, "samplers_scale", partial(draw_scale, table), (11, 7), "%.4g"
        )
    taking_part, tables = contestants(), []
    for name, stream in streams().items():
        table = measure(taking_part, stream)
        tables.append(table.assign(stream=name))
        size = f"{len(stream)} samples, 70 classes, memory {SIZE}, batches of {BATCH}"
        print(f"\n{name}: {size}")
        shown = table.drop(columns=["kind", "method"]).set_index("contestant")
        print(shown.to_string(float_format="{:,.1f}".format))
    table = pd.concat(tables, ignore_index=True)
    write(table, "samplers", partial(draw, table), (11, 5), "%.4g")


if __name__ == "__main__":
    main()
