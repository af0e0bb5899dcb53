"""Configurations: values that are refused, fields in the hash, and grids."""

import dataclasses
import math

import numpy as np
import pytest

from prslib.datasets import DATASETS
from prslib.datasets.base import Entry, Recipe, SequentialDataset, Split
from prslib.training.config import RunConfig
from prslib.training.grids import configs, configs_of, seeds_text
from prslib.training.methods import METHODS

TINY, ONE_LABEL = "digits70tiny", "imbal-digits-tiny"
OWN = "convnet_attention_consistency"


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"dataset": "digit70seq"}, ValueError, "unknown dataset .*; known datasets: "),
        ({"rho": math.nan}, ValueError, "rho must be finite, got nan"),
        ({"memory_size": 0}, ValueError, "memory_size must be at least 1, got 0"),
        ({"learning_rate": 0}, ValueError, "learning_rate must be at least 1e-12"),
        ({"ewc_lambda": -1}, ValueError, "ewc_lambda must be at least 0, got -1"),
        ({"seed": None}, TypeError, "seed must be a whole number, got None"),
        ({"options": "subsets"}, TypeError, "options must be a dict, got 'subsets'"),
        ({"loss_options": "x"}, TypeError, "loss_options must be a dict, got 'x'"),
        ({"weights": 3}, TypeError, "weights must be text, got 3"),
        ({"test_set": 3}, TypeError, "test_set must be text, got 3"),
        (
            {"schedule": "0123"},
            TypeError,
            "schedule must be a whole number, got '0123'",
        ),
        ({"schedule": (0, 1, 2)}, ValueError, "tasks 0 to 3 once in the schedule"),
        ({"method": "GSS", "options": {"size": 3}}, TypeError, "options of gss: .*s"),
        ({"options": {"rho": 1.0}}, TypeError, "rho and variant as fields"),
        ({"method": "EWC", "options": {"alpha": 1}}, TypeError, "no options of EWC"),
        ({"method": "GSS", "options": {"subsets": [1]}}, TypeError, r"got \[1\]"),
        ({"method": "GSS", "options": {"subsets": math.inf}}, ValueError, "finite"),
        ({"dataset": "cocoseq-tiny", "model": "convnet"}, ValueError, "such as head"),
        ({"memory_size": 5000}, ValueError, "memory_size up to the 838 images"),
        ({"batch_size": 175}, ValueError, "174 images of task 3 in digits70tiny"),
        ({"batch_size": 839, "method": "Multitask"}, ValueError, "the 838 images"),
        ({"dataset": ONE_LABEL, "batch_size": 600}, ValueError, r"task \d\+\d in"),
        ({"test_set": "full"}, ValueError, "known test_sets: balanced, imbalanced"),
        ({"frozen_stages": 4}, ValueError, "up to 3 for model convnet"),
        ({"pretrained_stages": 4}, ValueError, "up to 3 for model convnet"),
        ({"weights": "letters"}, FileNotFoundError, "none, digits, .* got 'letters'"),
        ({"model": OWN, "method": "GSS"}, ValueError, "gradients of GSS"),
        ({"model": OWN, "dataset": ONE_LABEL}, ValueError, "a plain network"),
    ],
)
def test_what_does_not_fit_is_refused_before_work_starts(fields, error, message):
    with pytest.raises(error, match=message):
        configs(**{"dataset": TINY} | fields)


@pytest.mark.parametrize(
    ("tested", "fields", "message"),
    [
        ([0, 0], {}, "image of task 1 in the test set 'all', got none"),
        ([1, 1], {"method": "Multitask"}, "image of task 0 in the test set 'all'"),
        ([0, 1], {"own_threshold": True}, "held out of task 0 for own_threshold"),
    ],
)
def test_samples_that_a_score_needs_are_there_before_work_starts(
    monkeypatch, tested, fields, message
):
    labels = np.eye(2, dtype=bool)
    halves = [Split(None, labels[task], np.array(task)) for task in ([0, 1], tested)]
    train, test = halves
    groups = "majority", "minority"
    data = SequentialDataset(
        "few", train, {"all": test}, ("a", "b"), np.arange(2), groups
    )
    recipe = Recipe(
        "head", memory_size=1, schedule=(0, 1), batch_size=1, test_set="all"
    )
    monkeypatch.setitem(DATASETS, "few", Entry(lambda _: data, recipe))
    with pytest.raises(ValueError, match=message):
        configs(dataset="few", **fields)


def test_equal_numbers_of_any_type_are_one_configuration():
    fields = {"seed": 3, "memory_size": 50, "frozen_stages": 1, "variance_points": 2}
    plain = RunConfig(TINY, learning_rate=1.0, rho=0.5, **fields)
    arrays = {name: np.int64(value) for name, value in fields.items()}
    other = RunConfig(TINY, learning_rate=1, rho=np.float32(0.5), **arrays)
    assert other == plain
    assert other.hash == plain.hash
    types = {type(value) for value in vars(other).values()}
    assert types <= {str, int, float, bool, type(None)}


def test_hash_covers_what_changes_the_result_and_nothing_else():
    base = RunConfig(TINY)
    same = [{"memory_size": 50, "schedule": [0, 3, 1, 2]}, {"rho": -0.0}, {"epochs": 3}]
    assert {RunConfig(TINY, **fields).hash for fields in same} == {base.hash}
    other = {"rho": 0.1, "variant": "authors", "memory_size": 51, "seed": 1}
    other |= {"schedule": (3, 0, 1, 2), "test_set": "imbalanced", "learning_rate": 0.1}
    other |= {"batch_size": 5, "replay_batch_size": 5, "precision": "bf16"}
    other |= {"dataset": "digits70seq", "method": "CRS"}
    hashes = {dataclasses.replace(base, **{k: v}).hash for k, v in other.items()}
    assert len(hashes | {base.hash}) == len(other) + 1
    assert RunConfig(dataset=TINY, precision="fp32").hash == base.hash
    assert RunConfig(dataset="cocoseq").resolved["precision"] == "bf16"


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"dataset": "cocoseq-mini", "method": "PRS"}, "1ac453157b54"),
        ({"dataset": TINY, "method": "GSS", "options": {"subsets": 5}}, "a77ff54cde45"),
        (
            {"dataset": TINY, "method": "Multitask", "own_threshold": True},
            "0789c9e7f31e",
        ),
        ({"dataset": ONE_LABEL, "method": "CRS", "draw": "balanced"}, "9e5478ed91c5"),
    ],
)
def test_stored_runs_are_found_under_the_hashes_that_they_have(fields, name):
    """These hashes change only with PROTOCOL, which rises when results change."""
    assert RunConfig(**fields).hash == name


@pytest.mark.parametrize("method", METHODS)
def test_fields_that_a_method_does_not_read_leave_its_hash(method):
    base = RunConfig(dataset=TINY, method=method)
    changes = {"rho": 0.5, "variant": "authors", "memory_size": 20, "epochs": 2}
    changes |= {"schedule": (3, 2, 1, 0), "replay_batch_size": 3, "ewc_lambda": 1.0}
    for name, value in changes.items():
        same = dataclasses.replace(base, **{name: value}).hash == base.hash
        assert same == (name not in METHODS[method].reads), name


def test_configs_is_the_grid_without_repeats():
    unread = {"epochs": [1, 2], "ewc_lambda": [1.0, 2.0], "pretrained_stages": [0, 1]}
    fields = {"method": ["Finetune", "PRS"], "rho": [0.0, 0.5], "seed": [0, 1]}
    grid = configs(dataset=TINY, **fields, **unread)
    made = [(config.method, config.rho, config.seed) for config in grid]
    assert made[:2] == [("Finetune", 0.0, 0), ("Finetune", 0.0, 1)]
    assert made[2:] == [("PRS", rho, seed) for rho in (0.0, 0.5) for seed in (0, 1)]


def test_some_methods_and_data_sets_take_the_first_seeds_alone():
    both = ["digits49tiny", TINY]
    plain = configs_of(["CRS", "PRS"], [0], dataset=both)
    assert plain == configs(dataset=both, method=["CRS", "PRS"], seed=0)
    few = {"digits49tiny": 2, "GSS": 1, "EWC": 9, "reutersseq": 1}
    made = configs_of(["CRS", "GSS"], [4, 5, 6], few_seeds=few, dataset=both)
    assert [(config.method, config.seed) for config in made] == [
        *(("GSS", 4), ("CRS", 4), ("CRS", 5)),
        *(("GSS", 4), ("CRS", 4), ("CRS", 5), ("CRS", 6)),
    ]
    before = configs_of(["CRS"], [0, 1], ["digits49tiny"], [5], dataset=both)
    assert [config.seed for config in before] == [5, 0, 1]


def test_options_of_the_sampler_are_part_of_the_identity_where_given():
    plain = RunConfig(TINY, "GSS")
    fewer = RunConfig(TINY, "GSS", options={"subset_size": 5, "subsets": np.int64(4)})
    assert hash(fewer) and fewer.options == (("subset_size", 5), ("subsets", 4))
    assert dataclasses.replace(fewer, seed=1).options == fewer.options
    assert RunConfig(TINY, "GSS", options={}).hash == plain.hash
    assert fewer.identity == plain.identity | {"options": dict(fewer.options)}
    assert fewer.hash != plain.hash and fewer.training_hash != plain.training_hash


def test_a_caption_tells_the_seeds_of_its_own_data_set():
    few = {"GSS": 1, "reutersseq": 2, "CRS": 3}
    assert seeds_text([0, 1, 2], few) == "3 seeds (GSS: 1, reutersseq: 2)"
    assert seeds_text([0, 1, 2], few, "reutersseq") == "2 seeds (GSS: 1)"
    assert seeds_text([0, 1, 2], few, TINY) == "3 seeds (GSS: 1)"
    assert seeds_text([0], few) == seeds_text([0]) == "1 seed"
