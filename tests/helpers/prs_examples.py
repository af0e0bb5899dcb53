"""Small label streams and samplers that the tests of the samplers share."""

import numpy as np

from prslib.samplers import make_sampler

A, B, C, D = range(4)


def rows(*samples, num_classes=3):
    """Return multi-hot rows of samples, which are given as tuples of classes."""
    labels = np.zeros((len(samples), num_classes), bool)
    for row, sample in zip(labels, samples, strict=True):
        row[list(np.atleast_1d(sample))] = True
    return labels


def filled(samples, num_classes=3, size=None, name="prs", seed=0, **options):
    sampler = make_sampler(name, size or len(samples), num_classes, seed, **options)
    sampler.place(rows(*samples, num_classes=num_classes))
    return sampler


def next_slots(name, samples, sample, runs=2000, **options):
    """Return the slot of the next sample for each of many seeds."""
    made = (filled(samples, name=name, seed=seed, **options) for seed in range(runs))
    return np.array([sampler.place(rows(sample))[0] for sampler in made])


def held_items(slots):
    """Return the samples of the stream that are stored at the end."""
    holder = {slot: item for item, slot in enumerate(slots) if slot >= 0}
    return np.array(list(holder.values()))


def decide(sampler, *sample):
    return sampler.explain(rows(sample, num_classes=sampler.num_classes)[0])


def long_tailed(rng, length, num_classes, labels=1.0, late=True):
    """Draw a long-tailed multi-label stream; classes appear at random points of it."""
    chance = 1.0 / np.arange(1, num_classes + 1) ** 1.3
    start = np.sort(rng.integers(0, length, num_classes)) * late
    start[0] = 0
    stream = np.zeros((length, num_classes), bool)
    for t, row in enumerate(stream):
        open_now = chance * (start <= t)
        number = min(1 + rng.poisson(labels), np.count_nonzero(open_now))
        chosen = rng.choice(num_classes, number, False, open_now / open_now.sum())
        row[chosen] = True
    return stream
