"""DER++, ER-ACE, a rehearsal of one's own, balanced draws, against formulas by hand."""

import io
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from interrupted import stopped_at

from prslib import RunConfig, make_sampler, register, run
from prslib.checks import checksum
from prslib.experiments.store import CHECKPOINT, Store
from prslib.memory import Memory
from prslib.models.networks import Staged
from prslib.samplers.crs import CRS
from prslib.training import checkpoint
from prslib.training.learner import Learner
from prslib.training.methods import Method
from prslib.training.rehearsal import (
    AsymmetricCrossEntropy,
    DarkExperienceReplay,
    Rehearsal,
)
from prslib.training.replay import Replay, StreamCounts

TINY, ONE_LABEL = "digits70tiny", "imbal-digits-tiny"
SOFTMAX, LOGISTIC = "cross_entropy", "multilabel_soft_margin"
CLASSES = range(5)
pytestmark = pytest.mark.usefixtures("registers")


def softmax_loss(logits, labels, classes=CLASSES):
    """Return the mean of -log softmax over some classes, in numpy."""
    losses = []
    for row, label in zip(logits, labels, strict=True):
        total = sum(np.exp(row[c]) for c in classes)
        losses.append(-np.log(np.exp(row[label]) / total))
    return np.mean(losses)


def logistic_loss(logits, targets, classes=CLASSES):
    """Return the mean over some classes of -log of the logistic function, in numpy."""
    signs = 2 * np.array(targets) - 1
    losses = np.log(1 + np.exp(-signs * logits))
    return losses[:, list(classes)].mean()


def one_hot(labels):
    return np.eye(5, dtype=np.float32)[list(labels)]


def table(seed, rows=4):
    """Return logits (rows, 5)."""
    return np.random.default_rng(seed).normal(size=(rows, 5)).astype(np.float32)


def objective(rehearsal, loss, logits, targets, kept=None, **context):
    """Return what a step lowers whose network gives these logits; the first are new."""
    layer = torch.nn.Linear(5, 5, bias=False)
    layer.weight.data = torch.eye(5)
    learner = Learner(
        Staged(torch.nn.Identity(), layer),
        optimizer="sgd",
        learning_rate=0.1,
        loss=loss,
        clip_value=1.0,
        rehearsal=rehearsal,
    )
    learner.context = {name: torch.tensor(value) for name, value in context.items()}
    inputs = torch.tensor(np.concatenate(logits))
    targets = torch.tensor(np.concatenate(targets))
    columns = {name: torch.tensor(column) for name, column in (kept or {}).items()}
    value, columns = learner.objective(inputs, targets, len(logits[0]), columns)
    return value.item(), columns


class OneByOne(Rehearsal):
    """Computes the sum of `StepLoss.of_step` batch by batch."""

    batches = 2
    asks = ("open_classes",)
    weights = (1.0, 0.0, 0.3)

    def objective(self, loss, new, replays, open_classes):
        total = self.weights[0] * loss(new.logits, new.targets, open_classes)
        for weight, old in zip(self.weights[1:], replays, strict=False):
            total = total + weight * loss(old.logits, old.targets)
        return total


class AtOnce(OneByOne):
    def objective(self, loss, new, replays, open_classes):
        weights = self.weights[: 1 + len(replays)]
        return loss.of_step(weights, new_classes=open_classes)


@pytest.mark.parametrize("loss", [LOGISTIC, SOFTMAX, "focal"])
@pytest.mark.parametrize("open_classes", [[1, 0, 1, 1, 0], [1] * 5])
@pytest.mark.parametrize("sizes", [(4,), (4, 4, 4), (3, 2, 2)])
def test_the_loss_of_a_step_is_the_sum_over_its_batches(loss, open_classes, sizes):
    logits = [table(seed, rows) for seed, rows in enumerate(sizes)]
    targets = [one_hot([0, 3, 2, 2][:rows]) for rows in sizes]
    classes = np.array(open_classes, bool)
    singly, at_once = (
        objective(way(), loss, logits, targets, open_classes=classes)[0]
        for way in (OneByOne, AtOnce)
    )
    assert at_once == pytest.approx(singly, rel=1e-6)


@pytest.mark.parametrize("loss", [SOFTMAX, LOGISTIC])
def test_der_is_the_published_sum(loss):
    """The loss + alpha ||z - h(x')||^2 + beta loss, with a mean as in the code."""
    new, first, second, past = (table(seed) for seed in range(4))
    labels = [[2, 2, 3, 0], [0, 1, 1, 4], [0, 0, 1, 2]]
    targets = [one_hot(each) for each in labels]
    by_hand = {
        SOFTMAX: lambda i, logits: softmax_loss(logits, labels[i]),
        LOGISTIC: lambda i, logits: logistic_loss(logits, targets[i]),
    }[loss]
    kept = np.concatenate([past, table(9)])  # of the second batch it does not matter
    rehearsal = DarkExperienceReplay(alpha=0.3, beta=0.7)
    value, columns = objective(
        rehearsal, loss, [new, first, second], targets, {"logits": kept}
    )
    expected = by_hand(0, new) + 0.7 * by_hand(2, second)
    expected += 0.3 * ((first - past) ** 2).sum() / first.size
    assert value == pytest.approx(expected, rel=1e-5)
    np.testing.assert_allclose(columns["logits"], new, rtol=1e-6)
    assert not columns["logits"].requires_grad
    alone, _ = objective(rehearsal, loss, [new], targets[:1])
    assert alone == pytest.approx(by_hand(0, new), rel=1e-5)


OPEN = [False, False, True, True, True]  # of `StreamCounts`, of the batches below


def test_classes_are_open_that_the_new_samples_have_or_no_sample_yet():
    counts = StreamCounts(5)
    for labels in ([0, 1], [2, 3, 3, 2]):
        counts.add(one_hot(labels) > 0)
    context = counts.context({"open_classes"}, None, "cpu")
    assert context["open_classes"].tolist() == OPEN


@pytest.mark.parametrize(
    ("rehearsal", "loss", "name"),
    [
        (AsymmetricCrossEntropy(), LOGISTIC, "open_classes"),
        (DarkExperienceReplay(), "inverse_frequency", "class_freq, seen"),
    ],
)
def test_a_step_without_what_is_asked_for_says_so(rehearsal, loss, name):
    with pytest.raises(ValueError, match=f"expected {name} in the learner's context"):
        objective(rehearsal, loss, [table(0)], [one_hot([2, 3, 3, 2])])


def test_er_ace_is_the_published_sum():
    """Classes 0 and 1 came before, 2 and 3 are in the batch, 4 is yet to come."""
    new, old = table(0), table(1)
    targets = [one_hot([2, 3, 3, 2]), one_hot([0, 1, 1, 2])]
    value, columns = objective(
        AsymmetricCrossEntropy(), SOFTMAX, [new, old], targets, open_classes=OPEN
    )
    expected = softmax_loss(new, [2, 3, 3, 2], [2, 3, 4])
    expected += softmax_loss(old, [0, 1, 1, 2])
    assert value == pytest.approx(expected, rel=1e-5)
    assert columns == {}


def test_er_ace_of_several_labels_looks_at_the_classes_of_the_batch():
    """Labels of any sample count for all; classes 0 and 1 came before."""
    new, old = table(0), table(1)
    targets = [one_hot([2, 3, 3, 2]), one_hot([0, 1, 1, 2])]
    targets[0][0, 4] = targets[1][0, 1] = 1
    value, _ = objective(
        AsymmetricCrossEntropy(), LOGISTIC, [new, old], targets, open_classes=OPEN
    )
    expected = logistic_loss(new, targets[0], [2, 3, 4])
    expected += logistic_loss(old, targets[1])
    assert value == pytest.approx(expected, rel=1e-5)


def test_er_ace_and_a_loss_that_asks_for_counts_see_the_same_classes():
    """Logit adjustment adds log n_c; classes 0 and 1 are left out of both."""
    new, labels = table(0), [2, 3, 3, 2]
    class_freq = [8.0, 9.0, 3.0, 2.0, 0.0]
    value, _ = objective(
        AsymmetricCrossEntropy(),
        "logit_adjustment",
        [new],
        [one_hot(labels)],
        class_freq=class_freq,
        open_classes=OPEN,
    )
    adjusted = new + np.log(np.maximum(class_freq, 1))
    assert value == pytest.approx(softmax_loss(adjusted, labels, [2, 3, 4]), rel=1e-5)


@pytest.mark.parametrize("sampler", ["crs", "prs"])
def test_der_keeps_the_logits_that_a_sample_had_when_it_was_new(monkeypatch, sampler):
    """Of every replayed sample in every step, whatever the sampler keeps."""
    register("own", Method(sampler=sampler, rehearsal="der++"))
    usual = DarkExperienceReplay.objective
    join = Learner.join
    logits_of = {}
    rows_of_step = []
    checked = 0

    def note(learner, inputs, labels, new, slots, replay):
        old = replay.memory.read(slots)["index"] if len(slots) else slots
        rows_of_step[:] = [new, old]
        return join(learner, inputs, labels, new, slots, replay)

    def check(rehearsal, loss, new, replays, **context):
        nonlocal checked
        rows, old = rows_of_step
        for row, logits in zip(rows, new.logits.detach(), strict=True):
            logits_of[row] = logits
        if replays:
            first, second = replays
            assert len(first.logits) == len(second.logits) == len(old) // 2
            kept = torch.cat([first.kept["logits"], second.kept["logits"]])
            for row, logits in zip(old, kept, strict=True):
                assert torch.equal(logits, logits_of[row])
                checked += 1
        return usual(rehearsal, loss, new, replays, **context)

    monkeypatch.setattr(Learner, "join", note)
    monkeypatch.setattr(DarkExperienceReplay, "objective", check)
    run(RunConfig(TINY, "own", batch_size=40))
    assert checked > 100


ADJUSTED = {"loss": "logit_adjustment", "loss_options": {"tau": 0.5}}


@pytest.mark.parametrize("fields", [{}, {"draw": "balanced"} | ADJUSTED])
@pytest.mark.parametrize("method", ["DER++", "ER-ACE"])
def test_stopped_runs_that_rehearse_go_on(tmp_path, method, fields):
    config = RunConfig(ONE_LABEL, method, batch_size=40, **fields)
    store = Store(tmp_path)
    Store(tmp_path / "whole").save(run(config))
    while not store.path(config).exists():
        stopped_at(3, config, store)
    whole = Store(tmp_path / "whole").path(config).read_bytes()
    assert store.path(config).read_bytes() == whole


def test_an_own_threshold_of_a_run_that_rehearses(tmp_path):
    register("own", Method(sampler="prs", rehearsal="der++"))
    config = RunConfig(
        "cocoseq-mini", "own", batch_size=200, replay_batch_size=20, own_threshold=True
    )
    scores = run(config).scores
    plain = run(replace(config, own_threshold=False)).scores
    usual = scores[~scores["metric"].str.contains("own threshold")]
    pd.testing.assert_frame_equal(usual.reset_index(drop=True), plain)


def forged(content, change):
    """Return a checkpoint with other columns in its memory, and the right checksums."""
    saved = torch.load(io.BytesIO(content), weights_only=True)
    states = saved["progress"]["states"]
    memory = checkpoint.as_arrays(states[-1])
    memory["columns"] = change(memory["columns"])
    memory["checksum"] = checksum(memory)
    states[-1] = checkpoint.as_tensors(memory)
    saved["checksum"] = checksum(saved["progress"])
    torch.save(saved, file := io.BytesIO())
    return file.getvalue()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda old: {"index": old["index"]}, r"entries \['logits'\], got others"),
        (lambda old: old | {"more": old["logits"]}, r"entries \['logits'\]"),
        (lambda old: old | {"logits": old["logits"][:, 1:]}, "a tensor of shape"),
        (lambda old: old | {"logits": old["logits"] * np.nan}, "finite numbers"),
    ],
)
def test_a_checkpoint_with_other_columns_is_refused(tmp_path, change, why):
    config = RunConfig(ONE_LABEL, "DER++", batch_size=40)
    store = Store(tmp_path)
    stopped_at(20, config, store)
    file = store.path(config, CHECKPOINT)
    file.write_bytes(forged(file.read_bytes(), change))
    with pytest.warns(UserWarning, match=f"{why}.*; the run starts again"):
        stopped_at(1, config, store)


def test_a_rehearsal_of_ones_own_and_its_options():
    class Plain(Rehearsal):
        """The mean loss of all rows, scaled."""

        def __init__(self, *, scale: float = 1.0):
            self.scale = scale

        def objective(self, loss, new, replays):
            logits = torch.cat([rows.logits for rows in (new, *replays)])
            targets = torch.cat([rows.targets for rows in (new, *replays)])
            return self.scale * loss(logits, targets)

    register("plain", Plain)
    register("ours", Method(sampler="crs", rehearsal="plain"))
    config = RunConfig(TINY, "ours", batch_size=40)
    usual = run(RunConfig(TINY, "CRS", batch_size=40)).scores
    ours = run(config).scores.assign(method="CRS")
    pd.testing.assert_frame_equal(ours, usual, check_exact=True)
    half = replace(config, options={"scale": np.float32(0.5)})
    assert half.options == (("scale", 0.5),)
    assert half.make_rehearsal().scale == 0.5
    assert half.hash != config.hash
    with pytest.raises(
        TypeError, match=r"options of crs: .*'strength'.*of plain: scale"
    ):
        replace(config, options={"strength": 1.0})
    with pytest.raises(ValueError, match="scale must be finite"):
        replace(config, options={"scale": float("nan")})


@pytest.mark.parametrize(
    ("row", "fields", "message"),
    [
        ({"rehearsal": "der"}, {}, "unknown rehearsal 'der'; known rehearsals: der"),
        ({"sampler": None}, {}, r"a sampler, whose memory der\+\+ replays"),
        ({"sampler": None, "ewc": True}, {}, "a sampler, whose memory"),
        ({"sampler": None, "offline": True}, {}, "a sampler, whose memory"),
        ({"sampler": "exstream"}, {}, "keeps samples for .*exstream; it merges"),
        ({}, {"options": {"alpha": -1.0}}, "alpha must be at least 0"),
        ({}, {"model": "convnet_rnn_attention"}, "a plain network for der"),
    ],
)
def test_what_cannot_be_rehearsed_is_refused(row, fields, message):
    register("own", Method(**{"sampler": "crs", "rehearsal": "der++"} | row))
    with pytest.raises(ValueError, match=message):
        RunConfig(TINY, "own", **fields)


def test_a_rehearsal_that_cannot_be_is_refused_before_it_trains():
    class Empty(Rehearsal):
        """Without an objective."""

    class Curious(AsymmetricCrossEntropy):
        asks = ("class_freq", "replayed", "weather")

    register("empty", Empty)
    register("curious", Curious)
    register("own", Method(sampler="crs", rehearsal="empty"))
    with pytest.raises(TypeError, match=r"abstract class Empty.*objective"):
        RunConfig(TINY, "own")
    register("own", Method(sampler="crs", rehearsal="curious"))
    with pytest.raises(
        ValueError, match=r"asks of curious among .*, got replayed, weat"
    ):
        RunConfig(TINY, "own")


def test_a_loss_that_tells_new_from_replayed_samples_is_refused():
    config = RunConfig(ONE_LABEL, "ER-ACE", loss="weighted_replay_one_label")
    with pytest.raises(ValueError, match="new and replayed samples alike for er-ace"):
        run(config)


def test_an_option_is_the_samplers_or_the_rehearsals():
    class Sometimes(CRS):
        def __init__(self, size, num_classes, seed, *, alpha=0.5):
            super().__init__(size, num_classes, seed)

    register("Sometimes", Sometimes)
    register("own", Method(sampler="Sometimes", rehearsal="der++"))
    with pytest.raises(ValueError, match=r"other names in der.* than in .*, got alpha"):
        RunConfig(TINY, "own")


def balanced(labels, batch_size, draw="balanced"):
    """Return a replay of a memory that holds these labels, bool (M, C)."""
    sampler = make_sampler("crs", len(labels), labels.shape[1], 0)
    replay = Replay(sampler, Memory(len(labels)), 0, batch_size, draw)
    replay.offer(np.arange(len(labels)), labels)
    return replay


def test_a_balanced_draw_takes_every_class_alike():
    """One slot a draw: its chance is the mean over classes of 1 / l_i, by hand."""
    labels = np.zeros((20, 3), bool)
    labels[:15, 0] = labels[15:19, 1] = labels[19, 2] = True
    labels[0, 2] = True  # of two classes
    replay = balanced(labels, 1)
    drawn = np.concatenate([replay.draw() for _ in range(6000)])
    frequency = np.bincount(drawn, minlength=20) / 6000
    chance = np.full(20, 1 / 15)
    chance[15:19] = 1 / 4
    chance[19] = 1 / 2
    chance[0] = 1 / 15 + 1 / 2
    chance /= 3
    np.testing.assert_allclose(frequency, chance, atol=0.02)


def test_a_balanced_draw_is_without_replacement_and_as_drawn_one_by_one():
    """The pair of two draws has the chance of a class, a member, and again if taken."""
    labels = np.eye(3, dtype=bool)[[0, 0, 0, 1, 2]]
    replay = balanced(labels, 2)
    rng = np.random.default_rng(1)
    pairs, by_hand = np.zeros((5, 5)), np.zeros((5, 5))
    for _ in range(6000):
        pairs[tuple(replay.draw())] += 1 / 6000
        slots = []
        while len(slots) < 2:
            members = np.flatnonzero(labels[:, rng.integers(3)])
            slot = rng.choice(members)
            if slot not in slots:
                slots.append(slot)
        by_hand[tuple(slots)] += 1 / 6000
    np.testing.assert_allclose(pairs, by_hand, atol=0.025)
    everything = balanced(labels, 9)
    assert sorted(everything.draw()) == list(range(5))


def test_a_balanced_draw_is_part_of_the_hash_where_there_is_a_memory():
    base = RunConfig(TINY)
    assert replace(base, draw="uniform").hash == base.hash
    changed = replace(base, draw="balanced")
    assert changed.identity["draw"] == "balanced" and changed.hash != base.hash
    assert RunConfig(TINY, "Finetune", draw="balanced").hash == (
        RunConfig(TINY, "Finetune").hash
    )
    with pytest.raises(ValueError, match="unknown draw 'class'; known draws: balanced"):
        replace(base, draw="class")
    scores = run(RunConfig(ONE_LABEL, "CRS", batch_size=40, draw="balanced")).scores
    usual = run(RunConfig(ONE_LABEL, "CRS", batch_size=40)).scores
    assert not scores["value"].equals(usual["value"])
