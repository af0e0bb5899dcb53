"""Losses by name in a run: in its hash, checked before it starts, resumed."""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
import torch.nn.functional as F
from interrupted import stopped_at

from prslib import Loss, RunConfig, register, run
from prslib.datasets import load_dataset
from prslib.experiments.store import Store
from prslib.losses import LOSSES
from prslib.training import methods
from prslib.training.grids import configs
from prslib.training.methods import registered, with_registered
from prslib.training.replay import StreamCounts, make_replay
from prslib.training.run import make_learner

TINY, ONE_LABEL = "digits70tiny", "imbal-digits-tiny"
MULTI_LABEL = [name for name, loss in LOSSES.items() if not loss.one_label]


def test_the_hash_covers_a_loss_and_its_options_and_no_default():
    base = RunConfig(TINY)
    assert replace(base, loss="multilabel_soft_margin").hash == base.hash
    assert replace(base, loss_options={}).hash == base.hash
    assert not {"loss_options", "draw"} & base.identity.keys()
    focal = replace(base, loss="focal", loss_options={"gamma": np.float32(1)})
    assert focal.loss_options == (("gamma", 1.0),)
    assert focal.identity["loss_options"] == {"gamma": 1.0}
    hashes = {base.hash, focal.hash, replace(focal, loss_options=None).hash}
    assert len(hashes) == 3
    assert replace(focal, seed=1).loss_options == focal.loss_options


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"loss": "focus"}, ValueError, "unknown loss 'focus'; known losses: asym"),
        ({"loss_options": {"gamma": 1}}, TypeError, "options of multilabel.*none, got"),
        (
            {"loss": "focal", "loss_options": {"beta": 1}},
            TypeError,
            "options of focal, alpha, gamma, got beta",
        ),
        (
            {"loss": "focal", "loss_options": {"gamma": float("nan")}},
            ValueError,
            "gamma must be finite",
        ),
        (
            {"loss": "focal", "loss_options": {"gamma": [2.0]}},
            TypeError,
            r"gamma must be a number|number or text, got \[2.0\]",
        ),
        (
            {"loss": "cross_entropy"},
            ValueError,
            "one label an image for the loss cross",
        ),
        (
            {"loss": "focal", "model": "convnet_rnn_attention"},
            ValueError,
            "trained with multilabel_soft_margin",
        ),
    ],
)
def test_a_loss_that_does_not_fit_is_refused_before_work_starts(fields, error, message):
    with pytest.raises(error, match=message):
        configs(**{"dataset": TINY} | fields)


@pytest.mark.usefixtures("registers")
def test_a_loss_of_ones_own_trains_by_name_here_and_in_workers():
    register("own", F.multilabel_soft_margin_loss)
    config = RunConfig(TINY, "CRS", loss="own")
    ours = run(RunConfig(TINY, "CRS", loss="own", batch_size=40)).scores
    theirs = run(RunConfig(TINY, "CRS", batch_size=40)).scores
    pd.testing.assert_frame_equal(ours, theirs, check_exact=True)
    with pytest.raises(ValueError, match="another name than prslib's own, got focal"):
        register("focal", F.multilabel_soft_margin_loss)
    with pytest.raises(TypeError, match="after \\*, options with defaults"):
        register("bad", lambda logits: logits)
    added = registered()
    del LOSSES["own"]
    methods.ADDED.clear()
    make = partial(RunConfig, TINY, "CRS", loss="own")
    row = with_registered(added, make)
    assert row.hash == config.hash
    register("one", Loss(F.cross_entropy, one_label=True))
    config = RunConfig(ONE_LABEL, "CRS", loss="one", batch_size=40)
    usual = run(replace(config, loss=None)).scores
    pd.testing.assert_frame_equal(run(config).scores, usual, check_exact=True)


@pytest.mark.usefixtures("registers")
@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda z, y: F.mse_loss(z, y, reduction="none"), "one number.*got shape"),
        (
            lambda z, y: (z.sigmoid().log() / 0.0).mean(),
            "a finite loss for usual logits",
        ),
    ],
)
def test_what_a_loss_of_ones_own_returns_is_seen_before_the_first_step(
    function, message
):
    register("own", function)
    with pytest.raises(ValueError, match=message):
        configs(dataset=TINY, loss="own")


@pytest.mark.usefixtures("registers")
def test_a_loss_is_told_of_the_stream_so_far_and_of_the_memory():
    """Counts have this step's new samples; those of the memory are from before it."""
    log = []

    def note(logits, targets, *, class_freq, class_counts, seen, replayed):
        if len(targets) >= 40:  # else it is a check before the first step
            log.append((class_freq.sum(), class_counts.sum(), seen, replayed.tolist()))
        return F.cross_entropy(logits, targets)

    register("note", Loss(note, one_label=True))
    config = RunConfig(ONE_LABEL, "CRS", loss="note", batch_size=40, memory_size=30)
    run(config)
    first, second, *_, last = log
    assert first == (40, 0, 40, [False] * 40)
    assert second == (80, 30, 80, [False] * 40 + [True] * 10)
    steps = len(log)
    assert last[:3] == (40 * steps, 30, 40 * steps)


@pytest.mark.usefixtures("registers")
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_loss_is_computed_in_float32_outside_autocast(precision):
    dtypes = set()

    def note(logits, targets):
        if len(targets) >= 40:
            product = logits @ targets.T  # which autocast would round to bfloat16
            dtypes.update((logits.dtype, targets.dtype, product.dtype))
        return F.multilabel_soft_margin_loss(logits, targets)

    register("note", note)
    run(RunConfig(TINY, "CRS", loss="note", batch_size=40, precision=precision))
    assert dtypes == {torch.float32}


@pytest.mark.parametrize("name", ["weighted_replay", "distribution_balanced"])
def test_stopped_runs_go_on_with_the_counts_of_the_stream(tmp_path, name):
    config = RunConfig(ONE_LABEL, "CRS", loss=name, batch_size=40)
    store = Store(tmp_path)
    Store(tmp_path / "whole").save(run(config))
    while not store.path(config).exists():
        stopped_at(2, config, store)
    whole = Store(tmp_path / "whole").path(config).read_bytes()
    assert store.path(config).read_bytes() == whole


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("method", ["EWC", "GSS"])
@pytest.mark.parametrize("name", MULTI_LABEL)
def test_gradients_of_single_samples_are_those_of_the_loss(name, method):
    """EWC and GSS differentiate it sample by sample; batches of one agree."""
    from prslib.training.gradients import sample_gradients

    dataset = load_dataset("cocoseq-tiny")
    config = RunConfig("cocoseq-tiny", method, loss=name)
    learner = make_learner(config, dataset)
    counts = StreamCounts(dataset.num_classes)
    counts.add(dataset.train.labels[:50])
    replay = make_replay(config, dataset)
    learner.context = counts.context(learner.asks, replay, learner.device)
    inputs = torch.tensor(dataset.train.inputs[:3])
    targets = torch.tensor(dataset.train.labels[:3].astype("f4"))
    rows = sample_gradients(learner.upper, learner.loss, inputs, targets)
    for k in range(3):
        learner.upper.zero_grad()
        learner.loss(learner.upper(inputs[[k]]), targets[[k]]).backward()
        for parameter, values in zip(learner.parameters, rows.values(), strict=True):
            torch.testing.assert_close(values[k], parameter.grad)
