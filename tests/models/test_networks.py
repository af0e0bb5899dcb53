"""The networks: their stages, their weights, and what a configuration refuses."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
import torch
from torch import nn

from prslib import RunConfig, load_dataset
from prslib.models import MODELS
from prslib.models.networks import make_model, resnet_backbone
from prslib.train import Trainer

TINY = "digits70tiny"
SMALL = "resnet18 of torchvision"  # as ResNet-101 is, at a tenth of its cost
OWN = [name for name, row in MODELS.items() if row.objective_for]
pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module", autouse=True)
def small():
    backbone = partial(resnet_backbone, name="resnet18")
    weights = {"published_weights": ("IMAGENET1K_V1",)}
    row = replace(MODELS["resnet101"], backbone=backbone, **weights)
    with patch.dict(MODELS, {SMALL: row}):
        yield


build_small = partial(make_model, SMALL, (32, 32, 3), 5, 0)


def images(count=2, size=32):
    return torch.rand(count, 3, size, size, generator=torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """Weights of a ResNet-18 as torchvision would save them, none of them random."""
    from torchvision.models import resnet18

    network = resnet18()
    for parameter in network.parameters():
        nn.init.constant_(parameter, 0.01)
    path = tmp_path_factory.mktemp("weights") / "resnet18.pth"
    torch.save(network.state_dict(), path)
    return str(path)


@pytest.mark.parametrize(
    "name", [SMALL, *(name for name in MODELS if "resnet101" not in name)]
)
def test_every_network_has_the_stages_it_names_and_gives_logits(name):
    model = make_model(name, (32, 32, 3), 5, seed=0, weights="none").eval()
    assert len(model.stages) == MODELS[name].stages > MODELS[name].vector_stages
    assert model(images()).shape == (2, 5)
    assert model.features(images()).shape[0] == 2
    assert model.features(images()).ndim == 2


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("convnet", (8,), r"image_shape with height, width and channels, got \(8,\)"),
        (SMALL, (32, 32, 1), "images with 3 channels for .*, got 1"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(name, shape, message):
    with pytest.raises(ValueError, match=message):
        make_model(name, shape, 5, seed=0, weights="none")


def test_resnet101_is_the_papers():
    model = make_model("resnet101", (64, 64, 3), 70, seed=0, weights="none").eval()
    size = sum(p.numel() for p in model.stages[:-1].parameters())
    assert size == 42_500_160  # torchvision's 44549160 without its head of 1000 x 2049
    maps = images(1, 64)
    for stage, width in zip(model.stages, [64, 256, 512, 1024, 2048], strict=False):
        maps = stage(maps)
        assert maps.shape[1] == width
    assert maps.shape[2:] == (2, 2)
    assert isinstance(model.head, nn.Linear) and model.head.in_features == 2048


def test_a_resnet_is_torchvisions_with_another_head():
    from torchvision.models import ResNet18_Weights, get_model
    from torchvision.transforms.functional import normalize

    resnet = build_small(weights="none").eval()
    theirs = get_model("resnet18", num_classes=5).eval()
    layers = [theirs.conv1, theirs.bn1, theirs.layer1, theirs.layer2, theirs.layer3]
    layers += [theirs.layer4, theirs.fc]
    ours = [*resnet.stages[0][1:3], *resnet.stages[1:5], resnet.head]
    for their_layer, layer in zip(layers, ours, strict=True):
        their_layer.load_state_dict(layer.state_dict())
    photos = ResNet18_Weights.IMAGENET1K_V1.transforms()
    expected = theirs(normalize(images(), photos.mean, photos.std))
    torch.testing.assert_close(resnet(images()), expected)


@pytest.mark.parametrize(
    ("name", "frozen"),
    [(SMALL, 3), ("convnet", 3), *((name, 1) for name in OWN if "resnet" not in name)],
)
def test_frozen_stages_do_not_move_and_the_others_do(name, frozen):
    data = load_dataset(TINY)
    settings = {"model": name, "weights": "none", "frozen_stages": frozen}
    config = RunConfig(TINY, "Finetune", learning_rate=0.01, **settings)
    inputs = torch.from_numpy(data.train.inputs)
    trainer = Trainer(config, data, inputs, torch.device("cpu"))
    model = trainer.model
    before = {name: value.clone() for name, value in model.state_dict().items()}
    for rows in np.arange(8).reshape(2, 4):
        trainer.step(rows)
    moved = {k for k, v in model.state_dict().items() if not torch.equal(v, before[k])}
    stages = [number for number, stage in enumerate(model.stages) if stage.state_dict()]
    numbers = {int(key.split(".")[1]) for key in moved if key.startswith("stages.")}
    # running statistics too
    assert numbers == {number for number in stages if number >= frozen}
    assert all(p.grad is None for p in model.stages[:frozen].parameters())
    assert trainer.probabilities(inputs, np.arange(8)).shape == (8, data.num_classes)


# weights


def no_network(*_, **__):
    raise OSError("no network")


def test_weights_but_for_the_head_come_from_a_file_or_are_fetched_by_digest(
    monkeypatch, file, tmp_path
):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    state = torch.load(file)
    older = {k: v for k, v in state.items() if not k.endswith("num_batches_tracked")}
    asked = []

    def fetch(url, target, digest, **_):
        asked.append((Path(url).name, digest))
        torch.save(older, target)

    monkeypatch.setattr("torch.hub.download_url_to_file", fetch)
    for weights in (file, None, None):
        model = build_small(weights=weights)
        assert all((p == 0.01).all() for p in model.stages[:-1].parameters())
        assert not (model.head.weight == 0.01).any()
    assert asked == [("resnet18-f37072fd.pth", "f37072fd")]  # once
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "empty"))
    monkeypatch.setattr("torch.hub.download_url_to_file", no_network)
    with pytest.raises(
        FileNotFoundError, match=r"IMAGENET1K_V1 of resnet18 in .*empty"
    ):
        build_small()
