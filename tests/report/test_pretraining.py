"""The weights that networks start from on the stand-ins: scenes, training, runs, report."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
from fake_runs import fake_run
from sklearn.metrics import average_precision_score

from prslib.cli import main
from prslib.datasets import load_dataset
from prslib.datasets import scenes as glyphs
from prslib.datasets.scenes import CLASS_NAMES, OTHER_COLOURS, TURNS, draw_scenes
from prslib.models.networks import make_model
from prslib.models.weights import EMBEDDED, IN_TURN, NONE, packed, read_state
from prslib.report import pretraining
from prslib.report.claims import CLAIMS
from prslib.report.tables import average, seed_gaps
from prslib.training.config import RunConfig, configs
from prslib.training.learner import as_input
from prslib.training.run import initial_model

TINY = "digits70tiny"
SHAPE = (32, 32, 3)
pytestmark = pytest.mark.usefixtures("one_thread")


def embedded(name):
    return read_state(EMBEDDED[name])


def below_head(model):
    return {
        k: v for k, v in model.state_dict().items() if not k.startswith("stages.3.")
    }


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
        assert (
            list(OTHER_COLOURS)[nearest] == CLASS_NAMES[labels[row].argmax()].split()[0]
        )


def test_turned_scenes_are_the_same_digits_turned():
    pictures, _ = glyphs.digit_originals("train")
    drawn = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(glyphs, "render_scenes", lambda *given: given[3])
        for name in TURNS:
            drawn[name] = draw_scenes(name, 3, np.random.default_rng(0))[0]
    np.testing.assert_array_equal(drawn["digits"], pictures)
    np.testing.assert_array_equal(
        drawn["turned_digits"][:, 0], pictures[:, :, -1]
    )  # top: right


# the weights


@pytest.mark.parametrize("name", EMBEDDED)
def test_embedded_weights_know_their_scenes_and_not_the_others(name):
    """On originals that they have not seen; the other scenes have the same colours."""
    model = make_model("convnet", SHAPE, len(CLASS_NAMES), seed=0, weights=NONE)
    model.load_state_dict(embedded(name))
    model.eval()
    found = {}
    for scenes in TURNS:
        pictures, labels = draw_scenes(
            scenes, 600, np.random.default_rng(1), part="test"
        )
        with torch.no_grad():
            logits = model(as_input(torch.from_numpy(pictures)))
        found[scenes] = average_precision_score(labels, logits.numpy(), average="macro")
    assert found.pop(name.partition("-")[0]) > 0.9
    assert max(found.values()) < 0.6


def test_pretraining_gives_the_same_bytes_and_learns():
    first, second = (pretraining.pretrain("digits-0", images=100) for _ in range(2))
    untrained = make_model(
        "convnet", SHAPE, len(CLASS_NAMES), seed=pretraining.PRETRAINING_SEED
    ).state_dict()
    for name, value in first.items():
        assert torch.equal(value, second[name])
    weight = "stages.0.0.weight"
    assert not torch.equal(first[weight], untrained[weight])
    assert not torch.equal(
        first[weight], pretraining.pretrain("digits-1", images=100)[weight]
    )
    assert first.keys() == embedded("digits-0").keys()
    small, scale = packed(first)[weight]
    assert small.dtype == torch.int8 and scale.shape == (16, 1, 1, 1)
    assert ((small * scale - first[weight]).abs() <= 0.501 * scale).all()


def test_a_run_begins_with_them_and_with_a_head_of_its_own():
    data = load_dataset("digits49tiny")
    plain, learned, other = (
        initial_model(
            RunConfig(dataset="digits49tiny", weights=weights, seed=seed), data
        )
        for weights, seed in ((NONE, 0), ("digits", 0), ("digits", 6))
    )
    for name, value in below_head(learned).items():
        assert torch.equal(value, embedded("digits-0")[name])
        assert torch.equal(other.state_dict()[name], embedded("digits-1")[name])
    assert learned.head.weight.shape == (49, 128)
    assert torch.equal(
        learned.head.weight, plain.head.weight
    )  # the seed's, whatever the weights
    assert not torch.equal(learned.head.weight, other.head.weight)


@pytest.mark.parametrize(
    "dataset", ["digits70seq", "digits49seq", TINY, "digits49tiny"]
)
def test_stand_ins_for_photographs_begin_with_learned_weights(dataset):
    assert RunConfig(dataset=dataset).resolved["weights"] == "digits"
    assert (
        RunConfig(dataset=dataset).hash
        == RunConfig(dataset=dataset, weights="digits").hash
    )
    assert RunConfig(dataset=dataset, weights=NONE).resolved["weights"] == NONE
    for model, weights in (
        ("resnet18", NONE),
        ("resnet101", "IMAGENET1K_V1"),
        ("mlp", NONE),
    ):
        assert RunConfig(dataset=dataset, model=model).resolved["weights"] == weights
    for single in (
        "imbal-digits",
        "imbal-colour-digits",
    ):  # with nothing, as the paper's
        assert RunConfig(dataset=single).resolved["weights"] == NONE
    for weights, stages in (
        (None, 3),
        (NONE, 0),
    ):  # EWC freezes what has learned before
        ewc = RunConfig(dataset=dataset, method="EWC", weights=weights)
        assert ewc.resolved["pretrained_stages"] == stages


@pytest.mark.parametrize(
    "model", ["convnet_attention_consistency", "convnet_rnn_attention"]
)
def test_networks_with_attention_begin_with_the_same_convolutions(model):
    learned = initial_model(RunConfig(dataset=TINY, model=model), load_dataset(TINY))
    plain = initial_model(
        RunConfig(dataset=TINY, model=model, weights=NONE), load_dataset(TINY)
    )
    expected = {
        k: v for k, v in embedded("digits-0").items() if not k.startswith("stages.3.")
    }
    own = {"weighting.positives", "weighting.samples"}
    assert expected.keys() == below_head(learned).keys() - own
    for name, value in expected.items():
        assert torch.equal(value, learned.state_dict()[name])
    for name, value in learned.state_dict().items():
        assert torch.equal(value, plain.state_dict()[name]) or name in expected


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


def test_the_command_writes_what_runs_begin_with(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(
        pretraining, "pretrain", partial(pretraining.pretrain, images=40)
    )
    monkeypatch.setitem(EMBEDDED, "digits-0", tmp_path / "new" / "digits.pth")
    assert main(["pretrain", "digits-0"]) == 0
    assert str(tmp_path) in capsys.readouterr().out
    model = make_model("convnet", SHAPE, 70, seed=0, weights="digits")
    assert torch.equal(
        model.stages[0][0].weight, embedded("digits-0")["stages.0.0.weight"]
    )
    assert main(["pretrain", "letters"]) == 1
    assert "known: digits-0, digits-1, " in capsys.readouterr().err
    with pytest.raises(
        ValueError, match=r"expected the \d+ tensors of convnet, but 1 are missing"
    ):
        make_model("convnet", (28, 28, 1), 10, seed=0, weights="digits")


# the report


def rows(values):
    """Rows of one score: {(weights, method): a value for each seed}."""
    cells = [
        {
            "weights": weights,
            "method": method,
            "seed": seed,
            "value": value,
            "published": theirs,
        }
        for (weights, method), scores in values.items()
        for seed, value in enumerate(scores)
        for theirs in [{"PRS": 55.3, "CRS": 50.2}[method]]
    ]
    cell = {
        "dataset": TINY,
        "stands_for": "COCOseq",
        "measure": "score",
        "group": "overall",
    }
    return pd.DataFrame(cells).assign(**cell, metric="mAP")


GIVEN = {
    ("none", "CRS"): [50, 52],
    ("none", "PRS"): [44, 45],
    ("digits", "CRS"): [70, 71],
    ("digits", "PRS"): [69, 72, 70],
}


def test_shifts_say_how_far_a_distance_moves():
    gaps = seed_gaps(rows(GIVEN), "PRS", "CRS", by=["weights"])
    (moved,) = pretraining.shifts(gaps, [("overall", "mAP")]).itertuples()
    assert (moved.weights, moved.difference, moved.seeds) == ("digits", 6.5, 2)
    assert moved.sd == pytest.approx(np.std([5, 8], ddof=1))
    assert "digits is 6.5 points ahead of none" in moved.sentence
    assert "paper" not in moved.sentence


def test_the_paper_stands_apart():
    found = pretraining.with_paper(rows(GIVEN))
    apart = found[found["weights"] == "ImageNet [paper]"]
    assert apart.set_index("method")["published"].to_dict() == {
        "CRS": 50.2,
        "PRS": 55.3,
    }
    assert len(apart) == 2 and apart["value"].isna().all()
    assert found.loc[found["value"].notna(), "published"].isna().all()
    assert found["weights"].iloc[-1] == "ImageNet [paper]"


def test_claims_are_decided_for_each_weights_alone(monkeypatch):
    """From random weights PRS is below CRS, from learned ones above, and both forget alike."""
    fixed = {"dataset": TINY, "method": ["CRS", "PRS"], "seed": list(range(5))}
    table = configs(**fixed, weights=[NONE, "turned_digits", "digits"])
    wanted = table + configs(**fixed, schedule=[(0, 1, 3, 2)], weights=[NONE, "digits"])

    def score(config):
        lead = (-0.05 if config.weights == NONE else 0.03) * (config.method == "PRS")
        level = 0.5 + 0.2 * (config.weights != NONE) + lead + 0.001 * config.seed
        return fake_run(config, lambda rows: np.full(len(rows), level))

    some = {name: CLAIMS[name] for name in ("above_crs", "schedules_crs", "tail_crs")}
    monkeypatch.setattr(
        pretraining.ledger, "decide", partial(pretraining.ledger.decide, claims=some)
    )
    decided = pretraining.decide([score(config) for config in wanted], wanted)
    claims = decided.set_index(["claim", "weights"])
    for claim in ("above_crs", "schedules_crs"):
        assert claims.loc[(claim, "random"), "verdict"] == "does not hold"
        assert claims.loc[(claim, "digits"), "verdict"] == "holds"
    assert claims.loc[("above_crs", "digits"), "effect"] == pytest.approx(3)
    assert "not run" not in set(decided["verdict"])
    differing = pretraining.differing_verdicts(decided)
    assert list(differing) == [
        "claim",
        "data",
        "random",
        "turned digits",
        "digits",
        "paper",
    ]
    rows = differing.set_index("claim")
    assert (
        rows.loc["PRS outperforms CRS", "random"]
        == "-5.0 [-5.0, -5.0] points: does not hold"
    )
    assert (
        rows.loc["PRS outperforms CRS", "digits"] == "+3.0 [+3.0, +3.0] points: holds"
    )
    assert (
        rows.loc["PRS outperforms CRS in every schedule", "turned digits"] == "not run"
    )
    same = decided.groupby("statement")["verdict"].nunique() == 1
    assert same.any() and not set(rows.index) & set(same[same].index)


def test_rows_tell_weights_apart_and_examples_their_labels():
    wanted = configs(dataset=TINY, method=["CRS"], weights=[NONE, "digits"])
    runs = [fake_run(config, lambda rows: np.full(len(rows), 0.5)) for config in wanted]
    found = pretraining.rows_of(runs)
    assert found["weights"].unique().tolist() == ["random", "digits"]
    overall = average(found.drop(columns=["stands_for", "published"]))
    assert len(overall) == 2 * 24  # 4 groups, 3 metrics, scores and forgetting
    frame, images = pretraining.example_scenes([NONE, "digits"], TINY, 3)
    assert frame["source"].tolist() == [TINY] * 3 + ["digits"] * 3
    assert all(image.shape == SHAPE for image in images)
    assert all(name in CLASS_NAMES for name in frame["labels"].iloc[-1].split(", "))
