"""Samples a second of each sampler, beside the equations written plainly in numpy.

Run ``python bench/samplers.py``. The stream has COCOseq's class frequencies divided by 4: 70
classes, 4 tasks, 8766 samples; a memory of 2000 is filled first and not timed. Batches of 10, one
core, median of 5 repetitions, the contestants taking turns in each.
"""

import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from prs_twin import Twin  # noqa: E402

from prslib.samplers import make_sampler  # noqa: E402

SIZE, BATCH, REPETITIONS = 2000, 10, 5
CLASS_FREQ = (
    "1357 1180 1121 898 874 584 541 416 413 399 388 382 307 300 272 253 230 194 145 128 126 72 59 "
    "49",
    "1827 1319 1228 1045 863 808 674 658 629 575 437 408 333 273 241 198 146 107",
    "1575 1420 1390 1361 925 901 900 811 794 733 660 396 342 333",
    "1743 1158 1050 979 482 452 395 285 284 224 189 186 185 131",
)
IMAGES = (8365, 7814, 11603, 7290)
CONTESTANTS = {
    "crs": ("crs", {}),
    "prs rho=0": ("prs", {}),
    "prs rho=-0.03": ("prs", {"rho": -0.03}),
    "prs rho=1": ("prs", {"rho": 1.0}),
    "prs authors": ("prs", {"variant": "authors"}),
}
NUMPY_SAMPLES = 1000  # the plain equations are slow: time the first of the stream only


class Transcription(Twin):
    """The equations in numpy, all candidates of a removal in one expression."""

    def distances(self, candidates: np.ndarray, partition: np.ndarray) -> np.ndarray:
        """Return the distance to the target without each candidate."""
        counts = self.memory.sum(0) - self.memory[candidates]  # (K, C)
        return np.abs(counts - partition * counts.sum(1, keepdims=True)).sum(1)


def make_stream(rng: np.random.Generator) -> np.ndarray:
    """Draw labels with the published class frequencies divided by 4; bool (N, 70)."""
    tasks, first = [], 0
    for line, images in zip(CLASS_FREQ, IMAGES, strict=True):
        freq = np.array(line.split(), int)
        rows = np.zeros((images // 4, 70), bool)
        own = rng.choice(len(freq), len(rows), p=freq / freq.sum())
        rows[np.arange(len(rows)), first + own] = True
        share = (freq.sum() / images - 1) * freq / freq.sum()  # more labels, at the same mix
        rows[:, first : first + len(freq)] |= rng.random((len(rows), len(freq))) < share
        tasks.append(rows)
        first += len(freq)
    return np.concatenate(tasks)


def rate(sampler: object, stream: np.ndarray, samples: int) -> float:
    """Fill the memory, then return samples a second over the next ``samples``."""
    sampler.place(stream[:SIZE])
    end = min(SIZE + samples, len(stream))
    batches = [stream[i : min(i + BATCH, end)] for i in range(SIZE, end, BATCH)]
    start = time.perf_counter()
    for batch in batches:
        sampler.place(batch)
    return (end - SIZE) / (time.perf_counter() - start)


def main() -> None:
    """Measure and print the table."""
    stream = make_stream(np.random.default_rng(0))
    num_classes = stream.shape[1]
    rates = {name: [] for name in [*CONTESTANTS, "equations in numpy"]}
    for name, options in CONTESTANTS.values():
        rate(make_sampler(name, SIZE, num_classes, 0, **options), stream, BATCH)  # compile
    for seed in range(REPETITIONS):
        for label, (name, options) in CONTESTANTS.items():
            sampler = make_sampler(name, SIZE, num_classes, seed, **options)
            rates[label].append(rate(sampler, stream, len(stream)))
        plain = Transcription(SIZE, num_classes, seed)
        rates["equations in numpy"].append(rate(plain, stream, NUMPY_SAMPLES))
    plain = np.median(rates["equations in numpy"])
    print(f"{len(stream)} samples, {num_classes} classes, memory {SIZE}, batches of {BATCH}")
    print(f"{'sampler':<20}{'samples/s':>12}{'lowest':>12}{'highest':>12}{'ratio':>9}")
    for label, values in rates.items():
        middle = np.median(values)
        print(
            f"{label:<20}{middle:>12,.0f}{min(values):>12,.0f}{max(values):>12,.0f}"
            f"{middle / plain:>8,.0f}x"
        )


if __name__ == "__main__":
    main()
