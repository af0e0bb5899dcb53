"""What each method does in a step, against a loop that is written out plainly."""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from trainers import batches_of, train

from prslib import (
    DATASETS,
    METHODS,
    SAMPLERS,
    Memory,
    RunConfig,
    load_dataset,
    make_model,
    make_sampler,
    register,
    run,
)
from prslib.models import Architecture
from prslib.models.networks import Staged, mlp
from prslib.train import balanced_draw

SEVERAL, ONE_LABEL = "cocoseq-tiny", "imbal-digits-tiny"
pytestmark = pytest.mark.usefixtures("one_thread", "registers")


class Plain:
    """One configuration as its papers describe it, without a thought for speed."""

    def __init__(self, config, data):
        self.settings, self.method = config.resolved, METHODS[config.method]
        _, sampler, replay, network = np.random.SeedSequence(config.seed).spawn(4)
        self.data = data
        inputs = torch.tensor(data.train.inputs).float()
        if inputs.ndim == 4:
            inputs = inputs.permute(0, 3, 1, 2) / 255
        self.inputs = inputs
        self.targets = torch.tensor(data.train.labels).float()
        shape = data.train.inputs.shape[1:]
        name = self.settings["model"]
        self.model = make_model(name, shape, data.num_classes, network, "none")
        frozen = self.settings[self.method.frozen] if self.method.frozen else 0
        self.lower, self.upper = self.model.split(frozen)
        self.weights = list(self.upper.parameters())
        rate, kind = self.settings["learning_rate"], self.settings["optimizer"]
        self.optimizer = torch.optim.Adam(self.weights, lr=rate)
        if kind == "sgd":
            self.optimizer = torch.optim.SGD(self.weights, lr=rate, momentum=0.9)
        self.rng = np.random.default_rng(replay)
        size = self.settings["memory_size"]
        self.memory, self.sampler = Memory(size), None
        if self.method.sampler:
            options = {"rho": self.settings["rho"]} if self.method.takes_rho else {}
            self.sampler = make_sampler(
                self.method.sampler, size, data.num_classes, sampler, **options
            )
        self.past = []  # Fisher information and weights after each batch
        self.class_freq = np.zeros(data.num_classes)

    def loss(self, logits, targets, classes=None):
        if classes is not None:
            logits, targets = logits[:, classes], targets[:, classes]
        if self.settings["loss"] == "cross_entropy":
            return -(targets * logits.log_softmax(1)).sum(1).mean()
        return F.binary_cross_entropy_with_logits(logits, targets)

    def step(self, rows, is_first=True):
        x, y = self.lower(self.inputs[rows]).detach(), self.targets[rows]
        labels = self.data.train.labels[rows]
        if is_first:
            self.class_freq += labels.sum(axis=0)
        logits = [self.update(x, y, labels) for _ in range(self.settings["updates"])]
        if self.sampler is None or not is_first:
            return
        needs = {}
        if "features" in self.sampler.needs:
            needs["features"] = x.flatten(1).numpy()
        if "gradient_products" in self.sampler.needs:
            needs["gradient_products"] = lambda subsets: self.products(subsets, rows)
        slots = self.sampler.place(labels, **needs)
        self.memory.write(slots, index=rows, logits=logits[0])

    def update(self, x, y, labels):
        size, old = self.settings["replay_batch_size"], []
        for _ in range(2 if self.method.rehearsal == "der++" else 1):
            slots = self.memory.draw(size, self.rng)
            if len(slots) == 0:
                continue
            stored = self.memory.read(slots)
            old_x = self.lower(self.inputs[stored["index"]]).detach()
            old_y = self.targets[stored["index"]]
            if hasattr(self.sampler, "vectors"):
                old_x = torch.tensor(self.sampler.vectors(slots)).view(-1, *x.shape[1:])
                old_y = torch.tensor(self.sampler.labels_of(slots)).float()
            old.append((old_x, old_y, stored["logits"]))
        logits = self.upper(x)
        if self.method.rehearsal == "mean":
            both = [self.upper(old_x) for old_x, *_ in old]
            targets = [old_y for _, old_y, _ in old]
            loss = self.loss(torch.cat([logits, *both]), torch.cat([y, *targets]))
        elif self.method.rehearsal == "er-ace":
            classes = np.flatnonzero(labels.any(axis=0) | (self.class_freq == 0))
            loss = self.loss(logits, y, classes)
            for old_x, old_y, _ in old:
                loss = loss + self.loss(self.upper(old_x), old_y)
        else:
            loss = self.loss(logits, y)
            if old:
                (first, _, past), (second, old_y, _) = old
                distance = F.mse_loss(self.upper(first), past)
                loss = loss + self.settings["alpha"] * distance
                again = self.loss(self.upper(second), old_y)
                loss = loss + self.settings["beta"] * again
        norms = sum((weight**2).sum() for weight in self.weights)
        gradients = torch.autograd.grad(
            loss + self.settings["norm_penalty"] * norms, self.weights
        )
        if self.past:  # the sum of all batches' penalties, not one that is equal to it
            pulls = [
                [
                    f * (weight.detach() - w)
                    for weight, f, w in zip(self.weights, fs, ws, strict=True)
                ]
                for fs, ws in self.past
            ]
            scale = self.settings["ewc_lambda"] / len(self.past)
            sums = [sum(pull) for pull in zip(*pulls, strict=True)]
            gradients = [g + scale * s for g, s in zip(gradients, sums, strict=True)]
        limit = self.settings["clip_value"]
        for weight, gradient in zip(self.weights, gradients, strict=True):
            weight.grad = gradient.clamp(-limit, limit)
        self.optimizer.step()
        if self.method.ewc:
            single = [self.gradient(x[[i]], y[[i]]) for i in range(len(x))]
            fishers = [
                torch.stack(rows).square().mean(0) for rows in zip(*single, strict=True)
            ]
            self.past.append((fishers, [w.detach().clone() for w in self.weights]))
        return logits.detach()

    def gradient(self, x, y):
        return torch.autograd.grad(self.loss(self.upper(x), y), self.weights)

    def products(self, subsets, rows):
        """Compare the mean gradients of subsets and the gradients of new samples."""
        stored = self.memory.read(subsets.ravel())["index"].reshape(subsets.shape)
        groups = [*stored, *rows[:, None]]
        flat = []
        for group in groups:
            parts = self.gradient(self.inputs[group], self.targets[group])
            flat.append(torch.cat([part.flatten() for part in parts]).double())
        table = torch.stack(flat)
        return (table @ table.T).numpy()


@pytest.mark.parametrize("dataset", [SEVERAL, ONE_LABEL])
@pytest.mark.parametrize("method", METHODS)
def test_a_method_takes_the_steps_that_its_papers_say(method, dataset):
    config = RunConfig(dataset, method, seed=1, updates=2 if dataset == SEVERAL else 1)
    data = load_dataset(dataset)
    plain = Plain(config, data)
    before = [weight.detach().clone() for weight in plain.model.parameters()]
    for rows, is_first in batches_of(config)[:14]:
        plain.step(rows, is_first)
    trainer = train(config, 14)
    if plain.sampler is not None:
        np.testing.assert_array_equal(trainer.memory_labels(), plain.sampler.labels)
    moved = 0
    pairs = zip(
        trainer.model.parameters(), plain.model.parameters(), before, strict=True
    )
    for ours, theirs, first in pairs:
        torch.testing.assert_close(ours.detach(), theirs.detach(), rtol=1e-3, atol=1e-4)
        moved += (ours - first).abs().max().item()
    assert moved > 0.01


def test_a_loss_is_told_of_the_stream_so_far_and_of_replayed_rows():
    log = []

    def note(logits, targets, stream):
        assert logits.dtype == stream.class_freq.dtype == torch.float32
        assert not torch.is_autocast_enabled("cpu")
        log.append((stream.class_freq.sum().item(), stream.seen, stream.replayed))
        return F.binary_cross_entropy_with_logits(logits, targets)

    register("note", note)
    fields = {"loss": "note", "batch_size": 40, "memory_size": 30, "precision": "bf16"}
    config = RunConfig(ONE_LABEL, "CRS", **fields)
    train(config, 3)
    assert [row[:2] for row in log] == [(40, 40), (80, 80), (120, 120)]
    assert [row[2].tolist() for row in log] == [
        [False] * 40,
        *[[False] * 40 + [True] * 10] * 2,
    ]


def test_a_balanced_draw_is_of_each_class_alike_and_of_no_sample_twice():
    labels = np.eye(3, dtype=bool)[np.repeat([0, 1, 2], [80, 15, 5])]
    rng = np.random.default_rng(0)
    first = [balanced_draw(labels, 1, rng).item() for _ in range(3000)]
    shares = labels[first].mean(axis=0)
    assert np.abs(shares - 1 / 3).max() < 0.04  # over four standard errors
    assert sorted(balanced_draw(labels, 200, rng)) == list(range(100))
    # a sample of two classes is drawn by either
    both = np.array([[1, 0], [1, 0], [1, 1], [0, 1]], bool)
    first = [balanced_draw(both, 1, rng).item() for _ in range(4000)]
    shares = np.bincount(first) / 4000
    assert np.abs(shares - [1 / 6, 1 / 6, 5 / 12, 1 / 4]).max() < 0.035
    # two slots, as if drawn one by one
    labels = np.eye(3, dtype=bool)[[0, 0, 0, 1, 2]]
    pairs, by_hand = np.zeros((2, 5, 5))
    for _ in range(4000):
        pairs[tuple(balanced_draw(labels, 2, rng))] += 1 / 4000
        slots = []
        while len(slots) < 2:
            slot = rng.choice(np.flatnonzero(labels[:, rng.integers(3)]))
            if slot not in slots:
                slots.append(slot)
        by_hand[tuple(slots)] += 1 / 4000
    np.testing.assert_allclose(pairs, by_hand, atol=0.03)


# what users register


def test_what_is_registered_trains_as_what_comes_with_prslib():
    load = DATASETS[ONE_LABEL].load
    register("own", SAMPLERS["crs"])
    register("own", SAMPLERS["crs"])  # a cell that runs again
    with pytest.raises(ValueError, match="another name than prslib's own, got PRS"):
        register("PRS", METHODS["CRS"])
    register("own", replace(DATASETS[ONE_LABEL], load=lambda images: load(images)))
    register("own", Architecture(lambda shape, classes: mlp(shape, classes), stages=3))
    register("own", lambda logits, targets: F.cross_entropy(logits, targets))
    fields = {"batch_size": 30, "loss_options": {}}
    ours = run(RunConfig("own", "own", model="own", loss="own", **fields))
    theirs = run(RunConfig(ONE_LABEL, "CRS", loss="cross_entropy", **fields))
    np.testing.assert_array_equal(ours.memory_labels, theirs.memory_labels)
    values = [one.scores.query("metric == 'accuracy'") for one in (ours, theirs)]
    names = ["dataset", "method"]
    first, second = (rows.drop(columns=names) for rows in values)
    pd.testing.assert_frame_equal(first, second, check_exact=True)


def test_a_network_that_draws_is_trained_the_same_each_time():
    def make(shape, classes):
        hidden = [nn.Linear(shape[0], 8), nn.ReLU(), nn.Dropout(0.5)]
        return Staged(nn.Sequential(*hidden), nn.Linear(8, classes))

    register("dropout", Architecture(make, stages=2))
    values = []
    for _ in range(2):
        before = torch.get_rng_state()
        values.append(run(RunConfig("cocoseq-tiny", "CRS", model="dropout")).scores)
        assert torch.get_rng_state().equal(before)
        torch.rand(1)  # whatever else a program draws
    pd.testing.assert_frame_equal(*values, check_exact=True)


def test_options_of_a_registered_sampler_are_its_keyword_only_parameters():
    class Newest(SAMPLERS["crs"]):
        def __init__(
            self, size, num_classes, seed, *, strength: float, rho: float = 0.0
        ):
            super().__init__(size, num_classes, seed)
            self.options = strength, rho

    register("Newest", Newest)
    config = RunConfig(ONE_LABEL, "Newest", rho=0.5, options={"strength": 2})
    assert train(config, 1).sampler.options == (2, 0.5)
    with pytest.raises(ValueError, match="unknown option 'alpha'; known: stren"):
        RunConfig(ONE_LABEL, "Newest", options={"alpha": 2})
    with pytest.raises(TypeError, match="expected a sampler's class, a loss, Method"):
        register("Strong", partial(Newest, strength=2))
