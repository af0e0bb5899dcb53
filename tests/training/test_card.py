"""The way of a GPU, on a pretended one: no mixture of devices, no wait in a step."""

import numpy as np
import pandas as pd
import pytest
import torch
from interrupted import stopped_at
from pretended_card import NAME, Card, OnCard, loaded, lstm_cell, register

from prslib.datasets import load_dataset
from prslib.experiments import cost
from prslib.experiments.store import Store
from prslib.losses import LOSSES, Loss
from prslib.models import MODELS
from prslib.models.networks import make_model, resnet, resnet_backbone
from prslib.samplers.exstream import ExStream
from prslib.training import device as device_module
from prslib.training import run as run_module
from prslib.training.config import RunConfig
from prslib.training.device import Inputs
from prslib.training.exstream_gpu import ExStreamOnGPU
from prslib.training.learner import Learner
from prslib.training.methods import METHODS
from prslib.training.run import run, run_at_once

register()
pytestmark = pytest.mark.usefixtures("one_thread")
TINY = "digits70tiny"

# the only waits, outside of steps and in them, and why
ONCE = {
    ("from pageable memory", "training/learner.py:__init__"): "the first weights",
    ("from pageable memory", "training/device.py:__init__"): "the data set",
    (
        "from pageable memory",
        "training/exstream_gpu.py:_to_gpu",
    ): "ExStream's first batch",
    ("to the host", "training/learner.py:probabilities"): "scores, after a task",
    ("to the host", "training/learner.py:features"): "what a figure shows, at the end",
    ("aten::_local_scalar_dense", "training/gradients.py:gradient_variance"): (
        "a number, at a few points of a stream"
    ),
}
IN_STEPS = {
    "ER-ACE": {
        ("aten::nonzero", "training/learner.py:loss"): (
            "the number of classes that a loss looks at"
        ),
    },
    "GSS": {("to the host", "training/learner.py:products"): "the host draws by them"},
    "ExStream": {
        ("to the host", "training/exstream_gpu.py:_checked"): "are all numbers finite?",
        (
            "to the host",
            "training/exstream_gpu.py:_of_batch",
        ): "slots that vectors merge in",
        # where its vectors do not fit
        (
            "to the host",
            "training/exstream_gpu.py:features_for",
        ): "they merge on the host",
    },
}


@pytest.fixture
def card(monkeypatch):
    """Compute on the pretended card and count waits."""
    as_tensor = torch.as_tensor

    def on_device(x, *args, device=None, **options):
        made = as_tensor(x, *args, **options)
        return made if isinstance(x, torch.Tensor) else made.to(device or "cpu")

    monkeypatch.setattr(run_module, "check_device", lambda device: device)
    monkeypatch.setattr(device_module, "free_memory", lambda device: 8e10)
    monkeypatch.setattr(torch, "as_tensor", on_device)
    monkeypatch.setattr(torch, "load", loaded(torch.load))
    monkeypatch.setattr(torch._VF, "lstm_cell", lstm_cell)
    # `module.to` may not turn the host's tensors into the card's
    switch = "_overwrite_module_params_on_conversion"
    monkeypatch.setattr(torch.__future__, switch, True)
    with Card() as mode:
        yield mode.waits
    run_module.on_gpu.clear()


def waits_of(counted, method):
    """Return the waits that nothing excuses."""
    return counted.keys() - ONCE.keys() - IN_STEPS.get(method, {}).keys()


@pytest.mark.parametrize("method", METHODS)
def test_a_run_never_mixes_devices_nor_waits_in_a_step(card, method):
    points = 1 if METHODS[method].sampler else 0
    looks = {"features_per_class": 1, "variance_points": points}
    run(RunConfig(TINY, method, batch_size=90, **looks), NAME)
    assert not waits_of(card, method)


def asking(logits, targets, *, class_freq, class_counts, seen, replayed):
    """Return a loss of all that one may ask for."""
    weight = (class_freq + class_counts + 1) / seen  # (C,)
    losses = (logits - targets).square() * weight
    return losses.mul(2 - replayed[:, None].float()).mean()


@pytest.mark.parametrize("name", [name for name in LOSSES if LOSSES[name].asks])
def test_nor_with_a_loss_that_counts(card, name):
    fields = {"dataset": TINY, "batch_size": 90, "variance_points": 1}
    if LOSSES[name].one_label:
        fields |= {"dataset": "imbal-digits-tiny", "batch_size": 40}
    run(RunConfig(method="PRS", loss=name, **fields), NAME)
    assert not waits_of(card, "PRS")


def test_nor_with_one_that_asks_for_all(card, monkeypatch):
    monkeypatch.setitem(LOSSES, "own", Loss(asking))
    run(RunConfig(TINY, "PRS", batch_size=90, loss="own"), NAME)
    assert not waits_of(card, "PRS")


def test_nor_where_it_chooses_a_threshold(card):
    fields = {"batch_size": 30, "own_threshold": True}
    run(RunConfig("cocoseq-tiny", "PRS", **fields), NAME)
    assert not waits_of(card, "PRS")


@pytest.mark.parametrize("method", ["PRS", "ExStream"])
def test_nor_where_the_data_do_not_fit(card, method, monkeypatch):
    monkeypatch.setattr(device_module, "free_memory", lambda device: 0)
    run(RunConfig(TINY, method, batch_size=90), NAME)
    assert not waits_of(card, method)


@pytest.mark.parametrize("method", ["EWC", "GSS", "ExStream"])
def test_nor_in_a_plain_network(card, method):
    run(RunConfig("imbal-digits-tiny", method, batch_size=40), NAME)
    assert not waits_of(card, method)


def shape_of(model):
    if MODELS[model].on_features:
        return (24,)
    return (40, 40, 3) if "resnet101" in model else (32, 32, 3)


@pytest.mark.parametrize("model", MODELS)
def test_no_network_waits_in_a_step(card, model):
    network = make_model(model, shape_of(model), 7, 0, "none")
    frozen = MODELS[model].vector_stages
    learner = Learner(
        network,
        optimizer="adam",
        learning_rate=1e-4,
        loss="multilabel_soft_margin",
        clip_value=5.0,
        frozen_stages=frozen,
        device=NAME,
        precision="bf16",
    )
    autocast = learner.autocast()
    assert autocast.device == NAME and autocast.fast_dtype == torch.bfloat16
    card.clear()
    height, *rest = shape_of(model)
    shape = (4, *rest[1:], height, *rest[:1])
    inputs = OnCard(torch.rand(shape))
    learner.step(learner.encode(inputs), OnCard(torch.zeros(4, 7)))
    assert not card


def test_a_resnet_is_one_graph():
    """A copy from the host, or a number that the host asks for, would break it."""
    layers = resnet_backbone((32, 32, 3), "none", "resnet18")
    network = resnet(*layers, 5)
    compiled = torch.compile(network, backend="eager", fullgraph=True)
    assert compiled(torch.rand(2, 3, 32, 32)).shape == (2, 5)


@pytest.mark.parametrize("method", ["DER++", "EWC", "GSS", "ExStream", "PRS"])
def test_a_run_goes_on_with_the_same_bytes(card, method, tmp_path):
    config = RunConfig(TINY, method, batch_size=90)
    whole = run(config, NAME)
    file = tmp_path / "checkpoint"
    stopped_at(3, config, Store(tmp_path), file=file, device=NAME)
    assert file.exists()
    card.clear()
    again = run(config, NAME, checkpoint=file)
    of_file = "training/checkpoint", "checks.py:_bytes_of"
    read = {(what, place) for what, place in card if place.startswith(of_file)}
    assert not waits_of(card, method) - read
    pd.testing.assert_frame_equal(again.scores, whole.scores, check_exact=True)
    np.testing.assert_array_equal(again.memory_labels, whole.memory_labels)


def test_its_checkpoint_is_read_on_a_cpu_and_the_run_starts_again(card, tmp_path):
    config = RunConfig(TINY, "EWC", batch_size=90)
    file = tmp_path / "checkpoint"
    stopped_at(3, config, Store(tmp_path), file=file, device=NAME)
    with pytest.warns(UserWarning, match=f"made on .*'device': '{NAME}'.*starts again"):
        again = run(config, checkpoint=file)
    pd.testing.assert_frame_equal(again.scores, run(config).scores, check_exact=True)


@pytest.mark.parametrize("method", ["DER++", "ExStream"])
def test_a_plan_times_steps_with_a_full_memory_on_the_card(card, method, monkeypatch):
    monkeypatch.setattr(cost, "check_device", lambda device: device)
    monkeypatch.setattr(cost, "STEPS_ON_GPU", 3)
    monkeypatch.setattr(cost, "SECONDS", 0)
    config = RunConfig(TINY, method, batch_size=30)
    assert cost.measure_step.__wrapped__(config, NAME) > 0


def test_runs_on_one_data_set_share_its_copy_and_training_images_come_first(
    card, monkeypatch
):
    made = []
    monkeypatch.setattr(
        run_module, "Inputs", lambda *of: made.append(of) or Inputs(*of)
    )
    configs = [RunConfig(TINY, "Finetune", seed, batch_size=90) for seed in (0, 1)]
    images = [dataset.nbytes for dataset in images_of(TINY)]
    for config in configs:
        run_at_once([config], NAME)
    copied = [of[0].nbytes for of in made if of[0].ndim == 4 and len(of[0]) > 1]
    assert copied == images
    run_at_once([RunConfig("imbal-digits-tiny", "Finetune", batch_size=40)], NAME)
    assert {name for name, *_ in run_module.on_gpu} == {"imbal-digits-tiny"}
    run(configs[0], NAME)
    assert not run_module.on_gpu


def images_of(name):
    """Images of the training set, and of the test set that runs are scored on."""
    dataset = load_dataset(name)
    test_set = RunConfig(name).resolved["test_set"]
    return dataset.train.inputs, dataset.tests[test_set].inputs


def test_vectors_merge_on_the_card_as_on_the_host(card):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(300, 40)).astype(np.float32)
    values[::3] = values[1::3]  # pairs without a distance
    labels = np.eye(3, dtype=bool)[rng.integers(3, size=300)]
    host = ExStream(20, 3, seed=0)
    gpu = ExStreamOnGPU(20, 3, seed=0)
    for rows in np.arange(300).reshape(-1, 10):
        slots = host.place(labels[rows], features=values[rows])
        features = OnCard(torch.from_numpy(values[rows]))
        np.testing.assert_array_equal(gpu.place(labels[rows], features=features), slots)
        if rows[0] == 150:  # stopped, and begun again
            state = gpu.state_dict()
            gpu = ExStreamOnGPU(20, 3, seed=1)
            gpu.load_state_dict(state)
        if rows[0] == 200:  # gone too far, and back
            state = gpu.state_dict()
            near = OnCard(torch.from_numpy(values / 1000))  # to each other
            gpu.place(labels, features=near)
            gpu.load_state_dict(state)
    saved = gpu.state_dict()
    np.testing.assert_array_equal(saved["samples"], host.samples)
    np.testing.assert_allclose(saved["prototypes"], host.prototypes, atol=1e-5)
    wrong = OnCard(torch.full((1, 40), torch.nan)), OnCard(torch.zeros(1, 41))
    for features in wrong:
        with pytest.raises(ValueError, match="features: expected"):
            gpu.place(labels[:1], features=features)
