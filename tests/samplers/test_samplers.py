"""The promises of every sampler; a new entry of SAMPLERS is tested by being there."""

from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
from sampler_runs import NUM_CLASSES, SIZE, context, run, stream

from prslib.samplers import SAMPLERS, check_sampler, make_sampler
from prslib.samplers.compiling import first_call

ALL = pytest.mark.parametrize("name", sorted(SAMPLERS))


@ALL
def test_it_does_what_every_sampler_promises(name):
    check_sampler(SAMPLERS[name], context)


@ALL
def test_the_first_labelled_samples_fill_the_slots_in_order(name):
    rows = stream()
    rows[3] = False
    slots = run(make_sampler(name, SIZE, NUM_CLASSES, 0), rows)
    new = slots[np.sort(np.unique(slots, return_index=True)[1])]
    assert new[new >= 0].tolist() == list(range(SIZE))


@ALL
def test_a_seed_decides_everything(name):
    rows = stream()
    seeds = 7, 7, np.random.SeedSequence(7), np.random.default_rng(7), 8
    samplers = [make_sampler(name, SIZE, NUM_CLASSES, seed) for seed in seeds]
    first, again, sequence, generator, other = (run(s, rows) for s in samplers)
    assert (first == again).all() and (sequence == generator).all()
    assert (first != other).any()


def test_a_stream_drawn_from_the_same_seed_shares_no_numbers_with_the_sampler():
    kept = []
    for seed in range(30):
        first = np.random.default_rng(seed).random(2000) < 0.5
        sampler = make_sampler("crs", 100, 2, seed)
        sampler.place(np.column_stack([first, ~first]))
        kept.append(sampler.class_counts[0])
    assert abs(np.mean(kept) - 50) < 4  # s.d. of the mean 0.9


@ALL
def test_the_cut_into_batches_matters_where_a_sampler_decides_by_batch(name):
    ones, tens, whole = (
        run(make_sampler(name, SIZE, NUM_CLASSES, 0), stream(), batch)
        for batch in (1, 10, 1000)
    )
    same = (ones == tens).all() and (ones == whole).all()
    assert same != SAMPLERS[name].decides_by_batch


@pytest.mark.parametrize("batch", [1, 1000])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("cbrs", {}),
        ("prs", {"rho": 0}),
        ("prs", {"rho": 1}),
        ("prs", {"rho": 1, "variant": "authors"}),
        ("ocdm", {"rho": 0}),
        ("ocdm", {"rho": 1}),
    ],
)
def test_a_long_single_label_stream_ends_on_target(name, options, batch):
    labels = np.random.default_rng(5).choice(4, 6000, p=[0.5, 0.25, 0.15, 0.1])
    stream = np.eye(4, dtype=bool)[labels]
    sampler = make_sampler(name, 200, 4, 1, **options)
    run(sampler, stream, batch)
    target = stream.mean(0) if options.get("rho") else np.full(4, 0.25)
    assert np.abs(sampler.class_counts / 200 - target).sum() / 2 < 0.02


@ALL
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
        ("prs", {"rho": -1e7}, ValueError, r"rho must be between .* got -1e\+07"),
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
