"""Public functions refuse bad input with one sentence, before any work starts."""

import numpy as np
import pandas as pd
import pytest
import torch

import prslib
from prslib import RunConfig, make_model, run, run_all
from prslib.datasets import Entry, Recipe
from prslib.train import Method

TINY = "digits70tiny"
ONE = RunConfig(TINY, "CRS")
IMAGE = (32, 32, 3)


def tiny(method="PRS", **fields):
    return RunConfig(TINY, method, **fields)


def network(shape=IMAGE, seed=0, weights="none", classes=5):
    return make_model("convnet", shape, classes, seed, weights)


REFUSED = [
    (lambda: tiny(dataset_name=1), TypeError, "unexpected keyword argument 'dataset_n"),
    (lambda: RunConfig(pd.NA), ValueError, "unknown dataset <NA>; known datasets: cl"),
    (lambda: tiny(pd.Series(["PRS"])), ValueError, "unknown method 0 PRS .*; known"),
    (lambda: tiny(rho="x" * 9999), TypeError, "rho must be a number, got 'xxx.* "),
    (lambda: tiny(ewc_lambda=1e300), ValueError, "ewc_lambda must be within ±3.4"),
    (lambda: tiny(memory_size="9"), TypeError, "memory_size must be a whole number"),
    (lambda: tiny(memory_size=True), TypeError, "memory_size must be a whole number"),
    (lambda: tiny(learning_rate=0), ValueError, "learning_rate must be at least 1e-12"),
    (lambda: tiny(seed=-1), ValueError, "seed must be at least 0, got -1"),
    (lambda: tiny(seed="0"), TypeError, "seed must be a whole number, got '0'"),
    (lambda: tiny(schedule="0312"), TypeError, "each task of a schedule must be a wh"),
    (lambda: tiny(own_threshold=1), TypeError, "own_threshold must be True or False"),
    (lambda: run(ONE, "gpu"), ValueError, "unknown device 'gpu'; known devices: .*cpu"),
    (lambda: run_all([ONE], device="gpu"), ValueError, "unknown device 'gpu'"),
    (
        lambda: run_all([ONE, tiny(batch_size=10**9)]),
        ValueError,
        "expected batch_size up to the samples of task 0, got 1000000000",
    ),
    (
        lambda: run_all([ONE, tiny(loss="cross_entropy")]),
        ValueError,
        f"a loss of several labels per sample for {TINY}, got cross_entropy",
    ),
    (lambda: prslib.load_dataset("x"), ValueError, "unknown dataset 'x'; known datas"),
    (lambda: prslib.load_dataset(TINY, 1), TypeError, "images must be True or False"),
    (lambda: prslib.make_sampler("x", 1, 1, 0), ValueError, "unknown sampler 'x'; kno"),
    (lambda: prslib.register("Own", 3), TypeError, "a sampler's class, .* as Own, got"),
    (lambda: prslib.register("CRS", Method()), ValueError, "another name than prslib"),
    (lambda: prslib.register("focal", max), ValueError, "another name than prslib's"),
    (lambda: Method(rehearsal="x"), ValueError, "unknown rehearsal 'x'; known rehears"),
    (lambda: make_model("x", IMAGE, 5, 0), ValueError, "unknown model 'x'; known mod"),
    (lambda: network(shape=3), TypeError, "image_shape must be a list, got 3"),
    (lambda: network(shape=(8, 8)), ValueError, "height, width and channels, got"),
    (lambda: network(shape=(8, 8, 0)), ValueError, "image_shape must be at least 1"),
    (lambda: network(classes=0), ValueError, "num_classes must be at least 1, got 0"),
    (lambda: network(seed="0"), TypeError, "seed must be a whole number, got '0'"),
    (lambda: network(weights=3), TypeError, "weights must be text, got 3"),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_it_is_refused_in_a_sentence(call, error, message):
    with pytest.raises(error, match=message) as caught:
        call()
    assert len(str(caught.value)) < 1000 and "\n" not in str(caught.value)


@pytest.mark.usefixtures("registers")
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"model": "nope"}, "unknown model 'nope'; known models"),
        ({"memory_size": "9"}, "memory_size must be a whole number, got '9'"),
        ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
        ({"tasks_at_once": 0}, "tasks_at_once must be at least 1, got 0"),
        ({"test_resamples": -1}, "test_resamples must be at least 0, got -1"),
        ({"optimizer": "adamw"}, "unknown optimizer 'adamw'; known optimizers: adam"),
        ({"clip_value": -1}, "clip_value must be at least 0, got -1"),
        ({"precision": "fp8"}, "unknown precision 'fp8'; known precisions"),
        ({"loss": "nope"}, "unknown loss 'nope'; known losses"),
    ],
)
def test_a_recipe_of_ones_own_is_checked(values, message):
    def register():
        fields = {"model": "mlp", "memory_size": 9, "schedule": (0, 1)} | values
        prslib.register("ab", Entry(lambda images=True: None, Recipe(**fields)))
        RunConfig("ab")

    with pytest.raises((TypeError, ValueError), match=message):
        register()


@pytest.mark.usefixtures("registers")
def test_a_method_of_ones_own_names_a_sampler_and_stages():
    prslib.register("Own", Method(sampler="nope"))
    with pytest.raises(ValueError, match="unknown sampler 'nope'; known samplers"):
        tiny("Own")
    with pytest.raises(ValueError, match="unknown value of frozen 'first'; known"):
        Method(sampler="crs", frozen="first")


def test_a_seed_may_be_of_numpys_integers():
    same = network(seed=np.int64(3)), network(seed=3)
    weights = [model.state_dict()["stages.0.0.weight"] for model in same]
    assert torch.equal(*weights)


def test_a_file_of_weights_is_read_before_the_first_step(tmp_path):
    steps = []
    file = tmp_path / "own.pth"
    torch.save({"fc.weight": torch.zeros(3)}, file)
    config = tiny("CRS", weights=str(file))
    with pytest.raises(ValueError, match=r"expected weights of convnet in .*own.pth"):
        run(config, progress=steps.append)
    file.write_text("none")
    with pytest.raises(ValueError, match=r"a state dict .* in .*own.pth, but it cann"):
        run(config, progress=steps.append)
    assert not steps
    state = network().state_dict()
    lower = {name: state[name] for name in state if not name.startswith("stages.3.")}
    assert len(lower) < len(state)
    torch.save(lower, file)  # the head begins random, whatever is in the file
    run(config, progress=steps.append)
    assert steps[-1] == len(steps)
