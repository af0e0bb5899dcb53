"""The weights that networks start from on the stand-ins: scenes, weights, runs, report."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from cells import functions_of
from fake_runs import fake_run
from sklearn.metrics import average_precision_score

from prslib.datasets import load_dataset
from prslib.datasets.scenes import CLASS_NAMES, TURNS, draw_scenes
from prslib.models.networks import make_model
from prslib.models.weights import EMBEDDED, NONE, read_state
from prslib.report.asked import configs
from prslib.report.claims import CLAIMS
from prslib.train import RunConfig, make_network, spawn_seeds

pretraining = functions_of("pretraining")

TINY = "digits70tiny"
SHAPE = (32, 32, 3)
pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("name", ["digits-0", "turned_digits"])
def test_embedded_weights_know_their_scenes_and_not_the_others(name):
    """On originals that they have not seen; the other scenes have the same colours."""
    model = make_model("convnet", SHAPE, len(CLASS_NAMES), seed=0, weights=NONE)
    model.load_state_dict(read_state(EMBEDDED[name]))
    model.eval()
    precision = {}
    for scenes in TURNS:
        rng = np.random.default_rng(1)
        pictures, labels = draw_scenes(scenes, 600, rng, split="test")
        with torch.no_grad():
            images = torch.from_numpy(pictures).permute(0, 3, 1, 2) / 255
            logits = model(images).numpy()
        precision[scenes] = average_precision_score(labels, logits, average="macro")
    assert precision.pop(name.partition("-")[0]) > 0.9
    assert max(precision.values()) < 0.6


def test_stand_ins_for_photographs_begin_with_learned_weights():
    assert RunConfig(dataset=TINY).resolved["weights"] == "digits"
    usual = {"resnet18": NONE, "resnet101": "IMAGENET1K_V1", "mlp": NONE}
    for model, weights in usual.items():
        assert RunConfig(dataset=TINY, model=model).resolved["weights"] == weights
    assert RunConfig(dataset="imbal-digits").resolved["weights"] == NONE  # the paper's
    each = [RunConfig(dataset=TINY, seed=n).identity["weights"] for n in range(6)]
    assert len(set(each)) == 5 and each[0] == each[5]  # the hash of a file


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


def test_claims_are_decided_for_each_weights_alone(monkeypatch):
    """From random weights PRS is below CRS, from learned ones above, and both forget alike."""
    fixed = {"dataset": TINY, "method": ["CRS", "PRS"], "seed": list(range(5))}
    asked = configs(**fixed, weights=[NONE, "turned_digits", "digits"])
    asked += configs(**fixed, schedule=[(0, 1, 3, 2)], weights=[NONE, "digits"])

    def score(config):
        lead = (-0.05 if config.weights == NONE else 0.03) * (config.method == "PRS")
        level = 0.5 + 0.2 * (config.weights != NONE) + lead + 0.001 * config.seed
        return fake_run(config, level)

    some = {name: CLAIMS[name] for name in ("above_crs", "schedules_crs", "tail_crs")}
    decide = partial(pretraining.ledger.decide, claims=some)
    monkeypatch.setattr(pretraining.ledger, "decide", decide)
    decided = pretraining.by_weights([score(config) for config in asked], asked)
    assert "not run" not in set(decided["verdict"])
    differing = pretraining.differing_verdicts(decided)
    weights = ["random", "turned digits", "digits"]
    assert list(differing) == ["claim", "data", *weights, "paper"]
    cells = differing.set_index("claim")[weights]
    assert cells.loc["PRS outperforms CRS"].tolist() == [
        "-5.0 [-5.0, -5.0] points: does not hold",
        "+3.0 [+3.0, +3.0] points: holds",
        "+3.0 [+3.0, +3.0] points: holds",
    ]
    assert cells.loc["PRS outperforms CRS in every schedule", weights[1]] == "not run"
