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
from prslib.samplers.label_sets import nth_slot

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


def test_a_seed_is_any_of_numpys_and_shares_no_numbers_with_the_stream():
    seeds = np.random.SeedSequence(7), np.random.default_rng(7)
    first, second = (make_sampler("crs", SIZE, NUM_CLASSES, seed) for seed in seeds)
    assert run(first, stream()) == run(second, stream())
    counts = []
    for seed in range(30):
        first = np.random.default_rng(seed).random(2000) < 0.5
        sampler = make_sampler("crs", 100, 2, seed)
        sampler.place(np.column_stack([first, ~first]))
        counts.append(sampler.class_counts[0])
    assert abs(np.mean(counts) - 50) < 4  # s.d. of the mean 0.9


@pytest.mark.parametrize("name", ["cbrs", "crs", "exstream", "prs"])
def test_a_batch_split_anywhere_gives_the_same_slots(name):
    rows = stream()
    slots = run(make_sampler(name, SIZE, NUM_CLASSES, 0), rows, [])
    for seed in range(10):
        cuts = np.sort(np.random.default_rng(seed).integers(0, 400, 40))
        sampler = make_sampler(name, SIZE, NUM_CLASSES, 0)
        assert run(sampler, rows, cuts) == slots


def disturbed(sampler, make, rng):
    """Return the sampler, a copy, or another one that goes on from its state."""
    way = rng.integers(4)
    if way == 0:
        return pickle.loads(pickle.dumps(sampler))
    if way == 1:
        return copy.copy(sampler)
    if way == 2:
        other = make(99)
        other.load_state_dict(sampler.state_dict())
        return other
    return sampler


@pytest.mark.parametrize("name", sorted(TWINS))
def test_every_decision_equals_the_twin(name):
    """300 streams, with growth, cuts, copies and restores."""
    for seed in range(300):
        rng = np.random.default_rng(seed)
        num_classes = int(rng.integers(1, 30))
        size = int(rng.integers(1, 40))
        extra = rng.choice([0.0, 0.3, 2.0, 8.0])
        rows = long_tailed(rng, size + 60, num_classes, extra, bool(rng.integers(2)))
        options = {}
        if name != "cbrs":
            options["rho"] = rng.choice([-1000.0, -1.0, -0.03, 0.0, 0.5, 1.0, 1000.0])
        known = num_classes if rng.integers(2) else None
        batch = int(rng.choice([1, 7, 1000]))

        def make(seed, arguments=(name, size, known), options=options):
            return make_sampler(*arguments, seed, **options)

        sampler = make(seed)
        twin = TWINS[name](size, num_classes, seed, **options)
        for labels in np.split(rows, range(batch, len(rows), batch)):
            seen = twin.class_freq + labels.sum(axis=0)
            width = num_classes if known else np.flatnonzero(seen)[-1] + 1
            slots = sampler.place(labels[:, :width])
            assert slots.tolist() == twin.place(labels).tolist(), seed
            if rng.random() < 0.1:
                sampler = disturbed(sampler, make, rng)
        width = sampler.num_classes
        assert (sampler.labels == twin.labels[:, :width]).all()
        assert sampler.class_freq.tolist() == rows.sum(axis=0)[:width].tolist()


@pytest.mark.parametrize("name", ["prs", "ocdm"])
@pytest.mark.parametrize("rho", [0, 1])
def test_a_long_single_label_stream_ends_on_target(name, rho):
    labels = np.random.default_rng(5).choice(4, 6000, p=[0.5, 0.25, 0.15, 0.1])
    sampler = make_sampler(name, 200, 4, 1, rho=rho)
    sampler.place(labels)
    target = np.bincount(labels) / 6000 if rho else np.full(4, 0.25)
    assert np.abs(sampler.class_counts / 200 - target).sum() / 2 < 0.02


@pytest.mark.parametrize("name", ["cbrs", "crs", "ocdm", "prs"])
def test_memory_use_does_not_grow_with_the_stream(name):
    rng = np.random.default_rng(0)
    sampler = make_sampler(name, 50, 30, 0)
    rows = rng.random((6000, 30)) < 0.2  # nearly all sets are new
    rows[:, 0] |= ~rows.any(axis=1)
    run(sampler, rows, range(100, 6000, 100))
    held = sampler._sets
    assert len(held.numbers) + len(held.unused) == len(held.slots) <= 150
    assert len(held.classes) == len(held.width) <= 256
    assert 0 < sum(map(len, held.of_class.values())) <= sampler.class_counts.sum()


# samples without a label


@ALL
def test_without_a_label_a_sample_is_dropped_counted_and_told_of_once(name):
    rows = stream(200)
    rows[::3] = False
    sampler = make_sampler(name, SIZE, NUM_CLASSES, 0)
    with pytest.warns(UserWarning, match="are dropped; .*'class' keeps") as told:
        slots = run(sampler, rows)
    assert len(told) == 1
    assert (np.array(slots)[::3] == -1).all()
    assert (sampler.unlabelled_seen, sampler.seen) == (67, 133)


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


# classes that come later


@pytest.mark.parametrize("name", ["crs", "prs", "cbrs", "ocdm", "gss"])
def test_no_class_is_known_before_the_first_label(name):
    sampler = make_sampler(name, 3, None, 0)
    assert sampler and len(sampler) == 0
    assert sampler.place([], **context(sampler, [])).tolist() == []
    assert sampler.num_classes == 0 and sampler.labels.shape == (3, 0)
    labels = np.array([1, 3, 0])
    sampler.place(labels, **context(sampler, labels))
    assert sampler.class_freq.tolist() == [1, 1, 0, 1]


def test_classes_that_cannot_be_added():
    with pytest.raises(ValueError, match="count must be at least 0"):
        make_sampler("crs", 5, 2, 0).add_classes(-1)
    with pytest.raises(ValueError, match="num_classes of ExStream, got None"):
        make_sampler("exstream", 5, None, 0)
    with pytest.raises(TypeError, match="ExStream"):
        make_sampler("exstream", 5, 2, 0).add_classes(1)
    with pytest.raises(ValueError, match="unlabelled='class' needs num_classes"):
        make_sampler("crs", 5, None, 0, unlabelled="class")
    with pytest.raises(ValueError, match="all classes in advance"):
        make_sampler("crs", 5, 2, 0, unlabelled="class").add_classes(1)


# bad input


@pytest.mark.parametrize(
    ("name", "change", "error", "match"),
    [
        ("crs", {"size": 0}, ValueError, "size must be at least 1, got 0"),
        ("crs", {"size": 5.0}, TypeError, "size must be a whole number, got 5.0"),
        ("crs", {"num_classes": 0}, ValueError, "num_classes must be at least 1"),
        ("gss", {"subset_size": 0}, ValueError, "subset_size must be at least 1"),
        ("crs", {"seed": -1}, ValueError, "seed must be at least 0, got -1"),
        ("ocdm", {"seed": None}, TypeError, "seed: expected an int, .*, got None"),
        ("prs", {"rho": -1e7}, ValueError, r"rho must be within ±1e.* got -1e\+07"),
        ("ocdm", {"rho": "0"}, TypeError, "rho must be a number, got '0'"),
        ("prs", {"unlabelled": "keep"}, ValueError, "'keep'; known .*: class, drop"),
        ("crs", {"rho": 0.0}, TypeError, "unexpected keyword argument 'rho'"),
        ("pra", {}, ValueError, "unknown sampler 'pra'; known samplers: cbrs, crs"),
        (["prs"], {}, ValueError, r"unknown sampler \[.prs.\]; known samplers"),
    ],
)
def test_arguments_are_checked(name, change, error, match):
    with pytest.raises(error, match=match):
        make_sampler(name, **{"size": 5, "num_classes": 8, "seed": 0} | change)


@pytest.mark.parametrize("index", [-1, 5, np.array([0, -1])])
def test_slots_and_classes_that_are_none_are_refused(index):
    sampler = make_sampler("exstream", 5, 5, 0)
    sampler.place(np.eye(5, dtype=bool), features=np.eye(5, dtype=np.float32))
    for ask in (sampler.labels_of, sampler.vectors):
        with pytest.raises(IndexError, match=r"a slot from 0 to 4, got (-1|5)"):
            ask(np.atleast_1d(index))
    with pytest.raises(IndexError, match="a class from 0 to"):
        sampler.members(7)


WRONG = {
    "features": [VALUES[:3] * np.nan, VALUES[:2], np.ma.array(VALUES[:3])],
    "gradient_products": [lambda subsets: np.eye(3), None],
    "nonsense": [1],
}


@pytest.mark.parametrize("keyword", WRONG)
@pytest.mark.parametrize("known", [NUM_CLASSES, None])
@ALL
def test_a_refused_batch_changes_nothing(name, known, keyword):
    if name == "exstream":
        known = NUM_CLASSES
    sampler = make_sampler(name, SIZE, known, 0)
    run(sampler, stream(30)[:, : known or 7])
    before = sampler.state_dict()
    labels = np.eye(NUM_CLASSES, dtype=bool)[[1, 7, 3]]
    for value in WRONG[keyword]:
        with pytest.raises((TypeError, ValueError)) as caught:
            sampler.place(labels, **{keyword: value})
        assert "\n" not in str(caught.value)
        np.testing.assert_equal(sampler.state_dict(), before)
        assert sampler.unlabelled_seen == 0


# saved states


@ALL
def test_members_and_labels_are_those_of_the_slots(name):
    sampler = make_sampler(name, SIZE, NUM_CLASSES, 4)
    run(sampler, stream())
    for c in range(NUM_CLASSES):
        members = np.flatnonzero(sampler.labels[:, c])
        assert sampler.members(c).tolist() == members.tolist()
    slots = np.array([3, 0, 3])
    assert (sampler.labels_of(slots) == sampler.labels[slots]).all()


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


@pytest.mark.parametrize("generator", ["MT19937", "PCG64DXSM", "Philox", "SFC64"])
def test_a_state_has_any_generator_of_numpy(generator):
    rng = np.random.Generator(getattr(np.random, generator)(3))
    sampler = make_sampler("prs", SIZE, NUM_CLASSES, rng)
    run(sampler, stream(60))
    restored = make_sampler("prs", SIZE, NUM_CLASSES, 0)
    restored.load_state_dict(by_savez(sampler.state_dict()))
    assert run(restored, stream()) == run(sampler, stream())


@pytest.mark.parametrize(
    ("other", "options", "message"),
    [
        (("prs", 5, 3), {}, r"a state of PRS\(size=5, .*, got PRS\(size=4"),
        (("prs", 4, 2), {}, "num_classes=2, .*, got .*num_classes=3"),
        (("prs", 4, 3), {"rho": 1}, r"rho=1\.0, .*, got .*rho=0\.0"),
        (("ocdm", 4, 3), {}, r"a state of OCDM\(.*, got PRS\("),
        (("cbrs", 4, 3), {}, "a state with .*'class_seen'.*, got"),
    ],
)
def test_the_state_of_another_sampler_is_refused(other, options, message):
    state = make_sampler("prs", 4, 3, 0).state_dict()
    sampler = make_sampler(*other, 0, **options)
    before = sampler.state_dict()
    with pytest.raises(ValueError, match=message):
        sampler.load_state_dict(state)
    np.testing.assert_equal(sampler.state_dict(), before)


def test_the_nth_slot_of_several_lists():
    rng = np.random.default_rng(0)
    for size, lists in ((30, 1), (100, 3), (3000, 2), (3000, 40)):
        slots = np.sort(rng.choice(size**2 // 10, size, replace=False))
        parts = rng.integers(lists, size=size)
        parted = [slots[parts == part].tolist() for part in range(lists)]
        found = [nth_slot(parted, n) for n in range(size)]
        assert found == slots.tolist()
