"""Configurations: values that results rest on, what a run reads, what is refused."""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from prslib import METHODS, RunConfig, configs
from prslib.datasets import DATASETS, GROUPS, load_dataset
from prslib.datasets.base import draw_schedule
from prslib.train import held_out, unread_fields

TINY, ONE_LABEL = "digits70tiny", "imbal-digits-tiny"
USUAL = {
    "method": "PRS",
    "seed": 0,
    "optimizer": "adam",
    "learning_rate": 0.002,
    "adam_eps": 1e-8,
    "clip_value": 5.0,
    "loss": "multilabel_soft_margin",
    "loss_options": {},
    "batch_size": 10,
    "replay_batch_size": 10,
    "updates": 1,
    "draw": "uniform",
    "options": {},
    "norm_penalty": 0.0,
    "tasks_at_once": 1,
    "precision": "fp32",
    "test_resamples": 0,
    "ewc_lambda": 15000.0,
    "alpha": 0.1,
    "beta": 0.5,
    "epochs": 1,
    "frozen_stages": 0,
    "rho": 0.0,
    "own_threshold": False,
    "variance_points": 0,
    "features_per_class": 0,
    "prequential": False,
}
SCENES = {"model": "convnet", "weights": "digits", "ewc_lambda": 0.15}
RESNET = {"model": "resnet101", "weights": "IMAGENET1K_V1", "learning_rate": 1e-4}
RESNET |= {"memory_size": 2000, "precision": "bf16"}
HEAD = {"model": "head", "learning_rate": 0.003, "clip_value": 0.5}
HEAD |= {"weights": "none", "ewc_lambda": 1500.0, "test_resamples": 100}
MINI = HEAD | {"rho": -0.03}
REUTERS = HEAD | {"learning_rate": 0.002, "ewc_lambda": 15000.0}
REUTERS |= {"schedule": (0, 1, 2, 3)}
SINGLE = {"loss": "cross_entropy", "clip_value": 0.5, "norm_penalty": 1e-5}
SINGLE |= {"tasks_at_once": 2, "weights": "none"}
MLP = SINGLE | {"model": "mlp", "optimizer": "sgd", "learning_rate": 0.01}
SVHN = SINGLE | {"model": "resnet18", "learning_rate": 2e-4}
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
    "cocoseq-tiny": MINI | {"memory_size": 20, "schedule": COCO, "test_resamples": 0},
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
    "reutersseq-tiny": REUTERS | {"memory_size": 14, "test_resamples": 0},
    "imbal-mnistseq": MLP | {"memory_size": 300, "schedule": DRAWN},
    "imbal-svhnseq": SVHN | {"memory_size": 500, "schedule": DRAWN},
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


@pytest.mark.parametrize("name", DATASETS)
def test_every_default_of_a_run_is_the_one_that_results_rest_on(name):
    resolved = RunConfig(name).resolved
    del resolved["pretrained_stages"], resolved["vector_stages"]
    assert resolved == {"dataset": name} | USUAL | RECIPES[name]


@pytest.mark.parametrize("name", GROUP_SIZES)
def test_groups_have_the_papers_thresholds(name):
    counts = Counter(load_dataset(name, images=False).class_group)
    assert tuple(counts[group] for group in GROUPS) == GROUP_SIZES[name]


def test_what_follows_from_the_seed():
    assert draw_schedule(10, 0) == DRAWN
    assert draw_schedule(10, 1) == (6, 7, 1, 8, 5, 0, 3, 9, 2, 4)
    data = load_dataset("cocoseq-tiny", images=False)
    rows = held_out(RunConfig("cocoseq-tiny"), data)
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
    for name, value in changes.items():
        same = replace(base, **{name: value}).identity == base.identity
        assert same == (name in unread_fields(method)), name
    assert {"epochs", "batch_size", "seed"}.isdisjoint(unread_fields(method))


def test_who_reads_what():
    assert unread_fields("PRS") >= {"ewc_lambda", "alpha", "vector_stages"}
    assert {"rho", "memory_size", "schedule"}.isdisjoint(unread_fields("PRS"))
    assert {"rho", "ewc_lambda"} <= unread_fields("CRS")
    assert "rho" not in unread_fields("OCDM")
    assert "schedule" in unread_fields("Multitask")
    assert {"memory_size", "draw", "options"} <= unread_fields("Finetune")


def test_columns_name_the_run():
    columns = RunConfig(ONE_LABEL, "CRS", seed=0).columns
    names = ["dataset", "method", "rho", "memory_size", "schedule", "seed"]
    assert list(columns) == names
    assert math.isnan(columns["rho"]) and columns["memory_size"] == 30
    assert columns["schedule"] == "0+6,1+9,2+4,5+8,3+7"
    offline = RunConfig(TINY, "Multitask").columns
    assert (offline["memory_size"], offline["schedule"]) == (0, "")
    assert (
        str(RunConfig(TINY, rho=0.5, seed=2)) == "PRS rho=0.5 on digits70tiny, seed 2"
    )
    assert str(RunConfig(TINY, "CRS")) == "CRS on digits70tiny, seed 0"


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
    ({"dataset": "digit70seq"}, ValueError, "unknown dataset .*; known datasets: c"),
    ({"method": "prs"}, ValueError, "unknown method 'prs'; known methods: CBRS, CRS"),
    ({"model": "nope"}, ValueError, "unknown model 'nope'; known models: convnet"),
    ({"loss": "focus"}, ValueError, "unknown loss 'focus'; known losses: asymmetric"),
    ({"optimizer": "adamw"}, ValueError, "unknown optimizer 'adamw'; known optim"),
    ({"precision": "fp8"}, ValueError, "unknown precision 'fp8'; known precisions"),
    ({"draw": "class"}, ValueError, "unknown draw 'class'; known draws: balanced"),
    (
        {"loss": "focal", "loss_options": {"beta": 1}},
        ValueError,
        "unknown loss option 'beta'; known loss options: alpha, gamma",
    ),
    (
        {"method": "GSS", "options": {"size": 3}},
        ValueError,
        "unknown option 'size'; known options: subset_size, subsets",
    ),
    ({"options": {"rho": 1.0}}, ValueError, "unknown option 'rho'"),
    ({"method": "EWC", "options": {"alpha": 1}}, ValueError, "unknown option 'alpha'"),
    ({"rho": math.nan}, ValueError, "rho must be finite, got nan"),
    ({"rho": "high"}, TypeError, "rho must be a number, got 'high'"),
    ({"memory_size": 0}, ValueError, "memory_size must be at least 1, got 0"),
    ({"batch_size": 0}, ValueError, "batch_size must be at least 1, got 0"),
    ({"updates": 0}, ValueError, "updates must be at least 1, got 0"),
    ({"epochs": 0}, ValueError, "epochs must be at least 1, got 0"),
    ({"seed": 0.5}, TypeError, "seed must be a whole number, got 0.5"),
    ({"schedule": (0, 1, 2)}, ValueError, "tasks 0 to 3 once in the schedule"),
    ({"dataset": "cocoseq-tiny", "model": "convnet"}, ValueError, "such as head"),
    ({"frozen_stages": 4}, ValueError, "up to 3 for model convnet"),
    ({"pretrained_stages": 4}, ValueError, "up to 3 for model convnet"),
    ({"weights": "letters"}, FileNotFoundError, "none, digits, .* got 'letters'"),
    (
        {"model": "convnet_rnn_attention", "method": "GSS"},
        ValueError,
        "loss is a sum over samples for GSS",
    ),
    (
        {"model": "convnet_rnn_attention", "method": "DER++"},
        ValueError,
        r"loss is a sum over samples for DER\+\+",
    ),
    (
        {"method": "DER++", "loss": "weighted_replay"},
        ValueError,
        r"a loss of new and replayed samples alike for der\+\+",
    ),
    (
        {"model": "convnet_rnn_attention", "loss": "focal"},
        ValueError,
        "choose a plain network",
    ),
]


@pytest.mark.parametrize(("fields", "error", "message"), REFUSED)
def test_what_does_not_fit_is_refused_in_one_line(fields, error, message):
    with pytest.raises(error, match=message) as caught:
        RunConfig(**{"dataset": TINY} | fields)
    assert "\n" not in str(caught.value)
