"""Tests of every sampler in SAMPLERS; a new entry is tested without more code."""

import copy
import io
import pickle

import cbrs_twin
import numpy as np
import ocdm_twin
import plain_prs
import pytest
from prs_examples import long_tailed

from prslib.samplers import SAMPLERS, check_sampler, make_sampler
from prslib.samplers.cbrs import draw_from_lists

SIZE, NUM_CLASSES = 25, 8
ALL = pytest.mark.parametrize("name", sorted(SAMPLERS))
TWINS = {"cbrs": cbrs_twin.Twin, "ocdm": ocdm_twin.Twin, "prs": plain_prs.PlainPRS}
VALUES = np.random.default_rng(99).normal(size=(1000, 6)).astype(np.float32)


def stream(length=400):
    return long_tailed(np.random.default_rng(0), length, NUM_CLASSES)


def opposed(start, length):
    """Return products of gradients that point away from all of the memory's."""
    away = VALUES[start : start + length, :2] * [0, 1] - [1, 0]

    def products(subsets):
        rows = np.concatenate([np.tile([1.0, 0.0], (len(subsets), 1)), away])
        return rows @ rows.T

    return products


# the same for the same rows of the stream, however it is cut
NEEDS = {
    "features": lambda start, length: VALUES[start : start + length],
    "gradient_products": opposed,
}


def context(sampler, rows, start=0):
    """Return what the sampler needs beside labels."""
    return {name: NEEDS[name](start, len(rows)) for name in sampler.needs}


def run(sampler, rows, cuts=None):
    slots = []
    cuts = range(10, len(rows), 10) if cuts is None else cuts
    for labels in np.split(rows, cuts):
        more = context(sampler, labels, len(slots))
        slots.extend(sampler.place(labels, **more).tolist())
    return slots


@ALL
def test_it_passes_the_checks_of_samplers(name):
    check_sampler(SAMPLERS[name], context)


@pytest.mark.parametrize("name", ["cbrs", "crs", "exstream", "prs"])
def test_a_batch_split_anywhere_gives_the_same_slots(name):
    rows = stream()
    slots = run(make_sampler(name, SIZE, NUM_CLASSES, 0), rows, [])
    for seed in range(10):
        cuts = np.sort(np.random.default_rng(seed).integers(0, 400, 40))
        sampler = make_sampler(name, SIZE, NUM_CLASSES, 0)
        assert run(sampler, rows, cuts) == slots


@pytest.mark.parametrize("name", sorted(TWINS))
def test_every_decision_equals_the_twin(name):
    """40 streams, with growth, cuts and pickled samplers."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        num_classes = int(rng.integers(1, 30))
        size = int(rng.integers(1, 40))
        extra = rng.choice([0.0, 0.3, 2.0, 8.0])
        rows = long_tailed(rng, size + 60, num_classes, extra, bool(rng.integers(2)))
        options = {}
        if name != "cbrs":
            options["rho"] = rng.choice([-20.0, -1.0, -0.03, 0.0, 0.5, 1.0, 20.0])
        known = num_classes if rng.integers(2) else None
        batch = int(rng.choice([1, 7, 1000]))
        sampler = make_sampler(name, size, known, seed, **options)
        twin = TWINS[name](size, num_classes, seed, **options)
        for labels in np.split(rows, range(batch, len(rows), batch)):
            seen = twin.class_freq + labels.sum(axis=0)
            width = num_classes if known else np.flatnonzero(seen)[-1] + 1
            slots = sampler.place(labels[:, :width])
            assert slots.tolist() == twin.place(labels).tolist(), seed
            if rng.random() < 0.1:
                sampler = pickle.loads(pickle.dumps(sampler))
        width = sampler.num_classes
        assert (sampler.labels == twin.labels[:, :width]).all()
        assert sampler.class_freq.tolist() == rows.sum(axis=0)[:width].tolist()


@pytest.mark.parametrize("name", ["cbrs", "crs", "ocdm", "prs"])
def test_memory_use_does_not_grow_with_the_stream(name):
    rng = np.random.default_rng(0)
    sampler = make_sampler(name, 50, 30, 0)
    rows = rng.random((6000, 30)) < 0.2  # nearly all sets are new
    rows[:, 0] |= ~rows.any(axis=1)
    run(sampler, rows, range(100, 6000, 100))
    held = sampler._sets
    assert len(held.numbers) == np.count_nonzero(held.count) <= 50
    assert len(held.classes) == len(held.width) == len(held.count) <= 256
    assert 0 < sum(map(len, held.of_class.values())) <= sampler.class_counts.sum()


# samples without a label


@ALL
def test_samples_without_a_label_may_be_a_class(name):
    rows = stream(400)
    rows[::2] = False
    sampler = make_sampler(name, SIZE, NUM_CLASSES, 0, unlabelled="class")
    slots = run(sampler, rows)
    assert (sampler.unlabelled_seen, sampler.seen, len(sampler)) == (200, 400, SIZE)
    assert sampler.class_freq.tolist() == rows.sum(axis=0).tolist()
    assert sampler.class_counts.tolist() == sampler.labels.sum(axis=0).tolist()
    assert 0 < np.count_nonzero(~sampler.labels.any(axis=1)) < SIZE
    if name in TWINS:  # as if it were one class more
        full = np.column_stack([rows, ~rows.any(axis=1)])
        assert slots == run(make_sampler(name, SIZE, NUM_CLASSES + 1, 0), full)
    restored = make_sampler(name, SIZE, NUM_CLASSES, 1, unlabelled="class")
    restored.load_state_dict(sampler.state_dict())
    assert run(restored, rows) == run(sampler, rows)


@pytest.mark.parametrize("size", [50, 5000])
def test_slots_are_drawn_in_ascending_order(size):
    rng = np.random.default_rng(0)
    slots = rng.permutation(2 * size)[:size]
    lists = [sorted(part.tolist()) for part in np.array_split(slots, 7)]
    drawn = [draw_from_lists(lists, (n + 0.5) / size) for n in range(size)]
    assert drawn == sorted(slots.tolist())


# bad input


@pytest.mark.parametrize(
    ("name", "change", "error", "match"),
    [
        ("crs", {"size": 0}, ValueError, "size must be at least 1, got 0"),
        ("crs", {"seed": -1}, ValueError, "seed must be at least 0, got -1"),
        ("ocdm", {"rho": "0"}, TypeError, "rho must be a number, got '0'"),
        ("prs", {"rho": -21}, ValueError, "rho must be within ±20, got -21"),
    ],
)
def test_arguments_are_checked(name, change, error, match):
    with pytest.raises(error, match=match):
        make_sampler(name, **{"size": 5, "num_classes": 8, "seed": 0} | change)


def test_too_many_and_additional_classes_are_refused():
    with pytest.raises(ValueError, match="num_classes must be at most 1000000, got"):
        make_sampler("crs", 5, 3, 0).add_classes(1_000_000)
    with pytest.raises(ValueError, match="unlabelled='class' needs num_classes"):
        make_sampler("crs", 5, None, 0, unlabelled="class")
    with pytest.raises(ValueError, match="all classes in advance"):
        make_sampler("crs", 5, 3, 0, unlabelled="class").add_classes(1)


WRONG = {
    "features": [VALUES[:3] * np.nan, VALUES[:2], np.ma.array(VALUES[:3])],
    "gradient_products": [lambda subsets: np.eye(3), None],
    "nonsense": [1],
}


@pytest.mark.parametrize("keyword", WRONG)
@pytest.mark.parametrize("known", [NUM_CLASSES, None])
@ALL
def test_a_refused_batch_is_not_counted(name, known, keyword):
    if name == "exstream":
        known = NUM_CLASSES
    sampler = make_sampler(name, SIZE, known, 0)
    run(sampler, stream(30))
    before = sampler.state_dict()
    labels = np.eye(NUM_CLASSES, dtype=bool)[[1, 7, 3]]
    for value in WRONG[keyword]:
        with pytest.raises((TypeError, ValueError)) as caught:
            sampler.place(labels, **{keyword: value})
        assert "\n" not in str(caught.value)
        after = sampler.state_dict()
        if name == "gss":  # which draws the subsets before it can look at products
            after["generator"] = before["generator"]
        np.testing.assert_equal(after, before)


# saved states


def by_savez(state):
    file = io.BytesIO()
    np.savez(file, **state)
    file.seek(0)
    return np.load(file)  # without pickled objects


def by_torch(state):
    torch = pytest.importorskip("torch")
    file = io.BytesIO()
    torch.save({name: torch.as_tensor(value) for name, value in state.items()}, file)
    file.seek(0)
    return torch.load(file)


@ALL
@pytest.mark.parametrize("keep", [copy.deepcopy, by_savez, by_torch])
def test_a_restored_sampler_goes_on_alike_and_shares_nothing(name, keep):
    rows = stream()
    sampler = make_sampler(name, SIZE, NUM_CLASSES, 4)
    run(sampler, rows[:150])
    state = sampler.state_dict()
    kept = keep(state)
    restored = make_sampler(name, SIZE, NUM_CLASSES, 99)
    restored.load_state_dict(kept)
    assert repr(restored) == repr(sampler)
    slots = run(sampler, rows[150:])
    assert run(restored, rows[150:]) == slots
    restored.load_state_dict(state)  # which neither has changed
    assert run(restored, rows[150:]) == slots


def test_the_state_of_another_sampler_is_refused():
    state = make_sampler("prs", 4, 3, 0).state_dict()
    sampler = make_sampler("prs", 4, 3, 0, rho=1)
    before = sampler.state_dict()
    with pytest.raises(
        ValueError, match=r"a state of PRS.*rho=1\.0, .* got .*rho=0\.0"
    ):
        sampler.load_state_dict(state)
    np.testing.assert_equal(sampler.state_dict(), before)


def test_a_state_with_other_entries_is_refused():
    sampler = make_sampler("crs", 4, 3, 0)
    state = sampler.state_dict()
    # for example, an own sampler may make an array after __init__
    for other in (state | {"ages": np.zeros(4)}, {"sampler": state["sampler"]}):
        with pytest.raises(ValueError, match=r"a state with .*'seen'"):
            sampler.load_state_dict(other)
    with pytest.raises(ValueError, match="got no sampler"):
        sampler.load_state_dict({"seen": 0})
