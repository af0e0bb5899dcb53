import copy
import pickle
import re

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chisquare

from prslib.memory import Memory
from prslib.samplers import make_sampler


def numbers(*values):
    return np.array(values, np.int64)


def test_rows_come_back_from_their_slots_and_of_equal_ones_the_last():
    memory = Memory(4)
    images = np.arange(4 * 2 * 2, dtype=np.uint8).reshape(4, 2, 2)
    for _ in range(2):  # a slot that is written again is still one slot
        memory.write(numbers(0, 2, -1, 0), index=numbers(9, 10, 11, 12), images=images)
    assert len(memory) == 2
    rows = memory.read(numbers(0, 2))
    assert rows["index"].tolist() == [12, 10]
    assert (rows["images"] == images[[3, 1]]).all() and rows["images"].dtype == np.uint8
    images[:], rows["images"][:] = 99, 98  # neither is what is stored
    memory.filled[:] = 3
    assert memory.filled.tolist() == [0, 2]
    assert memory.read(numbers(2))["images"].ravel().tolist() == [4, 5, 6, 7]


def test_tensors_are_stored_without_their_graph():
    torch = pytest.importorskip("torch")
    memory = Memory(2)
    features = torch.ones(3, 3, requires_grad=True)
    memory.write(numbers(0, 1, 1), features=features * torch.arange(3)[:, None])
    rows = memory.read(numbers(1))["features"]
    assert not rows.requires_grad and rows.tolist() == [[2, 2, 2]]


@pytest.mark.parametrize("count", [2, 3, 4])
def test_draw_is_uniform_without_replacement_over_filled_slots(count):
    memory, rng = Memory(50), np.random.default_rng(0)
    filled = numbers(3, 7, 20, 31, 49)
    memory.write(filled, index=filled)
    drawn = np.array([memory.draw(count, rng) for _ in range(4000)])
    assert all(len(set(row)) == count for row in drawn.tolist())
    for column in drawn.T:
        slots, counts = np.unique(column, return_counts=True)
        assert slots.tolist() == filled.tolist() and chisquare(counts).pvalue > 1e-4
    pairs = np.unique(drawn[:, :2], axis=0, return_counts=True)[1]
    assert len(pairs) == 20 and chisquare(pairs).pvalue > 1e-4


def test_draw_gives_what_there_is():
    memory, rng = Memory(5), np.random.default_rng(0)
    memory.write(numbers(-1), index=numbers(3))  # nothing placed still sets the columns
    assert len(memory) == 0 and memory.read(numbers())["index"].shape == (0,)
    assert memory.draw(3, rng).tolist() == []
    memory.write(numbers(4, 1), index=numbers(0, 0))
    assert sorted(memory.draw(10, rng)) == [1, 4]
    assert memory.draw(0, rng).dtype == np.int64


def test_an_update_changes_some_columns_of_filled_slots():
    memory = Memory(4)
    memory.write(numbers(2, 0), index=numbers(5, 6), logits=np.zeros((2, 3)))
    memory.update(numbers(0, 2, 0), logits=np.eye(3))
    rows = memory.read(numbers(2, 0))
    assert rows["index"].tolist() == [5, 6] and memory.filled.tolist() == [2, 0]
    assert rows["logits"].tolist() == [[0, 1, 0], [0, 0, 1]]
    other = Memory(4)
    other.load_state_dict(memory.state_dict())
    assert (other.read(numbers(2))["logits"] == [0, 1, 0]).all()


@pytest.mark.parametrize("kind", ["U", "S"])
def test_text_of_other_length_is_taken(kind):
    memory = Memory(3)
    for slot, name in enumerate(("bb.jpg", "a.jpg", "ccc.jpg")):
        memory.write(numbers(slot), name=np.array([name], dtype=kind))
    names = memory.read(numbers(0, 1, 2))["name"].astype(str)
    assert names.tolist() == ["bb.jpg", "a.jpg", "ccc.jpg"]
    for other in (np.array(["d"], np.dtypes.StringDType()), numbers(1)):
        with pytest.raises(TypeError, match=r"write text as np.dtypes.StringDType\(\)"):
            memory.write(numbers(0), name=other)


TEXT = np.dtypes.StringDType
PADDED = np.zeros(
    2, np.dtype([("a", "i1"), ("b", [("c", "f8"), ("d", "i1")])], align=True)
)
PADDED.view(np.uint8)[:] = 7  # also between the fields


@pytest.mark.parametrize(
    "column",
    [
        np.array(["a", "b" * 100], TEXT()),
        np.array(["a", np.nan], TEXT(na_object=np.nan)),
        np.array([["a"], ["bb"]]),
        np.array([b"a", b"bb"]),
        np.array(["2020-01-01", "NaT"], "datetime64[D]"),
        np.array([1, 2], ">i4"),
        np.array([1, 2], np.longdouble),
        np.array([1 + 1j, np.nan]),
        np.asfortranarray(np.ones((2, 3, 4))),
        PADDED,
    ],
    ids=lambda column: str(column.dtype),
)
def test_whatever_is_taken_comes_back_from_a_file(column):
    memory = Memory(4)
    memory.write(numbers(3, 0), column=column)
    memory.write(numbers(1), column=column[1:])
    rows = repr(memory.read(numbers(3, 0, 1)))
    for again in (copy.deepcopy, lambda state: pickle.loads(pickle.dumps(state))):
        other = Memory(4)
        other.load_state_dict(again(memory.state_dict()))
        assert repr(other.read(numbers(3, 0, 1))) == rows
        other.load_state_dict(again(memory).state_dict())
        assert repr(other.read(numbers(3, 0, 1))) == rows


def test_changed_text_of_any_length_is_noticed():
    memory = Memory(2)
    memory.write(numbers(0), name=np.array(["a" * 50], TEXT()))
    state = memory.state_dict()
    state["columns"]["name"][0] = "a" * 49 + "b"
    with pytest.raises(ValueError, match="got a changed one"):
        memory.load_state_dict(state)


@pytest.mark.parametrize(
    ("column", "error"),
    [
        (np.array(["a.jpg"], object), r"got objects, .*; write column.astype\(str\)"),
        (np.zeros(1, [("name", object)]), "expected numbers or text, got objects"),
        (np.ma.array([1.0], mask=[True]), "got a masked one; fill it"),
    ],
)
def test_what_could_not_be_read_back_is_refused_when_it_is_written(column, error):
    memory = Memory(3)
    with pytest.raises(TypeError, match=error):
        memory.write(numbers(0), column=column)
    memory.write(numbers(0), column=numbers(1))  # and leaves no column


def test_tensors_without_numbers_of_their_own_are_refused():
    torch = pytest.importorskip("torch")
    for tensor in (
        torch.ones(1, 3).to_sparse(),
        torch.ones(1, device="meta"),
        torch.ones(1, dtype=torch.uint16),
        torch.ones(1).to(torch.float8_e4m3fn),  # pickle writes it and cannot read it
    ):
        memory = Memory(3)
        with pytest.raises(TypeError, match=r"expected a dense tensor .*, got torch"):
            memory.write(numbers(0), index=numbers(1), column=tensor)
        memory.write(numbers(0), other=numbers(1))  # it left no column


def test_tensors_of_a_class_of_ones_own_are_plain_rows():
    torch = pytest.importorskip("torch")

    class Image(torch.Tensor):
        pass

    memory = Memory(3)
    memory.write(numbers(0), column=torch.ones(1).as_subclass(Image))
    memory.write(numbers(1), column=torch.nn.Parameter(torch.ones(1)))
    other = Memory(3)
    other.load_state_dict(pickle.loads(pickle.dumps(memory.state_dict())))
    assert type(other.read(numbers(0, 1))["column"]) is torch.Tensor


@pytest.mark.filterwarnings("ignore")  # a prototype, says torch
def test_masked_tensors_are_refused():
    torch = pytest.importorskip("torch")
    column = torch.masked.masked_tensor(torch.ones(2), torch.tensor([True, False]))
    with pytest.raises(TypeError, match="got a masked one; fill it"):
        Memory(3).write(numbers(0, 1), column=column)


@pytest.mark.parametrize("column", [pd.Series(["a"]), ["a"], pd.array([1], "Int64")])
def test_what_is_no_array_is_refused_with_what_to_write(column):
    with pytest.raises(TypeError, match=r"expected an array .*; write column.to_numpy"):
        Memory(3).write(numbers(0), column=column)


def test_the_state_of_a_sampler_is_none_of_a_memory():
    state = make_sampler("crs", 3, 2, 0).state_dict()
    with pytest.raises(ValueError, match="expected size 3, got None"):
        Memory(3).load_state_dict(state)


def test_an_array_after_a_tensor_is_refused():
    torch = pytest.importorskip("torch")
    memory = Memory(3)
    memory.write(numbers(0), column=torch.ones(1))
    with pytest.raises(TypeError, match=r"expected Tensor of torch.*, got array"):
        memory.write(numbers(0), column=np.array(["a"]))


def test_slots_come_from_lists_and_from_pandas(recwarn):
    torch = pytest.importorskip("torch")
    memory = Memory(3)
    memory.write([], column=torch.ones(0))
    memory.write(pd.Series([0, 2]), column=torch.arange(2.0))
    assert memory.read(pd.Series([2]))["column"].tolist() == [1]
    assert len(memory.read([])["column"]) == 0 and not recwarn.list
    assert memory.read(numbers(0, 2)[::-1])["column"].tolist() == [1, 0]


ROW = {"index": numbers(1), "images": np.zeros((1, 2, 2), np.uint8)}


def written():
    memory = Memory(3)
    memory.write(numbers(0), **ROW)
    memory.write(numbers(2), **ROW)  # numpy would read it for -1
    return memory


@pytest.mark.parametrize(
    ("slots", "change", "error"),
    [
        ([3], {}, "ValueError: slots: expected -1 to 2, got 3; give"),
        ([0, 4, 1], {}, "ValueError: slots: expected -1 to 2, got 4; give"),
        ([-2], {}, "ValueError: slots: expected -1 to 2, got -2"),
        ([0.0], {}, "ValueError: slots: expected integers"),
        ([0, 1], {}, r"ValueError: column 'index': expected shape \(2,\), got \(1,\)"),
        ([0], {"more": numbers(1)}, r"ValueError: columns: expected \['images', 'i"),
        ([0], {"images": np.zeros((1, 3), np.uint8)}, "ValueError: .* got \\(1, 3\\)"),
        ([0], {"images": np.zeros((1, 2, 2))}, "TypeError: .* got array of float64"),
        ([0], {"index": [1]}, "TypeError: .*'index': expected an array or a tensor"),
        ([0], {"index": np.array(1)}, r"ValueError: .* got \(\)"),
    ],
)
def test_columns_must_match_the_first_write(slots, change, error):
    memory = written()
    with pytest.raises((ValueError, TypeError)) as caught:
        memory.write(np.array(slots), **ROW | change)
    assert re.match(error, f"{caught.typename}: {caught.value}")
    assert memory.read(numbers(0))["index"].tolist() == [1] and len(memory) == 2


@pytest.mark.parametrize(
    ("ask", "match"),
    [
        (lambda: Memory(0), "size must be at least 1"),
        (lambda: Memory(1).draw(-1, np.random.default_rng()), "count must be at least"),
        (lambda: Memory(1).draw(1, 0), r"rng: expected a Generator.*, got 0"),
        (lambda: Memory(1).write(numbers(0)), "columns: expected at least one, got"),
        (lambda: written().read(numbers(0, 1, 2)), "expected filled slots, got 1$"),
        (lambda: written().read(numbers(-1)), "expected filled slots, got -1$"),
        (lambda: written().read(numbers(0), "no"), r"columns: expected some of \["),
        (lambda: written().read(numbers(0, 3)), "expected filled slots, got 3$"),
        (lambda: written().read(np.array([True])), "slots: expected integers of"),
        (lambda: written().read([[0], [1, 2]]), r"slots: expected integers .* others"),
        (lambda: written().update(numbers(1), **ROW), "expected filled slots"),
        (lambda: written().update(numbers(0)), r"some of \['images', 'index'\], got"),
        (lambda: written().update(numbers(0), y=numbers(1)), r"got \['y'\]"),
        (lambda: written().update(numbers(0), index=numbers(1, 2)), "shape .1,., got"),
        (lambda: Memory(4).load_state_dict({"size": 3}), "expected size 4, got 3"),
        (
            lambda: Memory(4).load_state_dict({"size": np.ones(2)}),
            r"expected size 4, got \[1. 1.\]",
        ),
        (lambda: Memory(4).load_state_dict(None), "expected a dict, .*got NoneType"),
        (lambda: written().read(np.ma.array([0, 2], mask=[0, 1])), "a masked array"),
    ],
)
def test_other_arguments_are_checked(ask, match):
    with pytest.raises((ValueError, TypeError), match=match):
        ask()


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_a_state_is_restored_or_refused_where_it_was_changed(kind):
    memory, values = Memory(3), np.ones((2, 4), np.float32)
    if kind == "torch":
        torch = pytest.importorskip("torch")
        values = torch.ones(2, 4, dtype=torch.bfloat16)  # which numpy does not have
    memory.write(numbers(2, 0), index=numbers(5, 6), values=values)
    state = memory.state_dict()
    index, rows = state["columns"]["index"], state["columns"]["values"]
    for changed in (
        {"filled": numbers(2, 1)},
        {"filled": None},
        {"columns": {}},
        {"columns": {"index": index, "values": 2 * rows}},
        {"columns": {"index": index, "values": rows[:2]}},
        {"checksum": "0"},
        {"more": 1},
    ):
        other = Memory(3)
        with pytest.raises(ValueError, match="expected a state as state_dict returned"):
            other.load_state_dict(state | changed)
        assert len(other) == 0
    other.load_state_dict(state)
    for one in (memory, other):  # neither shares its rows with the state
        one.write(numbers(0), index=numbers(7), values=values[:1])
    other.load_state_dict(state)
    assert other.filled.tolist() == [2, 0]
    assert other.read(numbers(0))["index"].tolist() == [6]
    assert repr(other).startswith("<Memory(3), 2 slots filled, columns index: array of")


def test_slots_that_were_filled_before_a_state_was_loaded_fill_again():
    memory = Memory(3)
    state = memory.state_dict()
    memory.write(np.arange(3), index=np.arange(3))
    memory.load_state_dict(state)
    assert len(memory) == 0
    memory.write(np.array([2]), index=np.array([7]))
    assert memory.filled.tolist() == [2] and len(memory) == 1
