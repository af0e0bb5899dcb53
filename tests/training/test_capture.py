"""When a step is recorded and replayed, on a CPU with a recorder that plays by a GPU's rules."""

import warnings
from contextlib import nullcontext

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from prslib.models import MODELS
from prslib.models.networks import make_model
from prslib.training.device import WARM_UP, Captured, Graphs, Resident
from prslib.training.learner import Learner

TRAINING = {"optimizer": "adam", "learning_rate": 0.01, "loss": "multilabel_soft_margin"}
pytestmark = pytest.mark.usefixtures("one_thread")


class FakeGraphs:
    """Records without computing, replays on the recorded tensors; may refuse."""

    def __init__(self, refuses=False, waiting=False):
        self.refuses, self.waiting = refuses, waiting
        self.recorded, self.replayed = [], 0

    def beside(self):
        return nullcontext()

    def waits(self, function, inputs):
        function(*inputs)
        return self.waiting

    def record(self, function, inputs):
        if self.refuses:
            raise RuntimeError("operation not permitted when stream is capturing")
        self.recorded.append([tensor.shape for tensor in inputs])

        def replay():
            self.replayed += 1
            function(*inputs)

        return replay


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    images = torch.from_numpy(rng.integers(256, size=(64, 16, 16, 3), dtype=np.uint8))
    labels = torch.from_numpy(rng.random((64, 5)) < 0.3).float()
    lengths = [4, 8, 8, 8, 8, 8, 6, 8, 8]
    return images, labels, [rng.permutation(64)[:length] for length in lengths]


def learner(model="convnet", **options):
    model = make_model(model, (16, 16, 3), 5, seed=0)
    return Learner(model, **TRAINING, clip_value=5.0, norm_penalty=1e-3, **options)


def state(learner):
    return {name: value.clone() for name, value in learner.model.state_dict().items()}


def trained(data, graphs=None):
    net = learner()
    if graphs:
        net._step = Captured(net.step, graphs)
    net.fit(*data)
    return state(net), net


def assert_same(left, right):
    assert all(torch.equal(left[name], right[name]) for name in right)


def test_a_captured_run_takes_the_same_steps(data):
    graphs = FakeGraphs()
    eager, _ = trained(data)
    captured, net = trained(data, graphs)
    assert_same(captured, eager)
    full = [name for name in data[2] if len(name) == 8]
    assert graphs.recorded == [[(8, 16, 16, 3), (8, 5)]]  # neither the first nor the odd batch
    assert graphs.replayed == len(full) - WARM_UP
    net._step.forget()
    net.fit(*data)
    assert len(graphs.recorded) == 2
    assert graphs.replayed == 2 * (len(full) - WARM_UP)


@pytest.mark.parametrize(
    ("graphs", "why"),
    [(FakeGraphs(refuses=True), "not permitted"), (FakeGraphs(waiting=True), "waits for the")],
)
def test_what_cannot_be_recorded_is_said_once_and_trained_all_the_same(data, graphs, why):
    eager, _ = trained(data)
    with pytest.warns(UserWarning, match=f"cannot be recorded .*{why}") as said:
        captured, _ = trained(data, graphs)
    assert len(said) == 1
    assert_same(captured, eager)
    assert not graphs.replayed


def test_waiting_for_the_device_is_noticed_and_other_warnings_pass(monkeypatch):
    modes = ["default"]

    def set_mode(mode):
        modes.append(mode)
        if mode == "warn":
            warnings.warn("Synchronization debug mode is a prototype feature", stacklevel=2)

    monkeypatch.setattr(torch.cuda, "get_sync_debug_mode", lambda: modes[-1])
    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", set_mode)
    graphs, said = Graphs.__new__(Graphs), []

    def function(text):
        said.append(modes[-1])
        if text:
            warnings.warn(text, stacklevel=2)

    assert graphs.waits(function, ("called a synchronizing CUDA operation (Triggered ...)",))
    assert not graphs.waits(function, ("",))
    with pytest.warns(UserWarning, match="something else"):
        assert not graphs.waits(function, ("something else",))
    assert said == ["warn"] * 3
    assert modes[-1] == "default"


class NoLook(TorchDispatchMode):
    """Refuse what would make a CPU wait for a GPU, or copies Python's values to it."""

    LOOKS = ("_local_scalar_dense", "nonzero", "masked_select", "equal", "unique", "lift_fresh")

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.overloadpacket.__name__
        if name in self.LOOKS:
            raise AssertionError(f"{name} looks at a tensor's values")
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("model", [name for name in MODELS if "resnet" not in name])
def test_no_step_in_bfloat16_looks_at_a_value(data, model):
    net = learner(model, precision="bf16")
    images, labels, plan = data
    net.fit(images, labels, plan[:1])  # the optimiser makes its state
    batches = list(Resident(images).feed(plan[1:3]))
    with NoLook():
        for pixels, rows in batches:
            net.step(pixels, labels[rows])
        with pytest.raises(AssertionError, match="_local_scalar_dense looks"):
            labels[0, 0].item()
