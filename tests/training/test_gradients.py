"""Gradients from layer inputs and output gradients, against one backward pass a sample."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from prslib.models.networks import make_model, split
from prslib.training.gradients import gradient_products, squared_gradients

pytestmark = pytest.mark.usefixtures("one_thread")
LOSS = F.multilabel_soft_margin_loss


def mlp():
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(48, 16), nn.ReLU(), nn.Linear(16, 5, bias=False))


def convnet():
    torch.manual_seed(0)
    model = make_model("convnet", (8, 8, 3), 5, seed=0)
    for layer in model.modules():  # as after some training
        if isinstance(layer, nn.BatchNorm2d):
            layer.running_mean.uniform_(-1, 1)
            layer.running_var.uniform_(0.5, 2)
            nn.init.uniform_(layer.weight, 0.5, 1.5)
    return model


def samples(count, size):
    generator = torch.Generator().manual_seed(1)
    images = torch.rand(count, 3, size, size, generator=generator)
    return images, (torch.rand(count, 5, generator=generator) < 0.4).float()


def one_by_one(model, loss, inputs, targets):
    """One backward pass a sample; every trained parameter's gradient (N, ...)."""
    was = model.training
    model.eval()
    trained = {k: p for k, p in model.named_parameters() if p.requires_grad}
    rows = [
        torch.autograd.grad(loss(model(x[None]), y[None]), list(trained.values()))
        for x, y in zip(inputs, targets, strict=True)
    ]
    model.train(was)
    return {k: torch.stack(g) for k, g in zip(trained, zip(*rows, strict=True), strict=True)}


@pytest.mark.parametrize(("make", "size"), [(mlp, 4), (convnet, 8)])
@pytest.mark.parametrize("sizes", [[4, 4, 1, 1, 1], [1, 3, 1, 6], [11], [1] * 11])
def test_products_agree_with_one_backward_pass_a_sample(make, size, sizes):
    model = make()
    images, labels = samples(11, size)
    gradients = one_by_one(model, LOSS, images, labels)
    rows = torch.cat([g.flatten(1) for g in gradients.values()], 1).double()
    groups = torch.stack([part.mean(0) for part in rows.split(sizes)])
    found = gradient_products(model, LOSS, images, labels, sizes)
    torch.testing.assert_close(found, groups @ groups.T, rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize(("make", "size"), [(mlp, 4), (convnet, 8)])
def test_squares_agree_with_one_backward_pass_a_sample(make, size):
    model = make()
    images, labels = samples(7, size)
    expected = one_by_one(model, LOSS, images, labels)
    found = squared_gradients(model, LOSS, images, labels)
    assert found.keys() == expected.keys()
    for name, gradients in expected.items():
        torch.testing.assert_close(found[name], gradients.square().mean(0), rtol=1e-3, atol=1e-9)


def test_one_label_is_a_case_of_many():
    model = mlp()
    images, _ = samples(6, 4)
    classes = torch.tensor([0, 1, 2, 3, 4, 0])
    rows = torch.cat(
        [g.flatten(1) for g in one_by_one(model, F.cross_entropy, images, classes).values()], 1
    )
    found = gradient_products(model, F.cross_entropy, images, classes, [1] * 6)
    torch.testing.assert_close(found, (rows @ rows.T).double(), rtol=1e-4, atol=1e-7)


def test_frozen_parameters_do_not_count():
    model = convnet()
    images, labels = samples(5, 8)
    whole = gradient_products(model, LOSS, images, labels, [1] * 5)
    lower, upper = split(model, 1)
    inputs = lower(images)
    rows = torch.cat(
        [g.flatten(1) for g in one_by_one(upper, LOSS, inputs, labels).values()], 1
    ).double()
    for part, given in ((model, images), (upper, inputs)):
        found = gradient_products(part, LOSS, given, labels, [1] * 5)
        torch.testing.assert_close(found, rows @ rows.T, rtol=1e-4, atol=1e-9)
        assert (found.diagonal() < whole.diagonal()).all()


def test_the_model_is_left_as_it_was():
    model = convnet()
    model.train()
    model.stages[0].eval()
    modes = [layer.training for layer in model.modules()]
    state = {name: value.clone() for name, value in model.state_dict().items()}
    images, labels = samples(5, 8)
    gradient_products(model, LOSS, images, labels, [4, 1])
    squared_gradients(model, LOSS, images, labels)
    assert [layer.training for layer in model.modules()] == modes
    assert all((value == state[name]).all() for name, value in model.state_dict().items())
    assert all(p.grad is None and p.requires_grad for p in model.parameters())
    assert not any(layer._forward_hooks for layer in model.modules())


def test_what_cannot_be_had_is_refused():
    images, labels = samples(4, 4)
    with pytest.raises(ValueError, match=r"sizes: expected a sum of 4, .* got 3"):
        gradient_products(mlp(), LOSS, images, labels, [2, 1])
    other = nn.Sequential(nn.Flatten(), nn.LayerNorm(48), nn.Linear(48, 5))
    with pytest.raises(TypeError, match=r"layer '1': expected one of Linear.*got LayerNorm"):
        gradient_products(other, LOSS, images, labels, [4])
    shared = nn.Linear(48, 48)
    twice = nn.Sequential(nn.Flatten(), shared, shared, nn.Linear(48, 5))
    with pytest.raises(TypeError, match="expected one call, got two"):
        gradient_products(twice, LOSS, images, labels, [4])
    grouped = nn.Sequential(nn.Conv2d(3, 3, 2, groups=3), nn.Flatten(), nn.Linear(27, 5))
    with pytest.raises(TypeError, match="layer '0': expected one group"):
        gradient_products(grouped, LOSS, images, labels, [4])
    tied = nn.Sequential(nn.Flatten(), nn.Linear(48, 48), nn.Linear(48, 48), nn.Linear(48, 5))
    tied[2].weight = tied[1].weight
    with pytest.raises(TypeError, match="expected every parameter in one layer"):
        squared_gradients(tied, LOSS, images, labels)
    places = nn.Sequential(nn.Flatten(2), nn.Linear(16, 5), nn.Flatten(), nn.Linear(15, 5))
    with pytest.raises(TypeError, match=r"layer '1': expected inputs of shape .* got \(4, 3, 16\)"):
        squared_gradients(places, LOSS, images, labels)
    company = convnet()
    company.stages[0][0] = nn.BatchNorm2d(3, track_running_stats=False)
    with pytest.raises(TypeError, match="expected running statistics"):
        gradient_products(company, LOSS, *samples(4, 8), [4])
    with pytest.raises(TypeError, match="expected trained parameters, got none"):
        gradient_products(mlp().requires_grad_(False), LOSS, images, labels, [4])


def test_an_activation_in_place_changes_nothing():
    images, labels = samples(6, 4)
    layers = [nn.Flatten(), nn.Linear(48, 16), nn.ReLU(), nn.Linear(16, 5)]
    expected = squared_gradients(nn.Sequential(*layers), LOSS, images, labels)
    layers[2] = nn.ReLU(inplace=True)
    found = squared_gradients(nn.Sequential(*layers), LOSS, images, labels)
    assert all(torch.equal(found[name], value) for name, value in expected.items())
