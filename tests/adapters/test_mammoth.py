"""The example for Mammoth, with a buffer of the signatures that Mammoth's has."""

import copy
import importlib
import inspect
import pickle
import sys
from types import ModuleType

import numpy as np
import pytest
import torch

from prslib.paths import project_root
from prslib.samplers import make_sampler

# of utils/buffer.py in github.com/aimagelab/mammoth, since September 2024
SIGNATURES = {
    "__init__": "(self, buffer_size, device='cpu', "
    "sample_selection_strategy='reservoir', **kwargs)",
    "init_tensors": "(self, examples, labels, logits, task_labels, true_labels)",
    "add_data": "(self, examples, labels=None, logits=None, task_labels=None, "
    "attention_maps=None, true_labels=None, sample_selection_scores=None)",
    "empty": "(self)",
}
ATTRIBUTES = ["examples", "labels", "logits", "task_labels", "true_labels"]
# what Mammoth's models pass beside the examples
CALLS = {
    "er": ["labels"],
    "er_ace": ["labels"],
    "derpp": ["labels", "logits"],
    "xder": ["labels", "logits", "task_labels"],
    "er_tricks": ["labels", "sample_selection_scores"],
    "cnll": ["labels", "true_labels"],
    "twf": ["labels", "logits", "attention_maps"],
}


class Buffer:
    """Mammoth's as far as the example meets it: how it allocates, counts, empties."""

    def __init__(
        self, buffer_size, device="cpu", sample_selection_strategy="reservoir", **kwargs
    ):
        self.buffer_size = buffer_size
        self.device = device
        self.num_seen_examples = 0
        self.attributes = list(ATTRIBUTES)
        self.attention_maps = [None] * buffer_size

    def __len__(self):
        return min(self.num_seen_examples, self.buffer_size)

    def init_tensors(self, examples, labels, logits, task_labels, true_labels):
        columns = examples, labels, logits, task_labels, true_labels
        for name, column in zip(ATTRIBUTES, columns, strict=True):
            if column is not None:
                dtype = torch.int64 if name.endswith("els") else torch.float32
                shape = self.buffer_size, *column.shape[1:]
                setattr(self, name, torch.zeros(shape, dtype=dtype))

    def add_data(
        self,
        examples,
        labels=None,
        logits=None,
        task_labels=None,
        attention_maps=None,
        true_labels=None,
        sample_selection_scores=None,
    ):
        pytest.fail("the reservoir of Mammoth was asked")

    def empty(self):
        for name in self.attributes:
            vars(self).pop(name, None)
        self.num_seen_examples = 0


@pytest.fixture
def example(monkeypatch):
    module = ModuleType("utils.buffer")
    module.Buffer = Buffer
    monkeypatch.setitem(sys.modules, "utils", ModuleType("utils"))
    monkeypatch.setitem(sys.modules, "utils.buffer", module)
    monkeypatch.syspath_prepend(project_root() / "examples")
    yield importlib.import_module("mammoth_buffer")
    sys.modules.pop("mammoth_buffer")


def batch(call, labels):
    """Return the arguments of a call; the examples are 1, 2, ..."""
    numbers = torch.arange(1.0, len(labels) + 1)[:, None]
    columns = {
        "labels": labels,
        "logits": -numbers,
        "task_labels": torch.full((len(labels),), 3),
        "true_labels": 2 * numbers[:, 0].long(),
        "attention_maps": [numbers, 10 * numbers],
        "sample_selection_scores": numbers[:, 0],
    }
    return {"examples": numbers} | {name: columns[name] for name in CALLS[call]}


def test_the_signatures_are_those_of_mammoth(example):
    for name, signature in SIGNATURES.items():
        assert str(inspect.signature(getattr(Buffer, name))) == signature
    assert str(inspect.signature(example.PRSBuffer.add_data)) == SIGNATURES["add_data"]


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("call", CALLS)
def test_the_buffer_holds_what_prs_holds(example, call, several):
    rng = np.random.default_rng(0)
    targets = rng.integers(0, 5, 120)
    rows = np.eye(5, dtype=bool)[targets] | (several & (rng.random((120, 5)) < 0.2))
    labels = torch.from_numpy(rows.astype(np.float32) if several else targets)
    buffer = example.PRSBuffer(15, num_classes=5)
    columns = batch(call, labels)
    for start in range(0, 120, 10):
        cut = slice(start, start + 10)
        buffer.add_data(
            **{
                name: [each[cut] for each in column]
                if isinstance(column, list)
                else column[cut]
                for name, column in columns.items()
            }
        )
        if start == 50:  # it is saved and copied as any other
            buffer = copy.deepcopy(pickle.loads(pickle.dumps(buffer)))
    slots = make_sampler("prs", 15, 5, 0).place(rows)
    items = {slot: item for item, slot in enumerate(slots.tolist()) if slot >= 0}
    kept = [items[slot] for slot in range(15)]
    for name in buffer.attributes:
        assert hasattr(buffer, name) == (name in columns)
        if name in columns:
            assert torch.equal(
                getattr(buffer, name), columns[name][kept].to(getattr(buffer, name))
            )
    if "attention_maps" in columns:
        maps = [[int(each) for each in maps] for maps in buffer.attention_maps]
        assert maps == [[item + 1, (10 * item + 10) % 256] for item in kept]
    assert len(buffer) == 15 and buffer.num_seen_examples == 120


@pytest.mark.filterwarnings("ignore:.*without a label")
def test_it_counts_what_is_stored_and_begins_anew_when_it_was_emptied(example):
    labels = torch.zeros(10, 5)
    labels[8:, 2] = 1
    buffer = example.PRSBuffer(6, num_classes=5)
    buffer.add_data(torch.ones(10, 1), labels[:8].repeat(2, 1)[:10])
    assert len(buffer) == 0 and (buffer.examples == 0).all()
    for _ in range(2):
        buffer.add_data(**batch("er", labels))
        assert len(buffer) == buffer.num_seen_examples == 2
        assert buffer.examples[:2].tolist() == [[9], [10]]
        buffer.empty()
        assert len(buffer) == 0
    first, second = [], []
    for kept in (first, second):  # other decisions after each time
        buffer.add_data(**batch("er", torch.zeros(500, dtype=torch.int64)))
        kept += buffer.examples.flatten().tolist()
        buffer.empty()
    assert len(set(first)) == 6 and first != second


def test_without_labels_it_says_what_it_needs(example):
    with pytest.raises(ValueError, match="labels: expected a row a sample, got None"):
        example.PRSBuffer(6).add_data(torch.ones(3, 2), logits=torch.ones(3, 2))
