"""Tests for Mammoth, which are functions for pytest, as in its ``tests`` folder.

In Mammoth, they would be part of ``tests/test_prs_buffer.py``.
"""

import copy
import pickle

import numpy as np
import pytest
import torch
from mammoth_buffer import PRSBuffer
from prs_sampling import PRSSampling

STREAM = np.random.default_rng(0).choice(4, 1000, p=[0.7, 0.2, 0.08, 0.02])


@pytest.mark.parametrize("several", [False, True])
def test_rare_classes_stay(several):
    rows = np.eye(4, dtype=int)[STREAM]
    select = PRSSampling(buffer_size=40, seed=0)
    for seen, labels in enumerate(rows if several else STREAM):
        select(seen, labels)
    assert select.class_freq.tolist() == rows.sum(axis=0).tolist()
    assert abs(select.stored.sum(axis=0) - 10).max() <= 2


@pytest.mark.parametrize("columns", [[], ["logits"], ["logits", "task_labels"]])
def test_the_buffer_holds_what_is_selected(columns):
    select = PRSSampling(20, seed=0)
    items = {}
    for seen, label in enumerate(STREAM):
        items[select(seen, label)] = seen
    kept = [items[slot] for slot in range(20)]
    numbers = torch.arange(1000.0)[:, None]
    buffer = PRSBuffer(20, seed=0)
    for start in range(0, 1000, 10):
        rows = slice(start, start + 10)
        more = {name: numbers[rows] for name in columns}
        labels = torch.from_numpy(STREAM[rows])
        buffer.add_data(examples=numbers[rows], labels=labels, **more)
        if start == 500:
            buffer = copy.deepcopy(pickle.loads(pickle.dumps(buffer)))
    assert len(buffer) == 20 and buffer.num_seen_examples == 1000
    assert buffer.labels.tolist() == STREAM[kept].tolist()
    for name in ["examples", *columns]:
        assert getattr(buffer, name).flatten().tolist() == kept


def test_an_empty_buffer_begins_anew():
    buffer = PRSBuffer(4, seed=0)
    buffer.add_data(torch.zeros(10, 1), torch.zeros(10, dtype=torch.int64))
    buffer.empty()
    buffer.add_data(torch.ones(2, 1), torch.ones(2, dtype=torch.int64))
    assert len(buffer) == 2 and buffer.labels[:2].tolist() == [1, 1]


def test_a_sample_without_a_class_is_refused():
    with pytest.raises(ValueError, match="at least one class"):
        PRSSampling(4)(0, np.zeros(3))
