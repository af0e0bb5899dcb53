import doctest
import warnings

import numpy as np
import pytest
import torch
from torch.utils.data import TensorDataset

from prslib.paths import project_root
from prslib.samplers import make_sampler

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # its own and its dependencies'
    reason = "Avalanche is not installed (avalanche-lib on PyPI)"
    avalanche = pytest.importorskip("avalanche.benchmarks.utils", reason=reason)


def dataset(targets, first, named):
    """Return an Avalanche data set whose inputs are numbers from first on."""
    inputs = torch.arange(first, first + len(targets), dtype=torch.float32)[:, None]
    data = TensorDataset(inputs, torch.as_tensor(targets))
    if not named:
        return avalanche.make_avalanche_dataset(data)
    data.targets = list(data.tensors[1]) if targets.ndim > 1 else targets.tolist()
    return avalanche.as_classification_dataset(data)


@pytest.mark.parametrize("named", [True, False])  # its targets
@pytest.mark.parametrize("several", [False, True])
def test_the_buffer_holds_what_the_sampler_holds(several, named, monkeypatch):
    monkeypatch.syspath_prepend(project_root() / "examples")
    import avalanche_buffer

    assert doctest.testmod(avalanche_buffer).failed == 0
    rng = np.random.default_rng(0)
    targets = np.sort(rng.integers(0, 5, 120))
    multi_hot = np.eye(5, dtype=bool)[targets]
    if several:
        targets = multi_hot = multi_hot | (rng.random(multi_hot.shape) < 0.2)
    policy = avalanche_buffer.SamplerBuffer(make_sampler("prs", 15, 5, seed=0))
    for start in range(0, 120, 8):
        policy.update_from_dataset(dataset(targets[start : start + 8], start, named))
    slots = make_sampler("prs", 15, 5, seed=0).place(multi_hot)
    items = {slot: item for item, slot in enumerate(slots.tolist()) if slot >= 0}
    inputs = [int(policy.buffer[k][0]) for k in range(len(policy.buffer))]
    assert inputs == [items[slot] for slot in range(15)]
    labels = [np.asarray(policy.buffer[k][1]) for k in range(len(policy.buffer))]
    assert (np.array(labels) == targets[inputs]).all()
