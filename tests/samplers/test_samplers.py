"""Tests of every sampler in SAMPLERS; a new entry is tested without more code."""

import copy
import os
import pickle
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import cbrs_twin
import numpy as np
import ocdm_twin
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from prs_examples import long_tailed
from scipy.sparse import csr_matrix

from prslib.paths import PACKAGE
from prslib.samplers import SAMPLERS, check_sampler, make_sampler

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
def test_it_passes_the_estimator_checks(name):
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
    assert (ones == whole) != (name in ("gss", "ocdm"))


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
        (np.full((2, 8), 0.5), ValueError, "0 and 1, got 0.5; write labels > 0.5 for"),
        (np.full((2, 8), "a"), TypeError, "bool, 0 and 1, or class numbers, got <U1"),
        (np.ones(8, bool), ValueError, r"expected shape \(B, 8\), or .*got bool \(8,"),
        (np.ones((2, 5), bool), ValueError, r"got bool \(2, 5\)"),
        (np.array([1, -1]), ValueError, "expected class numbers from 0 to 7, got -1"),
        ([[1], [8]], ValueError, "expected class numbers from 0 to 7, got 8"),
        ([[1.5]], ValueError, "expected 0 and 1, got 1.5; write labels\\[:, 0\\] for"),
        (np.array([[3], [4]]), ValueError, "got 3; write labels\\[:, 0\\] for class"),
        ([[True], [True, False]], ValueError, r"rows of one length, .* lengths \[1, 2"),
        ([[1], 2], TypeError, "expected a list of class numbers for each .* got 2"),
        (["cat", "dog"], TypeError, "got <U3; number the names, "),
        ([["cat"], ["dog"]], TypeError, "got .cat.; number the names"),
        ([[None], [1]], ValueError, r"got bool \(2, 1\)"),
        (np.array([0.0, 2.0]), ValueError, "got float64; write labels.astype\\(int\\)"),
        (np.array([[0, 2] + [-1] * 6]), ValueError, "got 2; write a list of class num"),
        ([[1] + [-1] * 7], ValueError, "either multi-hot labels or class numbers"),
        ({0: [1]}, TypeError, "a data frame or a list, got dict"),
        ([{0: 1}], TypeError, "bool, 0 and 1, or class numbers, got object"),
        (["a", [0]], TypeError, "got 'a'"),
        (torch.zeros(2, 8, device="meta"), TypeError, "a dense tensor, got one that"),
        (np.ones((2, 8), complex), TypeError, "class numbers, got complex128$"),
        (np.ma.ones((2, 8), bool), TypeError, "expected an array, got a masked array"),
    ],
)
@ALL
def test_labels_are_checked(name, labels, error, match):
    sampler = make_sampler(name, SIZE, NUM_CLASSES, 0)
    others = context(sampler, [labels] if np.isscalar(labels) else labels)
    with pytest.raises(error, match=f"labels: .*{match}"):
        sampler.place(labels, **others)
    assert len(sampler) == 0 and not sampler.class_freq.any()


@pytest.mark.parametrize(
    ("name", "change", "error", "match"),
    [
        ("crs", {"size": 0}, ValueError, "size must be at least 1, got 0"),
        ("crs", {"size": 5.0}, TypeError, "size must be a whole number, got 5.0"),
        ("gss", {"subset_size": 0}, ValueError, "subset_size must be at least 1"),
        ("crs", {"seed": -1}, ValueError, "seed must be at least 0, got -1"),
        ("ocdm", {"seed": None}, TypeError, "seed: expected an int, .*, got None"),
        ("prs", {"rho": -1e7}, ValueError, r"rho must be within ±1e.* got -1e\+07"),
        ("ocdm", {"rho": "0"}, TypeError, "rho must be a number, got '0'"),
        ("prs", {"variant": "a"}, ValueError, "'a'; known variants: authors, paper"),
        ("crs", {"rho": 0.0}, TypeError, "unexpected keyword argument 'rho'"),
        ("pra", {}, ValueError, "unknown sampler 'pra'; known samplers: cbrs, crs"),
        (["prs"], {}, ValueError, r"unknown sampler \[.prs.\]; known samplers"),
    ],
)
def test_arguments_are_checked(name, change, error, match):
    with pytest.raises(error, match=match):
        make_sampler(name, **{"size": 5, "num_classes": 8, "seed": 0} | change)


@pytest.mark.parametrize(
    "labels",
    [
        np.array([2, 0, 7]),
        [2, 0, 7],
        [[2], [0], [7]],
        np.eye(8, dtype=np.uint8)[[2, 0, 7]],
        np.eye(8)[[2, 0, 7]],
        np.eye(8, dtype=bool)[[2, 0, 7]].tolist(),
        np.eye(8, dtype=int)[[2, 0, 7]].tolist(),
        pd.DataFrame(np.eye(8, dtype=int)[[2, 0, 7]]),
        pd.DataFrame(np.eye(8, dtype=bool)[[2, 0, 7]]).astype("boolean"),
        pd.Series([2, 0, 7]),
        pd.Series([[2], [0], [7]]),
        csr_matrix(np.eye(8)[[2, 0, 7]]),
        [torch.tensor(2), torch.tensor(0), torch.tensor(7)],
        np.eye(8, dtype=bool)[:, [2, 0, 7]].T,
        torch.eye(8)[[2, 0, 7]],
        torch.tensor([2, 0, 7]),
    ],
    ids=lambda labels: type(labels).__name__,
)
def test_labels_are_taken_as_people_have_them(labels):
    sampler = make_sampler("prs", 5, 8, 0)
    assert sampler.place(labels).tolist() == [0, 1, 2]
    assert sampler.labels[:3].argmax(axis=1).tolist() == [2, 0, 7]
    assert sampler.labels.sum() == 3


def test_one_class_number_is_no_batch():
    with pytest.raises(ValueError, match=r"or class numbers \(B,\), got int64 \(\)"):
        make_sampler("crs", 5, 8, 0).place(3)


def test_a_sample_without_a_label_or_with_several_is_a_list():
    sampler = make_sampler("crs", 5, 8, 0)
    assert sampler.place([[], [1, 3], (4,)]).tolist() == [-1, 0, 1]
    assert sampler.class_counts.tolist() == [0, 1, 0, 1, 1, 0, 0, 0]
    assert sampler.place([]).tolist() == []


def test_what_may_be_read_in_two_ways_is_refused():
    sampler = make_sampler("prs", 5, 2, 0)
    for ambiguous in ([[0, 1]], [[1, 0], [0, 1]]):
        with pytest.raises(
            ValueError, match=r"either .* write np.array\(labels\) == 1"
        ):
            sampler.place(ambiguous)
    assert sampler.place([[0, 0], [1, 1]]).tolist() == [-1, 0]  # no class twice: a row
    with pytest.raises(ValueError, match=r"either multi-hot labels or class numbers"):
        sampler.explain([0, 1])


@pytest.mark.parametrize(
    "label",
    [
        np.array([False, True, True]),
        [1, 2],
        {1, 2},
        np.array([1, 2]),
        [0, 1, 1],
        np.array([0.0, 1.0, 1.0]),
        torch.tensor([0, 1, 1]),
        pd.Series([False, True, True]),
    ],
)
def test_one_sample_is_named_as_a_batch_is(label):
    sampler = make_sampler("prs", 2, 3, 0)
    sampler.place([0, 1, 0, 1, 2])
    assert np.flatnonzero(sampler.explain(label).weight).tolist() == [1, 2]
    assert sampler.explain(2).weight.tolist() == [0, 0, 1]
    assert sampler.explain([]).acceptance == 0
    before = sampler.class_freq
    sampler.follow(label, -1)
    assert (sampler.class_freq - before).tolist() == [0, 1, 1]


@pytest.mark.parametrize("name", ["crs", "prs", "cbrs", "ocdm", "gss"])
def test_no_class_is_known_before_the_first_label(name):
    sampler = make_sampler(name, 3, None, 0)
    for labels in ([], [[], []], np.zeros((2, 0), bool)):
        slots = sampler.place(labels, **context(sampler, labels))
        assert (slots == -1).all()
    assert sampler.num_classes == 0 and sampler.labels.shape == (3, 0)
    labels = [[1], [], [0, 3]]
    assert sampler.place(labels, **context(sampler, labels)).tolist() == [0, -1, 1]
    assert sampler.class_freq.tolist() == [1, 1, 0, 1]


@pytest.mark.parametrize("name", ["crs", "prs", "cbrs", "ocdm"])
@pytest.mark.parametrize("batch", [1, 10])
def test_classes_that_come_later_change_no_decision(name, batch):
    rng = np.random.default_rng(2)
    stream = np.eye(12, dtype=bool)[np.sort(rng.choice(12, 400))]
    known = make_sampler(name, 30, 12, 5)
    grows = make_sampler(name, 30, None, 5)
    for start in range(0, 400, batch):
        labels = stream[start : start + batch]
        width = np.flatnonzero(stream[: start + batch].any(axis=0)).max() + 1
        assert grows.place(labels[:, :width]).tolist() == known.place(labels).tolist()
    assert grows.num_classes == 12
    assert (grows.labels == known.labels).all()
    other = make_sampler(name, 30, None, 0)
    other.load_state_dict(grows.state_dict())
    more = stream[rng.permutation(400)]
    assert other.place(more).tolist() == known.place(more).tolist()


@pytest.mark.parametrize("options", [{}, {"variant": "authors"}])
def test_added_classes_change_no_decision(options):
    rows = stream(300)
    known, added = (make_sampler("prs", 9, n, 5, **options) for n in (8, 6))
    assert (
        added.place(rows[:100, :6]).tolist()
        == known.place(rows[:100] & [True] * 6 + [False] * 2).tolist()
    )
    added.add_classes(2)
    assert added.place(rows[100:]).tolist() == known.place(rows[100:]).tolist()
    with pytest.raises(ValueError, match="count must be at least 0"):
        added.add_classes(-1)


def test_exstream_needs_its_classes_in_advance():
    with pytest.raises(ValueError, match="num_classes of ExStream, got None"):
        make_sampler("exstream", 5, None, 0)
    with pytest.raises(TypeError, match="ExStream"):
        make_sampler("exstream", 5, 2, 0).add_classes(1)


@pytest.mark.parametrize("index", [-1, 5, np.array([0, -1])])
def test_slots_and_classes_that_are_none_are_refused(index):
    sampler = make_sampler("exstream", 5, 5, 0)
    sampler.place(np.eye(5, dtype=bool), features=np.eye(5, dtype=np.float32))
    for ask in (sampler.labels_of, sampler.vectors):
        with pytest.raises(
            IndexError, match=r"a slot from 0 to 4, got (-1|5); leave out"
        ):
            ask(np.atleast_1d(index))
    with pytest.raises(IndexError, match="a class from 0 to 4"):
        sampler.members(np.max(np.abs(index)) * 5)


@ALL
def test_after_an_error_the_sampler_is_as_it_was(name):
    labels = stream()[:50]
    first, second = (make_sampler(name, SIZE, NUM_CLASSES, 0) for _ in range(2))
    for sampler in (first, second):
        sampler.place(labels[:25], **context(sampler, labels[:25]))
    with pytest.raises((TypeError, ValueError)):
        first.place(labels, nonsense=1)
    with pytest.raises((TypeError, ValueError)):
        first.place(np.full((3, NUM_CLASSES), 7))
    more = {key: None for key in first.needs}
    if more:
        with pytest.raises((TypeError, ValueError)):
            first.place(labels, **more)
    slots = [s.place(labels[25:], **context(s, labels[25:])) for s in (first, second)]
    assert slots[0].tolist() == slots[1].tolist()
    assert (first.labels == second.labels).all()


@pytest.mark.parametrize("name", ["crs", "prs", "cbrs", "ocdm"])
def test_two_threads_on_one_sampler_give_the_result_of_some_order(name):
    rng = np.random.default_rng(1)
    rows = long_tailed(rng, 4000, 70, 0.5, False)
    sampler = make_sampler(name, 500, 70, 0)
    batches = np.split(rows, 400)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(sampler.place, batches))
    assert (sampler.class_freq == rows.sum(axis=0)).all()
    assert (sampler.class_counts == sampler.labels.sum(axis=0)).all()
    for c in range(70):
        assert (
            sorted(sampler.members(c)) == np.flatnonzero(sampler.labels[:, c]).tolist()
        )
    assert pickle.loads(pickle.dumps(sampler)).seen == sampler.seen


# the cache of machine code

ONE = """
import numpy as np, prslib
sampler = prslib.make_sampler("crs", 3, 3, 0)
sampler.place(np.eye(3, dtype=bool))
print(sampler.class_freq.tolist())
"""

FREED = """
import gc, weakref
import numpy as np, prslib

class Images: pass

def place():
    images = Images()
    prslib.make_sampler("prs", 3, 3, 0).place(np.eye(3, dtype=bool))
    return weakref.ref(images)

gc.disable()
print(place()())
"""


@pytest.fixture
def package(tmp_path):
    """Copy the package, and run a sampler of it with a cache of its own."""
    shutil.copytree(
        PACKAGE,
        tmp_path / "prslib",
        ignore=shutil.ignore_patterns("__pycache__", "*.npz"),
    )

    def run_one(code=ONE, **variables):
        environment = os.environ | {"PYTHONPATH": str(tmp_path)} | variables
        command = [sys.executable, "-c", code]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True
        )

    return SimpleNamespace(run=run_one, folder=tmp_path)


def test_machine_code_is_that_of_the_sources_and_whole(package):
    cache = {"NUMBA_CACHE_DIR": str(package.folder / "cache")}
    first = package.run(**cache)
    assert first.stdout == "[1, 1, 1]\n"
    assert "compiling prslib.samplers.crs.place" in first.stderr
    assert package.run(**cache).stderr == ""  # nothing is compiled, nothing is told
    for pattern, change in [("*.nbi", b""), ("*.nbc", b""), ("*.nbc", None)]:
        for file in (package.folder / "cache").rglob(pattern):
            code = bytearray(file.read_bytes())
            code[len(code) // 2] ^= 1
            file.write_bytes(code if change is None else change)
        again = package.run(**cache)
        assert again.stdout == "[1, 1, 1]\n"
        assert "compiling" in again.stderr
    books = package.folder / "prslib" / "samplers" / "books.py"
    books.write_text(
        books.read_text().replace("class_freq[c] += 1", "class_freq[c] += 2")
    )
    assert package.run(**cache).stdout == "[2, 2, 2]\n"


def test_where_nothing_can_be_written_it_compiles_without_a_cache(package):
    nowhere = package.folder / "file"
    nowhere.write_text("no folder")
    for _ in range(2):
        done = package.run(NUMBA_CACHE_DIR=str(nowhere))
        assert done.stdout == "[1, 1, 1]\n"
        assert "compiling" in done.stderr


def test_compiling_keeps_nothing_of_its_callers(package):
    done = package.run(FREED, NUMBA_CACHE_DIR=str(package.folder / "cache"))
    assert done.stdout == "None\n"
    assert "compiling" in done.stderr


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


def test_the_authors_state_keeps_its_names():
    sampler = make_sampler("prs", 4, 3, 0, variant="authors")
    state = sampler.state_dict()
    assert state["sampler"] == "PRS" and state["variant"] == "authors"
    assert {"partition", "appearance", "books.members"} <= state.keys()


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
        changes.append({entry: np.zeros(3)})
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
