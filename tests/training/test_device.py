"""Devices: what is refused, and where a network's inputs lie."""

import numpy as np
import pytest

from prslib.experiments.store import Store
from prslib.experiments.sweep import run_all
from prslib.training.config import RunConfig
from prslib.training.device import Inputs
from prslib.training.run import run


def test_inputs_are_read_by_row_and_not_copied_on_a_cpu():
    pixels = np.random.default_rng(0).integers(256, size=(30, 4, 5, 3), dtype=np.uint8)
    inputs = Inputs(pixels)
    assert (len(inputs), inputs.shape) == (30, (30, 4, 5, 3))
    rows = np.array([3, 1, 3])
    np.testing.assert_array_equal(inputs[rows].numpy(), pixels[rows])
    pixels[1] = 5
    assert (inputs[np.array([1])] == 5).all()


@pytest.mark.parametrize("device", ["cuda:99", "gpu", "meta", None])
def test_a_device_that_is_not_there_is_refused_before_work_starts(device, tmp_path):
    config = RunConfig(dataset="digits49tiny")
    message = f"unknown device '{device}'; known devices: cpu"
    with pytest.raises(ValueError, match=message):
        run(config, device)
    with pytest.raises(ValueError, match=message):
        run_all([config], Store(tmp_path), device=device)
