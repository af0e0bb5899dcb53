"""Devices: precision, where images live, and when a step is recorded, with stand-ins on a CPU."""

import warnings
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import torch
from pretended_gpu import GPU, PretendedGraphs

from prslib.experiments.store import Store
from prslib.experiments.sweep import run_all
from prslib.models.networks import make_model
from prslib.training import device as device_module
from prslib.training.config import RunConfig
from prslib.training.device import DEPTH, WARM_UP, Captured, Graphs, HostImages, Images, place
from prslib.training.learner import Learner
from prslib.training.run import run

CPU = torch.device("cpu")
PLAN = [np.arange(4), *np.random.default_rng(0).integers(30, size=(6, 9)), np.array([29])]
TRAINING = {"optimizer": "adam", "learning_rate": 0.01, "loss": "multilabel_soft_margin"}
pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def images():
    rng = np.random.default_rng(1)
    return torch.from_numpy(rng.integers(256, size=(30, 4, 5, 3), dtype=np.uint8))


class LateBuffer:
    """As a GPU's buffer at worst: it copies as late, and overwrites as early, as it may."""

    made: ClassVar[list] = []

    def __init__(self, shape, kind, device):
        self.host, self.there = (torch.zeros(shape, dtype=kind) for _ in "12")
        self.length, self.read, self.sent, self.arrivals = None, True, 0, 0
        self.made.append(self)

    def send(self, images, rows):
        assert self.length is None, "the last copy has not left the buffer"
        assert self.read, "the buffer on the device is still being read"
        self.host.fill_(7)[: len(rows)] = images[rows]
        self.length, self.read = len(rows), False
        self.sent += 1

    def arrived(self):
        self.there.fill_(9)[: self.length] = self.host[: self.length]
        self.length = None
        self.arrivals += 1
        return self.there

    def release(self):
        self.read = True
        self.there.fill_(8)


@pytest.fixture
def buffers(monkeypatch):
    """Send images on the host through late buffers; a list of those made."""
    monkeypatch.setattr(device_module, "Buffer", LateBuffer)
    monkeypatch.setattr(LateBuffer, "made", [])
    return LateBuffer.made


@pytest.mark.parametrize("kind", [Images, HostImages])
def test_every_batch_of_a_plan_arrives_whole_and_in_order(images, buffers, kind):
    made = kind(images, CPU)
    assert (len(made), made.shape) == (30, (30, 4, 5, 3))
    got = [(pixels.clone(), rows.clone()) for pixels, rows in made.feed(PLAN)]
    assert len(got) == len(PLAN)
    for (pixels, rows), batch in zip(got, PLAN, strict=True):
        assert rows.tolist() == batch.tolist()
        assert torch.equal(pixels, images[torch.from_numpy(batch)])
    assert list(made.feed([])) == []
    assert torch.equal(made[torch.tensor([3, 1])], images[[3, 1]])
    assert bool(buffers) == (kind is HostImages)


def test_batches_are_under_way_while_one_is_trained_on(images, buffers):
    for step, _ in enumerate(HostImages(images, CPU).feed(PLAN)):
        assert sum(buffer.arrivals for buffer in buffers) == step + 1
        assert sum(buffer.sent for buffer in buffers) == min(step + 1 + DEPTH, len(PLAN))
    assert len(buffers) == DEPTH + 1  # however long the plan


def test_images_stay_where_they_are_on_a_cpu_and_go_where_they_fit(monkeypatch):
    pixels = np.zeros((2, 4, 4, 1), np.uint8)
    placed = place(pixels, "cpu")
    pixels[1] = 5
    assert placed[torch.tensor([1])].max() == 5  # no copy was made
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (1000, 4000))
    gpu = torch.device("cuda")
    assert device_module.fits(500, gpu)
    assert not device_module.fits(501, gpu)


def test_images_stay_on_the_host_when_another_run_has_taken_their_place(images, monkeypatch):
    def full(_images):
        raise torch.cuda.OutOfMemoryError

    monkeypatch.setattr(device_module, "Images", full)
    placed = place(images, "cpu")
    assert isinstance(placed, HostImages)
    assert torch.equal(placed[torch.tensor([2])], images[[2]])


@pytest.mark.parametrize("device", ["cuda:99", "gpu", "meta", None])
def test_a_device_that_is_not_there_is_refused_before_work_starts(device, tmp_path):
    config = RunConfig(dataset="digits49tiny")
    message = f"unknown device '{device}'; devices of this machine: cpu"
    with pytest.raises(ValueError, match=message):
        run(config, device)
    with pytest.raises(ValueError, match=message):
        run_all([config], Store(tmp_path), device=device)


@pytest.mark.parametrize("method", ["CRS", "ExStream"])
def test_a_run_gives_the_same_bytes_wherever_its_images_live(method, buffers, monkeypatch):
    config = RunConfig(dataset="digits49tiny", method=method, batch_size=15)
    resident = run(config).scores
    assert not buffers
    monkeypatch.setattr(device_module, "fits", lambda size, device: False)
    pd.testing.assert_frame_equal(resident, run(config).scores, check_exact=True)
    assert buffers


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    images = torch.from_numpy(rng.integers(256, size=(64, 16, 16, 3), dtype=np.uint8))
    labels = torch.from_numpy(rng.random((64, 5)) < 0.3).float()
    lengths = [4, 8, 8, 8, 8, 8, 6, 8, 8]
    return images, labels, [rng.permutation(64)[:length] for length in lengths]


def state(learner):
    return {name: value.clone() for name, value in learner.model.state_dict().items()}


def trained(data, graphs=None):
    model = make_model("convnet", (16, 16, 3), 5, seed=0)
    net = Learner(model, **TRAINING, clip_value=5.0, norm_penalty=1e-3)
    if graphs:
        net._step = Captured(net.step, graphs)
    net.fit(*data)
    return state(net), net


def assert_same(left, right):
    assert all(torch.equal(left[name], right[name]) for name in right)


@pytest.fixture
def graphs(monkeypatch):
    monkeypatch.setattr(PretendedGraphs, "replayed", 0)
    return PretendedGraphs(GPU)


def test_a_captured_run_takes_the_same_steps(data, graphs):
    eager, _ = trained(data)
    captured, net = trained(data, graphs)
    assert_same(captured, eager)
    full = sum(len(batch) == 8 for batch in data[2])
    assert list(net._step.replays) == [((8, 16, 16, 3), (8, 5))]  # neither the first nor the odd
    assert PretendedGraphs.replayed == full - WARM_UP
    net._step.forget()
    net.fit(*data)
    assert PretendedGraphs.replayed == 2 * (full - WARM_UP)


def refuse(_function, _inputs):
    raise RuntimeError("operation not permitted when stream is capturing")


def wait(function, inputs):
    function(*inputs)
    return True


@pytest.mark.parametrize(
    ("name", "what", "why"), [("record", refuse, "not permitted"), ("waits", wait, "waits for the")]
)
def test_what_cannot_be_recorded_is_said_once_and_trained_all_the_same(
    data, graphs, monkeypatch, name, what, why
):
    monkeypatch.setattr(graphs, name, what)
    eager, _ = trained(data)
    with pytest.warns(UserWarning, match=f"cannot be recorded .*{why}") as said:
        captured, _ = trained(data, graphs)
    assert len(said) == 1
    assert_same(captured, eager)
    assert not PretendedGraphs.replayed


def test_waiting_for_the_device_is_noticed(monkeypatch):
    modes, seen = ["default"], []
    monkeypatch.setattr(torch.cuda, "get_sync_debug_mode", lambda: modes[-1])
    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", modes.append)
    graphs = Graphs.__new__(Graphs)

    def function(text):
        seen.append(modes[-1])
        warnings.warn(text, stacklevel=2)

    assert graphs.waits(function, ("called a synchronizing CUDA operation (Triggered ...)",))
    assert not graphs.waits(function, ("Synchronization debug mode is a prototype feature",))
    assert seen == ["warn"] * 2 and modes[-1] == "default"
