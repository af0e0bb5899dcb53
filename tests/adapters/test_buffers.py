import sys
from types import ModuleType

import numpy as np
import pytest
import torch

from prslib.adapters import MammothSelection, MemoryResampler
from prslib.samplers import make_sampler

STAND_IN = """
def reservoir(num_seen_examples, buffer_size):
    raise AssertionError("the buffer's own reservoir was asked")

class Buffer:
    new = False

    def __init__(self, buffer_size):
        self.buffer_size, self.num_seen_examples, self.held = buffer_size, 0, {}

    def add_data(self, examples, labels=None, logits=None):
        for i in range(examples.shape[0]):
            if self.new:
                index = self.sample_selection_fn(self.num_seen_examples)
            else:
                index = reservoir(self.num_seen_examples, self.buffer_size)
            self.num_seen_examples += 1
            if index >= 0:
                self.held[index] = (int(examples[i]), int(logits[i]))
"""


@pytest.fixture(params=[False, True])
def buffer(request, monkeypatch):
    """A stand-in of Mammoth's buffer, before and after it had selections."""
    module = ModuleType("stand_in_buffer")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(STAND_IN, vars(module))
    module.Buffer.__module__, module.Buffer.new = module.__name__, request.param
    return module.Buffer(15)


@pytest.mark.parametrize("several", [False, True])
def test_a_mammoth_buffer_holds_what_the_sampler_holds(buffer, several):
    rng = np.random.default_rng(0)
    targets = rng.integers(0, 5, 120)
    rows = np.eye(5, dtype=bool)[targets] | (several & (rng.random((120, 5)) < 0.2))
    labels = torch.from_numpy(rows.astype(np.int64) if several else targets)
    before = sys.modules["stand_in_buffer"].reservoir
    MammothSelection(buffer, make_sampler("prs", 15, 5, 0))
    for start in range(0, 120, 10):
        part = torch.arange(start, start + 10)
        buffer.add_data(examples=part, labels=labels[start : start + 10], logits=-part)
    slots = make_sampler("prs", 15, 5, 0).place(rows)
    expected = {slot: (item, -item) for item, slot in enumerate(slots.tolist()) if slot >= 0}
    assert buffer.held == expected and buffer.num_seen_examples == 120
    assert sys.modules["stand_in_buffer"].reservoir is before


def test_what_a_mammoth_buffer_cannot_hold_is_refused(buffer):
    with pytest.raises(ValueError, match="expected the buffer's size, 15, got 14"):
        MammothSelection(buffer, make_sampler("prs", 14, 5, 0))
    with pytest.raises(ValueError, match="got one that needs features"):
        MammothSelection(buffer, make_sampler("exstream", 15, 5, 0))
    MammothSelection(buffer, make_sampler("prs", 15, 5, 0))
    with pytest.raises(ValueError, match="labels: expected those of the examples, got None"):
        buffer.add_data(torch.arange(2))
    with pytest.raises(ValueError, match="one for every sample"):
        buffer.add_data(torch.arange(2), torch.tensor([[1, 0, 0, 0, 0], [0, 0, 0, 0, 0]]))


def data():
    rng = np.random.default_rng(1)
    Y = rng.random((600, 4)) < [0.9, 0.5, 0.1, 0.02]  # noqa: N806
    return np.arange(600)[:, None], Y[Y.any(axis=1)][:600]


@pytest.mark.parametrize("method", ["prs", "cbrs", "ocdm"])
def test_resampling_balances_several_labels(method):
    X, Y = data()  # noqa: N806
    X = X[: len(Y)]  # noqa: N806
    resampler = MemoryResampler(60, method, random_state=3)
    kept, labels = resampler.fit_resample(X, Y)
    assert len(kept) == len(labels) == 60
    assert (kept[:, 0] == resampler.sample_indices_).all()
    assert (labels == Y[kept[:, 0]]).all()
    assert labels[:, 3].mean() > 2 * Y[:, 3].mean()
    again, _ = MemoryResampler(60, method, random_state=3).fit_resample(X, Y)
    assert (kept == again).all()
    assert len(MemoryResampler(10**4, method).fit_resample(X, Y)[0]) == len(X)
    kinds = Y.argmax(axis=1)
    assert set(MemoryResampler(60, method).fit_resample(X, kinds)[1]) == set(kinds)


def test_it_is_a_step_of_imbalanced_learns_pipeline():
    pipeline = pytest.importorskip("imblearn.pipeline", reason="imbalanced-learn is not installed")
    from sklearn.base import clone
    from sklearn.neighbors import KNeighborsClassifier

    X, Y = data()  # noqa: N806
    resampler = clone(MemoryResampler(60, rho=0.5))
    made = pipeline.make_pipeline(resampler, KNeighborsClassifier(1)).fit(X[: len(Y)], Y)
    assert made[-1].n_samples_fit_ == 60
    kept = made[0].sample_indices_
    assert (made.predict(kept[:, None]) == Y[kept]).all()
