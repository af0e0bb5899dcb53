"""A step, EWC, scoring, and what samplers ask of the network."""

import numpy as np
import pytest
import torch
from torch.nn.utils import parameters_to_vector

from prslib.datasets import load_dataset
from prslib.memory import Memory
from prslib.models.networks import Staged, make_model
from prslib.samplers import make_sampler
from prslib.training import learner as learner_module
from prslib.training.config import RunConfig
from prslib.training.device import Inputs
from prslib.training.ewc import EWC
from prslib.training.learner import Learner, context_of
from prslib.training.replay import Replay, VectorReplay
from prslib.training.run import make_learner

TINY = "digits70tiny"
TRAINING = {"optimizer": "adam", "learning_rate": 0.01}
TRAINING |= {"loss": "multilabel_soft_margin"}
pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def dataset():
    return load_dataset(TINY)


def learner(**options):
    model = make_model("convnet", (32, 32, 3), 70, seed=0)
    return Learner(model, **TRAINING, clip_value=5.0, **options)


def inputs_and_labels(dataset):
    train = dataset.train
    return Inputs(train.inputs), Inputs(train.labels.astype(np.float32))


def fit(learner, dataset, batches):
    for rows in batches:
        learner.step(*learner.join(*inputs_and_labels(dataset), rows))


def test_a_step_clips_every_component_of_the_gradient():
    layer = torch.nn.Linear(3, 2, bias=False)
    model = Staged(torch.nn.Flatten(), layer)
    learner = Learner(model, **TRAINING, clip_value=1e-3)
    learner.step(torch.ones(4, 1, 1, 3), torch.eye(2)[[0, 0, 0, 0]])
    assert layer.weight.grad.abs().max() == pytest.approx(1e-3)


def test_scoring_in_batches_is_scoring_one_by_one(dataset, monkeypatch):
    net, _ = trained(dataset, "fp32", steps=1)
    images = Inputs(dataset.train.inputs[:40])
    whole = net.probabilities(images)
    monkeypatch.setattr(learner_module, "EVALUATION_BATCH", 15)
    np.testing.assert_allclose(net.probabilities(images), whole, atol=1e-6)
    one = net.probabilities(images, np.array([7]))
    np.testing.assert_allclose(one, whole[[7]], atol=1e-6)
    assert net.upper.training


def test_batch_norm_of_frozen_stages_is_frozen_too(dataset):
    """Else what they give for a sample would depend on the others of its batch."""
    images = Inputs(dataset.train.inputs)
    net = learner(frozen_stages=1)
    before = net.encode(images[np.arange(1)])
    fit(net, dataset, np.arange(40).reshape(2, 20))
    torch.testing.assert_close(net.encode(images[np.arange(20)])[:1], before)


def test_ewc_is_the_sum_of_every_batch_s_own_penalty():
    draws = torch.Generator().manual_seed(0)
    weight = torch.zeros(4, requires_grad=True)
    ewc = EWC([("w", weight)], strength=3.0)
    weight.grad = torch.ones(4)
    ewc.pull()  # nothing to hold on to yet
    penalties = []
    for _ in range(6):
        weight.data = torch.randn(4, generator=draws)
        fisher = torch.rand(4, generator=draws)
        penalties.append((fisher, weight.detach().clone()))
        ewc.observe({"w": fisher})
    weight.data = torch.randn(4, generator=draws)
    ewc.pull()
    losses = [(fisher * (weight - at) ** 2).sum() for fisher, at in penalties]
    (expected,) = torch.autograd.grad(3.0 / 2 * sum(losses) / 6, weight)
    torch.testing.assert_close(weight.grad, 1 + expected)


def test_ewc_without_strength_is_finetune_and_with_it_holds_the_weights(dataset):
    batches = np.arange(200).reshape(-1, 20)
    gone = []
    for strength in (None, 0.0, 1e7):
        net = learner(ewc_lambda=strength)
        fit(net, dataset, batches[:5])
        before = parameters_to_vector(net.parameters).detach()
        fit(net, dataset, batches[5:])
        after = parameters_to_vector(net.parameters)
        gone.append((after - before).square().sum().item())
    assert gone[0] == gone[1] and gone[2] < 0.8 * gone[0]


def test_replayed_vectors_train_as_the_images_they_came_from(dataset):
    inputs, labels = inputs_and_labels(dataset)
    new, old, net = np.arange(10), np.arange(10, 16), learner(frozen_stages=1)
    one_label = np.eye(70, dtype=bool)[:6]  # so that each sample is a vector of its own
    exstream = VectorReplay(
        make_sampler("exstream", 70, 70, 0), Memory(70), 0, batch_size=6
    )
    features = context_of(exstream, net, inputs, labels, old)
    assert features["features"].shape == (6, 16 * 8 * 8)
    exstream.offer(old, one_label, **features)
    slots = exstream.memory.filled
    encoded, targets = net.join(inputs, labels, new, slots, exstream)
    rows = exstream.memory.read(slots)["index"]
    torch.testing.assert_close(encoded[10:], net.encode(inputs[rows]))
    assert targets[10:].argmax(1).tolist() == (rows - 10).tolist()
    images_and_labels = net.join(inputs, labels, new)
    torch.testing.assert_close((encoded[:10], targets[:10]), images_and_labels)


def test_gradient_products_follow_the_memory_and_the_model(dataset):
    images, labels = inputs_and_labels(dataset)
    net, memory = learner(), Memory(8)
    memory.write(np.arange(8), index=np.arange(20, 28))
    replay = Replay(make_sampler("gss", 8, 70, 0), memory, 0, batch_size=1)
    context = context_of(replay, net, images, labels, np.array([3, 22]))
    compare = context["gradient_products"]
    assert compare(np.array([[0, 1], [2, 3]])).shape == (4, 4)
    table = compare(np.array([[2]]))
    np.testing.assert_allclose(table[0, 0], table[2, 2], rtol=1e-4)  # slot 2 holds 22


def trained(dataset, precision, steps=5, **fields):
    config = RunConfig(TINY, precision=precision, **fields)
    learner = make_learner(config, dataset)
    fit(learner, dataset, np.arange(20 * steps).reshape(steps, 20))
    return learner, Inputs(dataset.train.inputs)


@pytest.mark.parametrize("method", ["PRS", "EWC"])
def test_bfloat16_stays_near_float32_with_weights_in_float32(dataset, method):
    single, images = trained(dataset, "fp32", method=method)
    half, _ = trained(dataset, "bf16", method=method)
    for weight in half.parameters:
        assert weight.dtype == torch.float32
        if weight.dim() == 4:
            assert weight.is_contiguous(memory_format=torch.channels_last)
    scores = [net.probabilities(images, np.arange(50)) for net in (single, half)]
    assert scores[1].dtype == np.float32
    assert not np.array_equal(*scores)
    np.testing.assert_allclose(*scores, atol=0.06)  # of 3500 up to 0.9
    assert np.abs(scores[0] - scores[1]).mean() < 0.005
