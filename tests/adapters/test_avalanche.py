import doctest
import importlib
import sys
import warnings

import numpy as np
import pytest
import torch
from torch.utils.data import TensorDataset

from prslib.paths import project_root
from prslib.samplers import SAMPLERS, make_sampler

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # its own and its dependencies'
    try:
        from avalanche.benchmarks.utils import (
            as_classification_dataset,
        )
    except ImportError:
        as_classification_dataset = None

needs_avalanche = pytest.mark.skipif(
    as_classification_dataset is None,
    reason="Avalanche is not installed (avalanche-lib on PyPI)",
)
LABEL_ONLY = sorted(name for name in SAMPLERS if not SAMPLERS[name].needs)
SIZE, NUM_CLASSES = 15, 5


def adapter():
    sys.path.insert(0, str(project_root() / "examples"))
    try:
        return importlib.import_module("avalanche_buffer")
    finally:
        sys.path.pop(0)


def dataset(targets, first=0):
    """Return an Avalanche data set whose inputs are numbers from first on."""
    inputs = torch.arange(first, first + len(targets), dtype=torch.float32)[:, None]
    data = TensorDataset(inputs, torch.as_tensor(np.array(targets)))
    data.targets = (
        list(data.tensors[1]) if data.tensors[1].ndim > 1 else data.tensors[1].tolist()
    )
    return as_classification_dataset(data)


def held(buffer):
    """Return the inputs in a buffer, row by row."""
    return [int(buffer[k][0]) for k in range(len(buffer))]


@needs_avalanche
@pytest.mark.parametrize("name", LABEL_ONLY)
@pytest.mark.parametrize("labels", ["one", "many"])
def test_the_buffer_holds_what_the_sampler_holds(name, labels):
    rng = np.random.default_rng(0)
    targets = np.sort(rng.integers(0, NUM_CLASSES, 120))
    multi_hot = np.eye(NUM_CLASSES, dtype=bool)[targets]
    if labels == "many":
        multi_hot |= rng.random(multi_hot.shape) < 0.2
        targets = multi_hot
    sampler, direct = (make_sampler(name, SIZE, NUM_CLASSES, 0) for _ in range(2))
    buffer, mirror = adapter().SamplerBuffer(sampler), {}
    for start in range(0, 120, 8):
        part = slice(start, start + 8)
        buffer.update_from_dataset(dataset(targets[part], start))
        for item, slot in enumerate(direct.place(multi_hot[part]), start):
            if slot >= 0:
                mirror[slot] = item
        assert held(buffer.buffer) == [mirror[slot] for slot in sorted(mirror)]
    assert (sampler.labels == multi_hot[held(buffer.buffer)]).all()
    kept = [np.asarray(target) for target in buffer.buffer.targets]
    assert (np.array(kept) == np.array(targets)[held(buffer.buffer)]).all()


@needs_avalanche
def test_its_examples_run():
    assert doctest.testmod(adapter()).failed == 0
