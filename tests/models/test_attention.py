"""Attention Consistency and RNN-Attention: what their objectives ask for."""

import math
from copy import deepcopy

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from prslib import RunConfig, load_dataset
from prslib.models.attention import ClassWeighting, anchors, cut, localisation_loss
from prslib.models.networks import make_model
from prslib.train import Trainer

CONSISTENCY, RECURRENT = "convnet_attention_consistency", "convnet_rnn_attention"
pytestmark = pytest.mark.usefixtures("one_thread")


def images():
    return torch.rand(4, 3, 32, 32, generator=torch.Generator().manual_seed(0))


def targets():
    return torch.eye(5)[:4]


def made(name):
    return make_model(name, (32, 32, 3), 5, seed=0)


def loss_of(model):
    lower, upper = model.train().split(0)
    loss = F.multilabel_soft_margin_loss
    return upper.objective(lower(images()), targets(), loss)


# Attention Consistency


@pytest.mark.parametrize("name", [CONSISTENCY, RECURRENT])
def test_a_step_lowers_the_networks_own_objective(name):
    data = load_dataset("digits70tiny")
    config = RunConfig("digits70tiny", "Finetune", model=name, clip_value=1e9)
    inputs = torch.from_numpy(data.train.inputs)
    trainer = Trainer(config, data, inputs, torch.device("cpu"))
    x, y = trainer.look_up(np.arange(4))
    twin, plain_twin = deepcopy(trainer.upper), deepcopy(trainer.model)
    ours = twin.objective(x, y, F.multilabel_soft_margin_loss)
    ours.backward()
    trainer.step(np.arange(4))
    for parameter, other in zip(trainer.parameters, twin.parameters(), strict=True):
        torch.testing.assert_close(parameter.grad, other.grad)
    scores = plain_twin(trainer.as_input(inputs[:4]))
    plain = F.multilabel_soft_margin_loss(scores, y)
    # which RNN-Attention adds nothing to while its regions are where they begin
    assert torch.isclose(ours, plain) == (name == RECURRENT)


@pytest.mark.parametrize("frozen", [0, 1, 2])
def test_all_four_views_pass_the_frozen_part(frozen):
    model = made(CONSISTENCY)
    lower, upper = model.eval().split(frozen)
    vectors = lower(images())
    assert vectors.ndim == 2  # which ExStream can merge
    large, small = upper.views(vectors)
    bigger = F.interpolate(images(), (36, 36), mode="bilinear")
    for views, scale in ((large, bigger), (small, images())):
        expected = model.stages[:frozen](torch.cat([scale, scale.flip(3)]))
        torch.testing.assert_close(views, expected)


def test_weights_of_labels_by_hand():
    weighting = ClassWeighting(2)
    first = weighting(torch.tensor([[1.0, 0.0], [0.0, 0.0]]))  # rates 1/2 and 0
    half = math.exp(0.5)
    np.testing.assert_allclose(first, [[half, 1.0], [half, 1.0]], rtol=1e-6)
    # rates 1/4 and 1/4 of four samples
    second = weighting(torch.tensor([[0.0, 1.0], [0.0, 0.0]]))
    low, high = math.exp(0.25), math.exp(0.75)
    np.testing.assert_allclose(second, [[low, high], [low, low]], rtol=1e-6)


def test_the_objective_by_hand():
    model = made(CONSISTENCY)
    loss = loss_of(model)
    x, y = images(), targets()
    rates = y.mean(0)
    weight = torch.where(y > 0, (1 - rates).exp(), rates.exp())
    entropy, maps = 0, []
    for scale in (F.interpolate(x, (36, 36), mode="bilinear"), x):
        features = model.stages[:-1](torch.cat([scale, scale.flip(3)]))
        p = model.head(features).sigmoid()
        yy, ww = torch.cat([y, y]), torch.cat([weight, weight])
        # 4 views of 4 images
        entropy -= (ww * (yy * p.log() + (1 - yy) * (1 - p).log())).sum() / 16
        maps.append(torch.einsum("ck,nkhw->nchw", model.head.linear.weight, features))
    total = entropy
    for scale in maps:
        total = total + 0.6 * (scale[:4] - scale[4:].flip(3)).square().mean()
    resampled = F.interpolate(maps[1], maps[0].shape[2:], mode="bilinear")
    total = total + 0.8 * (maps[0] - resampled).square().mean()
    torch.testing.assert_close(loss, total, rtol=1e-4, atol=1e-5)
    # maps teach the features and not the head
    head = model.head.linear.weight
    learned, by_hand = [torch.autograd.grad(x, head)[0] for x in (loss, entropy)]
    torch.testing.assert_close(learned, by_hand, rtol=1e-4, atol=1e-5)


# RNN-Attention


def test_a_cut_is_torchs_own_and_its_places_are_not_rounded():
    draws = torch.Generator().manual_seed(0)
    maps = torch.rand(4, 3, 5, 8, generator=draws)
    regions = torch.rand(4, 4, generator=draws)
    theta = torch.cat([torch.diag_embed(regions[:, :2]), regions[:, 2:, None]], 2)
    grid = F.affine_grid(theta, (4, 3, 3, 4), align_corners=False)
    expected = F.grid_sample(maps, grid, align_corners=False)
    torch.testing.assert_close(cut(maps, regions), expected)
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(cut(maps, regions), expected)


def test_localisation_by_hand():
    model = made(RECURRENT)
    _, regions = model.head.look(model.stages[:-1](images()))
    torch.testing.assert_close(regions[..., 2:], anchors()[:, None].expand(5, 4, 2))
    # regions begin inside their constraints
    assert localisation_loss(regions, anchors()) == 0
    good = torch.cat([torch.full((5, 2), 0.3), anchors()], 1)[:, None]  # one sample
    assert localisation_loss(good, anchors()) == 0
    assert anchors().round(decimals=3).tolist()[:2] == [[0, 0], [0.5, 0.5]]

    spoiled = {  # step, number and value of a region
        (0, 0, 0.7): 0.2**2,  # too wide
        (1, 1, 0.05): 0.1 * 0.05,  # too low
        (2, 1, -0.6): 0.1**2 + 0.1 * 0.7,  # turned around
        (0, 2, 0.3): 0.01 * 0.3**2 / 2,  # off its anchor
    }
    for (step, number, value), loss in spoiled.items():
        regions = good.clone()
        regions[step, 0, number] = value
        mean = localisation_loss(regions, anchors()).item()  # over five regions
        assert 5 * mean == pytest.approx(loss, rel=1e-4)


def test_the_loss_of_the_best_scores_and_a_tenth_of_the_regions():
    model = made(RECURRENT)
    nn.init.constant_(model.head.where.bias, 0.9)
    loss = loss_of(model)
    seen, regions = model.head.look(model.stages[:-1](images()))
    best = F.multilabel_soft_margin_loss(model.head.scores(seen), targets())
    penalty = localisation_loss(regions, anchors())
    torch.testing.assert_close(loss, best + 0.1 * penalty)
    best.backward()  # where to look learns from the labels
    assert model.head.where.weight.grad.abs().sum() > 0
    assert all(p.grad.abs().sum() > 0 for p in model.stages[0].parameters())
