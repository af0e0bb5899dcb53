"""Values that the results rest on: a change of any is seen here, and rises PROTOCOL."""

import math
from collections import Counter

import numpy as np
import pytest
import torch

from prslib.datasets import DATASETS, GROUPS, load_dataset
from prslib.datasets.base import draw_schedule
from prslib.models.networks import Staged
from prslib.training.config import PROTOCOL, RunConfig
from prslib.training.learner import Learner
from prslib.training.replay import held_out_rows

USUAL = {
    "optimizer": "adam",
    "learning_rate": 0.002,
    "clip_value": 5.0,
    "loss": "multilabel_soft_margin",
    "batch_size": 10,
    "replay_batch_size": 10,
    "draw": "uniform",
    "norm_penalty": 0.0,
    "tasks_at_once": 1,
    "precision": "fp32",
    "test_set": "balanced",
    "test_resamples": 0,
    "ewc_lambda": 15000.0,
    "epochs": 1,
    "frozen_stages": 0,
    "rho": 0.0,
    "variant": "paper",
}
SCENES = {"model": "convnet", "weights": "digits", "ewc_lambda": 0.15}
RESNET = {"model": "resnet101", "weights": "IMAGENET1K_V1", "learning_rate": 1e-4}
RESNET |= {"memory_size": 2000, "precision": "bf16"}
HEAD = {"model": "head", "learning_rate": 0.003, "clip_value": 0.5}
HEAD |= {"weights": "none", "ewc_lambda": 1500.0, "test_resamples": 100}
MINI = HEAD | {"test_set": "both", "rho": -0.03}
REUTERS = HEAD | {"learning_rate": 0.002, "ewc_lambda": 15000.0}
REUTERS |= {"test_set": "imbalanced", "schedule": (0, 1, 2, 3)}
SINGLE = {"loss": "cross_entropy", "clip_value": 0.5, "norm_penalty": 1e-5}
SINGLE |= {"tasks_at_once": 2, "test_set": "full", "weights": "none"}
MLP = SINGLE | {"model": "mlp", "optimizer": "sgd", "learning_rate": 0.01}
COLOUR = SINGLE | {"model": "convnet"}
COCO, NUS = (0, 3, 1, 2), (3, 1, 0, 5, 4, 2)
DRAWN = (0, 6, 9, 1, 4, 2, 5, 8, 3, 7)  # of seed 0

RECIPES = {
    "digits70seq": SCENES | {"memory_size": 500, "schedule": COCO},
    "digits49seq": SCENES | {"memory_size": 333, "schedule": NUS},
    "digits70tiny": SCENES | {"memory_size": 50, "schedule": COCO},
    "digits49tiny": SCENES | {"memory_size": 33, "schedule": NUS},
    "cocoseq": RESNET | {"schedule": COCO, "rho": -0.03},
    "nuswideseq": RESNET | {"schedule": NUS, "rho": 0.02},
    "cocoseq-mini": MINI | {"memory_size": 120, "schedule": COCO},
    "cocoseq-mini-75": MINI | {"memory_size": 90, "schedule": COCO},
    "cocoseq-mini-50": MINI | {"memory_size": 60, "schedule": COCO},
    "cocoseq-mini-25": MINI | {"memory_size": 30, "schedule": COCO},
    "cocoseq-tiny": MINI | {"memory_size": 20, "schedule": COCO},
    "cocoseq-features": HEAD | {"memory_size": 2000, "schedule": COCO, "rho": -0.03},
    "nuswideseq-features": HEAD | {"memory_size": 2000, "schedule": NUS, "rho": 0.02},
    "reutersseq": REUTERS | {"memory_size": 426},
    "reutersseq-cap1000": REUTERS | {"memory_size": 286},
    "reutersseq-cap300": REUTERS | {"memory_size": 188},
    "reutersseq-cap100": REUTERS | {"memory_size": 113},
    "reutersseq-cap30": REUTERS | {"memory_size": 51},
    "reutersseq-part5010": REUTERS | {"memory_size": 286},
    "reutersseq-part3292": REUTERS | {"memory_size": 188},
    "reutersseq-part1981": REUTERS | {"memory_size": 113},
    "reutersseq-part893": REUTERS | {"memory_size": 51},
    "reutersseq-tiny": REUTERS | {"memory_size": 14, "test_set": "balanced"},
    "imbal-mnistseq": MLP | {"memory_size": 300, "schedule": DRAWN},
    "imbal-svhnseq": SINGLE
    | {
        "model": "resnet18",
        "learning_rate": 2e-4,
        "memory_size": 500,
        "schedule": DRAWN,
    },
    "imbal-digits": MLP | {"memory_size": 300, "schedule": DRAWN},
    "imbal-colour-digits": COLOUR | {"memory_size": 500, "schedule": DRAWN},
    "imbal-digits-tiny": MLP | {"memory_size": 30, "schedule": DRAWN},
    "imbal-colour-digits-tiny": COLOUR | {"memory_size": 25, "schedule": DRAWN},
}
# classes of the majority, moderate and minority groups
GROUP_SIZES = {
    "digits70seq": (18, 38, 14),
    "cocoseq-mini": (18, 38, 14),
    "imbal-digits": (1, 3, 6),
}
OF_THE_MODEL = ("pretrained_stages", "vector_stages")
NOT_SET = ("dataset", "method", "seed", "features_per_class", "variance_points")
NOT_SET += ("class_draws", "own_threshold")


@pytest.mark.parametrize("name", DATASETS)
def test_every_default_of_a_run_is_the_one_that_results_rest_on(name):
    resolved = RunConfig(name).resolved
    for field in (*NOT_SET, *OF_THE_MODEL):
        del resolved[field]
    assert resolved == USUAL | RECIPES[name]


def test_the_protocol_of_these_values():
    """A result that changes raises it; the tables here then follow."""
    assert PROTOCOL == 6


@pytest.mark.parametrize("name", GROUP_SIZES)
def test_groups_take_the_papers_thresholds(name):
    counts = Counter(load_dataset(name, images=False).class_group)
    assert tuple(counts[group] for group in GROUPS) == GROUP_SIZES[name]


def test_the_order_of_single_labels_follows_from_the_seed():
    assert draw_schedule(10, 0) == DRAWN
    assert draw_schedule(10, 1) == (6, 7, 1, 8, 5, 0, 3, 9, 2, 4)


def test_the_images_that_choose_a_threshold_follow_from_the_seed():
    tiny = load_dataset("cocoseq-tiny", images=False)
    rows = held_out_rows(RunConfig("cocoseq-tiny"), tiny)
    assert rows[:5].tolist() == [2, 6, 8, 9, 11]


def sgd(gradients, step):
    """Momentum of 0.9."""
    velocity, moves = 0.0, []
    for gradient in gradients:
        velocity = 0.9 * velocity + gradient
        moves.append(-step * velocity)
    return moves


def adam(gradients, step):
    """Moments of 0.9 and 0.999, and 1e-8 below."""
    first, second, moves = 0.0, 0.0, []
    for number, gradient in enumerate(gradients, 1):
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        mean = first / (1 - 0.9**number)
        size = math.sqrt(second / (1 - 0.999**number)) + 1e-8
        moves.append(-step * mean / size)
    return moves


@pytest.mark.parametrize(("optimizer", "rule"), [("sgd", sgd), ("adam", adam)])
@pytest.mark.parametrize("penalty", [0.0, 0.3])
@pytest.mark.usefixtures("one_thread")
def test_an_optimiser_s_steps_are_those_by_hand(optimizer, rule, penalty):
    """One weight w on inputs of 2, whose label is 1: the loss is log(1 + exp(-2 w))."""
    layer = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.constant_(layer.weight, 0.25)
    model = Staged(torch.nn.Flatten(), layer)
    settings = {"loss": "multilabel_soft_margin", "clip_value": 5.0}
    learner = Learner(model, optimizer, 0.1, norm_penalty=penalty, **settings)
    weight, gradients = 0.25, []
    for _ in range(3):
        gradients.append(-2 / (1 + math.exp(2 * weight)) + 2 * penalty * weight)
        weight += rule(gradients, 0.1)[-1]
        learner.step(torch.full((4, 1), 2.0), torch.ones(4, 1))
        assert layer.weight.item() == pytest.approx(weight, rel=1e-5)
    assert np.sign(weight - 0.25) == 1
