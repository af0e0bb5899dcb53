"""Runs trained as one against the same runs trained alone."""

import numpy as np
import pytest
import torch

from prslib.experiments import stacked
from prslib.experiments import workers as units
from prslib.experiments.stacked import Stack, run_stacked, shape
from prslib.experiments.store import Store
from prslib.experiments.workers import group_runs, train_and_store
from prslib.models import MODELS
from prslib.models.networks import make_model
from prslib.training.config import RunConfig, configs
from prslib.training.learner import Learner
from prslib.training.run import run

TINY = "imbal-digits-tiny"
SETTINGS = {"optimizer": "sgd", "learning_rate": 0.1, "loss": "cross_entropy", "clip_value": 0.05}


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_steps_are_those_of_a_learner_of_its_own(optimizer, one_thread):
    rng = np.random.default_rng(0)
    images = torch.from_numpy(rng.integers(0, 256, size=(40, 6, 6, 1), dtype=np.uint8))
    labels = torch.eye(5)[rng.integers(5, size=40)]
    plans = rng.integers(40, size=(3, 30, 8))
    settings = SETTINGS | {"optimizer": optimizer}
    alone = [
        Learner(make_model("mlp", (6, 6, 1), 5, seed), norm_penalty=0.3, **settings)
        for seed in range(3)
    ]
    stack = Stack([learner.model for learner in alone], norm_penalty=0.3)
    Learner(stack, **settings).fit(images, labels, list(np.concatenate(plans, axis=1)))
    for i, (learner, plan) in enumerate(zip(alone, plans, strict=True)):
        learner.fit(images, labels, list(plan))
        for name, weights in stack.weights_of(i).items():
            theirs = learner.model.state_dict()[name]
            torch.testing.assert_close(weights, theirs, atol=1e-5, rtol=1e-4)


def test_runs_together_are_the_runs_alone():
    options = {"method": ["CRS", "PRS"], "batch_size": 15, "features_per_class": 2}
    wanted = configs(dataset=TINY, seed=[0, 1], **options)
    ends = {sum(len(part.batches) for part in parts) for parts in map(stream, wanted)}
    assert len(ends) > 1  # orders of the classes that end at different steps
    for one, config in zip(run_stacked(wanted), wanted, strict=True):
        alone = run(config)
        assert one.config == config
        rest = [name for name in alone.scores if name != "value"]
        assert one.scores[rest].equals(alone.scores[rest])
        np.testing.assert_allclose(one.scores["value"], alone.scores["value"], atol=0.011)
        np.testing.assert_array_equal(one.memory_labels, alone.memory_labels)
        np.testing.assert_allclose(one.features, alone.features, atol=1e-3)


def stream(config):
    return stacked.stream_of(config, stacked.load_dataset(TINY, images=False), None)


def test_only_runs_of_one_shape_are_put_together_and_only_where_it_pays():
    alike = configs(dataset=TINY, method=["CRS", "PRS"], seed=[0, 1, 2])
    others = [
        RunConfig(TINY, "Finetune"),
        RunConfig(TINY, "PRS", learning_rate=0.5),
        RunConfig(TINY, "GSS"),
        RunConfig(TINY, "EWC"),
        RunConfig(TINY, "PRS", variance_points=1),
        RunConfig(TINY, "PRS", model="convnet"),
    ]
    assert group_runs([*others, *alike], "cuda") == [*((one,) for one in others), tuple(alike)]
    assert group_runs(alike, "cpu") == [(one,) for one in alike]
    assert [shape(one) for one in others[2:]] == [None] * 4
    for wrong in ([alike[0], others[0]], [others[2]]):
        with pytest.raises(ValueError, match="expected runs of one shape"):
            run_stacked(wrong)


def test_stacks_have_a_largest_size(monkeypatch):
    monkeypatch.setattr(units, "AT_ONCE", 2)
    seeds = configs(dataset=TINY, method="CRS", seed=[0, 1, 2])
    assert [len(unit) for unit in group_runs(seeds, "cuda")] == [2, 1]


def test_networks_with_a_state_are_refused():
    networks = [make_model("convnet", (8, 8, 1), 3, seed) for seed in range(2)]
    with pytest.raises(ValueError, match=r"running_mean.*one by one"):
        Stack(networks, norm_penalty=0.0)
    assert not MODELS["convnet"].stacks


def test_a_stack_is_stored_run_by_run_and_an_error_ends_one_run_only(tmp_path, monkeypatch):
    unit, store = configs(dataset=TINY, method="CRS", seed=[0, 1]), Store(tmp_path)
    with store.lock(unit[0]):  # another process is at it
        outcomes = train_and_store(unit, store, "cpu", 300.0, wait=False)
    assert {outcome.config: outcome.busy for outcome in outcomes} == {unit[0]: True, unit[1]: False}
    assert [store.load(config) is not None for config in unit] == [False, True]

    def fail(*_args):
        raise RuntimeError("out of memory")

    monkeypatch.setattr("prslib.experiments.workers.run_stacked", fail)
    outcomes = train_and_store(unit, store, "cpu", 300.0, wait=False)
    assert [outcome.error for outcome in outcomes] == [None, None]
    assert store.load(unit[0]) is not None
    assert not list(tmp_path.glob("*.lock"))
