import weakref

import numpy as np
import pandas as pd
import pytest
import torch

from prslib.datasets import load_dataset
from prslib.memory import Memory
from prslib.models.networks import make_model
from prslib.samplers import make_sampler
from prslib.training.config import RunConfig
from prslib.training.learner import Learner
from prslib.training.methods import METHODS
from prslib.training.replay import online_stream, plan, replay_plan
from prslib.training.run import conditions, make_learner, run

TINY = "digits70tiny"


@pytest.fixture(scope="module")
def dataset():
    return load_dataset(TINY)


@pytest.mark.parametrize("method", METHODS)
def test_same_configuration_same_numbers(method):
    config = RunConfig(dataset=TINY, method=method, batch_size=30)
    first, second = run(config), run(config)
    pd.testing.assert_frame_equal(first.scores, second.scores, check_exact=True)
    np.testing.assert_array_equal(first.memory_labels, second.memory_labels)
    other = run(RunConfig(dataset=TINY, method=method, batch_size=30, seed=1))
    assert not first.scores["value"].equals(other.scores["value"])


def test_scores_are_tidy_and_complete():
    scores = run(RunConfig(dataset=TINY, rho=0.1, batch_size=30)).scores
    columns = "dataset method rho memory_size schedule seed trained_tasks task group metric value"
    assert list(scores) == columns.split()
    assert scores.iloc[0, :6].tolist() == [TINY, "PRS", 0.1, 50, "0,3,1,2", 0]
    tasks = scores.groupby("trained_tasks")["task"].unique().map(set).to_dict()
    assert tasks == {
        1: {"seen", "0"},
        2: {"seen", "0", "3"},
        3: {"seen", "0", "1", "3"},
        4: {"seen", "0", "1", "2", "3"},
    }
    assert not scores.duplicated(["trained_tasks", "task", "group", "metric"]).any()
    assert scores["value"].dropna().between(0, 1).all()
    # after the first task the joined test sets are that task's own
    first = scores[scores["trained_tasks"] == 1].groupby("task")["value"]
    np.testing.assert_array_equal(*(first.get_group(task) for task in ("seen", "0")))


def test_multitask_is_scored_once_on_all_tasks():
    scores = run(RunConfig(dataset=TINY, method="Multitask", batch_size=30)).scores
    assert set(scores["trained_tasks"]) == {4}
    assert set(scores["schedule"]) == {""}
    assert scores["rho"].isna().all()


def test_finetune_forgets_and_the_net_learns():
    learned, kept = [], []  # mAP of each task but the last: when just trained, and at the end
    for seed in range(3):
        config = RunConfig(dataset=TINY, method="Finetune", seed=seed, weights="none")
        scores = run(config).scores
        own = scores[(scores["group"] == "overall") & (scores["metric"] == "mAP")]
        own = own.set_index(["trained_tasks", "task"])["value"]
        for trained, task in enumerate(scores["schedule"].iloc[0].split(",")[:-1], start=1):
            learned.append(own[trained, task])
            kept.append(own[4, task])
    chance = 1 / 24
    assert min(learned) > 1.5 * chance
    assert np.mean(kept) < 0.85 * np.mean(learned)


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


def test_plan_is_what_the_run_keeps(dataset):
    config = RunConfig(dataset=TINY, method="PRS", batch_size=30)
    _, planned = plan(config, load_dataset(TINY, images=False))
    np.testing.assert_array_equal(planned, run(config).memory_labels)


def test_a_step_clips_every_component_of_the_gradient():
    layer = torch.nn.Linear(3, 2, bias=False)
    model = torch.nn.Sequential(torch.nn.Flatten(), layer)
    learner = Learner(model, "adam", 0.1, "multilabel_soft_margin", clip_value=1e-3)
    before = layer.weight.detach().clone()
    images = torch.full((4, 1, 1, 3), 255, dtype=torch.uint8)
    learner.fit(images, torch.eye(2)[[0, 0, 0, 0]], [np.arange(4)])
    assert layer.weight.grad.abs().max() == pytest.approx(1e-3)
    assert not torch.equal(before, layer.weight)


def test_scoring_leaves_the_network_as_it_was(dataset):
    model = make_model("convnet", (32, 32, 3), 70, seed=0)
    learner = Learner(model, "adam", 0.002, "multilabel_soft_margin", 5.0)
    images = torch.from_numpy(dataset.train.images[:20])
    state = {name: value.clone() for name, value in model.state_dict().items()}
    one_by_one = np.concatenate([learner.probabilities(image[None]) for image in images])
    np.testing.assert_allclose(learner.probabilities(images), one_by_one, atol=1e-6)
    assert all(torch.equal(state[name], value) for name, value in model.state_dict().items())


def test_making_a_model_leaves_the_global_generator_alone():
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    make_model("convnet", (32, 32, 3), 70, seed=5)
    assert torch.equal(torch.rand(3), expected)
    with pytest.raises(ValueError, match="unknown model 'convent'; known models: convnet"):
        make_model("convent", (32, 32, 3), 70, seed=5)


def test_learners_of_earlier_runs_have_left_the_gpu_when_the_next_begins(monkeypatch):
    emptied = []
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: emptied.append(True))
    config = RunConfig(dataset=TINY)
    learner = weakref.ref(make_learner(config, load_dataset(TINY)))
    assert learner() is not None  # a cycle: nothing else holds it
    with conditions(config):
        assert learner() is None and emptied
