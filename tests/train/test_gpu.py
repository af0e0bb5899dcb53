"""A GPU computes the CPU's results within tolerance, and no step waits for it."""

import gc
from functools import partial

import numpy as np
import pytest
import torch
from trainers import batches_of, make_trainer

from prslib import METHODS, MODELS, RunConfig, load_dataset, run
from prslib.device import LAUNCHED_SINGLY, put
from prslib.train import Trainer

TINY = "digits70tiny"
pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
]
# what a relative change of the first weights by 1e-6 grows to in these steps, and some
# room, in mean probability; the steps themselves move it by 0.03 and more
GROWN = {"fp32": 3e-3, "bf16": 1.2e-2}


def trained(config, device, resident=True):
    """Train on the first batches of a run's stream and return the trainer."""
    data = load_dataset(config.dataset)
    inputs = torch.as_tensor(data.train.inputs)
    inputs = put(data.train.inputs, torch.device(device)) if resident else inputs
    trainer = Trainer(config, data, inputs, torch.device(device))
    for rows, is_first in batches_of(config)[:12]:
        trainer.step(rows, is_first)
    return trainer


def probabilities(trainer):
    return trainer.probabilities(trainer.inputs, np.arange(200))


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
def test_steps_on_the_gpu_are_those_on_the_cpu(precision, fields):
    config = RunConfig(precision=precision, weights="none", **fields)
    gpu, cpu = (probabilities(trained(config, device)) for device in ("cuda", "cpu"))
    assert np.abs(gpu - cpu).mean() < GROWN[precision]


@pytest.mark.parametrize("method", METHODS)
def test_a_run_on_the_gpu_scores_as_on_the_cpu(method):
    config = RunConfig(TINY, method, batch_size=30)
    cpu, gpu = run(config), run(config, "cuda")
    if METHODS[method].sampler not in ("gss", "exstream"):
        np.testing.assert_array_equal(cpu.memory_labels, gpu.memory_labels)
    overall = (cpu.scores["metric"] == "mAP") & (cpu.scores["group"] == "overall")
    differences = cpu.scores.loc[overall, "value"] - gpu.scores.loc[overall, "value"]
    assert differences.abs().mean() < 0.05
    assert gpu.record["device"] == "cuda"


@pytest.mark.parametrize("precision", GROWN)
@pytest.mark.parametrize("name", [TINY, "imbal-digits"])
def test_captured_steps_are_those_that_are_launched_singly(
    name, precision, monkeypatch
):
    config = RunConfig(name, weights="none", precision=precision)
    captured = trained(config, "cuda")
    assert captured.captured.graphs
    monkeypatch.setattr("prslib.device.LAUNCHED_SINGLY", 99)
    singly = trained(config, "cuda")
    assert not singly.captured.graphs
    gap = np.abs(probabilities(captured) - probabilities(singly)).mean()
    assert gap < GROWN[precision]


def test_a_trainer_leaves_the_gpu_at_once():
    def allocated():
        torch._C._cuda_clearCublasWorkspaces()  # what cuBLAS keeps to work in
        return torch.cuda.memory_allocated()

    gc.collect()
    gc.disable()
    try:
        before = allocated()
        for _ in range(2):
            trained(RunConfig(TINY), "cuda")
            assert allocated() - before < 1e6
    finally:
        gc.enable()


@pytest.fixture
def alarm():
    """Raise where the host waits for the GPU, once it is called."""
    yield partial(torch.cuda.set_sync_debug_mode, "error")
    torch.cuda.set_sync_debug_mode("default")


@pytest.mark.filterwarnings("ignore:Synchronization debug mode is a prototype")
@pytest.mark.parametrize("precision", GROWN)
@pytest.mark.parametrize("model", sorted(name for name in MODELS if "resnet" in name))
def test_no_resnet_waits_for_the_gpu(model, precision, alarm):
    fields = {"model": model, "weights": "none", "frozen_stages": 1}
    config = RunConfig(TINY, "Finetune", precision=precision, **fields)
    trainer = make_trainer(config, "cuda")
    for number in range(10):
        trainer.step(np.arange(8))
        if number == LAUNCHED_SINGLY:  # steps are captured
            alarm()


@pytest.mark.filterwarnings("ignore:Synchronization debug mode is a prototype")
@pytest.mark.parametrize("resident", [True, False])
def test_steps_never_wait_for_the_gpu(resident, alarm):
    config = RunConfig(TINY)
    trainer = trained(config, "cuda", resident)
    assert trainer.inputs.is_cuda == resident
    alarm()
    for rows, is_first in batches_of(config)[12:22]:
        trainer.step(rows, is_first)
