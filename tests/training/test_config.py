"""Configurations: values that are refused, fields in the hash, and grids."""

import dataclasses
import math

import numpy as np
import pytest

from prslib.datasets import DATASETS, load_dataset
from prslib.training.config import RunConfig
from prslib.training.grids import check_all, configs
from prslib.training.methods import METHODS

TINY = "digits70tiny"


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"dataset": "digit70seq"}, ValueError, "unknown dataset .*; known datasets: "),
        ({"rho": math.nan}, ValueError, "rho must be finite, got nan"),
        ({"rho": "0.1"}, TypeError, "rho must be a number, got '0.1'"),
        ({"memory_size": 0}, ValueError, "memory_size must be at least 1, got 0"),
        ({"memory_size": 2.0}, TypeError, "memory_size must be a whole number"),
        ({"seed": None}, TypeError, "seed must be a whole number, got None"),
        ({"ewc_lambda": -1.0}, ValueError, "ewc_lambda of 0 or above, got -1"),
        ({"learning_rate": 0}, ValueError, "learning_rate above 0, got 0"),
        ({"schedule": 5}, TypeError, "int"),
        ({"schedule": "0123"}, TypeError, "expected integers in the schedule, got '0'"),
        ({"schedule": (0, 1, 2)}, ValueError, r"once in the schedule, got \(0, 1, 2\)"),
        ({"schedule": (0, 1, 2, 3, 4)}, ValueError, "tasks 0 to 3 once"),
        ({"method": "GSS", "options": {"size": 3}}, TypeError, "among subsets.* size"),
        ({"options": {"rho": 1.0}}, TypeError, "rho and variant are fields"),
        ({"method": "EWC", "options": {"alpha": 1}}, TypeError, "EWC among none"),
        ({"method": "GSS", "options": {"subsets": [1]}}, TypeError, r"got \[1\]"),
        ({"options": 3}, TypeError, "options as a dict"),
        ({"dataset": "cocoseq-tiny", "model": "convnet"}, ValueError, "of features"),
    ],
)
def test_bad_fields_are_refused(fields, error, message):
    with pytest.raises(error, match=message):
        RunConfig(**fields)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"roh": 0.1}, r"\(dataset, method.*, got roh"),
        ({"memory_size": [50, 5000]}, "memory_size up to the 838 images"),
        ({"batch_size": [174, 175]}, "174 images of task 3 in digits70tiny, got 175"),
        ({"batch_size": 839, "method": "Multitask"}, "up to the 838 images"),
        ({"options": [{"subsets": 0}], "method": "GSS"}, "subsets must be at least 1"),
        ({"test_set": "full"}, "among balanced, imbalanced, got full"),
    ],
)
def test_a_grid_that_does_not_fit_its_data_is_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        configs(dataset=TINY, **fields)


def test_batches_fill_the_smallest_part_of_the_stream():
    assert configs(dataset=TINY, batch_size=838, method="Multitask")  # all at once
    pairs = {"dataset": "imbal-digits-tiny", "schedule": tuple(range(10))}
    (smallest,) = configs(**pairs, batch_size=15)  # of the pairs the least counts
    with pytest.raises(ValueError, match=r"task \d\+\d in imbal-digits-tiny, got 600"):
        check_all([smallest, dataclasses.replace(smallest, batch_size=600)])


def test_equal_numbers_of_any_type_are_one_configuration():
    fields = {
        "memory_size": 50,
        "batch_size": 10,
        "frozen_stages": 1,
        "variance_points": 2,
    }
    plain = RunConfig(dataset=TINY, seed=3, learning_rate=1.0, rho=0.5, **fields)
    arrays = {name: np.int64(value) for name, value in fields.items()}
    other = RunConfig(
        dataset=TINY, seed=np.int64(3), learning_rate=1, rho=np.float32(0.5), **arrays
    )
    assert other == plain
    assert other.hash == plain.hash
    assert {type(value) for value in vars(other).values()} <= {
        str,
        int,
        float,
        bool,
        type(None),
    }


def test_hash_covers_what_changes_the_result_and_nothing_else():
    base = RunConfig(dataset=TINY)
    assert (
        RunConfig(dataset=TINY, memory_size=50, schedule=[0, 3, 1, 2]).hash == base.hash
    )
    assert RunConfig(dataset=TINY, rho=0).hash == RunConfig(dataset=TINY, rho=-0.0).hash
    assert RunConfig(dataset=TINY, epochs=3).hash == base.hash  # PRS knows no epochs
    other = {
        "rho": 0.1,
        "variant": "authors",
        "memory_size": 51,
        "schedule": (3, 0, 1, 2),
        "seed": 1,
        "test_set": "imbalanced",
        "learning_rate": 0.1,
        "batch_size": 5,
        "dataset": "digits70seq",
        "method": "CRS",
        "replay_batch_size": 5,
        "precision": "bf16",
    }
    hashes = {
        RunConfig(**{"dataset": TINY} | {name: value}).hash
        for name, value in other.items()
    }
    assert len(hashes | {base.hash}) == len(other) + 1
    # a run in float32 keeps the hash it had before there was a choice
    assert RunConfig(dataset=TINY, precision="fp32").hash == base.hash
    assert "precision" not in base.identity
    assert RunConfig(dataset="cocoseq").resolved["precision"] == "bf16"


@pytest.mark.parametrize("method", METHODS)
def test_fields_that_a_method_does_not_read_leave_its_hash(method):
    base = RunConfig(dataset=TINY, method=method)
    changes = {
        "rho": 0.5,
        "variant": "authors",
        "memory_size": 20,
        "schedule": (3, 2, 1, 0),
    }
    changes |= {
        "epochs": 2,
        "replay_batch_size": 3,
        "ewc_lambda": 1.0,
        "variance_points": 5,
    }
    for name, value in changes.items():
        same = dataclasses.replace(base, **{name: value}).hash == base.hash
        assert same == (name not in METHODS[method].reads), name


def test_what_a_run_leaves_on_top_is_in_the_hash_only_where_asked_for():
    base = RunConfig(dataset=TINY)
    assert not {"features_per_class", "variance_points"} & set(base.identity)
    asked = [{"features_per_class": 5}, {"variance_points": 5}, {"variance_points": 6}]
    made = [dataclasses.replace(base, **fields) for fields in asked]
    assert len({config.hash for config in made} | {base.hash}) == 4
    assert {config.training for config in made} == {base.training}
    both = dataclasses.replace(base, features_per_class=5, variance_points=5)
    assert both.identity == base.identity | {
        "features_per_class": 5,
        "variance_points": 5,
    }


def test_every_field_is_read():
    fields = {field.name for field in dataclasses.fields(RunConfig)}
    options = {"options": {"subsets": 5}}
    assert fields <= set(RunConfig(method="GSS", **options).resolved)


def test_configs_is_the_grid_without_repeats():
    grid = configs(
        dataset=TINY, method=["Finetune", "PRS"], rho=[0.0, 0.5], seed=[0, 1]
    )
    expected = [
        ("Finetune", 0),
        ("Finetune", 1),
        ("PRS", 0),
        ("PRS", 1),
        ("PRS", 0),
        ("PRS", 1),
    ]
    assert [(config.method, config.seed) for config in grid] == expected
    assert [config.rho for config in grid[2:]] == [0.0, 0.0, 0.5, 0.5]


@pytest.mark.parametrize("name", DATASETS)
def test_recipes_make_valid_configurations(name):
    assert RunConfig(dataset=name).resolved["memory_size"] >= 1


def test_options_of_the_sampler_are_part_of_the_identity_where_given():
    plain = RunConfig(TINY, "GSS")
    fewer = RunConfig(TINY, "GSS", options={"subset_size": 5, "subsets": 4})
    assert hash(fewer) and fewer.options == (("subset_size", 5), ("subsets", 4))
    assert fewer == RunConfig(
        TINY, "GSS", options={"subsets": np.int64(4)} | {"subset_size": 5}
    )
    assert dataclasses.replace(fewer, seed=1).options == fewer.options
    assert RunConfig(TINY, "GSS", options={}).hash == plain.hash
    assert "options" not in plain.identity
    assert fewer.identity == plain.identity | {"options": dict(fewer.options)}
    assert fewer.hash != plain.hash and fewer.training != plain.training
    sampler = fewer.sampler_for(load_dataset(TINY, images=False), 0)
    assert (sampler.subsets, sampler.subset_size) == (4, 5)
    assert len(configs(dataset=TINY, method="GSS", options=[{}, {"subsets": 2}])) == 2
