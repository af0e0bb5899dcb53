"""A GPU computes the CPU's results within tolerance, and no step waits for it."""

import numpy as np
import pytest
import torch

from prslib.datasets import load_dataset
from prslib.training import device as device_module
from prslib.training.config import RunConfig
from prslib.training.device import Inputs
from prslib.training.methods import METHODS
from prslib.training.replay import stream
from prslib.training.run import make_learner, one_thread, run

TINY = "digits70tiny"
pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
]


@pytest.fixture(scope="module")
def dataset():
    return load_dataset(TINY)


def on(dataset, device):
    """Return a data set's inputs and labels on a device."""
    train = dataset.train
    return Inputs(train.inputs, device), Inputs(train.labels.astype("f4"), device)


def trained(dataset, config, device):
    """Train on the first batches of a run's stream and return the learner."""
    learner = make_learner(config, dataset, device)
    with one_thread():
        for rows in stream(config, dataset)[0].batches[:12]:
            learner.step(*learner.join(*on(dataset, device), rows))
    return learner


# what a relative change of the first weights by 1e-6 grows to in these steps, and some
# room, in mean probability; the steps themselves move it by 0.03 and more
GROWN = {"fp32": 3e-3, "bf16": 1.2e-2}


@pytest.mark.parametrize("precision", GROWN)
@pytest.mark.parametrize(
    "fields",
    [
        {"dataset": TINY},  # Adam
        {"dataset": "imbal-digits"},  # SGD, with the penalty on norms
        {"dataset": TINY, "model": "convnet_attention_consistency"},
    ],
    ids=lambda fields: "-".join(fields.values()),
)
def test_a_learner_on_the_gpu_is_the_one_on_the_cpu(precision, fields):
    config = RunConfig(precision=precision, weights="none", **fields)
    dataset = load_dataset(config.dataset)
    probabilities = []
    for device in ("cuda", "cpu"):
        images = Inputs(dataset.train.inputs[:200], device)
        probabilities.append(trained(dataset, config, device).probabilities(images))
    gpu, cpu = probabilities
    assert np.abs(gpu - cpu).mean() < GROWN[precision]


@pytest.mark.parametrize("method", METHODS)
def test_a_run_on_the_gpu_scores_as_on_the_cpu(method):
    config = RunConfig(TINY, method, batch_size=30)
    cpu, gpu = run(config), run(config, "cuda")
    if not METHODS[method].looks_at_model:
        np.testing.assert_array_equal(cpu.memory_labels, gpu.memory_labels)
    overall = (cpu.scores["metric"] == "mAP") & (cpu.scores["group"] == "overall")
    differences = cpu.scores.loc[overall, "value"] - gpu.scores.loc[overall, "value"]
    assert differences.abs().mean() < 0.05


@pytest.mark.filterwarnings("ignore:Synchronization debug mode is a prototype")
@pytest.mark.parametrize("resident", [True, False])
def test_steps_never_wait_for_the_gpu(dataset, monkeypatch, resident):
    learner = trained(dataset, RunConfig(TINY), "cuda")
    monkeypatch.setattr(device_module, "INPUTS_SHARE", float(resident))
    data, rows = on(dataset, "cuda"), np.arange(200).reshape(10, 20)
    assert data[0].tensor.is_cuda == resident
    torch.cuda.set_sync_debug_mode("error")
    try:
        for batch in rows:
            learner.step(*learner.join(*data, batch))
    finally:
        torch.cuda.set_sync_debug_mode("default")
