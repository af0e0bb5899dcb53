"""Gradients of samples and groups, against one backward pass a sample."""

from functools import partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from prslib.datasets import load_dataset
from prslib.models.networks import Staged, make_model, resnet18
from prslib.training.config import RunConfig
from prslib.training.device import Inputs
from prslib.training.gradients import (
    gradient_products,
    gradient_variance,
    is_plain,
    memory_variance,
    squared_gradients,
)
from prslib.training.learner import context_of
from prslib.training.replay import make_replay
from prslib.training.run import make_learner

pytestmark = pytest.mark.usefixtures("one_thread")
LOSS = F.multilabel_soft_margin_loss
TINY = "digits70tiny"


def net(name, shape):
    torch.manual_seed(0)
    if name == "plain":  # one ReLU twice, a layer without bias
        first, relu = nn.Linear(3 * shape[0] ** 2, 6, bias=False), nn.ReLU(inplace=True)
        layers = nn.Flatten(), first, relu, nn.Linear(6, 6), relu
        return Staged(nn.Sequential(*layers), nn.Linear(6, 5))
    if name == "resnet18":
        return resnet18(shape, 5, width=4)
    model = make_model(name.split(", ")[0], shape, 5, seed=0, weights="none")
    for layer in model.modules():  # as after some training
        if isinstance(layer, nn.BatchNorm2d):
            layer.running_mean.uniform_(-1, 1)
            layer.running_var.uniform_(0.5, 2)
            nn.init.uniform_(layer.weight, 0.5, 1.5)
    if "frozen" in name:
        model.split(1)[0].requires_grad_(False)
    return model


def samples(count, shape):
    generator = torch.Generator().manual_seed(1)
    images = torch.rand(count, *shape, generator=generator)
    return images, (torch.rand(count, 5, generator=generator) < 0.4).float()


def one_by_one(model, inputs, targets):
    """One backward pass a sample; every trained parameter's gradient (N, ...)."""
    model.eval()
    trained = {k: p for k, p in model.named_parameters() if p.requires_grad}
    rows = [
        torch.autograd.grad(LOSS(model(x[None]), y[None]), list(trained.values()))
        for x, y in zip(inputs, targets, strict=True)
    ]
    columns = map(torch.stack, zip(*rows, strict=True))
    return dict(zip(trained, columns, strict=True))


def flat(gradients):
    return torch.cat([g.flatten(1) for g in gradients.values()], 1).double()  # (N, D)


def trace(gradients):
    """The definition: the mean squared distance to the mean gradient."""
    rows = flat(gradients)
    return (rows - rows.mean(0)).square().sum(1).mean().item()


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("mlp", 4),
        ("plain", 4),
        ("convnet", 8),
        ("convnet, frozen", 8),
        ("resnet18", 8),
    ],
)
def test_all_measures_agree_with_one_backward_pass_a_sample(name, size):
    model, (images, labels) = net(name, (size, size, 3)), samples(11, (3, size, size))
    gradients = one_by_one(model, images, labels)
    model.train()
    for count, size in ((2, 4), (3, 1), (1, 10)):
        cut = count * size
        groups = flat(gradients).split([size] * count + [1] * (11 - cut))
        rows = torch.stack([group.mean(0) for group in groups])
        table = rows @ rows.T
        products = gradient_products(model, LOSS, images, labels, (count, size))
        near = 1e-5 * table.diagonal().max().item()
        torch.testing.assert_close(products, table, rtol=1e-4, atol=near)
    squares = squared_gradients(model, LOSS, images, labels)
    expected = {name: rows.square().mean(0) for name, rows in gradients.items()}
    torch.testing.assert_close(squares, expected, rtol=1e-3, atol=1e-9)
    batches = [(images[:4], labels[:4]), (images[4:], labels[4:])]
    variance = gradient_variance(model, LOSS, batches)
    assert variance == pytest.approx(trace(gradients), rel=1e-3)


def test_shared_weights_are_refused():
    layer = nn.Linear(5, 5)
    model, batch = nn.Sequential(layer, layer), [torch.ones(2, 5)] * 2
    with pytest.raises(TypeError, match="layers share no weights"):
        squared_gradients(model, LOSS, *batch)
    with pytest.raises(TypeError, match="layers share no weights"):
        gradient_products(model, LOSS, *batch, (1, 1))


def test_the_short_way_is_for_plain_networks_alone():
    frozen = nn.Linear(2, 2).requires_grad_(False)
    normalised = nn.utils.spectral_norm(nn.Linear(2, 2))
    for layers in ([frozen], [normalised], [nn.Linear(2, 2), nn.Flatten()]):
        assert not is_plain(nn.Sequential(nn.Flatten(), *layers))
    assert is_plain(nn.Sequential(nn.Flatten(), nn.Linear(2, 2), nn.ReLU()))


def test_half_precision_of_subsets_leaves_the_products_near():
    model, (images, labels) = net("convnet", (8, 8, 3)), samples(11, (3, 8, 8))
    single = gradient_products(model, LOSS, images, labels, (2, 4))
    half = partial(torch.autocast, "cpu", torch.bfloat16)
    products = gradient_products(model, LOSS, images, labels, (2, 4), half)
    assert not torch.equal(products, single)
    near = 0.02 * single.diagonal().max().item()
    torch.testing.assert_close(products, single, rtol=0.05, atol=near)


@pytest.mark.parametrize("training", [True, False])
def test_a_model_stays_in_its_mode(training):
    model = net("convnet", (8, 8, 3)).train(training)
    statistics = [buffer.clone() for buffer in model.buffers()]
    squared_gradients(model, LOSS, *samples(4, (3, 8, 8)))
    gradient_products(model, LOSS, *samples(4, (3, 8, 8)), (1, 2))
    assert {layer.training for layer in model.modules()} == {training}
    torch.testing.assert_close(list(model.buffers()), statistics)


@pytest.mark.parametrize("method", ["CRS", "ExStream"])
def test_the_memory_is_measured_whole(method):
    dataset = load_dataset(TINY)
    config = RunConfig(dataset=TINY, method=method)
    learner, replay = make_learner(config, dataset), make_replay(config, dataset)
    inputs = Inputs(dataset.train.inputs)
    labels = Inputs(dataset.train.labels.astype(np.float32))
    for rows in np.arange(60).reshape(2, 30):
        context = context_of(replay, learner, inputs, labels, rows)
        replay.offer(rows, dataset.train.labels[rows], **context)
    slots = replay.memory.filled
    assert len(slots) > 20  # more than are measured at once
    no_rows = np.empty(0, np.int64)
    encoded, targets = learner.join(inputs, labels, no_rows, slots, replay)
    expected = one_by_one(learner.upper, encoded, targets)
    variance = memory_variance(learner, inputs, labels, replay)
    assert variance == pytest.approx(trace(expected), rel=1e-4)
