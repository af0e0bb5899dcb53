"""DER++, ER-ACE and draws balanced over classes, against formulas by hand."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from interrupted import stopped_at

from prslib import METHODS, RunConfig, make_sampler, register, run
from prslib.experiments.store import Store
from prslib.memory import Memory
from prslib.training.learner import Learner
from prslib.training.methods import Method
from prslib.training.rehearsal import (
    REHEARSALS,
    AsymmetricCrossEntropy,
    DarkExperienceReplay,
    Rehearsal,
    Rows,
)
from prslib.training.replay import Replay

TINY, ONE_LABEL = "digits70tiny", "imbal-digits-tiny"
pytestmark = pytest.mark.usefixtures("registers")


def softmax_loss(logits, classes, among):
    """Return the mean of -log softmax over some classes, in numpy."""
    losses = []
    for row, label in zip(logits, classes, strict=True):
        total = sum(np.exp(row[c]) for c in among)
        losses.append(-np.log(np.exp(row[label]) / total))
    return np.mean(losses)


def one_hot(classes):
    return torch.eye(5)[list(classes)]


def tables(seed=0, rows=4):
    return np.random.default_rng(seed).normal(size=(rows, 5)).astype(np.float32)


def plain_loss(logits, targets, replayed=False):
    return torch.nn.functional.cross_entropy(logits, targets)


def test_der_is_the_published_sum():
    """Loss + alpha ||z - h(x')||^2 + beta loss, as in the authors' code a mean."""
    new, first, second, past = (tables(seed) for seed in range(4))
    classes = [0, 1, 1, 4]
    replays = [
        Rows(torch.tensor(first), one_hot(classes), {"logits": torch.tensor(past)}),
        Rows(torch.tensor(second), one_hot(classes), {"logits": torch.tensor(past)}),
    ]
    rows = Rows(torch.tensor(new), one_hot([2, 2, 3, 0]), {})
    rehearsal = DarkExperienceReplay(alpha=0.3, beta=0.7)
    value = rehearsal.objective(plain_loss, rows, replays)
    everything = range(5)
    by_hand = softmax_loss(new, [2, 2, 3, 0], everything)
    by_hand += 0.3 * ((first - past) ** 2).sum() / first.size
    by_hand += 0.7 * softmax_loss(second, classes, everything)
    assert value.item() == pytest.approx(by_hand, rel=1e-5)
    alone = rehearsal.objective(plain_loss, rows, [])
    assert alone.item() == pytest.approx(softmax_loss(new, [2, 2, 3, 0], everything))


def test_er_ace_is_the_published_sum():
    """L(new, classes of the batch) + L(replayed, classes seen so far)."""
    new, old = tables(0), tables(1)
    replays = [Rows(torch.tensor(old), one_hot([0, 1, 1, 0]), {})]
    rows = Rows(torch.tensor(new), one_hot([2, 3, 3, 2]), {})
    class_freq = torch.tensor([8.0, 9.0, 2.0, 2.0, 0.0])
    rehearsal = AsymmetricCrossEntropy()
    value = rehearsal.objective(plain_loss, rows, replays, class_freq=class_freq)
    by_hand = softmax_loss(new, [2, 3, 3, 2], [2, 3])
    by_hand += softmax_loss(old, [0, 1, 1, 0], [0, 1, 2, 3])
    assert value.item() == pytest.approx(by_hand, rel=1e-5)


def test_er_ace_leaves_the_logits_of_other_classes_alone_for_new_samples():
    logits = torch.tensor(tables()).requires_grad_()
    rows = Rows(logits, one_hot([2, 3, 3, 2]), {})
    counts = torch.ones(5)
    loss = AsymmetricCrossEntropy().objective(plain_loss, rows, [], class_freq=counts)
    loss.backward()
    assert (logits.grad[:, [0, 1, 4]] == 0).all()
    assert (logits.grad[:, [2, 3]] != 0).all()


@pytest.mark.parametrize("sampler", ["crs", "prs"])
def test_der_keeps_the_logits_that_a_sample_had_when_it_was_new(monkeypatch, sampler):
    register("DER++", Method(sampler=sampler, rehearsal="der++"))
    objective = DarkExperienceReplay.objective
    logits_of = {}
    rows_of_step = []
    checked = 0
    join = Learner.join

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
            for row, kept in zip(old, first.kept["logits"], strict=False):
                assert torch.equal(kept, logits_of[row])
                checked += 1
        return objective(rehearsal, loss, new, replays, **context)

    monkeypatch.setattr(Learner, "join", note)
    monkeypatch.setattr(DarkExperienceReplay, "objective", check)
    run(RunConfig(TINY, "DER++", batch_size=40))
    assert checked > 50


@pytest.mark.parametrize("name", ["der++", "er-ace"])
def test_stopped_runs_that_rehearse_go_on(tmp_path, name):
    register("own", Method(sampler="crs", rehearsal=name))
    config = RunConfig(ONE_LABEL, "own", batch_size=40)
    store = Store(tmp_path)
    Store(tmp_path / "whole").save(run(config))
    while not store.path(config).exists():
        stopped_at(2, config, store)
    whole = Store(tmp_path / "whole").path(config).read_bytes()
    assert store.path(config).read_bytes() == whole


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
    assert half.make_rehearsal().scale == 0.5 and half.hash != config.hash
    with pytest.raises(TypeError, match="options of crs"):
        replace(config, options={"strength": 1.0})
    with pytest.raises(ValueError, match="scale must be finite"):
        replace(config, options={"scale": float("nan")})


@pytest.mark.parametrize(
    ("row", "fields", "message"),
    [
        ({"rehearsal": "der"}, {}, "unknown rehearsal 'der'; known rehearsals: der"),
        ({"rehearsal": "er-ace"}, {}, r"one label an image for er-ace, got multil"),
        ({"sampler": None}, {}, r"a sampler, whose memory der\+\+ replays"),
        ({"sampler": "exstream"}, {}, "keeps samples for .*exstream; it merges"),
        ({}, {"options": {"alpha": -1.0}}, "alpha must be at least 0"),
        ({}, {"model": "convnet_rnn_attention"}, "a plain network for der"),
    ],
)
def test_what_cannot_be_rehearsed_is_refused(row, fields, message):
    register("own", Method(**{"sampler": "crs", "rehearsal": "der++"} | row))
    with pytest.raises(ValueError, match=message):
        RunConfig(TINY, "own", **fields)


def test_rehearsals_are_no_rows_of_the_main_table():
    assert not any(method.rehearsal for method in METHODS.values())
    assert set(REHEARSALS) == {"der++", "er-ace"}


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
