"""The gradient variance by hand, by torch.func and by autograd, and when it is measured."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, grad, vmap

from prslib.datasets import load_dataset
from prslib.memory import Memory
from prslib.models.networks import ResNet18, make_model, split
from prslib.report.gradient_variance import contrasts, variances_of
from prslib.training import gradients as variance
from prslib.training.config import RunConfig
from prslib.training.gradients import gradient_variance, memory_variance, watched
from prslib.training.learner import Learner
from prslib.training.replay import Part, new_samples
from prslib.training.run import make_learner, run

pytestmark = pytest.mark.usefixtures("one_thread")
LOSS = F.multilabel_soft_margin_loss
TINY, ONE_LABEL = "digits70tiny", "imbal-digits-tiny"


def net(name, shape):
    model = make_model(name, shape, 5, seed=0)
    torch.manual_seed(0)
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


def trace(rows):
    """The definition: the mean squared distance to the mean gradient."""
    rows = rows.double()
    return (rows - rows.mean(0)).square().sum(1).mean().item()


def by_func(model, loss, inputs, targets):
    model.eval()
    trained = {k: p.detach() for k, p in model.named_parameters() if p.requires_grad}

    def one(parameters, x, y):
        return loss(functional_call(model, parameters, (x[None],)), y[None])

    parts = vmap(grad(one), in_dims=(None, 0, 0))(trained, inputs, targets)
    return torch.cat([part.flatten(1) for part in parts.values()], 1)


def by_autograd(model, loss, inputs, targets):
    model.eval()
    trained = [p for p in model.parameters() if p.requires_grad]
    rows = [
        torch.autograd.grad(loss(model(x[None]), y[None]), trained)
        for x, y in zip(inputs, targets, strict=True)
    ]
    return torch.stack([torch.cat([part.flatten() for part in row]) for row in rows])


MODELS = [
    ("mlp", (4, 4, 3)),
    ("convnet", (6, 6, 3)),  # few places: norms from inner products of patches
    ("convnet", (24, 24, 1)),  # many places: norms from the samples' own gradients
]


@pytest.mark.parametrize(("name", "shape"), MODELS)
@pytest.mark.parametrize("gradients", [by_func, by_autograd])
def test_agrees_with_explicit_gradients(name, shape, gradients):
    model, given = net(name, shape), samples(9, (shape[2], *shape[:2]))
    expected = trace(gradients(model, LOSS, *given))
    assert gradient_variance(model, LOSS, [given]) == pytest.approx(expected, rel=1e-4)


def test_agrees_on_a_residual_network():
    model = ResNet18((8, 8, 3), 5, width=4)
    given = samples(4, (3, 8, 8))
    expected = trace(by_func(model, LOSS, *given))
    assert gradient_variance(model, LOSS, [given]) == pytest.approx(expected, rel=1e-3)


def test_both_ways_of_a_convolution_are_taken(monkeypatch):
    calls = []
    real = variance._any
    monkeypatch.setattr(
        variance, "_any", lambda layer, *rest: calls.append(layer) or real(layer, *rest)
    )
    for size, direct in ((6, 0), (24, 2)):
        calls.clear()
        gradient_variance(net("convnet", (size, size, 3)), LOSS, [samples(3, (3, size, size))])
        assert sum(isinstance(layer, nn.Conv2d) for layer in calls) == direct, size


def test_how_samples_are_cut_changes_nothing():
    model, (images, labels) = net("convnet", (8, 8, 3)), samples(10, (3, 8, 8))
    model.train()  # batch norm's own statistics would tie samples together
    whole = gradient_variance(model, LOSS, [(images, labels)])
    for size in (1, 3):
        cut = zip(images.split(size), labels.split(size), strict=True)
        assert gradient_variance(model, LOSS, cut) == pytest.approx(whole, rel=1e-5)
    assert model.training


def test_linear_regression_by_hand():
    """Loss (w x + b - y)^2 at w = 1, b = 0: gradients 2 e (x, 1) with e = x - y."""
    layer = nn.Linear(1, 1)
    with torch.no_grad():
        layer.weight.fill_(1.0)
        layer.bias.zero_()
    x, y = torch.tensor([[1.0], [2.0], [3.0]]), torch.tensor([[0.0], [3.0], [3.0]])
    # e = 1, -1, 0: gradients (2, 2), (-4, -2), (0, 0); their mean is (-2/3, 0)
    expected = (8 + 20 + 0) / 3 - 4 / 9
    assert gradient_variance(layer, F.mse_loss, [(x, y)]) == pytest.approx(expected)
    layer.bias.requires_grad_(False)
    assert gradient_variance(layer, F.mse_loss, [(x, y)]) == pytest.approx(20 / 3 - 4 / 9)
    layer.weight.requires_grad_(False)
    layer.bias.requires_grad_(True)  # 2, -2, 0
    assert gradient_variance(layer, F.mse_loss, [(x, y)]) == pytest.approx(8 / 3)


@pytest.mark.parametrize(("name", "shape"), MODELS)
def test_identical_samples_do_not_vary(name, shape):
    model = net(name, shape)
    image, label = samples(1, (shape[2], *shape[:2]))
    same = image.repeat(8, 1, 1, 1), label.repeat(8, 1)
    size = by_autograd(model, LOSS, image, label).square().sum().item()
    assert gradient_variance(model, LOSS, [same]) < 1e-5 * size
    assert size > 0


def test_frozen_stages_do_not_count():
    lower, upper = split(net("convnet", (8, 8, 3)), 1)
    images, labels = samples(6, (3, 8, 8))
    given = lower(images), labels
    expected = trace(by_autograd(upper, LOSS, *given))
    assert gradient_variance(upper, LOSS, [given]) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(
    "how", [{"padding_mode": "circular"}, {"padding": "same"}, {"groups": 8}], ids=str
)
def test_a_convolution_it_would_get_wrong_is_refused(how):
    layer = nn.Conv2d(32, 32, 3, **{"padding": 1} | how)  # on maps so small that L x L is cheaper
    model = nn.Sequential(layer, nn.Flatten(), nn.Linear(288, 5))
    with pytest.raises(TypeError, match="layer '0': expected one group and zero padding"):
        gradient_variance(model, LOSS, [samples(3, (32, 3, 3))])


def test_a_memory_without_samples_is_refused():
    with pytest.raises(ValueError, match="expected at least one sample, got none"):
        gradient_variance(nn.Linear(1, 1), LOSS, [])


@pytest.mark.parametrize("method", ["CRS", "ExStream"])
def test_the_memory_is_measured_whole(method):
    config = RunConfig(dataset=TINY, method=method)
    dataset = load_dataset(TINY)
    learner = make_learner(config, dataset)
    images = torch.from_numpy(dataset.train.images)
    labels = torch.from_numpy(dataset.train.labels).float()
    memory, kept = Memory(60), np.arange(100, 145)
    memory.write(np.arange(59, 14, -1), index=kept)  # more than are taken at once, some slots free

    class Vectors:
        labels = np.roll(np.eye(70, dtype=bool), 3, axis=0)[:60]

        def vectors(self, slots):
            return learner.inputs(images, np.arange(60)[slots]).flatten(1).numpy()

    if method == "ExStream":
        slots = torch.arange(15, 60)
        inputs = learner.inputs(images, slots.numpy())
        expected = by_autograd(
            learner.upper, LOSS, inputs, torch.from_numpy(Vectors.labels[15:]).float()
        )
        found = memory_variance(learner, images, labels, memory, Vectors())
    else:
        expected = by_autograd(learner.upper, LOSS, learner.inputs(images, kept), labels[kept])
        found = memory_variance(learner, images, labels, memory, object())
    assert found == pytest.approx(trace(expected), rel=1e-4)


def test_measured_after_the_step_and_its_place_in_memory():
    events = []

    def plan(numbers):
        for number in numbers:
            yield number  # the step is taken here
            events.append(f"placed {number}")

    stream = [Part((0,), plan([1, 2])), Part((0, 1), plan([3]))]
    for part in watched(stream, [1, 2, 3], lambda step: events.append(f"at {step}")):
        for number in part.batches:
            events.append(f"step {number}")
    assert events == [f"{what} {n}" for n in (1, 2, 3) for what in ("step", "placed", "at")]


@pytest.mark.parametrize(
    ("dataset", "method"), [(TINY, "CRS"), (ONE_LABEL, "GSS"), (ONE_LABEL, "ExStream")]
)
def test_measuring_changes_nothing_else(dataset, method):
    plain = RunConfig(dataset=dataset, method=method, batch_size=30)
    asked = dataclasses.replace(plain, variance_points=3, features_per_class=2)
    first, second = run(plain), run(asked)
    pd.testing.assert_frame_equal(first.scores, second.scores, check_exact=True)
    np.testing.assert_array_equal(first.memory_labels, second.memory_labels)
    assert first.gradient_variance is first.features is None
    rows = second.gradient_variance
    assert list(rows)[:6] == list(first.scores)[:6]
    steps = sum(len(part.batches) for part in new_samples(plain, load_dataset(dataset)))
    assert rows["images"].tolist() == [30 * round(steps * i / 3) for i in (1, 2, 3)]
    assert (rows["samples"] <= plain.resolved["memory_size"]).all()
    assert (rows["value"] > 0).all()


def test_an_interrupted_run_goes_on_measuring(tmp_path, monkeypatch):
    config = RunConfig(dataset=ONE_LABEL, method="ExStream", variance_points=6)
    whole, learn, steps = run(config), Learner.learn, []

    def interrupted(learner, *batch):
        if len(steps) == 70:
            raise KeyboardInterrupt
        steps.append(learn(learner, *batch))

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Learner, "learn", interrupted)
        run(config, checkpoint=tmp_path / "state", save_every=1e-9)
    went_on = run(config, checkpoint=tmp_path / "state")
    pd.testing.assert_frame_equal(
        went_on.gradient_variance, whole.gradient_variance, check_exact=True
    )


def test_networks_with_an_objective_of_their_own_are_refused_before_training():
    fields = {"dataset": TINY, "model": "convnet_attention_consistency"}
    RunConfig(**fields)
    with pytest.raises(ValueError, match="variance_points needs the gradient of every single sam"):
        RunConfig(**fields, variance_points=1)


def test_a_method_without_a_memory_measures_nothing():
    finetune = run(RunConfig(dataset=ONE_LABEL, method="Finetune", variance_points=3))
    assert finetune.gradient_variance is None
    with pytest.raises(ValueError, match="got Finetune on imbal-digits-tiny without; ask for var"):
        variances_of([finetune])


def frame(values):
    rows = [
        ("imbal-digits-tiny", method, seed, 10.0 * (i + 1), value)
        for (method, seed), points in values.items()
        for i, value in enumerate(points)
    ]
    return pd.DataFrame(rows, columns=["dataset", "method", "seed", "seen", "value"])


def test_points_are_shares_of_the_stream_whatever_was_dropped_of_it():
    one = run(RunConfig(dataset=ONE_LABEL, method="CRS", variance_points=4))
    longer = one.gradient_variance.assign(images=one.gradient_variance["images"] + 10, seed=1)
    rows = variances_of([one, dataclasses.replace(one, gradient_variance=longer)])
    images = rows.pivot(index="seen", columns="seed", values="images")
    assert images.index.tolist() == [25, 50, 75, 100]
    assert (images[1] - images[0] == 10).all()


def test_contrasts_compare_logarithms_seed_by_seed():
    values = {("PRS", 0): [10.0, 100.0], ("CRS", 0): [1.0, 1.0]}  # 1.5 decades above
    values |= {("PRS", 1): [10.0, 1.0], ("CRS", 1): [1.0, 0.0]}  # 1, where both vary
    values |= {("PRS", 3): [10.0, 100.0], ("CRS", 3): [1.0, 10.0]}  # 1
    values |= {("ExStream", 0): [20.0, 200.0], ("GSS", 2): [1.0, 1.0]}
    table = contrasts(frame(values), "PRS").set_index("than")
    assert list(table.index) == ["CRS", "ExStream"]  # GSS has no seed in common
    assert table.loc["CRS", "difference"] == pytest.approx(3.5 / 3)
    assert table.loc["CRS", "sd"] == pytest.approx(0.5 / 3**0.5)
    assert table.loc["CRS", "ratio"] == pytest.approx(10 ** (3.5 / 3))
    assert table["seeds"].tolist() == [3, 1]
    assert table.loc["CRS", "points_above"] == 100
    assert table.loc["ExStream", "points_above"] == 0
    sentence = table.loc["CRS", "sentence"]
    assert "PRS is above that of CRS, 14.68 times as large" in sentence
    assert "the paper says above, which holds here" in sentence
    assert "not clearly apart from that of ExStream" in table.loc["ExStream", "sentence"]
    assert "does not compare the two" in table.loc["ExStream", "sentence"]


def test_a_claim_that_does_not_hold_is_said_and_one_that_is_not_shown():
    below = frame({(m, s): [v, v] for m, v in (("PRS", 1.0), ("CRS", 2.0)) for s in range(3)})
    (sentence,) = contrasts(below, "PRS")["sentence"]
    assert "PRS is below that of CRS, 0.50 times" in sentence
    assert "which does not hold here" in sentence
    apart = frame({("PRS", 0): [1.0], ("CRS", 0): [2.0], ("PRS", 1): [2.0], ("CRS", 1): [1.0]})
    (sentence,) = contrasts(apart, "PRS")["sentence"]
    assert "not clearly apart" in sentence
    assert "which is not shown here" in sentence
