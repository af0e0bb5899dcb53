"""Labels in the forms that people bring, and what is refused."""

import numpy as np
import pytest

from prslib import make_sampler
from prslib.labels import multi_hot

sparse = pytest.importorskip("scipy.sparse")
ROWS = np.eye(4, dtype=bool)[[2, 0, 3]]


@pytest.mark.parametrize(
    "labels",
    [
        ROWS,
        ROWS.astype(np.uint8),
        ROWS.astype(np.float32),
        ROWS[:, ::-1][:, ::-1],
        np.where(ROWS, 1, np.nan),
        np.where(ROWS, 1, None),
        sparse.csr_matrix(ROWS),
        sparse.coo_array(ROWS.astype(float)),
        np.array([2, 0, 3], np.uint8),
        [2, 0, 3],
        (np.int64(2), 0, 3),
    ],
    ids=lambda labels: type(labels).__name__,
)
@pytest.mark.parametrize("num_classes", [4, None])
def test_rows_and_class_numbers_are_read(labels, num_classes):
    check_rows(labels, num_classes)


def check_rows(labels, num_classes=4):
    rows = multi_hot(labels, num_classes)
    assert rows.dtype == bool
    assert rows.tolist() == ROWS.tolist()


def test_frames_are_read():
    pandas = pytest.importorskip("pandas")
    check_rows(pandas.DataFrame(ROWS))
    check_rows(pandas.Series([2, 0, 3]))
    unknown = pandas.DataFrame(np.where(ROWS, 1, pandas.NA), dtype="Int64")
    check_rows(unknown)
    check_rows(unknown.astype("boolean"))


def test_tensors_are_read():
    torch = pytest.importorskip("torch")
    rows = torch.from_numpy(ROWS)
    check_rows(rows)
    check_rows(rows.to(torch.bfloat16).requires_grad_())
    check_rows(rows.float().to_sparse())
    check_rows(torch.tensor([2, 0, 3]))


def test_bool_rows_are_read_without_a_copy_and_others_are_not_modified():
    assert multi_hot(ROWS, 4) is ROWS
    labels = np.array([[1.0, np.nan, 0.0]])
    assert multi_hot(labels).tolist() == [[True, False, False]]
    np.testing.assert_array_equal(labels, [[1.0, np.nan, 0.0]])


@pytest.mark.parametrize(
    ("labels", "match"),
    [
        (np.ones(4, bool), r"rows \(B, 4\) or of class numbers .* got bool \(4,\)"),
        ([True, False], r"got bool \(2,\)"),
        ([[1], [0, 2]], "a list of list; scikit-learn's MultiLabelBinarizer"),
        (np.ma.array(ROWS, mask=ROWS), "an array, got a masked one"),
        (np.array([["cat", "dog"]]), r"numbers, got <U3 \(1, 2\)"),
        (np.array([[0], [1, 2]], object), r"numbers, got object \(2,\)"),
        (np.array(3), r"got int64 \(\)"),
        (np.array([0.0, 2.0]), r"got float64 \(2,\)"),
        (np.array([1, -1]), "class numbers from 0 to 3, got -1"),
        (np.full((2, 4), 0.5), "0, 1 or NaN, got 0.5"),
        (np.full((2, 4), -1), "0, 1 or NaN, got -1"),
    ],
)
def test_others_are_refused_and_change_nothing(labels, match):
    sampler = make_sampler("prs", 3, 4, 0)
    before = sampler.state_dict()
    with pytest.raises(ValueError, match=f"labels: expected .*{match}"):
        sampler.place(labels)
    np.testing.assert_equal(sampler.state_dict(), before)


@pytest.mark.parametrize("name", ["prs", "cbrs", "ocdm"])
@pytest.mark.parametrize("grows", [False, True])
def test_unknown_labels_count_for_no_class(name, grows):
    rng = np.random.default_rng(2)
    stream = rng.random((400, 8)) < 0.3
    is_known = rng.random(stream.shape) < 0.8
    is_known[~(stream & is_known).any(axis=1)] = True
    stream[:, 0] |= ~stream.any(axis=1)
    partly = np.where(is_known, stream, np.nan)
    known, unknown = (make_sampler(name, 25, None if grows else 8, 0) for _ in "ab")
    slots = known.place(stream & is_known)
    assert unknown.place(partly).tolist() == slots.tolist()
    assert unknown.class_freq.tolist() == (stream & is_known).sum(axis=0).tolist()
