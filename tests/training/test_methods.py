"""The methods that look at the model, and what they share with those that do not."""

import dataclasses

import numpy as np
import pytest
import torch

from prslib.datasets import load_dataset
from prslib.experiments.store import Store
from prslib.memory import Memory
from prslib.models.networks import make_model, split
from prslib.report import memory_distribution as shares
from prslib.samplers import SAMPLERS, make_sampler
from prslib.training.config import RunConfig, configs
from prslib.training.ewc import EWC
from prslib.training.learner import SUPPLIES, Learner
from prslib.training.methods import METHODS
from prslib.training.replay import Joined, offline_stream, plan, replay_plan
from prslib.training.run import run

TINY = "digits70tiny"
FAST = {"dataset": TINY, "batch_size": 30}
TRAINING = {"optimizer": "adam", "learning_rate": 0.01, "loss": "multilabel_soft_margin"}
pytestmark = pytest.mark.usefixtures("one_thread")
LOOKING = [name for name, method in METHODS.items() if method.looks_at_model]


@pytest.fixture(scope="module")
def dataset():
    return load_dataset(TINY)


def learner(**options):
    model = make_model("convnet", (32, 32, 3), 70, seed=0)
    return Learner(model, **TRAINING, clip_value=5.0, **options)


def tensors(dataset):
    train = dataset.train
    return torch.from_numpy(train.images), torch.from_numpy(train.labels).float()


def weights(module):
    return {name: value.clone() for name, value in module.state_dict().items()}


def test_ewc_by_hand():
    # Fisher 1 at weight 0 and 3 at weight 4: together 2 on average, round 3
    weight = torch.tensor([0.0], requires_grad=True)
    ewc = EWC([("w", weight)], strength=2.0)
    weight.grad = torch.tensor([0.5])
    ewc.pull()
    assert weight.grad.tolist() == [0.5]  # nothing to hold on to yet
    ewc.observe({"w": torch.tensor([1.0])})
    weight.data.fill_(4)
    ewc.observe({"w": torch.tensor([3.0])})
    weight.data.fill_(5)
    ewc.pull()
    assert weight.grad.item() == pytest.approx(0.5 + 2 * 2 * (5 - 3))


def test_ewc_is_the_sum_of_every_batch_s_own_penalty():
    rng = np.random.default_rng(0)
    weight = torch.zeros(4, requires_grad=True)
    ewc = EWC([("w", weight)], strength=3.0)
    penalties = []
    for _ in range(6):
        weight.data = torch.from_numpy(rng.normal(size=4)).float()
        fisher = torch.from_numpy(rng.random(4)).float()
        penalties.append((fisher, weight.detach().clone()))
        ewc.observe({"w": fisher})
    weight.data = torch.from_numpy(rng.normal(size=4)).float()
    weight.grad = torch.zeros(4)
    ewc.pull()
    loss = sum((fisher * (weight - at) ** 2).sum() for fisher, at in penalties) * 3.0 / 2 / 6
    (expected,) = torch.autograd.grad(loss, weight)
    torch.testing.assert_close(weight.grad, expected)


def test_ewc_without_strength_is_finetune_and_with_it_holds_the_weights(dataset):
    finetune = run(RunConfig(method="Finetune", weights="none", **FAST)).scores
    free = run(RunConfig(method="EWC", ewc_lambda=0, weights="none", **FAST)).scores
    np.testing.assert_array_equal(finetune["value"], free["value"])
    images, labels = tensors(dataset)
    batches = np.arange(400).reshape(-1, 20)
    gone = []
    for strength in (None, 1e7):
        held = learner(ewc_lambda=strength)
        held.fit(images, labels, batches[:10])
        before = [p.detach().clone() for p in held.parameters]
        held.fit(images, labels, batches[10:])
        pairs = zip(held.parameters, before, strict=True)
        gone.append(sum((p - q).square().sum().item() for p, q in pairs))
    assert gone[1] < 0.8 * gone[0]


def test_what_comes_pretrained_is_frozen_for_ewc_and_nothing_else(dataset):
    images, labels = tensors(dataset)
    whole, frozen = learner(), learner(frozen_stages=3)
    assert len(whole.parameters) == len(list(whole.model.parameters()))
    before = weights(frozen.model)
    frozen.fit(images, labels, np.arange(60).reshape(3, 20))
    after = weights(frozen.model)
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed == {"stages.3.weight", "stages.3.bias"}  # no running statistics either


def test_only_stages_that_are_there_can_be_frozen():
    model = make_model("convnet", (32, 32, 3), 70, seed=0)
    with pytest.raises(ValueError, match="expected 0 to 3, as ConvNet has 4 stages, got 4"):
        split(model, 4)
    with pytest.raises(ValueError, match="as Linear has 0 stages, got 1"):
        split(torch.nn.Linear(2, 2), 1)


def test_replayed_vectors_train_as_the_images_they_came_from(dataset):
    images, labels = tensors(dataset)
    new, old = np.arange(10), np.arange(10, 16)
    from_images, from_vectors = learner(frozen_stages=1), learner(frozen_stages=1)
    vectors = SUPPLIES["features"](from_vectors, images, labels, old, Memory(1))
    assert vectors.shape == (6, 16 * 8 * 8)
    from_images.fit(images, labels, [np.concatenate([new, old])])
    from_vectors.fit(images, labels, [Joined(new, vectors, dataset.train.labels[old])])
    for p, q in zip(from_images.parameters, from_vectors.parameters, strict=True):
        torch.testing.assert_close(p.grad, q.grad, rtol=1e-3, atol=1e-6)


def test_the_vectors_do_not_change_while_the_net_learns(dataset):
    images, labels = tensors(dataset)
    frozen = learner(frozen_stages=1)
    before = SUPPLIES["features"](frozen, images, labels, np.arange(5), Memory(1))
    frozen.fit(images, labels, np.arange(60).reshape(3, 20))
    after = SUPPLIES["features"](frozen, images, labels, np.arange(5), Memory(1))
    np.testing.assert_array_equal(before, after)


def test_gradient_products_follow_the_memory_and_the_model(dataset):
    images, labels = tensors(dataset)
    net, memory = learner(), Memory(8)
    memory.write(np.arange(8), index=np.arange(20, 28))
    compare = SUPPLIES["gradient_products"](net, images, labels, np.array([3, 22]), memory)
    table = compare(np.array([[0, 1], [2, 3]]))
    assert table.shape == (4, 4) and table.dtype == np.float64
    single = compare(np.array([[2]]))
    np.testing.assert_allclose(single[0, 0], single[2, 2], rtol=1e-4)  # slot 2 holds image 22
    net.fit(images, labels, [np.arange(20)])
    assert not np.allclose(compare(np.array([[2]])), single)


@pytest.mark.parametrize("name", sorted(SAMPLERS))
def test_a_sampler_is_asked_after_the_step_and_gets_what_it_needs_alone(name):
    labels = np.eye(4, dtype=bool)[np.arange(12) % 4]
    sampler, asked = make_sampler(name, 4, 4, seed=0), []

    def supply(need, batch, memory):
        asked.append((need, batch.tolist()))
        if need == "features":
            return np.ones((len(batch), 3), np.float32)
        return lambda subsets: np.ones((len(subsets) + len(batch),) * 2)

    rng = np.random.default_rng(0)
    steps = replay_plan(np.arange(12).reshape(3, 4), labels, sampler, Memory(4), 10, rng, supply)
    for taken, _ in enumerate(steps):
        assert len(asked) == taken * len(sampler.needs)
    assert {need for need, _ in asked} == sampler.needs
    assert len(asked) == 3 * len(sampler.needs)
    if not sampler.needs:
        with pytest.raises(TypeError):
            sampler.place(labels, gradient_products=lambda subsets: subsets)


def test_what_looks_at_the_model_has_no_plan_ahead(dataset):
    assert LOOKING == ["GSS", "ExStream"]
    for method in LOOKING:
        with pytest.raises(ValueError, match=f"expected a method that looks .* got {method}"):
            plan(RunConfig(method=method, **FAST), dataset)


def test_exstream_runs_keep_one_label_a_slot():
    labels = run(RunConfig(method="ExStream", **FAST)).memory_labels
    assert labels.shape == (50, 70)
    assert set(labels.sum(0)) <= {0, 1}  # 50 slots for 70 classes
    assert set(labels.sum(1)) <= {0, 1}


def test_more_epochs_show_every_image_as_often(dataset):
    train = dataset.train
    (part,) = offline_stream(train, (0, 3, 1, 2), 10, 3, np.random.default_rng(0))
    epochs = part.batches.reshape(3, -1)
    for epoch in epochs:
        assert len(np.unique(epoch)) == epoch.size >= len(train) - 9
    assert not (epochs[0] == epochs[1]).all()


def test_multitask_learns_from_more_epochs():
    one = RunConfig(dataset=TINY, method="Multitask")
    three = dataclasses.replace(one, epochs=3)
    assert one.hash != three.hash
    scores = [run(config).scores for config in (one, three)]
    chosen = [s[(s["task"] == "seen") & (s["group"] == "overall")] for s in scores]
    values = [s.set_index("metric")["value"] for s in chosen]
    assert values[1]["mAP"] > 1.2 * values[0]["mAP"]


def test_memory_shares_take_trained_memories_from_the_store(tmp_path):
    wanted = configs(method=["CRS", "GSS", "ExStream", "PRS"], **FAST)
    store = Store(tmp_path)
    runs = {config.method: run(config) for config in wanted}
    for method in LOOKING:
        store.save(runs[method])
    kept = sorted(tmp_path.iterdir())
    found = shares.memory_shares(wanted, store)
    assert sorted(tmp_path.iterdir()) == kept  # nothing was trained again, nor for the others
    dataset = load_dataset(TINY, images=False)
    for method, finished in runs.items():
        counts = finished.memory_labels.sum(0)
        rows = found[found["method"] == method].set_index("class")["share"]
        np.testing.assert_allclose(rows[list(dataset.class_names)], 100 * counts / counts.sum())
    with pytest.raises(ValueError, match=r"expected methods with a memory .* got EWC, Finetune"):
        shares.memory_shares(configs(method=["Finetune", "PRS", "EWC"], **FAST), store)
