"""Public functions refuse bad input with one sentence, before any work starts."""

import numpy as np
import pandas as pd
import pytest
import torch

import prslib
from prslib import RunConfig, cli, configs, make_model, run, run_all
from prslib.datasets import Entry, Recipe

ONE = RunConfig("digits70tiny", "CRS")
IMAGE = (32, 32, 3)


def tiny(**fields):
    return configs(**{"dataset": "digits70tiny"} | fields)


def network(shape=IMAGE, seed=0, weights="none"):
    return make_model("convnet", shape, 5, seed, weights)


CALLS = [
    (lambda: run(ONE, "gpu"), ValueError, "unknown device 'gpu'; known devices: cpu"),
    (lambda: run_all([ONE], device="gpu"), ValueError, "unknown device 'gpu'; known"),
    (
        lambda: tiny(method="PRS", seed=range(0)),
        ValueError,
        "least one of seed, got no",
    ),
    (
        lambda: tiny(dataset=pd.NA),
        ValueError,
        "unknown dataset <NA>; known datasets: c",
    ),
    (lambda: tiny(draw=pd.Series([1])), ValueError, "unknown draw 0 1 dtype: int64; k"),
    (lambda: tiny(rho="x" * 9999), TypeError, "rho must be a number, got 'xxx.* "),
    (lambda: tiny(ewc_lambda=1e300), ValueError, "ewc_lambda must be within ±3.4"),
    (lambda: tiny(frozen_stages=-1), ValueError, "frozen_stages must be at least 0"),
    (lambda: tiny(learning_rate=0), ValueError, "learning_rate must be at least 1e-12"),
    (lambda: tiny(own_threshold=1), TypeError, "own_threshold must be True or False"),
    (lambda: tiny(memory_size="9"), TypeError, "memory_size must be a whole number"),
    (lambda: tiny(memry_size=9), TypeError, "memry_size"),
    (lambda: prslib.load_dataset("digits70tiny", 1), TypeError, "images must be True"),
    (lambda: prslib.register("mine", 3), TypeError, "a sampler's class, .* got 3"),
    (lambda: network(shape=3), TypeError, "image_shape must be a list, got 3"),
    (lambda: network(shape=(8, 8)), ValueError, "height, width and channels, got"),
    (lambda: network(shape=(8, 8, 0)), ValueError, "image_shape must be at least 1"),
    (lambda: network(seed="0"), TypeError, "seed must be a whole number, got '0'"),
    (lambda: network(weights=3), TypeError, "weights must be text, got 3"),
]


@pytest.mark.parametrize(("call", "error", "message"), CALLS)
def test_it_is_refused_in_a_sentence(call, error, message):
    with pytest.raises(error, match=message) as caught:
        call()
    assert len(str(caught.value)) < 600 and "\n" not in str(caught.value)


@pytest.mark.usefixtures("registers")
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"model": "nope"}, "unknown model 'nope'; known models"),
        ({"memory_size": 0}, "memory_size must be at least 1, got 0"),
        ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
        ({"tasks_at_once": 0}, "tasks_at_once must be at least 1, got 0"),
        ({"test_resamples": -1}, "test_resamples must be at least 0, got -1"),
        ({"optimizer": "adamw"}, "unknown optimizer 'adamw'; known optimizers: adam"),
        ({"clip_value": -1}, "clip_value must be at least"),
        ({"precision": "fp8"}, "unknown precision 'fp8'; known precisions"),
        ({"loss": "nope"}, "unknown loss 'nope'; known losses"),
    ],
)
def test_a_recipe_of_ones_own_is_checked(values, message):
    def register():
        fields = {"model": "mlp", "memory_size": 9, "schedule": (0, 1)} | values
        prslib.register("ab", Entry(lambda images: None, Recipe(**fields)))
        RunConfig("ab")

    with pytest.raises((TypeError, ValueError), match=message):
        register()


def test_a_file_of_weights_that_does_not_fit_is_refused(tmp_path):
    file = tmp_path / "own.pth"
    config = RunConfig("digits70tiny", "CRS", batch_size=80)

    def attempt():
        config.weights = str(file)
        return run(config)

    torch.save({"fc.weight": torch.zeros(3)}, file)
    with pytest.raises(ValueError, match=r"expected weights of convnet in .*own.pth"):
        attempt()
    file.write_text("none")
    with pytest.raises(
        ValueError, match=r"a state dict .* in .*own.pth, but it cannot"
    ):
        attempt()
    state = network().state_dict()
    head = {name for name in state if name.startswith("stages.3.")}
    assert head
    torch.save({name: value for name, value in state.items() if name not in head}, file)
    assert attempt().scores["value"].notna().any()


def test_seeds_and_shapes_of_numpy_are_whole_numbers():
    same = network(seed=np.int64(3)), network(seed=3, shape=np.array(IMAGE))
    weights = [model.state_dict()["stages.0.0.weight"] for model in same]
    assert torch.equal(*weights)


def test_a_shard_is_a_part_of_some(capsys):
    parser = cli._parser()
    for text, shard in (("3/20", (3, 20)), ("1/1", (1, 1)), ("20/20", (20, 20))):
        assert parser.parse_args(["train", "--shard", text]).shard == shard
    assert parser.parse_args(["train"]).shard == (1, 1)
    for text in ("0/3", "4/3", "x", "3", "1/0", "-1/3", "1/2/3", ""):
        with pytest.raises(SystemExit) as caught:
            parser.parse_args(["train", f"--shard={text}"])
        assert caught.value.code == 2
        assert "a part such as 3/20, from 1/20 to 20/20, got" in capsys.readouterr().err
