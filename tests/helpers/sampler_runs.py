"""A stream for every sampler, and what some need beside labels."""

import numpy as np

SIZE, NUM_CLASSES = 25, 8


def stream(length=400, seed=0):
    """Draw a long-tailed stream; the last class first appears half-way."""
    rng = np.random.default_rng(seed)
    chance = 0.6 ** np.arange(NUM_CLASSES)
    chance[-1] = 0.1
    rows = np.eye(NUM_CLASSES, dtype=bool)[
        rng.choice(NUM_CLASSES, length, p=chance / chance.sum())
    ]
    rows |= rng.random(rows.shape) < 0.15
    rows[rng.random(length) < 0.05] = False
    rows[: length // 2, -1] = False
    return rows


VALUES = np.random.default_rng(99).normal(size=(1000, 6)).astype(np.float32)


def opposed(start, length):
    """Gradients that point away from all of the memory's; every 14th turns its batch's mean."""

    def products(subsets):
        away = np.tile([-0.9, np.sqrt(0.19)], (length, 1))
        away[np.arange(start, start + length) % 14 == 13] = [100, 0]
        rows = np.concatenate([np.tile([1.0, 0.0], (len(subsets), 1)), away])
        return rows @ rows.T

    return products


# what samplers need beside labels: the same for the same rows of the stream, however it
# is cut
NEEDS = {
    "features": lambda start, length: VALUES[start : start + length],
    "gradient_products": opposed,
}


def context(sampler, rows, start=0):
    """Return what the sampler needs beside labels."""
    return {name: NEEDS[name](start, len(rows)) for name in sampler.needs}


def run(sampler, rows, batch=10):
    parts = [
        sampler.place(rows[i : i + batch], **context(sampler, rows[i : i + batch], i))
        for i in range(0, len(rows), batch)
    ]
    return np.concatenate(parts)
