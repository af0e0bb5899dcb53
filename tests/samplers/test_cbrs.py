from functools import partial

import numpy as np
import prs_examples
from prs_examples import A, B, C, held_items, rows
from scipy.stats import chisquare

from prslib.samplers import make_sampler

filled = partial(prs_examples.filled, name="cbrs")
next_slots = partial(prs_examples.next_slots, "cbrs")


def test_a_class_that_is_not_full_overwrites_the_largest():
    slots = next_slots([A, A, B, A], B)
    assert chisquare(np.bincount(slots, minlength=4)[[0, 1, 3]]).pvalue > 1e-4
    assert set(slots) == {0, 1, 3}


def test_of_several_largest_classes_all_are_full_and_all_give():
    slots = next_slots([A, A, B, B, C], C)
    assert set(slots) == {0, 1, 2, 3}
    assert chisquare(np.bincount(slots)).pvalue > 1e-4
    slots = next_slots([A, A, B, B, C], B)  # n = 3, m = 2
    seen = np.bincount(np.where(slots < 0, 5, slots), minlength=6)
    assert not seen[[0, 1, 4]].any()
    assert chisquare(seen[[2, 3, 5]]).pvalue > 1e-4


def test_a_sample_counts_for_its_rarest_label():
    sampler = filled([A, A, (A, B), (B, C)])
    assert sampler.slot_class.tolist() == [A, A, B, C]
    assert sampler.class_counts.tolist() == [3, 2, 1]
    slots = next_slots([A, A, (A, B), (B, C)], (A, C))  # for C, which is not full
    assert set(slots) == {0, 1}  # A, the largest: the sample of A and B counts for B


def test_equally_rare_labels_are_drawn_uniformly():
    classes = [filled([(A, B, C), A], seed=seed).slot_class[0] for seed in range(1500)]
    assert chisquare(np.bincount(classes, minlength=3)).pvalue > 1e-4


def test_the_samples_of_each_class_are_a_uniform_choice():
    stream = rows(*[A] * 20, *[B] * 60, *[A] * 20)
    size, runs, times = 10, 1000, np.zeros(100)
    for seed in range(runs):
        times[held_items(make_sampler("cbrs", size, 3, seed).place(stream))] += 1
    of_a, of_b = np.delete(times, slice(20, 80)), times[20:80]
    assert of_a.sum() == of_b.sum() == runs * size / 2
    for counts in (of_a, of_b):
        share = size / 2 / len(counts)  # without replacement the spread is smaller
        statistic = ((counts - runs * share) ** 2).sum() / (runs * share * (1 - share))
        assert abs(statistic - len(counts)) < 5 * np.sqrt(2 * len(counts))
