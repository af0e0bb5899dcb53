"""The weights that networks start from on the stand-ins."""

from dataclasses import replace

import pytest
import torch

from prslib.datasets import load_dataset
from prslib.models.weights import EMBEDDED, NONE, read_state
from prslib.train import RunConfig, make_network, spawn_seeds

TINY = "digits70tiny"
pytestmark = pytest.mark.usefixtures("one_thread")


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
