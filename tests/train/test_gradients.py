"""Gradients of samples and groups, against one backward pass a sample."""

import math
from functools import partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from trainers import batches_of, make_trainer, train

from prslib import RunConfig
from prslib import train as train_module
from prslib.gradients import (
    EWC,
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


def test_half_precision_of_subsets_leaves_the_products_near():
    model, (images, labels) = net("convnet", (8, 8, 3)), samples(11, (3, 8, 8))
    single = gradient_products(model, LOSS, images, labels, (2, 4))
    half = partial(torch.autocast, "cpu", torch.bfloat16)
    products = gradient_products(model, LOSS, images, labels, (2, 4), half)
    assert not torch.equal(products, single)
    near = 0.02 * single.diagonal().max().item()
    torch.testing.assert_close(products, single, rtol=0.05, atol=near)


def test_batch_norm_keeps_its_statistics():
    model = net("convnet", (8, 8, 3)).train()
    statistics = [buffer.clone() for buffer in model.buffers()]
    sample_gradients(model, LOSS, *samples(4, (3, 8, 8)))
    gradient_products(model, LOSS, *samples(4, (3, 8, 8)), (1, 2))
    assert all(layer.training for layer in model.modules())
    torch.testing.assert_close(list(model.buffers()), statistics)


@pytest.mark.parametrize("method", ["CRS", "ExStream"])
def test_the_memory_is_measured_whole(method):
    trainer = train(RunConfig(TINY, method, batch_size=30), 6)
    slots = trainer.memory.filled
    if method == "CRS":
        assert len(slots) > 20  # more than are measured at once
    encoded, targets = trainer.join(slots[:0], slots)
    expected = one_by_one(trainer.upper, encoded, targets)
    images, samples, variance = trainer.variance()
    assert (images, samples) == (180, len(slots))
    assert variance == pytest.approx(trace(expected), rel=1e-4)


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


def test_ewc_is_the_sum_of_every_batch_s_own_penalty():
    draws = torch.Generator().manual_seed(0)
    model = nn.Linear(4, 1, bias=False)
    ewc = EWC(model, strength=3.0)
    model.weight.grad = torch.ones(1, 4)
    ewc.pull()  # nothing to hold on to yet
    assert (model.weight.grad == 1).all()
    penalties = []
    for _ in range(6):
        model.weight.data = torch.randn(1, 4, generator=draws)
        gradients = torch.randn(5, 1, 4, generator=draws)  # of five samples
        fisher = gradients.square().mean(0)
        penalties.append((fisher, model.weight.detach().clone()))
        ewc.observe({"weight": gradients})
    model.weight.data = torch.randn(1, 4, generator=draws)
    ewc.pull()
    losses = [(fisher * (model.weight - at) ** 2).sum() for fisher, at in penalties]
    (expected,) = torch.autograd.grad(3.0 / 2 * sum(losses) / 6, model.weight)
    torch.testing.assert_close(model.weight.grad, 1 + expected)


def moves(gradients, optimizer, rate=0.1):
    """Return how an optimizer moves one weight: momentum of 0.9, or Adam."""
    velocity = first = second = 0.0
    steps = []
    for number, gradient in enumerate(gradients, 1):
        velocity = 0.9 * velocity + gradient
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        size = math.sqrt(second / (1 - 0.999**number)) + 1e-8
        adam = first / (1 - 0.9**number) / size
        steps.append(-rate * (adam if optimizer == "adam" else velocity))
    return steps


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("penalty", [0.0, 0.3])
@pytest.mark.parametrize("limit", [5.0, 0.5])
def test_an_optimizer_s_steps_are_those_by_hand(monkeypatch, optimizer, penalty, limit):
    """One weight w on inputs of 2, whose label is 1: the loss is log(1 + exp(-2 w))."""
    layer = nn.Linear(1, 1, bias=False)
    nn.init.constant_(layer.weight, 0.25)
    model = Staged(nn.Flatten(), layer)
    monkeypatch.setattr(train_module, "make_network", lambda *_: model)
    fields = {"optimizer": optimizer, "learning_rate": 0.1, "clip_value": limit}
    config = RunConfig(TINY, "Finetune", norm_penalty=penalty, **fields)
    trainer = make_trainer(config)
    weight, gradients = 0.25, []
    for _ in range(3):
        slope = -2 / (1 + math.exp(2 * weight)) + 2 * penalty * weight
        gradients.append(max(-limit, min(limit, slope)))
        weight += moves(gradients, optimizer)[-1]
        trainer.descend(torch.full((4, 1), 2.0), torch.ones(4, 1))
        assert layer.weight.item() == pytest.approx(weight, rel=1e-5)


# evaluation, frozen stages and half precision


def test_scoring_in_batches_is_scoring_one_by_one(monkeypatch):
    trainer = train(RunConfig(TINY, "Finetune"), 2)
    rows = np.arange(40)
    whole = trainer.probabilities(trainer.inputs, rows)
    monkeypatch.setattr(train_module, "TESTED_AT_ONCE", 15)
    given = trainer.probabilities(trainer.inputs, rows)
    np.testing.assert_allclose(given, whole, atol=1e-6)
    alone = trainer.probabilities(trainer.inputs, np.array([7]))
    np.testing.assert_allclose(alone, whole[[7]], atol=1e-6)
    assert trainer.upper.training


def test_batch_norm_of_frozen_stages_is_frozen_too():
    """Else what they give for a sample would depend on the others of its batch."""
    config = RunConfig(TINY, "Finetune", frozen_stages=1)
    trainer = make_trainer(config)
    before = trainer.encode(trainer.inputs[:1])
    for rows, is_first in batches_of(config)[:3]:
        trainer.step(rows, is_first)
    torch.testing.assert_close(trainer.encode(trainer.inputs[:20])[:1], before)


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
