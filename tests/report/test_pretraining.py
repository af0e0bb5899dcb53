"""The weights that networks start from on the stand-ins: scenes, weights, runs, report."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from cells import functions_of
from sklearn.metrics import average_precision_score

from prslib.datasets import load_dataset
from prslib.models.networks import make_model
from prslib.models.weights import EMBEDDED, NONE, read_state
from prslib.train import RunConfig, make_network, spawn_seeds

pretraining = functions_of("pretraining")

TINY = "digits70tiny"
SHAPE = (32, 32, 3)
pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("name", ["digits-0", "turned_digits"])
def test_embedded_weights_know_their_scenes_and_not_the_others(name, program):
    """On originals that they have not seen; the other scenes have the same colours."""
    study = program("pretrain")
    model = make_model("convnet", SHAPE, len(study.CLASS_NAMES), seed=0, weights=NONE)
    model.load_state_dict(read_state(EMBEDDED[name]))
    model.eval()
    precision = {}
    for scenes in study.TURNS:
        rng = np.random.default_rng(1)
        pictures, labels = study.draw_scenes(scenes, 600, rng, split="test")
        with torch.no_grad():
            images = torch.from_numpy(pictures).permute(0, 3, 1, 2) / 255
            logits = model(images).numpy()
        precision[scenes] = average_precision_score(labels, logits, average="macro")
    assert precision.pop(name.partition("-")[0]) > 0.9
    assert max(precision.values()) < 0.6


@pytest.mark.parametrize(
    ("model", "seed"),
    [
        ("convnet", 6),
        ("convnet_attention_consistency", 0),
        ("convnet_rnn_attention", 0),
    ],
)
def test_networks_begin_with_learned_convolutions_and_a_head_of_the_seed(model, seed):
    data = load_dataset(TINY)
    config = RunConfig(dataset=TINY, model=model, seed=seed)
    *_, model_seed = spawn_seeds(config)
    learned = make_network(config, data, model_seed).state_dict()
    begun = replace(config, weights=NONE)
    plain = make_network(begun, data, model_seed).state_dict()
    state = read_state(EMBEDDED[f"digits-{seed % 5}"])
    body = {name for name in state if not name.startswith("stages.3.")}
    assert body <= set(learned)
    for name, value in learned.items():
        assert torch.equal(value, (state if name in body else plain)[name])
