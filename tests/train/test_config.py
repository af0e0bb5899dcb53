"""Configurations: values that results rest on, what a run reads, what is refused."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from prslib import METHODS, RunConfig, configs, register
from prslib.datasets import GROUPS, load_dataset
from prslib.datasets.base import draw_schedule
from prslib.train import Method, draw_held_out, unread_fields

TINY, ONE_LABEL = "digits70tiny", "imbal-digits-tiny"
# Sec. 6.1: Adam, ResNet-101, a batch of 10 and as many replayed, a memory of 2000
PAPER = {
    "model": "resnet101",
    "weights": "IMAGENET1K_V1",
    "optimizer": "adam",
    "learning_rate": 1e-4,
    "batch_size": 10,
    "replay_batch_size": 10,
    "memory_size": 2000,
    "epochs": 1,
    "loss": "multilabel_soft_margin",
}
COCO = {"schedule": (0, 3, 1, 2), "rho": -0.03}
NUS = {"schedule": (3, 1, 0, 5, 4, 2), "rho": 0.02}
DRAWN = (0, 6, 9, 1, 4, 2, 5, 8, 3, 7)  # of seed 0
# classes of the majority, moderate and minority groups
GROUP_SIZES = {
    "digits70seq": (18, 38, 14),
    "cocoseq-mini": (18, 38, 14),
    "imbal-digits": (1, 3, 6),
}


@pytest.mark.parametrize(("name", "of_set"), [("cocoseq", COCO), ("nuswideseq", NUS)])
def test_the_papers_data_sets_are_trained_as_in_the_paper(name, of_set):
    resolved = RunConfig(name).resolved
    expected = PAPER | of_set
    assert {key: resolved[key] for key in expected} == expected


@pytest.mark.parametrize("name", GROUP_SIZES)
def test_groups_have_the_papers_thresholds(name):
    counts = Counter(load_dataset(name, images=False).class_group)
    assert tuple(counts[group] for group in GROUPS) == GROUP_SIZES[name]


def test_what_follows_from_the_seed():
    assert draw_schedule(10, 0) == DRAWN
    assert draw_schedule(10, 1) == (6, 7, 1, 8, 5, 0, 3, 9, 2, 4)
    data = load_dataset("cocoseq-tiny", images=False)
    rows = draw_held_out(RunConfig("cocoseq-tiny"), data)
    assert rows[:5].tolist() == [2, 6, 8, 9, 11]
    assert len(rows) == len(data.train) // 5


def test_equal_numbers_of_any_type_are_one_configuration():
    fields = {"seed": 3, "memory_size": 50, "frozen_stages": 1, "variance_points": 2}
    plain = RunConfig(TINY, learning_rate=1.0, rho=0.5, **fields)
    arrays = {name: np.int64(value) for name, value in fields.items()}
    other = RunConfig(TINY, learning_rate=1, rho=np.float32(0.5), **arrays)
    assert other == plain
    assert RunConfig(TINY, schedule=np.array([3, 0, 1, 2])).schedule == (3, 0, 1, 2)
    types = {type(value) for value in vars(other).values()}
    assert types <= {str, int, float, bool, dict, type(None)}


@pytest.mark.parametrize("method", METHODS)
def test_a_run_does_not_depend_on_what_its_method_does_not_read(method):
    base = RunConfig(TINY, method)
    changes = {"rho": 0.5, "memory_size": 20, "schedule": (3, 2, 1, 0), "alpha": 0.7}
    changes |= {"replay_batch_size": 3, "ewc_lambda": 1.0, "vector_stages": 2}
    changes |= {"draw": "balanced", "beta": 0.7, "pretrained_stages": 1}
    changes |= {"epochs": 2, "batch_size": 5, "updates": 2, "adam_eps": 1e-4}
    changes |= {"loss": "focal", "weights": "none", "precision": "bf16"}
    changes |= {"tuned_threshold": True, "test_resamples": 3, "variance_points": 1}
    for name, value in changes.items():
        same = replace(base, **{name: value}).identity == base.identity
        assert same == (name in unread_fields(method)), name
    assert {"epochs", "batch_size", "seed"}.isdisjoint(unread_fields(method))


def test_configs_is_the_grid_without_repeats():
    unread = {"ewc_lambda": [1.0, 2.0], "pretrained_stages": [0, 1]}
    fields = {"method": ["Finetune", "PRS"], "rho": [0.0, 0.5], "seed": range(2)}
    grid = configs(dataset=TINY, **fields, **unread)
    made = [(config.method, config.rho, config.seed) for config in grid]
    assert made[:2] == [("Finetune", 0.0, 0), ("Finetune", 0.0, 1)]
    assert made[2:] == [("PRS", rho, seed) for rho in (0.0, 0.5) for seed in (0, 1)]
    assert configs(dataset=TINY) == [RunConfig(TINY)]
    (given,) = configs(dataset=TINY, schedule=(3, 2, 1, 0))
    assert given.schedule == (3, 2, 1, 0)
    with pytest.raises(ValueError, match="expected at least one of seed, got none"):
        configs(dataset=TINY, seed=[])


REFUSED = [
    ({"dataset": "digit70seq"}, ValueError, "unknown dataset .*; known: c"),
    (
        {"loss": "focal", "loss_options": {"beta": 1}},
        ValueError,
        "unknown loss option 'beta'; known: alpha, gamma",
    ),
    ({"tuned_threshold": 1}, TypeError, "tuned_threshold must be True or False, got 1"),
    ({"learning_rate": np.inf}, ValueError, "learning_rate must be finite, got inf"),
    ({"clip_value": -1.0}, ValueError, "clip_value must be at least 0, got -1"),
    ({"rho": "high"}, TypeError, "rho must be a number, got 'high'"),
    ({"memory_size": 0}, ValueError, "memory_size must be at least 1, got 0"),
    ({"seed": 0.5}, TypeError, "seed must be a whole number, got 0.5"),
    ({"schedule": (0, 1, 2)}, ValueError, "tasks 0 to 3, each once"),
    ({"weights": "letters"}, FileNotFoundError, "none, digits, .* got 'letters'"),
    (
        {"method": "DER++", "loss": "weighted_replay"},
        ValueError,
        r"a loss of new and replayed samples alike for der\+\+",
    ),
    (
        {"method": "DER++, vectors"},
        ValueError,
        "a sampler that stores samples for DER.*, got exstream",
    ),
    (
        {"model": "convnet_attention_consistency", "loss": "focal"},
        ValueError,
        "a data set trained with multilabel_soft_margin for model convnet_att",
    ),
    (
        {"model": "convnet_attention_consistency", "method": "GSS"},
        ValueError,
        "a network whose loss is a sum over samples for GSS",
    ),
]


@pytest.mark.parametrize(("fields", "error", "message"), REFUSED)
def test_what_does_not_fit_is_refused_in_one_line(fields, error, message, registers):
    register("DER++, vectors", Method(sampler="exstream", rehearsal="der++"))
    with pytest.raises(ValueError, match="unknown frozen 'stages'; known: pretrained"):
        Method(sampler="crs", frozen="stages")
    with pytest.raises(error, match=message) as caught:
        RunConfig(**{"dataset": TINY} | fields)
    assert "\n" not in str(caught.value)
