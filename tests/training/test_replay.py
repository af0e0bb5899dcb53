"""The batches of a run: the stream, replay, and plans ahead of training."""

import numpy as np
import pytest

from prslib.datasets import load_dataset
from prslib.memory import Memory
from prslib.samplers import SAMPLERS, make_sampler
from prslib.training.config import RunConfig
from prslib.training.methods import METHODS
from prslib.training.replay import offline_stream, online_stream, plan, replay_plan

TINY = "digits70tiny"
LOOKING = [name for name, method in METHODS.items() if method.looks_at_model]


@pytest.fixture(scope="module")
def dataset():
    return load_dataset(TINY, images=False)


def test_stream_follows_the_schedule_and_shows_each_image_once(dataset):
    parts = online_stream(dataset.train, (2, 0, 1, 3), 10, np.random.default_rng(0))
    assert [part.seen for part in parts] == [(2,), (2, 0), (2, 0, 1), (2, 0, 1, 3)]
    for part in parts:
        assert part.batches.shape[1] == 10
        assert set(dataset.train.task[part.batches].ravel()) == {part.seen[-1]}
        dropped = (dataset.train.task == part.seen[-1]).sum() - part.batches.size
        assert 0 <= dropped < 10
    shown = np.concatenate([part.batches.ravel() for part in parts])
    assert len(np.unique(shown)) == len(shown)


def test_more_epochs_show_every_image_as_often(dataset):
    train = dataset.train
    (part,) = offline_stream(train, (0, 3, 1, 2), 10, 3, np.random.default_rng(0))
    epochs = part.batches.reshape(3, -1)
    for epoch in epochs:
        assert len(np.unique(epoch)) == epoch.size >= len(train) - 9
    assert not (epochs[0] == epochs[1]).all()


def test_replay_plan_draws_before_it_places():
    labels = np.eye(4, dtype=bool)[np.arange(12) % 4]
    batches = np.arange(12).reshape(3, 4)
    sampler, memory = make_sampler("crs", 5, 4, seed=0), Memory(5)
    rng = np.random.default_rng(0)
    steps = list(replay_plan(batches, labels, sampler, memory, 10, rng))
    assert [len(step) for step in steps] == [4, 4 + 4, 4 + 5]
    for batch, step in zip(batches, steps, strict=True):
        np.testing.assert_array_equal(step[:4], batch)
        replayed = step[4:]
        assert len(set(replayed)) == len(replayed)
        assert (replayed < batch[0]).all()  # only what came before
    assert set(steps[1][4:]) == {0, 1, 2, 3}
    assert sampler.class_freq.sum() == 12


@pytest.mark.parametrize("name", sorted(SAMPLERS))
def test_a_sampler_is_asked_after_the_step_and_gets_what_it_needs_alone(name):
    labels = np.eye(4, dtype=bool)[np.arange(12) % 4]
    sampler, asked = make_sampler(name, 4, 4, seed=0), []

    def ask_model(need, batch, memory):
        asked.append((need, batch.tolist()))
        if need == "features":
            return np.ones((len(batch), 3), np.float32)
        return lambda subsets: np.ones((len(subsets) + len(batch),) * 2)

    rng = np.random.default_rng(0)
    steps = replay_plan(np.arange(12).reshape(3, 4), labels, sampler, Memory(4), 10, rng, ask_model)
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
            plan(RunConfig(dataset=TINY, method=method), dataset)
