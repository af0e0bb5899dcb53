"""The example for Mammoth, with a buffer of the signatures that Mammoth's has."""

import copy
import importlib
import pickle
import sys
from types import ModuleType

import numpy as np
import pytest
import torch

from prslib.paths import project_root
from prslib.samplers import make_sampler

NAMES = ["examples", "labels", "logits", "task_labels", "true_labels"]


class Buffer:
    """Mammoth's as far as the example meets it: how it allocates, counts, empties.

    From utils/buffer.py in github.com/aimagelab/mammoth, since September 2024.
    """

    def __init__(self, buffer_size, device="cpu"):
        self.buffer_size = buffer_size
        self.num_seen_examples = 0

    def __len__(self):
        return min(self.num_seen_examples, self.buffer_size)

    def init_tensors(self, examples, labels, logits, task_labels, true_labels):
        columns = examples, labels, logits, task_labels, true_labels
        for name, column in zip(NAMES, columns, strict=True):
            if column is not None:
                dtype = torch.int64 if name.endswith("els") else torch.float32
                shape = self.buffer_size, *column.shape[1:]
                setattr(self, name, torch.zeros(shape, dtype=dtype))

    def empty(self):
        for name in NAMES:
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


@pytest.mark.parametrize("several", [False, True])
# what Mammoth's er, derpp, xder and cnll pass beside the examples
@pytest.mark.parametrize(
    "more", [[], ["logits"], ["logits", "task_labels"], ["true_labels"]]
)
def test_the_buffer_holds_what_prs_holds(example, more, several):
    rng = np.random.default_rng(0)
    targets = rng.integers(0, 5, 120)
    rows = np.eye(5, dtype=bool)[targets] | (several & (rng.random((120, 5)) < 0.2))
    columns = {name: torch.arange(120) for name in more}
    columns["examples"] = torch.rand(120, 2)
    columns["labels"] = torch.from_numpy(rows.astype(int) if several else targets)
    buffer = example.PRSBuffer(15, num_classes=5)
    for start in range(0, 120, 10):
        cut = slice(start, start + 10)
        buffer.add_data(**{name: column[cut] for name, column in columns.items()})
        if start == 50:  # it is saved and copied as any other
            buffer = copy.deepcopy(pickle.loads(pickle.dumps(buffer)))
    slots = make_sampler("prs", 15, 5, 0).place(rows)
    items = {slot: item for item, slot in enumerate(slots.tolist()) if slot >= 0}
    kept = [items[slot] for slot in range(15)]
    assert vars(buffer).keys() & set(NAMES) == columns.keys()
    for name, column in columns.items():
        assert torch.equal(
            getattr(buffer, name), column[kept].to(getattr(buffer, name))
        )
    assert len(buffer) == 15 and buffer.num_seen_examples == 120


@pytest.mark.filterwarnings("ignore:.*without a label")
def test_it_counts_what_is_stored_and_begins_anew_when_it_was_emptied(example):
    labels = torch.zeros(10, 5)
    labels[8:, 2] = 1
    buffer = example.PRSBuffer(6, num_classes=5)
    buffer.add_data(torch.ones(8, 1), labels[:8])
    assert len(buffer) == 0 and (buffer.examples == 0).all()
    numbers = torch.arange(500.0)[:, None]
    kept = []
    for _ in range(2):  # other decisions after each time
        buffer.empty()
        buffer.add_data(numbers[:10], labels)
        assert len(buffer) == buffer.num_seen_examples == 2
        assert buffer.examples[:2].tolist() == [[8], [9]]
        buffer.empty()
        buffer.add_data(numbers, torch.zeros(500, dtype=torch.int64))
        kept.append(buffer.examples.flatten().tolist())
    assert len(set(kept[0])) == 6 and kept[0] != kept[1]
