"""A GPU computes the CPU's results within tolerance, and no step waits for it."""

import gc
from functools import partial

import numpy as np
import pytest
import torch
from interrupted import stopped_at

from prslib.datasets import load_dataset
from prslib.experiments.store import Store
from prslib.experiments.sweep import run_all
from prslib.models import MODELS
from prslib.models.networks import make_model
from prslib.training import device as device_module
from prslib.training.config import PRECISIONS, RunConfig
from prslib.training.device import LAUNCHED_SINGLY, Captured, Inputs, without_tf32
from prslib.training.grids import configs
from prslib.training.learner import Learner
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
    fit(learner, dataset, config)
    return learner


def fit(learner, dataset, config):
    data = on(dataset, learner.device)
    with one_thread(), without_tf32():
        for rows in stream(config, dataset)[0].batches[:12]:
            learner.step(*learner.join(*data, rows))


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


@pytest.mark.parametrize("method", ["PRS", "EWC", "ExStream"])
def test_a_run_goes_on_and_its_state_is_not_taken_for_a_cpu_s(method, tmp_path):
    config = RunConfig(TINY, method, batch_size=30)
    whole, file = run(config, "cuda"), tmp_path / "checkpoint"
    taken = stopped_at(9, config, Store(tmp_path), file=file, device="cuda")
    assert max(taken) == 9
    again = run(config, "cuda", checkpoint=file)
    differences = again.scores["value"] - whole.scores["value"]
    assert differences.abs().mean() < 0.05
    with pytest.warns(UserWarning, match="made on .*; the run starts again"):
        run(config, checkpoint=file)


def allocated():
    """Return the bytes of tensors on the GPU, without what cuBLAS keeps to work in."""
    torch._C._cuda_clearCublasWorkspaces()
    return torch.cuda.memory_allocated()


def test_a_run_out_of_memory_leaves_room_for_the_next_and_is_tried_again(
    tmp_path, monkeypatch
):
    step, tries = Learner.step, []

    def take_all(learner, *batch):
        tries.append(None)
        if len(tries) == 1:  # more than any GPU has
            torch.empty(10**13, dtype=torch.uint8, device=learner.device)
        return step(learner, *batch)

    monkeypatch.setattr(Learner, "step", take_all)
    grid = configs(dataset=TINY, method="Finetune", batch_size=80, seed=[0, 1])
    before = allocated()
    assert len(run_all(grid, Store(tmp_path), workers=1, device="cuda")) == 2
    assert allocated() - before < 1e6


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", [TINY, "imbal-digits"])
def test_captured_steps_are_those_that_are_launched_singly(name, precision):
    config = RunConfig(name, weights="none", precision=precision)
    data = load_dataset(name)
    images = Inputs(data.train.inputs[:200], "cuda")
    both = []
    for is_captured in (True, False):
        learner = make_learner(config, data, "cuda")
        learner.captured = learner.captured if is_captured else None
        fit(learner, data, config)
        both.append(learner.probabilities(images))
        assert bool(learner.captured and learner.captured.graphs) == is_captured
    assert np.abs(both[0] - both[1]).mean() < GROWN[precision]


class Doubling:
    """Doubles in place; some ask the GPU for a number, which cannot be captured."""

    def __init__(self, asks):
        self.total = torch.ones(3, device="cuda")
        self.asks = asks

    def double(self, by):
        self.total *= by
        if self.asks:
            assert float(self.total[0]) > 0


@pytest.mark.parametrize("asks", [True, False])
def test_what_cannot_be_captured_is_launched_singly(asks):
    doubling = Doubling(asks)
    captured = Captured(doubling.double, torch.device("cuda"))
    for _ in range(8):
        captured(torch.full((1,), 2.0, device="cuda"))
    assert doubling.total.tolist() == [256.0] * 3
    assert bool(captured.graphs) != asks


def test_a_learner_leaves_the_gpu_at_once(dataset):
    gc.collect()
    gc.disable()
    try:
        before = allocated()
        for _ in range(2):
            trained(dataset, RunConfig(TINY), "cuda")
            assert allocated() - before < 1e6
    finally:
        gc.enable()


@pytest.fixture
def alarm():
    """Raise where the host waits for the GPU, once it is called."""
    yield partial(torch.cuda.set_sync_debug_mode, "error")
    torch.cuda.set_sync_debug_mode("default")


@pytest.mark.filterwarnings("ignore:Synchronization debug mode is a prototype")
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("model", sorted(name for name in MODELS if "resnet" in name))
def test_no_resnet_waits_for_the_gpu(model, precision, alarm):
    learner = Learner(
        make_model(model, (64, 64, 3), 7, 0, "none"),
        optimizer="adam",
        learning_rate=1e-4,
        loss="multilabel_soft_margin",
        clip_value=5.0,
        frozen_stages=1,
        device="cuda",
        precision=precision,
    )
    images = Inputs(np.zeros((8, 64, 64, 3), np.uint8), "cuda")
    labels = Inputs(np.zeros((8, 7), np.float32), "cuda")
    for number in range(10):
        learner.step(*learner.join(images, labels, np.arange(8)))
        if number == LAUNCHED_SINGLY:  # steps are captured
            alarm()


@pytest.mark.filterwarnings("ignore:Synchronization debug mode is a prototype")
@pytest.mark.parametrize("resident", [True, False])
def test_steps_never_wait_for_the_gpu(dataset, monkeypatch, resident, alarm):
    learner = trained(dataset, RunConfig(TINY), "cuda")
    monkeypatch.setattr(device_module, "INPUTS_SHARE", float(resident))
    data, rows = on(dataset, "cuda"), np.arange(200).reshape(10, 20)
    assert data[0].tensor.is_cuda == resident
    for batch in rows:
        learner.step(*learner.join(*data, batch))
    alarm()
    for batch in rows:
        learner.step(*learner.join(*data, batch))
