import copy

import numpy as np
import pytest
from scipy.stats import chisquare

from prslib import Memory


def numbers(*values):
    return np.array(values, np.int64)


def written():
    memory = Memory(4)
    memory.write([2, 0], index=numbers(5, 6), images=np.ones((2, 2, 2), np.uint8))
    return memory


def test_rows_come_back_from_their_slots_and_of_equal_slots_the_last_row():
    memory = Memory(4)
    images = np.arange(4 * 2 * 2, dtype=np.uint8).reshape(4, 2, 2)
    for _ in range(2):  # a slot that is written again is still one slot
        memory.write([0, 2, -1, 0], index=numbers(9, 10, 11, 12), images=images)
    assert len(memory) == 2
    assert memory.filled.tolist() == [0, 2]
    assert list(memory.read([0])) == ["index", "images"]
    rows = memory.read([0, 2])
    assert rows["index"].tolist() == [12, 10]
    assert (rows["images"] == images[[3, 1]]).all()
    assert rows["images"].dtype == np.uint8
    assert memory.read([2], "index").keys() == {"index"}
    assert memory.read([0, 2][::-1])["index"].tolist() == [10, 12]


def test_nothing_is_shared():
    images = np.ones((1, 2))
    memory = Memory(2)
    memory.write([1], images=images)
    images[:] = 2
    memory.read([1])["images"][:] = 3
    memory.filled[:] = 0
    copy.deepcopy(memory).write([0], images=images)
    assert memory.filled.tolist() == [1]
    assert memory.read([1])["images"].tolist() == [[1, 1]]


@pytest.mark.parametrize("count", [2, 3, 4])
def test_draw_is_uniform_without_replacement_over_filled_slots(count):
    memory, rng = Memory(50), np.random.default_rng(0)
    filled = numbers(3, 7, 20, 31, 49)
    memory.write(filled, index=filled)
    drawn = np.array([memory.draw(count, rng) for _ in range(4000)])
    assert all(len(set(row)) == count for row in drawn.tolist())
    for column in drawn.T:
        slots, counts = np.unique(column, return_counts=True)
        assert slots.tolist() == filled.tolist()
        assert chisquare(counts).pvalue > 1e-4
    assert sorted(memory.draw(10, rng)) == filled.tolist()
    pairs = np.unique(drawn[:, :2], axis=0, return_counts=True)[1]
    assert len(pairs) == 20
    assert chisquare(pairs).pvalue > 1e-4


def test_draws_stay_the_same():
    """Scores of stored runs depend on these numbers."""
    memory, rng = Memory(100), np.random.default_rng(0)
    memory.write(np.arange(60)[::-1], index=np.arange(60))
    drawn = [memory.draw(count, rng).tolist() for count in (3, 12)]
    twin, filled = np.random.default_rng(0), np.arange(60)[::-1]
    expected = [filled[(twin.random(3) * 60).astype(int)].tolist()]
    expected.append(filled[twin.choice(60, 12, replace=False)].tolist())
    assert drawn == expected


IMAGES = np.ones((1, 2, 2), np.uint8)
NO_COLUMN = [
    ([1], "expected an array of numbers or text, or a dense tensor, got list"),
    (np.ma.array([1], mask=[True]), "got MaskedArray"),
    (np.array(["a"], object), "got ndarray object"),
]


@pytest.mark.parametrize(
    ("slots", "change", "error"),
    [
        ([4], {}, r"slots: expected -1 to 3, got \[4\]"),
        ([0.0], {}, r"slots: expected integers \(B,\), got float64 \(1,\)"),
        ([0, 1], {}, r"column 'index': expected 2 rows, got shape \(1,\)"),
        ([0], {"index": np.array(1)}, r"expected 1 rows, got shape \(\)"),
        ([0], {"more": numbers(1)}, r"expected \['images', 'index'\], got .*'more'"),
        ([0], {"images": IMAGES[:, :1]}, r"rows \(2, 2\), got .* rows \(1, 2\)"),
        ([0], {"images": IMAGES * 1.0}, "expected array of uint8, .*array of float64"),
        *[([0], {"index": column}, error) for column, error in NO_COLUMN],
    ],
)
def test_what_does_not_fit_is_refused_and_changes_nothing(slots, change, error):
    memory = written()
    before = memory.state_dict()
    columns = {"index": numbers(1), "images": IMAGES} | change
    with pytest.raises((ValueError, TypeError), match=error) as caught:
        memory.write(slots, **columns)
    assert "\n" not in str(caught.value)
    np.testing.assert_equal(memory.state_dict(), before)


def test_a_state_is_restored_from_a_file(tmp_path):
    memory = written()
    np.savez(tmp_path / "memory.npz", **memory.state_dict())
    other = Memory(4)
    other.write([1], something=np.ones(1))
    other.load_state_dict(Memory(4).state_dict())
    assert repr(other) == repr(Memory(4))
    other.load_state_dict(np.load(tmp_path / "memory.npz"))
    assert repr(other) == repr(memory)
    for each in (memory, other):
        each.write([3], index=numbers(7), images=IMAGES)
    np.testing.assert_equal(other.state_dict(), memory.state_dict())
    assert other.filled.tolist() == [2, 0, 3]


def test_an_empty_slot_and_a_state_of_another_size_are_refused():
    with pytest.raises(ValueError, match="slots: expected filled slots, got 1"):
        written().read([1])
    with pytest.raises(ValueError, match="a memory of size 5, got 4"):
        Memory(5).load_state_dict(written().state_dict())


def test_numbers_of_the_other_byte_order_are_stored_in_the_machines():
    memory = Memory(2)
    for value in (1.0, 2.0):
        memory.write([0], x=np.array([value], ">f4"))
    assert memory.read([0])["x"] == np.array([2.0], "=f4")


def test_tensors_are_stored_without_their_graph():
    torch = pytest.importorskip("torch")
    memory = Memory(2)
    features = torch.ones(3, 3, requires_grad=True)
    memory.write([0, 1, 1], features=features * torch.arange(3)[:, None])
    rows = memory.read([1])["features"]
    assert not rows.requires_grad
    assert rows.tolist() == [[2, 2, 2]]
    assert memory.read([1, 0][::-1])["features"].tolist() == [[0, 0, 0], [2, 2, 2]]


@pytest.mark.parametrize("dtype", ["bfloat16", "int64", "bool", "complex64"])
def test_a_state_with_tensors_is_restored_by_torchs_default(tmp_path, dtype):
    torch = pytest.importorskip("torch")
    memory = Memory(3)
    columns = {"x": torch.eye(2).to(getattr(torch, dtype)), "y": numbers(4, 5)}
    memory.write([2, 0], **columns)
    state = memory.state_dict()
    tensors = {name: torch.as_tensor(value) for name, value in state.items()}
    torch.save(tensors, tmp_path / "memory.pt")
    other = Memory(3)
    other.load_state_dict(torch.load(tmp_path / "memory.pt"))
    assert repr(other) == repr(memory)
    other.write([1, 2], **columns)
    assert other.read([1, 2, 0])["x"].equal(columns["x"][[0, 1, 1]])
    assert other.filled.tolist() == [2, 0, 1]
