"""Small label streams and samplers that the tests of PRS share."""

import numpy as np

from prslib.samplers import make_sampler

A, B, C, D = range(4)


def rows(*samples, num_classes=3):
    """Multi-hot rows of samples given as tuples of classes."""
    labels = np.zeros((len(samples), num_classes), bool)
    for row, sample in zip(labels, samples, strict=True):
        row[list(np.atleast_1d(sample))] = True
    return labels


def filled(samples, num_classes=3, size=None, **options):
    sampler = make_sampler("prs", size or len(samples), num_classes, 0, **options)
    sampler.place(rows(*samples, num_classes=num_classes))
    return sampler


def decide(sampler, *sample):
    return sampler.explain(rows(sample, num_classes=sampler.num_classes)[0])


def long_tailed(rng, length, num_classes, labels=1.0, late=True):
    """Draw a long-tailed multi-label stream; each class is met only from some point on."""
    chance = 1.0 / np.arange(1, num_classes + 1) ** 1.3
    start = np.sort(rng.integers(0, length, num_classes)) * late
    start[0] = 0
    stream = np.zeros((length, num_classes), bool)
    for t, row in enumerate(stream):
        open_now = chance * (start <= t)
        number = min(1 + rng.poisson(labels), np.count_nonzero(open_now))
        row[rng.choice(num_classes, number, replace=False, p=open_now / open_now.sum())] = True
    return stream
