"""The weights that networks start from on the stand-ins: scenes, training, runs, report."""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
from fake_runs import fake_run
from sklearn.metrics import average_precision_score

from prslib.datasets import load_dataset
from prslib.datasets import scenes as glyphs
from prslib.datasets.scenes import CLASS_NAMES, OTHER_COLOURS, TURNS, draw_scenes
from prslib.models.networks import make_model
from prslib.models.weights import EMBEDDED, IN_TURN, NONE, read_state
from prslib.report import pretraining
from prslib.report.claims import CLAIMS
from prslib.report.tables import average, seed_gaps
from prslib.training.config import RunConfig
from prslib.training.grids import configs
from prslib.training.learner import as_input
from prslib.training.run import initial_model

TINY = "digits70tiny"
SHAPE = (32, 32, 3)
pytestmark = pytest.mark.usefixtures("one_thread")


def embedded(name):
    return read_state(EMBEDDED[name])


def below_head(state):
    return {k: v for k, v in state.items() if not k.startswith("stages.3.")}


# the scenes


def test_no_class_is_a_streams():
    assert not set(OTHER_COLOURS) & set(glyphs.COLOURS)
    assert not set(OTHER_COLOURS.values()) & set(glyphs.COLOURS.values())
    for name in ("digits70seq", "digits49seq"):
        assert not set(CLASS_NAMES) & set(load_dataset(name, images=False).class_names)
    assert set(TURNS) == {name.partition("-")[0] for name in EMBEDDED}
    assert sum(path.stat().st_size for path in EMBEDDED.values()) < 500_000


def test_scenes_show_their_labels_and_all_classes_alike():
    scenes, labels = draw_scenes("digits", 4000, np.random.default_rng(0))
    shares = np.bincount(labels.sum(axis=1), minlength=5)[1:] / len(labels)
    np.testing.assert_allclose(shares, (0.6, 0.25, 0.1, 0.05), atol=0.025)
    expected = labels.sum() / len(CLASS_NAMES)
    assert (abs(labels.sum(axis=0) - expected) < 5 * np.sqrt(expected)).all()
    alone = np.flatnonzero(labels.sum(axis=1) == 1)[:50]
    colours = np.array(list(OTHER_COLOURS.values()))
    for row in alone:  # the brightest pixel has the class's colour
        pixels = scenes[row].reshape(-1, 3).astype(int)
        brightest = pixels[pixels.sum(axis=1).argmax()]
        nearest = abs(colours - brightest).sum(axis=1).argmin()
        colour = CLASS_NAMES[labels[row].argmax()].split()[0]
        assert list(OTHER_COLOURS)[nearest] == colour


def test_turned_scenes_are_the_same_digits_turned():
    pictures, _ = glyphs.scene_originals()[0]["train"]
    drawn = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(glyphs, "render_scenes", lambda *given: given[3][0])
        for name in TURNS:
            drawn[name] = draw_scenes(name, 3, np.random.default_rng(0))[0]
    np.testing.assert_array_equal(drawn["digits"], pictures)
    top, right = drawn["turned_digits"][:, 0], pictures[:, :, -1]
    np.testing.assert_array_equal(top, right)


# the weights


@pytest.mark.parametrize("name", EMBEDDED)
def test_embedded_weights_know_their_scenes_and_not_the_others(name):
    """On originals that they have not seen; the other scenes have the same colours."""
    model = make_model("convnet", SHAPE, len(CLASS_NAMES), seed=0, weights=NONE)
    model.load_state_dict(embedded(name))
    model.eval()
    precision = {}
    for scenes in TURNS:
        rng = np.random.default_rng(1)
        pictures, labels = draw_scenes(scenes, 600, rng, split="test")
        with torch.no_grad():
            logits = model(as_input(torch.from_numpy(pictures))).numpy()
        precision[scenes] = average_precision_score(labels, logits, average="macro")
    assert precision.pop(name.partition("-")[0]) > 0.9
    assert max(precision.values()) < 0.6


@pytest.mark.parametrize("dataset", ["digits70seq", "digits49tiny"])
def test_stand_ins_for_photographs_begin_with_learned_weights(dataset):
    plain = RunConfig(dataset=dataset)
    assert plain.resolved["weights"] == "digits"
    assert plain.hash == RunConfig(dataset=dataset, weights="digits").hash
    assert RunConfig(dataset=dataset, weights=NONE).resolved["weights"] == NONE
    usual = {"resnet18": NONE, "resnet101": "IMAGENET1K_V1", "mlp": NONE}
    for model, weights in usual.items():
        assert RunConfig(dataset=dataset, model=model).resolved["weights"] == weights
    for single in ("imbal-digits", "imbal-colour-digits"):  # as the paper's
        assert RunConfig(dataset=single).resolved["weights"] == NONE
    # EWC freezes what has learned before
    for weights, stages in ((None, 3), (NONE, 0)):
        ewc = RunConfig(dataset=dataset, method="EWC", weights=weights)
        assert ewc.resolved["pretrained_stages"] == stages


@pytest.mark.parametrize(
    ("model", "seed"),
    [
        ("convnet", 0),
        ("convnet", 6),
        ("convnet_attention_consistency", 0),
        ("convnet_rnn_attention", 0),
    ],
)
def test_networks_begin_with_learned_convolutions_and_a_head_of_the_seed(model, seed):
    data = load_dataset(TINY)
    config = RunConfig(dataset=TINY, model=model, seed=seed)
    learned = initial_model(config, data).state_dict()
    plain = initial_model(replace(config, weights=NONE), data).state_dict()
    expected = below_head(embedded(f"digits-{seed % 5}"))
    own = {"weighting.positives", "weighting.samples"}
    assert expected.keys() == below_head(learned).keys() - own
    for name, value in learned.items():
        assert torch.equal(value, expected.get(name, plain[name]))


def test_a_hash_holds_the_weights_content(monkeypatch, tmp_path):
    config = RunConfig(dataset=TINY, weights="digits")
    before = config.hash
    assert before != RunConfig(dataset=TINY, weights=NONE).hash
    assert before != RunConfig(dataset=TINY, weights="turned_digits").hash
    own = [RunConfig(dataset=TINY, seed=seed).identity["weights"] for seed in range(6)]
    assert len(set(own)) == len(IN_TURN["digits"]) == 5 and own[0] == own[5]
    copy = tmp_path / "copy.pth"
    copy.write_bytes(EMBEDDED["digits-0"].read_bytes())
    assert RunConfig(dataset=TINY, weights=str(copy)).hash == before
    torch.save({}, copy)
    monkeypatch.setitem(EMBEDDED, "digits-0", copy)
    assert config.hash != before


# the report


def rows(values):
    """Rows of one score: {(weights, method): a value for each seed}."""
    cells = [
        {"weights": weights, "method": method, "seed": seed, "value": value}
        for (weights, method), scores in values.items()
        for seed, value in enumerate(scores)
    ]
    frame = pd.DataFrame(cells).assign(dataset=TINY, stands_for="COCOseq")
    frame = frame.assign(measure="score", group="overall", metric="mAP")
    return frame.assign(published=frame["method"].map({"PRS": 55.3, "CRS": 50.2}))


GIVEN = {("none", "CRS"): [50, 52], ("none", "PRS"): [44, 45]}
GIVEN |= {("digits", "CRS"): [70, 71], ("digits", "PRS"): [69, 72, 70]}


def test_shifts_say_how_far_a_distance_moves():
    gaps = seed_gaps(rows(GIVEN), "PRS", "CRS", by=["weights"])
    (moved,) = pretraining.shifts(gaps, [("overall", "mAP")]).itertuples()
    assert (moved.weights, moved.difference, moved.seeds) == ("digits", 6.5, 2)
    assert moved.sd == pytest.approx(np.std([5, 8], ddof=1))
    assert "digits is 6.5 points ahead of none" in moved.sentence
    assert "paper" not in moved.sentence


def test_the_paper_stands_apart():
    frame = pretraining.with_paper(rows(GIVEN))
    apart = frame[frame["weights"] == "ImageNet [paper]"]
    theirs = apart.set_index("method")["published"].to_dict()
    assert theirs == {"CRS": 50.2, "PRS": 55.3}
    assert len(apart) == 2 and apart["value"].isna().all()
    assert frame.loc[frame["value"].notna(), "published"].isna().all()
    assert frame["weights"].iloc[-1] == "ImageNet [paper]"


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
    decided = pretraining.decide([score(config) for config in asked], asked)
    claims = decided.set_index(["claim", "weights"])
    for claim in ("above_crs", "schedules_crs"):
        assert claims.loc[(claim, "random"), "verdict"] == "does not hold"
        assert claims.loc[(claim, "digits"), "verdict"] == "holds"
    assert claims.loc[("above_crs", "digits"), "effect"] == pytest.approx(3)
    assert "not run" not in set(decided["verdict"])
    differing = pretraining.differing_verdicts(decided)
    weights = ["random", "turned digits", "digits"]
    assert list(differing) == ["claim", "data", *weights, "paper"]
    cells = differing.set_index("claim")
    above = cells.loc["PRS outperforms CRS"]
    assert above["random"] == "-5.0 [-5.0, -5.0] points: does not hold"
    assert above["digits"] == "+3.0 [+3.0, +3.0] points: holds"
    every = cells.loc["PRS outperforms CRS in every schedule"]
    assert every["turned digits"] == "not run"
    same = decided.groupby("statement")["verdict"].nunique() == 1
    assert same.any() and not set(cells.index) & set(same[same].index)


def test_rows_tell_weights_apart_and_examples_their_labels():
    wanted = configs(dataset=TINY, method=["CRS"], weights=[NONE, "digits"])
    runs = [fake_run(config, 0.5) for config in wanted]
    found = pretraining.rows_of(runs)
    assert found["weights"].unique().tolist() == ["random", "digits"]
    overall = average(found.drop(columns=["stands_for", "published"]))
    assert len(overall) == 2 * 24  # 4 groups, 3 metrics, scores and forgetting
    frame, images = pretraining.example_scenes([NONE, "digits"], TINY, 3)
    assert frame["source"].tolist() == [TINY] * 3 + ["digits"] * 3
    assert all(image.shape == SHAPE for image in images)
    assert all(name in CLASS_NAMES for name in frame["labels"].iloc[-1].split(", "))
