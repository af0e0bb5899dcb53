"""That a run on a GPU leaves nothing on the host by mistake, on machines that have no GPU."""

import numpy as np
import pytest
import torch
from pretended_gpu import GPU, HOST, PretendedGPU, PretendedGraphs
from torch.utils._pytree import tree_map

from prslib.datasets import load_dataset
from prslib.experiments.stacked import run_stacked
from prslib.models import MODELS
from prslib.models.networks import make_model
from prslib.models.weights import NONE
from prslib.training import device as device_module
from prslib.training import learner
from prslib.training import run as experiment
from prslib.training.config import RunConfig, configs
from prslib.training.device import WARM_UP, HostImages, Images, place
from prslib.training.learner import Learner
from prslib.training.methods import METHODS
from prslib.training.replay import plan
from prslib.training.run import make_learner, run

TINY, SINGLE = "digits70tiny", "imbal-digits-tiny"
SMALL = [name for name in MODELS if "resnet" not in name]
pytestmark = pytest.mark.usefixtures("one_thread")


class PretendedBuffer:
    """Carries images to the pretended GPU, as `prslib.training.device.Buffer` to a real one."""

    def __init__(self, shape, kind, device):
        places = HOST, device
        self.host, self.there = (torch.empty(shape, dtype=kind, device=p) for p in places)

    def send(self, images, rows):
        host = self.host[: len(rows)]
        torch.index_select(images, 0, rows, out=host)
        self.there[: len(rows)].copy_(host, non_blocking=True)

    def arrived(self):
        return self.there

    def release(self):
        pass


@pytest.fixture
def gpu(monkeypatch):
    """Let torch and prslib take the pretended GPU for one, in what the test does under it."""
    monkeypatch.setattr(torch.cuda, "_lazy_init", lambda: None)
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda self: self)
    monkeypatch.setattr(experiment, "check_device", lambda device: None)
    monkeypatch.setattr(device_module, "fits", lambda size, device: True)
    monkeypatch.setattr(device_module, "Buffer", PretendedBuffer)
    monkeypatch.setattr(learner, "Graphs", PretendedGraphs)
    # a CPU sums in the order in which images lie: let them lie as they do there
    monkeypatch.setattr(Learner, "_laid_out", lambda self, pixels: learner.as_input(pixels))
    monkeypatch.setattr(PretendedGraphs, "replayed", 0)
    monkeypatch.setattr(PretendedGPU, "waits", [])
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    yield PretendedGPU()
    torch.__future__.set_overwrite_module_params_on_conversion(False)


def assert_same(left, right):
    np.testing.assert_array_equal(left.scores["value"], right.scores["value"])
    np.testing.assert_array_equal(left.memory_labels, right.memory_labels)
    np.testing.assert_array_equal(left.features, right.features)
    if left.gradient_variance is not None:
        values = (one.gradient_variance["value"] for one in (left, right))
        np.testing.assert_array_equal(*values)


def test_tensors_of_the_host_are_refused(gpu):
    with gpu:
        there = torch.arange(6.0).to(GPU).view(2, 3)
        assert there.device == GPU and (there @ there.T).device == GPU
        assert torch.zeros_like(there).device == there.new_ones(2).device == GPU
        with pytest.raises(RuntimeError, match="on the host"):
            there + torch.ones(3)
        assert not gpu.waits[1:]  # the copy to it alone
        assert there.sum().item() == 15
        assert there[torch.tensor([0])].cpu().tolist() == [[0, 1, 2]]
        assert len(gpu.waits) == 4


@pytest.mark.parametrize(
    "options",
    [
        *({"method": method} for method in METHODS if method not in ("CRS", "CBRS", "OCDM")),
        *({"model": model} for model in SMALL if model not in ("convnet", "head")),
        {"frozen_stages": 1, "features_per_class": 1, "variance_points": 2},
        {"dataset": SINGLE, "batch_size": 40},
        {"dataset": SINGLE, "batch_size": 40, "method": "GSS", "variance_points": 2},
    ],
    ids=lambda options: "-".join(map(str, options.values())),
)
def test_a_run_gives_what_it_gives_on_the_cpu(gpu, options):
    config = RunConfig(**{"dataset": TINY, "batch_size": 80} | options)
    with gpu:
        there = run(config, str(GPU))
    assert_same(there, run(config))
    stepwise = METHODS[config.method].looks_at_model or config.variance_points
    assert bool(PretendedGraphs.replayed) == (not stepwise and config.method != "EWC")


def test_runs_trained_as_one_give_it_too(gpu):
    together = configs(dataset=SINGLE, batch_size=40, seed=[0, 1])
    with gpu:
        there = run_stacked(together, str(GPU))
    for one, other in zip(there, run_stacked(together), strict=True):
        assert_same(one, other)


@pytest.mark.parametrize(
    ("name", "kind"),
    [*((name, Images) for name in (*SMALL, "resnet18_imagenet")), ("convnet", HostImages)],
)
def test_no_step_of_a_known_plan_waits(gpu, monkeypatch, name, kind):
    monkeypatch.setattr(device_module, "fits", lambda size, device: kind is Images)
    rng = np.random.default_rng(0)
    pixels = rng.integers(256, size=(30, 16, 16, 3), dtype=np.uint8)
    multi_hot = torch.from_numpy(rng.random((30, 5)) < 0.3).float()
    batches = list(rng.integers(30, size=(WARM_UP + 2, 2)))
    with gpu:
        model = make_model(name, pixels.shape[1:], 5, seed=0, weights=NONE)
        net = Learner(model, "adam", 1e-3, "multilabel_soft_margin", 5.0, device=GPU)
        images, labels = place(pixels, GPU), multi_hot.to(GPU)
        assert type(images) is kind
        net.fit(images, labels, batches[:1])  # the optimiser makes its state
        gpu.waits.clear()
        net.fit(images, labels, batches[1:])
    assert not gpu.waits
    assert PretendedGraphs.replayed == 2


@pytest.mark.parametrize("options", [{}, {"method": "EWC"}, {"dataset": SINGLE}])
def test_a_state_read_on_the_host_goes_on_there(gpu, options):
    config = RunConfig(**{"dataset": TINY} | options)
    dataset = load_dataset(config.dataset)
    batches = plan(config, dataset)[0][1].batches
    with gpu:
        labels = torch.from_numpy(dataset.train.labels).float().to(GPU)
        images = place(dataset.train.images, GPU)
        first, second = (make_learner(config, dataset, GPU) for _ in "12")
        first.fit(images, labels, batches[:5])
        saved = tree_map(
            lambda leaf: leaf.cpu().clone() if isinstance(leaf, torch.Tensor) else leaf,
            first.state_dict(),
        )
        second.load_state_dict(saved)
        for net in (first, second):
            net.fit(images, labels, batches[5:10])
        for left, right in zip(first.parameters, second.parameters, strict=True):
            assert torch.equal(left, right)
