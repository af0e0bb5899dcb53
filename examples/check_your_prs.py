"""Find where another implementation of PRS departs from prslib's.

``python examples/check_your_prs.py my_module:MyPRS`` creates ``MyPRS(size, num_classes,
seed)``, which must use a rho of 0. Its method ``place(labels)`` receives batches of labels,
bool (B, C), and returns the slot of each sample, or -1 for a sample that is not kept. If
``place`` has a parameter ``uniforms``, it receives the three random numbers per sample
that prslib draws, (B, 3): for acceptance, for the class to shrink, and for the choice among
equally good slots in ascending order. The script then prints the first decision that
differs, with its quantities. If ``place`` has no such parameter, both implementations
process many streams, and z scores compare each class's share of the memory and its numbers
of accepted and removed samples.
"""

import inspect
import sys
from argparse import ArgumentParser
from collections.abc import Callable
from importlib import import_module

import numpy as np

from prslib.samplers import PRS

SIZE, NUM_CLASSES, LENGTH, BATCH = 40, 8, 600, 10
SEEDS = 100
LARGE = 5.0  # a z score that random variation does not explain


def draw_stream(seed: int) -> np.ndarray:
    """Return labels of classes by Zipf's law, bool (LENGTH, NUM_CLASSES)."""
    rng = np.random.default_rng(seed)
    chance = 0.7 / np.arange(1, NUM_CLASSES + 1)
    labels = rng.random((LENGTH, NUM_CLASSES)) < chance
    labels[~labels.any(axis=1), 0] = True
    return labels


def first_departure(make: Callable) -> str | None:
    """Return the first decision that differs on the same uniform numbers."""
    for seed in range(SEEDS):
        stream = draw_stream(seed)
        theirs = make(SIZE, NUM_CLASSES, seed)
        ours = PRS(SIZE, NUM_CLASSES, seed)
        uniforms = np.random.default_rng(seed).random((LENGTH, ours.draws))
        for t in range(LENGTH):
            decision = ours.explain(stream[t])
            row = slice(t, t + 1)
            (slot,) = ours.choose_batch(stream[row], uniforms[row])
            got = int(theirs.place(stream[row], uniforms=uniforms[row])[0])
            if got != slot:
                classes = np.flatnonzero(stream[t]).tolist()
                text = f"stream {seed}, sample {t} of classes {classes}: "
                return f"{text}expected slot {slot}, got {got}\n{decision}"
    return None


def measure(make: Callable, seed: int) -> dict[str, np.ndarray]:
    """Return each class's share of the memory, and its accepted and removed samples."""
    stream = draw_stream(seed)
    sampler = make(SIZE, NUM_CLASSES, seed)
    memory = np.zeros((SIZE, NUM_CLASSES), bool)
    accepted = np.zeros(NUM_CLASSES)
    removed = np.zeros(NUM_CLASSES)
    for start in range(0, LENGTH, BATCH):
        labels = stream[start : start + BATCH]
        for y, slot in zip(labels, sampler.place(labels), strict=True):
            if slot >= 0:
                removed += memory[slot]
                memory[slot] = y
                accepted += y
    share = memory.sum(axis=0) / memory.sum()
    return {"share": share, "accepted": accepted, "removed": removed}


def z_scores(make: Callable) -> dict[str, np.ndarray]:
    """Return the mean difference from prslib over many streams, in standard errors."""
    pairs = []
    for seed in range(SEEDS):
        ours = measure(PRS, seed)
        theirs = measure(make, seed)
        pairs.append({name: theirs[name] - ours[name] for name in ours})
    scores = {}
    for name in pairs[0]:
        differences = np.array([pair[name] for pair in pairs])  # (SEEDS, C)
        error = differences.std(axis=0, ddof=1) / np.sqrt(SEEDS)
        mean = differences.mean(axis=0)
        scores[name] = mean / np.maximum(error, 1e-9)
    return scores


def main() -> int:
    """Check the class that the command line names; return 1 if it departs."""
    line = ArgumentParser(description=__doc__.split("\n")[0])
    line.add_argument("sampler", metavar="MODULE:CLASS")
    module, _, name = line.parse_args().sampler.partition(":")
    make = getattr(import_module(module), name)
    if "uniforms" in inspect.signature(make.place).parameters:
        departure = first_departure(make)
        print(departure or f"the same slots on {SEEDS} streams of {LENGTH} samples")
        return int(departure is not None)
    scores = z_scores(make)
    for what, z in scores.items():
        print(f"{what:9}", *(f"{value:+6.1f}" for value in z))
    largest = max(np.abs(z).max() for z in scores.values())
    verdict = "departs" if largest > LARGE else "no difference seen"
    print(f"{verdict}: the largest z score by class is {largest:.1f}")
    return int(largest > LARGE)


if __name__ == "__main__":
    sys.path.insert(0, "")
    sys.exit(main())
