"""The promises of every sampler; a new entry of SAMPLERS is tested by being there."""

import copy
import pickle
from types import SimpleNamespace
from unittest.mock import Mock

import cbrs_twin
import numpy as np
import ocdm_twin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prs_examples import long_tailed

from prslib.samplers import SAMPLERS, check_sampler, make_sampler
from prslib.samplers.compiling import first_call

SIZE, NUM_CLASSES = 25, 8
ALL = pytest.mark.parametrize("name", sorted(SAMPLERS))
TWINS = {"cbrs": cbrs_twin.Twin, "ocdm": ocdm_twin.Twin}
VALUES = np.random.default_rng(99).normal(size=(1000, 6)).astype(np.float32)


def stream(length=400):
    rows = long_tailed(np.random.default_rng(0), length, NUM_CLASSES)
    rows[::20] = False
    return rows


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


def run(sampler, rows, batch=10):
    slots = []
    for start in range(0, len(rows), batch):
        labels = rows[start : start + batch]
        slots.extend(sampler.place(labels, **context(sampler, labels, start)))
    return slots


@ALL
def test_it_does_what_every_sampler_promises(name):
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


@ALL
def test_the_cut_into_batches_matters_where_a_sampler_decides_by_batch(name):
    samplers = [make_sampler(name, SIZE, NUM_CLASSES, 0) for _ in range(2)]
    ones, whole = (
        run(s, stream(), n) for s, n in zip(samplers, (1, 1000), strict=True)
    )
    assert (ones == whole) != SAMPLERS[name].decides_by_batch


@pytest.mark.parametrize("name", ["cbrs", "ocdm"])
@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    num_classes=st.integers(1, 30),
    size=st.integers(1, 40) | st.integers(250, 600),  # several blocks of slots
    batch=st.sampled_from([1, 7, 1000]),
    extra_labels=st.sampled_from([0.0, 0.3, 2.0]),
    late=st.booleans(),
    rho=st.one_of(st.sampled_from([-1000.0, -1.0, 0.0, 1.0, 1000.0]), st.floats(-3, 3)),
)
def test_every_decision_equals_the_twin(
    name, seed, num_classes, size, batch, extra_labels, late, rho
):
    rng = np.random.default_rng(seed)
    rows = long_tailed(rng, size + 160, num_classes, extra_labels, late)
    rows[rng.random(len(rows)) < 0.05] = False
    options = {"rho": rho} if name == "ocdm" else {}
    sampler = make_sampler(name, size, num_classes, seed, **options)
    twin = TWINS[name](size, num_classes, seed, **options)
    for start in range(0, len(rows), batch):
        labels = rows[start : start + batch]
        assert sampler.place(labels).tolist() == twin.place(labels).tolist()
    assert (sampler.labels == twin.labels).all()


@pytest.mark.parametrize("name", ["prs", "ocdm"])
@pytest.mark.parametrize("rho", [0, 1])
def test_a_long_single_label_stream_ends_on_target(name, rho):
    labels = np.random.default_rng(5).choice(4, 6000, p=[0.5, 0.25, 0.15, 0.1])
    stream = np.eye(4, dtype=bool)[labels]
    sampler = make_sampler(name, 200, 4, 1, rho=rho)
    sampler.place(stream)
    target = stream.mean(0) if rho else np.full(4, 0.25)
    assert np.abs(sampler.class_counts / 200 - target).sum() / 2 < 0.02


@pytest.mark.parametrize(
    ("labels", "error", "match"),
    [
        (np.ones((2, 8)), TypeError, "expected bool, got float64; write labels == 1"),
        (np.ones(2, int), TypeError, r"np.eye\(8, dtype=bool\)\[y\] for class numbers"),
        (np.ones(8, bool), ValueError, r"expected shape \(B, 8\), got \(8,\)"),
        (np.ones((2, 5), bool), ValueError, r"got \(2, 5\)"),
        (np.ma.ones((2, 8), bool), TypeError, "expected bool, got a masked array"),
    ],
)
@ALL
def test_labels_are_checked(name, labels, error, match):
    sampler = make_sampler(name, SIZE, NUM_CLASSES, 0)
    with pytest.raises(error, match=f"labels: .*{match}"):
        sampler.place(labels, **context(sampler, labels))
    assert len(sampler) == 0 and not sampler.class_freq.any()


@pytest.mark.parametrize(
    ("name", "change", "error", "match"),
    [
        ("crs", {"size": 0}, ValueError, "size must be at least 1, got 0"),
        ("crs", {"size": 5.0}, TypeError, "size must be a whole number, got 5.0"),
        ("gss", {"subset_size": 0}, ValueError, "subset_size must be at least 1"),
        ("ocdm", {"seed": None}, TypeError, "seed: expected an int, .*, got None"),
        ("prs", {"rho": -1e7}, ValueError, r"rho must be within ±1e.* got -1e\+07"),
        ("ocdm", {"rho": "0"}, TypeError, "rho must be a number, got '0'"),
        ("prs", {"variant": "a"}, ValueError, "'a'; known variants: authors, paper"),
        ("crs", {"rho": 0.0}, TypeError, "unexpected keyword argument 'rho'"),
        ("pra", {}, ValueError, "unknown sampler 'pra'; known samplers: cbrs, crs"),
    ],
)
def test_arguments_are_checked(name, change, error, match):
    with pytest.raises(error, match=match):
        make_sampler(name, **{"size": 5, "num_classes": 8, "seed": 0} | change)


def test_what_fails_at_the_first_call_names_numbas_cache():
    place = Mock(side_effect=EOFError, stats=SimpleNamespace(cache_path="/the/cache"))
    with pytest.raises(EOFError) as caught:
        first_call("PRS", place)
    assert caught.value.__notes__ == ["if numba's cache is damaged, delete /the/cache"]


# saved states

CASES = [(name, {}) for name in sorted(SAMPLERS)] + [("prs", {"variant": "authors"})]
ALL_VARIANTS = pytest.mark.parametrize(("name", "options"), CASES)


def by_column_and_read_only(state):
    """Return a state as numpy may read it from a file."""
    for name, value in state.items():
        if isinstance(value, np.ndarray):
            state[name] = np.asfortranarray(value)
            state[name].flags.writeable = False
    return state


@ALL_VARIANTS
def test_copies_go_on_alike_and_a_state_is_not_the_sampler(name, options):
    rows = stream()
    sampler = make_sampler(name, SIZE, NUM_CLASSES, 4, **options)
    run(sampler, rows[:150])
    state = by_column_and_read_only(sampler.state_dict())
    before = copy.deepcopy(state)
    restored = make_sampler(name, SIZE, NUM_CLASSES, 99, **options)
    restored.load_state_dict(state)
    copies = restored, pickle.loads(pickle.dumps(sampler))
    slots = run(sampler, rows[150:])
    for other in copies:
        assert run(other, rows[150:]) == slots
        assert repr(sampler) == repr(other) and "num_classes=8" in repr(other)
    np.testing.assert_equal(state, before)
    for c in range(NUM_CLASSES):
        members = np.flatnonzero(sampler.labels[:, c])
        assert sorted(sampler.members(c)) == members.tolist()


@ALL_VARIANTS
def test_a_change_of_any_entry_of_a_state_is_refused(name, options):
    sampler = make_sampler(name, SIZE, NUM_CLASSES, 4, **options)
    run(sampler, stream(60))
    changes = [{"more": np.zeros(3)}]
    for entry, value in sampler.state_dict().items():
        if isinstance(value, np.ndarray):
            other = value.copy()
            other.flat[-1] = not other.flat[-1]
            changes += [{entry: other}, {entry: value[None]}]
        elif isinstance(value, dict):
            numbers = value["state"] | {"state": value["state"]["state"] + 1}
            changes.append({entry: value | {"state": numbers}})
        else:
            changes.append({entry: value * 2 or 1})
    for change in changes:
        with pytest.raises(ValueError, match="expected "):
            sampler.load_state_dict(sampler.state_dict() | change)


@pytest.mark.parametrize(
    ("other", "options", "message"),
    [
        (("prs", 5, 3), {}, "expected size 5, got 4"),
        (("prs", 4, 2), {}, "expected num_classes 2, got 3"),
        (("prs", 4, 3), {"rho": 1}, r"expected rho 1\.0, got 0\.0"),
        (("crs", 4, 3), {}, "expected sampler 'CRS', got PRS"),
    ],
)
def test_the_state_of_another_sampler_is_refused(other, options, message):
    state = make_sampler("prs", 4, 3, 0).state_dict()
    with pytest.raises(ValueError, match=message):
        make_sampler(*other, 0, **options).load_state_dict(state)
