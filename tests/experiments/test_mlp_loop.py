"""The loop in numpy against the learner, and both against gradients by hand."""

import dataclasses

import numpy as np
import pytest
import torch

from prslib.datasets import load_dataset
from prslib.experiments.mlp_loop import Loop, Network, progressions
from prslib.training.config import RunConfig, configs
from prslib.training.learner import LOSSES, Learner
from prslib.training.replay import plan
from prslib.training.run import initial_model, run

TINY = "imbal-digits-tiny"
ORDERS = [(1, 2, 3, 4, 5, 6, 7, 8, 9, 0), (1, 2, 3, 4, 5, 7, 6, 8, 9, 0)]
SETTINGS = {"learning_rate": 0.1, "clip_value": 0.5, "norm_penalty": 0.3}


@pytest.fixture(scope="module")
def dataset():
    return load_dataset(TINY)


def test_steps_are_the_learners(dataset):
    config = RunConfig(dataset=TINY, method="PRS", schedule=ORDERS[0])
    parts, _ = plan(config, dataset)
    batches = [batch for part in parts for batch in part.batches][:80]
    model, loop = initial_model(config, dataset), Loop(dataset)
    network = Network([tensor.numpy() for tensor in model.state_dict().values()], **SETTINGS)
    learner = Learner(model, optimizer="sgd", loss="cross_entropy", **SETTINGS)
    images, labels = map(torch.from_numpy, (dataset.train.images, dataset.train.labels))
    learner.fit(images, labels.float(), batches)
    for batch in batches:
        network.step(loop.train[batch], loop.classes[batch])
    for ours, theirs in zip(network.tensors, learner.model.parameters(), strict=True):
        np.testing.assert_allclose(ours, theirs.detach().numpy(), atol=2e-5)


@pytest.mark.parametrize("method", ["Multitask", "Finetune", "CRS", "PRS"])
def test_accuracies_are_those_of_a_run(dataset, method):
    config = RunConfig(dataset=TINY, method=method, schedule=ORDERS[0], learning_rate=0.05)
    scores = run(config).scores
    theirs = scores[(scores["metric"] == "accuracy") & (scores["task"] == "all")]["value"]
    ours = Loop(dataset).accuracies(config)
    np.testing.assert_allclose(ours[~np.isnan(ours)], theirs, atol=0.011)  # two of 200 images


def test_runs_that_begin_alike_share_their_beginning_and_nothing_else(dataset):
    shared = Loop(dataset)
    base = RunConfig(dataset=TINY, method="PRS", schedule=ORDERS[0])
    changes = [{}, {"learning_rate": 0.05}, {}, {"schedule": ORDERS[1]}, {"rho": 0.5}, {}]
    changes += [{"seed": 1}, {"batch_size": 20}, {"method": "Multitask"}, {"method": "Finetune"}]
    changes += [{"method": "Finetune", "schedule": ORDERS[1]}]  # which ends with the same steps
    wanted = [dataclasses.replace(base, **change) for change in changes]
    for config in wanted:
        alone = Loop(dataset).accuracies(config)
        np.testing.assert_array_equal(shared.accuracies(config), alone)


def test_shared_steps_are_not_taken_again(dataset, monkeypatch):
    taken = []
    step = Network.step
    monkeypatch.setattr(Network, "step", lambda *args: (taken.append(1), step(*args)))
    loop = Loop(dataset)
    first = RunConfig(dataset=TINY, method="CRS", schedule=ORDERS[0])
    loop.accuracies(first)
    whole = len(taken)
    loop.accuracies(dataclasses.replace(first, schedule=ORDERS[1]))
    beginning = sum(len(part.batches) for part in plan(first, dataset)[0][:2])
    assert len(taken) - whole == whole - beginning


def test_other_trainings_are_refused(dataset):
    with pytest.raises(ValueError, match=r"expected model 'mlp', .* got 'convnet'; train it with"):
        Loop(dataset).accuracies(RunConfig(dataset=TINY, model="convnet"))


def test_progressions_are_tidy():
    wanted = configs(dataset=TINY, method=["Multitask", "PRS"], schedule=[ORDERS[0]])
    rows = progressions(wanted, workers=1)
    assert rows["trained_tasks"].tolist() == [5, 1, 2, 3, 4, 5]
    assert rows["variant"].tolist() == [""] + ["paper"] * 5
    assert set(rows["schedule"]) == {"1+2,3+4,5+6,7+8,0+9"}
    assert rows["value"].between(1, 100).all()


def test_losses_bring_their_activation():
    logits = torch.tensor([[2.0, 0.0, -1.0]])
    assert LOSSES["cross_entropy"].activation(logits).sum().item() == pytest.approx(1)
    torch.testing.assert_close(
        LOSSES["multilabel_soft_margin"].activation(logits), torch.sigmoid(logits)
    )
    by_hand = -np.log(np.exp(2) / (np.exp(2) + 1 + np.exp(-1)))
    loss = LOSSES["cross_entropy"].of(logits, torch.tensor([[1.0, 0.0, 0.0]]))
    assert loss.item() == pytest.approx(by_hand, rel=1e-5)
