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
    check_rows(pandas.DataFrame(np.where(ROWS, True, None)).astype("boolean"))
    check_rows(pandas.Series([2, 0, 3]))


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


@pytest.mark.parametrize("num_classes", [3, None])
def test_a_batch_may_be_empty(num_classes):
    for empty in ([], np.zeros(0), np.zeros(0, int)):
        assert multi_hot(empty, num_classes).shape == (0, num_classes or 0)
    assert multi_hot(np.zeros((0, 3), bool), num_classes).shape == (0, 3)


@pytest.mark.parametrize(
    ("labels", "match"),
    [
        (np.ones(4, bool), r"rows \(B, 4\) or of class numbers .* got bool \(4,\)"),
        (np.ma.array(ROWS, mask=ROWS), r"no mask, got one; write labels.filled\(0\)"),
        (np.ma.array([1, 2], mask=[0, 1]), "no mask, got one"),
        (np.array(3), r"got int64 \(\)"),
        (np.ones((2, 5), bool), r"got bool \(2, 5\)"),
        (np.ones((2, 2, 4)), r"got float64 \(2, 2, 4\)"),
        (np.array([0.0, 2.0]), r"got float64 \(2,\)"),
        ([[1], [0, 2]], "got a list of list; scikit-learn's MultiLabelBinarizer"),
        ([{1}, {0, 2}], "got a list of set; scikit-learn's MultiLabelBinarizer"),
        ([[True, False]], "MultiLabelBinarizer makes rows of lists and sets"),
        (["cat", "dog"], "got a list of str"),
        (np.array([[1], [0, 2]], object), r"got object \(2,\)"),
        ({0: [1]}, r"got object \(\)"),
        (np.array([1, -1]), "class numbers from 0 to 3, got -1"),
        ([1, 4], "class numbers from 0 to 3, got 4"),
        (np.full((2, 4), 0.5), "0 and 1, and NaN .*, got 0.5; write labels > 0.5"),
        (np.full((2, 4), -1), "0 and 1, and NaN for unknown labels, got -1"),
        (np.full((2, 4), np.inf), "got inf"),
        (np.full((2, 4), "a"), "got <U1"),
        (np.ones((2, 4), complex), "got complex128"),
        (sparse.csr_matrix([[0, 0, 2, 0]]), "0 and 1, and NaN .*, got 2"),
        (sparse.csr_matrix((2, 5)), r"got float64 \(2, 5\)"),
    ],
)
def test_others_are_refused_and_change_nothing(labels, match):
    sampler = make_sampler("prs", 3, 4, 0)
    before = sampler.state_dict()
    with pytest.raises(ValueError, match=f"labels: expected .*{match}"):
        sampler.place(labels)
    np.testing.assert_equal(sampler.state_dict(), before)


def test_a_large_class_number_is_no_class():
    with pytest.raises(ValueError, match="class numbers from 0 to 999999, got 1000000"):
        multi_hot([1_000_000])


def test_sparse_rows_become_bool_and_not_numbers_first():
    rows = sparse.random(2000, 3000, 1e-3, "csr", data_rvs=np.ones)
    assert (multi_hot(rows) == rows.toarray().astype(bool)).all()
    huge = sparse.csr_matrix((200_000, 500_000))
    with pytest.raises(ValueError, match=r"write labels\[start:stop\] for a batch"):
        multi_hot(huge, 500_000)


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
