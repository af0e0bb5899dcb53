"""Gradients of samples and groups, against one backward pass a sample."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from trainers import train

from prslib import RunConfig
from prslib.gradients import (
    gradient_products,
    gradient_variance,
    is_plain,
    sample_gradients,
)
from prslib.losses import LOSSES
from prslib.models.networks import Staged, make_model, resnet18

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
    model = make_model(name, shape, 5, seed=0, weights="none")
    for layer in model.modules():  # as after some training
        if isinstance(layer, nn.BatchNorm2d):
            layer.running_mean.uniform_(-1, 1)
            layer.running_var.uniform_(0.5, 2)
            nn.init.uniform_(layer.weight, 0.5, 1.5)
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
    rows = sample_gradients(model, LOSS, images, labels)
    trained = {name: rows[name] for name in gradients}
    torch.testing.assert_close(trained, gradients, rtol=1e-3, atol=1e-6)
    batches = [(images[:4], labels[:4]), (images[4:], labels[4:])]
    variance = gradient_variance(model, LOSS, batches)
    assert variance == pytest.approx(trace(gradients), rel=1e-3)


def test_the_short_way_is_for_plain_networks_only():
    shared = nn.Linear(2, 2)
    normalised = nn.utils.spectral_norm(nn.Linear(2, 2))
    for layers in ([shared, shared], [normalised], [nn.Linear(2, 2), nn.Flatten()]):
        assert not is_plain(nn.Sequential(nn.Flatten(), *layers))
    assert is_plain(nn.Sequential(nn.Flatten(), nn.Linear(2, 2), nn.ReLU()))


def test_batch_norm_keeps_its_statistics():
    model = net("convnet", (8, 8, 3)).train()
    statistics = [buffer.clone() for buffer in model.buffers()]
    sample_gradients(model, LOSS, *samples(4, (3, 8, 8)))
    gradient_products(model, LOSS, *samples(4, (3, 8, 8)), (1, 2))
    assert all(layer.training for layer in model.modules())
    torch.testing.assert_close(list(model.buffers()), statistics)


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_of_single_samples_are_those_of_the_loss(name):
    """EWC and GSS differentiate it sample by sample; batches of one agree."""
    dataset = "imbal-digits-tiny" if LOSSES[name].one_label else "cocoseq-tiny"
    trainer = train(RunConfig(dataset, "CRS", loss=name), 3)
    inputs, targets = trainer.join(np.arange(3), np.arange(0))
    rows = sample_gradients(trainer.upper, trainer.loss, inputs, targets)
    trainer.upper.eval()
    for k in range(3):
        trainer.upper.zero_grad()
        trainer.loss(trainer.upper(inputs[[k]]), targets[[k]]).backward()
        for parameter, values in zip(trainer.parameters, rows.values(), strict=True):
            torch.testing.assert_close(values[k], parameter.grad)


# evaluation, frozen stages and half precision


@pytest.mark.parametrize("method", ["PRS", "EWC"])
def test_bfloat16_stays_near_float32_with_weights_in_float32(method):
    single, half = (
        train(RunConfig(TINY, method, precision=name, batch_size=20), 5)
        for name in ("fp32", "bf16")
    )
    for weight in half.parameters:
        assert weight.dtype == torch.float32
        if weight.dim() == 4:
            assert weight.is_contiguous(memory_format=torch.channels_last)
    rows = np.arange(50)
    scores = [each.probabilities(each.inputs, rows) for each in (single, half)]
    assert scores[1].dtype == np.float32
    assert not np.array_equal(*scores)
    assert np.abs(scores[0] - scores[1]).mean() < 0.01
