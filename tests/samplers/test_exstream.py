"""ExStream on numbers, where the pair that merges is known by hand."""

import numpy as np
import pytest
from prs_examples import rows

from prslib.samplers import make_sampler

CLASS = np.eye(2, dtype=bool)


def feed(sampler, classes, values):
    features = np.array(values, np.float32).reshape(len(classes), -1)
    return sampler.place(CLASS[classes], features=features).tolist()


def held(sampler, c):
    """Pairs of vector and number of samples of a class, in order of slots."""
    slots = np.flatnonzero(sampler.labels[:, c])
    vectors = sampler.vectors(slots)[:, 0].tolist()
    return list(zip(vectors, sampler.samples[slots].tolist(), strict=True))


def test_the_two_closest_merge_into_their_weighted_mean():
    sampler = make_sampler("exstream", 4, 2, seed=0)
    assert feed(sampler, [0, 1, 0], [0, 1, 10]) == [0, 1, 2]
    # the new vector is nearest to a stored one
    assert feed(sampler, [0], [1]) == [0]
    assert held(sampler, 0) == [(0.5, 2), (10, 1)]
    assert feed(sampler, [0], [11]) == [2]
    assert held(sampler, 0) == [(0.5, 2), (10.5, 2)]
    # the two stored ones are nearest to each other: the new one takes the second's slot
    assert feed(sampler, [0], [100]) == [2]
    assert held(sampler, 0) == [(5.5, 4), (100, 1)]
    # four samples weigh four times as much as one
    assert feed(sampler, [0], [8]) == [0]
    assert held(sampler, 0) == [(6, 5), (100, 1)]
    assert held(sampler, 1) == [(1, 1)]  # not near 0 of class 0
    assert len(sampler) == 3
    assert sampler.class_freq.tolist() == [6, 1]


def brute_force(values, quota):
    """The rule in plain Python, for one class: lists of [vector, samples]."""
    kept = []
    for value in values:
        kept.append([value.astype(float), 1])
        if len(kept) > quota:
            gaps = {
                (j, i): ((kept[j][0] - kept[i][0]) ** 2).sum()
                for i in range(len(kept))
                for j in range(i)
            }
            j, i = min(gaps, key=gaps.get)
            (a, n), (b, m) = kept[j], kept.pop(i)
            kept[j] = [(n * a + m * b) / (n + m), n + m]
    return kept


def test_it_is_the_rule_written_plainly():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(400, 6)).astype(np.float32)
    classes = rng.integers(2, size=400)
    sampler = make_sampler("exstream", 20, 2, seed=0)
    for start in range(0, 400, 7):
        part = slice(start, start + 7)
        sampler.place(CLASS[classes[part]], features=values[part])
    for c in (0, 1):
        expected = brute_force(values[classes == c], 10)
        expected = sorted([*vector, samples] for vector, samples in expected)
        slots = np.flatnonzero(sampler.labels[:, c])
        found = np.column_stack([sampler.vectors(slots), sampler.samples[slots]])
        np.testing.assert_allclose(sorted(found.tolist()), expected, atol=1e-4)
    assert sampler.samples.sum() == 400


def test_tensors_are_stored_as_float32_and_may_follow_arrays():
    torch = pytest.importorskip("torch")
    values = np.random.default_rng(0).integers(-8, 8, (60, 3)) / 4
    kinds = [torch.float16, torch.bfloat16, torch.float64, torch.int64, np.float64]
    arrays = make_sampler("exstream", 10, 2, seed=0)
    mixed = make_sampler("exstream", 10, 2, seed=0)
    for batch in np.split(np.arange(60), 10):
        kind = kinds[batch[0] // 6 % len(kinds)]
        features = values[batch].round() if kind is torch.int64 else values[batch]
        arrays.place(CLASS[batch % 2], features=features)
        if isinstance(kind, torch.dtype):
            features = torch.tensor(features, dtype=kind)
            features.requires_grad = kind is torch.float16
        mixed.place(CLASS[batch % 2], features=features)
    np.testing.assert_equal(mixed.state_dict(), arrays.state_dict())
    assert mixed.vectors(np.arange(3)).dtype == np.float32


def test_several_labels_count_for_the_rarest_in_memory():
    sampler = make_sampler("exstream", 9, 3, seed=0)
    samples = rows(0, 0, 1, (0, 1), (0, 1, 2), (0, 2))
    sampler.place(samples, features=np.arange(6, dtype=np.float32)[:, None])
    assert sampler.labels[:6].argmax(1).tolist() == [0, 0, 1, 1, 2, 2]
    assert (sampler.labels.sum(1)[:6] == 1).all()
    assert sampler.class_counts.tolist() == [2, 2, 2]
    assert sampler.class_freq.tolist() == [5, 3, 2]


def test_the_memory_is_parted_equally_and_a_class_without_a_slot_left_out():
    quota = sum(make_sampler("exstream", 23, 7, seed).quota for seed in range(100))
    assert (quota > 300).all() and (quota < 350).all() and quota.sum() == 2300
    assert sorted(make_sampler("exstream", 23, 7, 0).quota) == [3] * 5 + [4] * 2
    with pytest.raises(ValueError, match="num_classes of ExStream, got None"):
        make_sampler("exstream", 23, None, 0)
    sampler = make_sampler("exstream", 1, 2, seed=0)
    (slotless,) = np.flatnonzero(sampler.quota == 0)
    assert feed(sampler, [slotless], [1]) == [-1]
    both = np.ones((1, 2), bool)
    assert sampler.place(both, features=np.ones((1, 1), np.float32)) == [0]
    assert sampler.class_counts[slotless] == 0
    assert sampler.class_freq[slotless] == 2
