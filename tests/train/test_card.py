"""The way of a GPU, on a pretended one: tensors of two devices are never mixed."""

import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from pretended_card import NAME, Card, OnCard, lstm_cell, register

from prslib import LOSSES, METHODS, MODELS, RunConfig, load_dataset, train
from prslib.losses import Stream
from prslib.samplers.exstream import ExStream

register()
pytestmark = pytest.mark.usefixtures("one_thread")
PICTURES, SEVERAL, ONE_LABEL = "digits70tiny", "cocoseq-tiny", "imbal-digits-tiny"


class Launched:
    """`prslib.device.Captured` before it captures."""

    def __init__(self, method, device):
        self.method = method

    def __call__(self, *tensors):
        self.method(*tensors)


@pytest.fixture(scope="module")
def on_card():
    """`prslib.train` that knows the card as the GPU that it is written for."""
    file = Path(train.__file__)
    text = file.read_text("utf-8").replace('.type == "cuda"', f'.type == "{NAME}"')
    module = ModuleType("train_on_card")
    sys.modules["train_on_card"] = module
    exec(compile(text, file, "exec"), vars(module))
    module.check_device = lambda device: device
    module.Captured = Launched
    yield module
    del sys.modules["train_on_card"]


@pytest.fixture
def card(monkeypatch, on_card):
    """Compute on the pretended card."""
    as_tensor = torch.as_tensor

    def on_device(x, *args, device=None, **options):
        made = as_tensor(x, *args, **options)
        return made if isinstance(x, torch.Tensor) else made.to(device or "cpu")

    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (8e10, 8e10))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 0)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 0)
    monkeypatch.setattr(torch, "as_tensor", on_device)
    monkeypatch.setattr(torch._VF, "lstm_cell", lstm_cell)
    # `module.to` may not turn the host's tensors into the card's
    switch = "_overwrite_module_params_on_conversion"
    monkeypatch.setattr(torch.__future__, switch, True)
    with Card():
        yield
    on_card.load_inputs.cache_clear()


KINDS = ["PRS", "GSS", "ExStream", "EWC", "DER++", "ER-ACE", "Multitask"]


@pytest.mark.usefixtures("card")
@pytest.mark.parametrize("method", KINDS)
def test_a_run_never_mixes_devices(on_card, method):
    points = 1 if METHODS[method].sampler else 0
    looks = {"features_per_class": 1, "variance_points": points, "memory_size": 10}
    config = on_card.RunConfig(PICTURES, method, batch_size=150, **looks)
    result = on_card.run(config, NAME)
    assert result.record["device"] == NAME


@pytest.mark.usefixtures("card")
@pytest.mark.parametrize(
    ("dataset", "fields"),
    [
        (SEVERAL, {"tuned_threshold": True, "loss": "inverse_frequency"}),
        (ONE_LABEL, {"method": "EWC", "batch_size": 40, "updates": 2}),
        (PICTURES, {"precision": "bf16", "batch_size": 150, "draw": "balanced"}),
    ],
)
def test_nor_with_other_settings(on_card, dataset, fields):
    on_card.run(on_card.RunConfig(dataset, **fields), NAME)


@pytest.mark.usefixtures("card")
@pytest.mark.parametrize("name", [name for name in LOSSES if LOSSES[name].reads_stream])
def test_nor_with_a_loss_of_the_stream_so_far(name):
    frequencies = torch.tensor([3.0, 0.0, 1.0, 9.0]).to(NAME)
    replayed = torch.tensor([False, True, True]).to(NAME)
    logits, targets = torch.randn(3, 4).to(NAME), torch.eye(4)[:3].to(NAME)
    LOSSES[name].function(logits, targets, Stream(frequencies, 13, replayed))


@pytest.mark.usefixtures("card")
@pytest.mark.parametrize("free", [8e10, 0])
@pytest.mark.parametrize("method", ["PRS", "ExStream"])
def test_the_card_trains_as_the_host_also_where_the_data_do_not_fit(
    on_card, method, free, monkeypatch
):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (free, free))
    there = on_card.run(on_card.RunConfig(SEVERAL, method, batch_size=40), NAME)
    here = train.run(RunConfig(SEVERAL, method, batch_size=40))
    np.testing.assert_array_equal(there.memory_labels, here.memory_labels)
    np.testing.assert_allclose(
        there.scores["value"], here.scores["value"], atol=0.02, equal_nan=True
    )


@pytest.mark.usefixtures("card")
@pytest.mark.parametrize("model", [name for name in MODELS if "resnet101" not in name])
def test_every_network_takes_a_step(on_card, model):
    dataset = SEVERAL if model == "head" else PICTURES
    data = load_dataset(dataset)
    inputs = data.train.inputs[:4]
    if model != "head":
        inputs = np.zeros((4, 16, 16, 3), np.uint8)
    object.__setattr__(data.train, "inputs", inputs)
    frozen = MODELS[model].vector_stages
    fields = {"model": model, "weights": "none", "precision": "bf16"}
    config = on_card.RunConfig(dataset, "Finetune", frozen_stages=frozen, **fields)
    there = torch.as_tensor(inputs).to(NAME)
    trainer = on_card.Trainer(config, data, there, torch.device(NAME, 0))
    trainer.step(np.arange(4))
    assert isinstance(trainer.parameters[0], OnCard)


@pytest.mark.usefixtures("card")
def test_vectors_merge_on_the_card_as_on_the_host():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(300, 40)).astype(np.float32)
    values[::3] = values[1::3]  # pairs without a distance
    labels = np.eye(3, dtype=bool)[rng.integers(3, size=300)]
    host = ExStream(20, 3, seed=0)
    gpu = ExStream(20, 3, seed=0)
    for rows in np.arange(300).reshape(-1, 10):
        slots = host.place(labels[rows], features=values[rows])
        features = OnCard(torch.from_numpy(values[rows]))
        np.testing.assert_array_equal(gpu.place(labels[rows], features=features), slots)
        if rows[0] == 150:  # stopped, and begun again
            state = gpu.state_dict()
            gpu = ExStream(20, 3, seed=1)
            gpu.load_state_dict(state)
    saved = gpu.state_dict()
    np.testing.assert_array_equal(saved["samples"], host.samples)
    np.testing.assert_allclose(saved["prototypes"], host.prototypes, atol=1e-5)
    wrong = OnCard(torch.full((1, 40), torch.nan)), OnCard(torch.zeros(1, 41))
    for features in wrong:
        with pytest.raises(ValueError, match="features: expected"):
            gpu.place(labels[:1], features=features)
