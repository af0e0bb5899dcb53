"""Public functions refuse bad input with one sentence, before any work starts."""

import numpy as np
import pandas as pd
import pytest
import torch

import prslib
from prslib import (
    RunConfig,
    Store,
    configs,
    configs_of,
    make_model,
    paired,
    run,
    run_all,
)
from prslib.datasets import Entry, Recipe, SequentialDataset, Split
from prslib.training.methods import Method

ONE = RunConfig("digits70tiny", "CRS")
IMAGE = (32, 32, 3)


def tiny(**fields):
    return configs(**{"dataset": "digits70tiny"} | fields)


def network(shape=IMAGE, seed=0, weights="none"):
    return make_model("convnet", shape, 5, seed, weights)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: run_all(None), TypeError, "configs must be a list, got None"),
        (lambda: run_all(ONE), TypeError, "configs must be a list, got RunConfig"),
        (lambda: run_all(["x"]), TypeError, "a run of class RunConfig, got 'x'"),
        (lambda: run_all([ONE], "x"), TypeError, "store of class Store, got 'x'"),
        (lambda: run_all([ONE], ""), TypeError, "store of class Store, got ''"),
        (lambda: run_all([], address=3), TypeError, "address must be text, got 3"),
        (lambda: run_all([], save_every=None), TypeError, "save_every must be a numb"),
        (lambda: run("x"), TypeError, "config of class RunConfig, got 'x'"),
        (lambda: run(ONE, save_every=float("nan")), ValueError, "save_every must be f"),
        (lambda: run(ONE, save_every=-1), ValueError, "save_every must be at least 0"),
        (
            lambda: configs_of("CRS", [0]),
            TypeError,
            "methods must be a list, got 'CRS'",
        ),
        (lambda: configs_of(["CRS"], 0), TypeError, "seeds must be a list, got 0"),
        (lambda: configs_of([], [], "GSS"), TypeError, "costly must be a list, got 'G"),
        (lambda: configs_of([], [], [], 1), TypeError, "costly_seeds must be a list"),
        (lambda: configs_of([], [], dataset={}), ValueError, "unknown dataset {}"),
        (lambda: paired(rho=0.1, seed=[1]), TypeError, "rho must be a list, got 0.1"),
        (
            lambda: prslib.load_dataset("digits70tiny", 1),
            TypeError,
            "images must be Tr",
        ),
        (lambda: prslib.register(None, 3), TypeError, "name must be text, got None"),
        (lambda: network(shape=3), TypeError, "image_shape must be a list, got 3"),
        (lambda: network(shape=(8, 8)), ValueError, "height, width and channels, got"),
        (
            lambda: network(shape=(8, 8, 0)),
            ValueError,
            "image_shape must be at least 1",
        ),
        (lambda: network(seed="0"), TypeError, "seed must be a whole number, got '0'"),
        (lambda: network(weights=3), TypeError, "weights must be text, got 3"),
        (lambda: tiny(dataset=pd.NA), ValueError, "unknown dataset <NA>; known datase"),
        (
            lambda: tiny(method="Multitask", epochs=10**9),
            ValueError,
            "epochs must be at most 10000, got 1000000000",
        ),
        (lambda: tiny(draw=pd.Series([1])), ValueError, "unknown draw 0 1 dtype: int"),
        (lambda: tiny(rho="x" * 9999), TypeError, "rho must be a number, got 'xxx.* "),
        (lambda: tiny(ewc_lambda=1e300), ValueError, "ewc_lambda must be within ±3.4"),
        (
            lambda: tiny(replay_batch_size=10**9),
            ValueError,
            "replay_batch_size up to the 838 images of digits70tiny, got 1000000000",
        ),
        (
            lambda: tiny(variance_points=10**9),
            ValueError,
            "variance_points up to the 838 images of digits70tiny, got 1000000000",
        ),
        (
            lambda: tiny(loss="distribution_balanced", loss_options={"scale": -1.0}),
            ValueError,
            "does not fall where the logits of negatives rise, got one that does",
        ),
    ],
)
def test_it_is_refused_in_a_sentence(call, error, message):
    with pytest.raises(error, match=message) as caught:
        call()
    assert len(str(caught.value)) < 600 and "\n" not in str(caught.value)


@pytest.mark.usefixtures("registers")
def test_a_test_set_has_samples_of_every_task():
    labels = np.eye(4, dtype=bool).repeat(20, axis=0)
    task = np.array([0, 0, 1, 1])
    whole = Split(None, labels, task.repeat(20))
    first = Split(None, labels[:40], task.repeat(20)[:40])
    groups = ("majority",) * 4
    made = SequentialDataset("ab", whole, {"half": first}, tuple("abcd"), task, groups)
    recipe = Recipe(model="mlp", memory_size=9, schedule=(0, 1), test_set="half")
    prslib.register("ab", Entry(lambda images=True: made, recipe))
    with pytest.raises(ValueError, match="samples of task 1 of ab, got none in half"):
        configs(dataset="ab")


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
        tiny(method="Own")
    with pytest.raises(ValueError, match="unknown value of frozen 'first'; known"):
        Method(sampler="crs", frozen="first")


@pytest.mark.usefixtures("registers")
@pytest.mark.parametrize("needs", [["features"], "features", None, {"logits"}])
def test_a_sampler_needs_what_a_training_run_computes(needs):
    prslib.register("Own", type("Own", (prslib.Sampler,), {"needs": needs}))
    with pytest.raises(TypeError, match="needs of Own as a set, of features and grad"):
        tiny(method="Own")


def test_runs_and_seeds_may_come_in_any_list(tmp_path):
    store = Store(tmp_path)
    (first,) = run_all((each for each in [ONE]), store, save_every=float("inf"))
    assert first.config == ONE
    (second,) = run_all(np.array([ONE]), store)
    assert first.scores.equals(second.scores)
    assert configs_of(np.array(["CRS"]), range(2)) == configs_of(("CRS",), [0, 1])
    same = network(seed=np.int64(3)), network(seed=3)
    weights = [model.state_dict()["stages.0.0.weight"] for model in same]
    assert torch.equal(*weights)


def test_a_file_of_weights_is_read_before_the_first_run(tmp_path, monkeypatch):
    store = Store(tmp_path / "runs")
    file = tmp_path / "own.pth"

    def runs():
        return [RunConfig("digits70tiny", m, weights=str(file)) for m in ("CRS", "PRS")]

    torch.save({"fc.weight": torch.zeros(3)}, file)
    with pytest.raises(ValueError, match=r"expected weights of convnet in .*own.pth"):
        run_all(runs(), store)
    file.write_text("none")
    with pytest.raises(
        ValueError, match=r"a state dict .* in .*own.pth, but it cannot"
    ):
        run_all(runs(), store)
    assert not (tmp_path / "runs").exists()
    state = network().state_dict()
    head = {
        name: value for name, value in state.items() if name.startswith("stages.3.")
    }
    assert head
    torch.save({name: value for name, value in state.items() if name not in head}, file)
    assert len(run_all(runs(), store)) == 2
