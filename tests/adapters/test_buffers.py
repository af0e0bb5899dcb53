import sys
from types import ModuleType

import numpy as np
import pytest
import torch

from prslib.adapters import MammothSelection, MemoryResampler, multi_hot
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


@pytest.mark.parametrize(
    ("sampler", "filled", "error", "match"),
    [
        (("prs", 14), 0, ValueError, "expected the buffer's size, 15, got 14"),
        (("exstream", 15), 0, ValueError, "got one that needs features"),
        (("prs", 15), 1, ValueError, "expected an empty one, got one that holds 1"),
        (None, 0, TypeError, "expected what make_sampler returns, got None"),
    ],
)
def test_what_a_mammoth_buffer_cannot_hold_is_refused(buffer, sampler, filled, error, match):
    sampler = sampler and make_sampler(*sampler, 5, 0)
    if filled:
        sampler.place(np.ones((filled, 5), bool))
    with pytest.raises(error, match=match):
        MammothSelection(buffer, sampler)


@pytest.mark.parametrize(
    ("labels", "match"),
    [(None, "those of the examples, got None"), (torch.eye(5)[:2] * 0, "one for every sample")],
)
def test_a_mammoth_buffer_needs_labels(buffer, labels, match):
    MammothSelection(buffer, make_sampler("prs", 15, 5, 0))
    with pytest.raises(ValueError, match=match):
        buffer.add_data(torch.arange(2), labels)


@pytest.mark.parametrize(
    ("targets", "error", "match"),
    [
        ([0, 5], ValueError, "expected classes 0 to 4, got 5"),
        ([0, -1], ValueError, "got -1"),
        ([0.0, 1.0], TypeError, "expected whole numbers, got float"),
        ([True, False], TypeError, "got bool"),
        ([0, np.eye(5, dtype=bool)[1]], ValueError, r"got shapes \(\), \(5,\)"),
        ([[0, 1, 1]], ValueError, r"vectors of 5 classes throughout, got shapes \(3,\)"),
        ([[0, 0.3, 0.7, 0, 0]], ValueError, "expected vectors of 0 and 1, got 0.3"),
    ],
)
def test_a_target_that_cannot_be_represented_is_refused(targets, error, match):
    with pytest.raises(error, match=match):
        multi_hot(targets, 5)


def data():
    rng = np.random.default_rng(1)
    Y = rng.random((600, 4)) < [0.9, 0.5, 0.1, 0.02]  # noqa: N806
    Y = Y[Y.any(axis=1)]  # noqa: N806
    return np.arange(len(Y))[:, None], Y


@pytest.mark.parametrize("method", ["prs", "cbrs", "ocdm"])
def test_resampling_balances_several_labels(method):
    X, Y = data()  # noqa: N806
    resampler = MemoryResampler(60, method, random_state=3)
    kept, labels = resampler.fit_resample(X, Y)
    assert len(kept) == len(labels) == 60
    assert (kept[:, 0] == resampler.sample_indices_).all()
    assert (labels == Y[kept[:, 0]]).all()
    assert labels[:, 3].mean() > 2 * Y[:, 3].mean()
    assert (resampler.fit_resample(X, Y)[0] == kept).all()
    assert len(MemoryResampler(10**4, method).fit_resample(X, Y)[0]) == len(X)
    kinds = Y.argmax(axis=1)
    assert set(MemoryResampler(60, method).fit_resample(X, kinds)[1]) == set(kinds)


def test_it_is_a_step_of_imbalanced_learns_pipeline():
    pipeline = pytest.importorskip("imblearn.pipeline", reason="imbalanced-learn is not installed")
    from sklearn.base import clone
    from sklearn.neighbors import KNeighborsClassifier

    X, Y = data()  # noqa: N806
    resampler = clone(MemoryResampler(60, rho=0.5))
    made = pipeline.make_pipeline(resampler, KNeighborsClassifier(1)).fit(X, Y)
    assert made[-1].n_samples_fit_ == 60
    kept = made[0].sample_indices_
    assert (made.predict(kept[:, None]) == Y[kept]).all()
