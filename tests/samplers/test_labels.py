"""Labels in every form that people bring; `place`, adapters and previews read alike."""

import copy
import io

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch

from prslib import Memory, checks, make_sampler, preview
from prslib.adapters import multi_hot

SIZE, NUM_CLASSES = 25, 8


def run(sampler, rows, batch=10):
    batches = [rows[start : start + batch] for start in range(0, len(rows), batch)]
    return [slot for labels in batches for slot in sampler.place(labels).tolist()]


@pytest.mark.parametrize("unknown", [np.nan, -1, None])
@pytest.mark.parametrize("num_classes", [NUM_CLASSES, None])
@pytest.mark.parametrize("name", ["prs", "cbrs", "ocdm"])
def test_unknown_labels_count_for_no_class(name, num_classes, unknown):
    stream = np.random.default_rng(2).random((400, 8)) < 0.3
    hidden = np.random.default_rng(3).random(stream.shape) < 0.2
    of_ones = make_sampler(name, SIZE, NUM_CLASSES, 0)
    sampler = make_sampler(name, SIZE, num_classes, 0)
    slots = run(of_ones, stream & ~hidden)
    rows = np.where(hidden, unknown, stream.astype(int))
    assert run(sampler, rows) == slots
    assert (sampler.class_freq == of_ones.class_freq).all()


def test_minus_one_is_read_alike_in_every_batch():
    """Rows with -1 give the slots of rows with 0 in its place."""
    rows = np.where(np.random.default_rng(0).random((60, 8)) < 0.3, 1, -1)
    mixed = np.where(np.random.default_rng(1).random((60, 8)) < 0.2, 0, rows)
    samplers = [make_sampler("prs", SIZE, NUM_CLASSES, 0) for _ in range(2)]
    ones = run(samplers[0], (np.r_[mixed, rows] == 1))
    assert run(samplers[1], np.r_[mixed, rows], batch=1) == ones
    grown = make_sampler("prs", SIZE, None, 0)
    padded = np.array([[0, 1, -1], [1, -1, -1]])  # lists of classes 0 and 1, filled up
    with pytest.raises(ValueError, match=r"filled up by -1.* write NaN for unknown"):
        grown.place(padded)
    assert grown.num_classes == 0
    assert grown.place([[0, 1], [1]]).tolist() == [0, 1]
    # no list is filled up before its end
    unknown_first = np.array([[0, -1, 1], [-1, 0, 1]])
    sampler = make_sampler("prs", SIZE, None, 0)
    assert sampler.place(unknown_first).tolist() == [0, 1]
    assert sampler.class_counts.tolist() == [0, 0, 2]


FORMS = {
    "big-endian": lambda rows: rows.astype(">i4"),
    "read-only": lambda rows: np.frombuffer(rows.tobytes(), bool).reshape(rows.shape),
    "strided": lambda rows: np.repeat(rows, 2, axis=1)[:, ::2],
    "nullable": lambda rows: pd.DataFrame(rows).astype("boolean"),
    "missing": lambda rows: pd.DataFrame(rows).astype("Int64").replace({0: pd.NA}),
    "categories": lambda rows: pd.DataFrame(rows.astype(int)).astype("category"),
    "sparse frame": lambda rows: pd.DataFrame(rows).astype(pd.SparseDtype(bool)),
    "sparse matrix": lambda rows: scipy.sparse.lil_matrix(rows),
    "sparse tensor": lambda rows: torch.tensor(rows.astype(int)).to_sparse(),
    "bfloat16": lambda rows: torch.tensor(rows).bfloat16(),
    "with a graph": lambda rows: torch.tensor(rows.astype(float), requires_grad=True),
    "frozen sets": lambda rows: [frozenset(np.flatnonzero(row)) for row in rows],
    "series": lambda rows: pd.Series([np.flatnonzero(row) for row in rows]),
}


@pytest.mark.parametrize("num_classes", [2, None])
@pytest.mark.parametrize("form", FORMS)
def test_every_reader_takes_labels_in_any_form(form, num_classes):
    rows = np.array([[1, 0], [0, 1], [0, 0], [1, 1]], bool)
    assert (checks.multi_hot(FORMS[form](rows), num_classes) == rows).all()
    assert (multi_hot(FORMS[form](rows), 2) == rows).all()
    result = preview(FORMS[form](rows), 3, class_names="ab" if num_classes else None)
    assert str(result) == str(
        preview(rows, 3, class_names="ab" if num_classes else None)
    )


@pytest.mark.parametrize(
    ("labels", "error", "match"),
    [
        (np.array([[0], [1]]), ValueError, r"write labels\[:, 0\] for class numbers"),
        (pd.DataFrame({"y": [1, 0]}), ValueError, r"labels == 1 for multi-hot labels"),
        ([["cat"], ["dog", "cat"]], TypeError, "got 'cat'; number the names"),
        ([[0.0], [1.0, 2.0]], ValueError, r"lengths \[1, 2\]; class numbers are inte"),
        (np.array(["cat", None], object), TypeError, "number the names, .names.ind"),
        (np.array([True, False]), ValueError, r"labels\[None\] for one sample"),
        (io.StringIO("cat"), TypeError, "a data frame or a list, got StringIO"),
    ],
)
def test_what_is_ambiguous_is_refused_with_what_to_write(labels, error, match):
    sampler = make_sampler("crs", 4, None, 0)
    with pytest.raises(error, match=match):
        sampler.place(labels)
    assert sampler.num_classes == sampler.seen == 0


def test_a_set_holds_class_numbers_where_a_list_may_be_a_row():
    for num_classes in (None, 2):
        sampler = make_sampler("crs", 4, num_classes, 0)
        with pytest.raises(ValueError, match="a set for the class numbers of a sample"):
            sampler.place([[0, 1]])
        sampler.place([{0, 1}])
        assert sampler.class_freq.tolist() == [1, 1]


@pytest.mark.parametrize("dtype", ["i1", "u1", "u8", ">i2"])
def test_class_numbers_of_any_type_add_classes(dtype):
    sampler = make_sampler("crs", 4, None, 0)
    sampler.place(np.array([0, 127], dtype))
    sampler.place(np.array([], dtype))
    assert sampler.num_classes == 128
    with pytest.raises(
        ValueError, match=r"from 0 to 999999, got 1000000; number the cl"
    ):
        sampler.place(np.array([1_000_000]))
    with pytest.raises(ValueError, match="at most 1000000 classes, got 1000128"):
        sampler.add_classes(1_000_000)


@pytest.mark.parametrize("ask", ["labels_of", "members"])
@pytest.mark.parametrize("index", [[0.0], [True], ["a"], [[0]], [None]])
def test_slots_and_classes_are_whole_numbers(ask, index):
    sampler = make_sampler("crs", 4, 3, 0)
    sampler.place([0, 1])
    with pytest.raises(IndexError, match=r"as whole numbers \(K,\), got"):
        getattr(sampler, ask)(index if ask == "labels_of" else index[0])
    for slots in (torch.tensor([1]), pd.Series([1]), (1,)):
        assert sampler.labels_of(slots).tolist() == [[False, True, False]]
    assert sampler.labels_of([]).shape == (0, 3)


@pytest.mark.parametrize("label", [frozenset({0, 2}), (0, 2), {0: 1, 2: 1}.keys()])
def test_one_sample_may_be_any_collection(label):
    sampler = make_sampler("prs", 2, 3, 0)
    assert sampler.explain(label).class_freq.tolist() == [1, 0, 1]


def test_a_copy_shares_no_state():
    sampler, memory = make_sampler("prs", 3, 3, 0), Memory(3)
    memory.write(sampler.place([0, 1]), row=np.arange(2))
    slots = copy.copy(sampler).place([2, 2, 2, 2])
    copy.copy(memory).write(slots, row=np.arange(4))
    assert sampler.class_freq.tolist() == [1, 1, 0] and len(memory) == 2
    assert (sampler.place([2, 2, 2, 2]) == slots).all()
