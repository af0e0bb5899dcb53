"""Whole runs: what they score, keep and measure, and that they repeat to the byte."""

import contextlib
import gc
import weakref
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.metrics import average_precision_score, f1_score
from trainers import make_trainer

from prslib import (
    METHODS,
    RunConfig,
    load_dataset,
    register,
    run,
    train,
)
from prslib.device import run_settings
from prslib.metrics import best_thresholds, evaluate
from prslib.resamples import image_draws
from prslib.scoring import score_test
from prslib.train import Trainer, draw_held_out, stream

PICTURES, SEVERAL, ONE_LABEL = "digits70tiny", "cocoseq-tiny", "imbal-digits-tiny"


@lru_cache
def finished(method="PRS", dataset=SEVERAL, **fields):
    return run(RunConfig(dataset, method, **fields))


@pytest.fixture
def trainers(monkeypatch):
    """Keep each trainer, and note what it and its sampler are given."""
    made = []

    class Noted(Trainer):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            made.append(self)
            self.steps_of, self.placed = [], []
            if self.sampler is not None:
                place = self.sampler.place
                self.sampler.place = lambda y, **needs: self.note(place(y, **needs))

        def note(self, slots):
            self.placed.append(self.steps_of[-1])
            return slots

        def step(self, new, is_first=True):
            self.steps_of.append(new)
            super().step(new, is_first)

    monkeypatch.setattr(train, "Trainer", Noted)
    return made


# the stream


@pytest.fixture(scope="module")
def pictures():
    return load_dataset(PICTURES, images=False)


def test_a_stream_follows_the_schedule_and_shows_each_sample_once(pictures):
    config = RunConfig(PICTURES, schedule=(2, 0, 1, 3))
    segments = list(stream(config, pictures.train.task))
    seen = [groups for groups, *_ in segments]
    assert seen == [[(2,)], [(2,), (0,)], [(2,), (0,), (1,)], [(2,), (0,), (1,), (3,)]]
    for groups, batches, is_new in segments:
        assert batches.shape[1] == 10 and is_new.all()
        assert set(pictures.train.task[batches].ravel()) == set(groups[-1])
        left_out = (pictures.train.task == groups[-1]).sum() - batches.size
        assert 0 <= left_out < 10
    shown = np.concatenate([batches.ravel() for _, batches, _ in segments])
    assert len(np.unique(shown)) == len(shown)


def test_multitask_mixes_the_tasks_and_shows_every_sample_in_each_epoch(pictures):
    config = RunConfig(PICTURES, "Multitask", epochs=3)
    ((groups, batches, is_new),) = stream(config, pictures.train.task)
    assert groups == [(0,), (1,), (2,), (3,)]
    epochs = batches.reshape(3, -1)
    assert is_new.reshape(3, -1).all(axis=1).tolist() == [True, False, False]
    for epoch in epochs:
        assert len(np.unique(epoch)) == epoch.size >= len(pictures.train) - 9
        assert len(set(pictures.train.task[epoch[:100]])) == 4
    assert not (epochs[0] == epochs[1]).all()


def test_methods_of_one_seed_see_one_stream_and_begin_with_the_same_weights(pictures):
    """Else differences between methods would not be paired."""

    def begin(method, seed):
        config = RunConfig(ONE_LABEL, method, seed)
        trainer = make_trainer(config)
        rows = [batches for _, batches, _ in stream(config, trainer.labels.argmax(1))]
        weights = torch.cat([w.flatten() for w in trainer.model.parameters()])
        return np.concatenate(rows).tolist(), weights.tolist()

    for method in METHODS.keys() - {"Multitask"}:
        assert begin(method, 1) == begin("PRS", 1)
    rows, weights = begin("PRS", 2)
    assert rows != begin("PRS", 1)[0] and weights != begin("PRS", 1)[1]


def test_epochs_offer_every_sample_once_and_learn_it_again(trainers):
    once, twice = (
        run(RunConfig(ONE_LABEL, "CRS", epochs=n, batch_size=20)) for n in (1, 2)
    )
    first, second = trainers
    assert len(second.steps_of) == 2 * len(first.steps_of)
    for trainer in trainers:
        placed = np.concatenate(trainer.placed)
        assert len(set(placed)) == len(placed) == 20 * len(first.steps_of)
        assert trainer.sampler.class_freq.sum() == trainer.seen == len(placed)
    # within a task the second epoch has the same samples in another order
    _, batches, _ = next(stream(once.config, load_dataset(ONE_LABEL).train.task))
    count = len(batches)
    epochs = np.array(second.steps_of[: 2 * count]).reshape(2, -1)
    assert len(np.setdiff1d(*epochs)) < 20 and (epochs[0] != epochs[1]).any()
    assert not once.scores["value"].equals(twice.scores["value"])


# the scores


@pytest.mark.parametrize("dataset", [SEVERAL, ONE_LABEL])
def test_the_last_scores_are_those_of_the_network_by_scikit_learn(trainers, dataset):
    scores = run(RunConfig(dataset, "CRS")).scores
    data, (trainer,) = load_dataset(dataset), trainers
    at_end = scores[scores["trained_tasks"] == scores["trained_tasks"].max()]
    at_end = at_end[at_end["group"] == "overall"]
    for name, test in data.tests.items():
        rows = at_end[at_end["test_set"] == name].set_index(["task", "metric"])["value"]
        with torch.no_grad():
            inputs = torch.as_tensor(test.inputs)
            logits = trainer.model.eval()(trainer.as_input(inputs))
        given = (
            logits.softmax(1) if dataset == ONE_LABEL else logits.sigmoid()
        ).numpy()
        labels = test.labels
        some = labels.any(axis=0)
        by_hand = average_precision_score(labels[:, some], given[:, some])
        assert rows["seen", "mAP"] == pytest.approx(by_hand, abs=1e-6)
        by_hand = f1_score(labels[:, some], given[:, some] > 0.5, average="micro")
        assert rows["seen", "O-F1"] == pytest.approx(by_hand, abs=1e-6)
        if dataset == ONE_LABEL:
            right = (given.argmax(1) == labels.argmax(1)).mean()
            assert rows["seen", "accuracy"] == rows["all", "accuracy"] == right


def test_a_trainer_is_freed_with_its_last_name():
    """Or many runs in one process would need more and more memory."""
    gc.disable()
    try:
        trainer = make_trainer(RunConfig(SEVERAL, "PRS"))
        trainer.step(np.arange(10))
        freed = weakref.ref(trainer)
        del trainer
        assert freed() is None
    finally:
        gc.enable()


def test_finetune_forgets_and_the_network_learns():
    scores = run(RunConfig(PICTURES, "Finetune", seed=3, weights="none")).scores
    overall = (scores["group"] == "overall") & (scores["metric"] == "mAP")
    overall &= scores["test_set"] == "balanced"
    by_task = scores[overall].set_index(["trained_tasks", "task"])["value"]
    tasks = scores["schedule"].iloc[0].split(",")[:-1]
    learned = [by_task[trained, task] for trained, task in enumerate(tasks, 1)]
    assert min(learned) > 1.5 / 24  # chance
    assert by_task[4][tasks].mean() < 0.85 * np.mean(learned)


def scores_of(given, test, dataset, groups, **options):
    rows = score_test(lambda rows: given[rows], test, dataset, groups, **options)
    frame = pd.DataFrame(rows, columns=["task", "group", "metric", "draws"])
    return frame.assign(value=[draws[0] for draws in frame["draws"]])


def test_open_samples_count_once_a_class_is_seen_and_with_these_classes_only():
    """The network is right about all labels of all samples, also of tasks to come."""
    dataset = load_dataset(SEVERAL, images=False)
    test = dataset.tests["open"]
    frame = scores_of(0.1 + 0.8 * test.labels, test, dataset, [(0,), (3,)])
    values = frame.set_index(["task", "group", "metric"])["value"]
    for task in ("seen", "0", "3"):
        assert values[task, "overall", "C-R"] == values[task, "overall", "mAP"] == 1
    names = np.array(dataset.class_names)
    trained = np.isin(dataset.class_task, (0, 3))
    scored = frame[frame["metric"] == "AP"].dropna(subset="value")
    assert set(scored["group"]) == set(names[trained & test.labels.any(axis=0)])


def test_resamples_of_a_task_are_of_its_own_samples():
    """Against each resample written out, in which a sample stands as often as drawn."""
    dataset = load_dataset(SEVERAL, images=False)
    test = dataset.tests["open"]
    rng = np.random.default_rng(0)
    given = 0.3 * test.labels + 0.7 * rng.random(test.labels.shape)
    frame = scores_of(given, test, dataset, [(0,), (3,)], resamples=2)
    given = given.astype(np.float32)
    weights = image_draws(len(test), 2).astype(int)
    for task, tasks in {"seen": (0, 3), "0": (0,), "3": (3,)}.items():
        classes = np.isin(dataset.class_task, tasks)
        rows = np.flatnonzero(test.labels[:, classes].any(axis=1))
        drawn = frame[frame["task"] == task].set_index(["group", "metric"])["draws"]
        for number, often in enumerate(weights, 1):
            again = rows.repeat(often[rows])
            labels = test.labels[again] & classes
            names = dataset.class_names, dataset.class_group
            by_hand = evaluate(given[again], labels, *names)
            for group, metric, value in by_hand.itertuples(index=False):
                assert drawn[group, metric][number] == pytest.approx(value, nan_ok=True)


def test_a_tuned_threshold_is_chosen_on_samples_that_are_held_out(
    monkeypatch, trainers
):
    """The run itself trains on all samples; its scores at 0.5 stay."""
    chosen = []

    def note(probabilities, labels):
        chosen.append((len(probabilities), best_thresholds(probabilities, labels)))
        return {"C-F1": 0.0, "O-F1": np.inf}

    monkeypatch.setattr(train, "best_thresholds", note)
    config, data = RunConfig(SEVERAL, tuned_threshold=True), load_dataset(SEVERAL)
    scores = run(config).scores
    rows, (tuning, trainer) = draw_held_out(config, data), trainers
    assert len(set(rows)) == len(data.train) // 5 == chosen[-1][0]
    assert not set(rows) & set(np.concatenate(tuning.steps_of))
    assert set(rows) & set(np.concatenate(trainer.steps_of))
    assert all(0 < thresholds["C-F1"] < 1 for _, thresholds in chosen)
    at_end = scores[scores["trained_tasks"] == 4]
    at_end = at_end[at_end["test_set"] == "balanced"]
    at_end = at_end[(at_end["group"] == "overall") & (at_end["task"] == "seen")]
    values = at_end.set_index("metric")["value"]
    precision = data.tests["balanced"].labels.mean()  # all labels are predicted
    by_hand = 2 * precision / (1 + precision)
    assert values["C-F1 (tuned threshold)"] == pytest.approx(by_hand)
    assert values["O-F1 (tuned threshold)"] == 0  # none is
    usual = scores[~scores["metric"].str.contains("tuned")].reset_index(drop=True)
    pd.testing.assert_frame_equal(usual, finished().scores)


def test_prequential_scores_are_of_a_batch_before_it_is_learnt(monkeypatch):
    data, by_hand = load_dataset(ONE_LABEL), []
    step = Trainer.step

    def note(trainer, new, is_first=True):
        if is_first:
            with torch.no_grad():
                inputs = trainer.as_input(torch.as_tensor(data.train.inputs[new]))
                given = trainer.model.eval()(inputs).softmax(1).numpy()
            trainer.upper.train()
            names = data.class_names, data.class_group
            rows = evaluate(given, data.train.labels[new], *names)
            overall = rows[rows["group"] == "overall"]
            values = dict(zip(overall["metric"], overall["value"], strict=True))
            by_hand.append({"images": trainer.seen, **values})
        step(trainer, new, is_first)

    monkeypatch.setattr(Trainer, "step", note)
    config = RunConfig(ONE_LABEL, "CRS", prequential=True, batch_size=20, epochs=2)
    result = run(config)
    rows = result.prequential
    assert list(rows) == [*config.columns, "images", "metric", "value"]
    table = rows.pivot(index="images", columns="metric", values="value").reset_index()
    expected = pd.DataFrame(by_hand)
    assert expected["images"].tolist() == [20 * n for n in range(len(expected))]
    table = table[list(expected)]
    assert table.to_numpy(float) == pytest.approx(expected.to_numpy(float))
    plain = run(replace(config, prequential=False))
    assert plain.prequential is None
    pd.testing.assert_frame_equal(plain.scores, result.scores, check_exact=True)


# what else is kept, and that it does not disturb


@pytest.mark.parametrize(
    ("dataset", "method"), [(SEVERAL, "PRS"), (ONE_LABEL, "ExStream")]
)
def test_same_configuration_same_numbers_whatever_is_measured(dataset, method):
    first = finished(method, dataset, test_resamples=0)
    other = run(replace(first.config, seed=1))
    assert not first.scores["value"].equals(other.scores["value"])
    data = load_dataset(dataset)
    segments = stream(first.config, data.train.task)
    steps = sum(len(batches) for _, batches, _ in segments)
    looks = {"variance_points": 3, "features_per_class": 2}
    looks |= {"predictions": True, "prequential": True}
    second = run(replace(first.config, **looks))
    pd.testing.assert_frame_equal(first.scores, second.scores, check_exact=True)
    np.testing.assert_array_equal(first.memory_labels, second.memory_labels)
    assert first.gradient_variance is first.prequential is None and not first.features
    rows = second.gradient_variance
    assert list(rows)[:6] == list(first.scores)[:6]
    points = np.linspace(0, steps, 4).round()[1:]
    assert rows["images"].tolist() == [10 * n for n in points]
    assert (rows["samples"] <= first.config.resolved["memory_size"]).all()
    assert (rows["value"] > 0).all()
    assert second.features.keys() == data.tests.keys()
    assert all(len(rows) > 10 for rows in second.features.values())
    assert all(rows.dtype == "f4" for rows in second.features.values())
    for name, test in data.tests.items():
        assert second.predictions[name].shape == test.labels.shape
        assert second.predictions[name].dtype == "f4"


# whatever the caller has set


@contextlib.contextmanager
def float64():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def test_a_run_is_what_its_configuration_says():
    """Whatever the caller has set."""
    with float64(), torch.autocast("cpu", torch.bfloat16), torch.inference_mode():
        train.load_inputs.cache_clear()
        inside = run(RunConfig(SEVERAL, test_resamples=0))
    plain = finished(test_resamples=0)
    pd.testing.assert_frame_equal(inside.scores, plain.scores, check_exact=True)
    # and the inputs that it leaves are of use to the next
    again = run(plain.config)
    pd.testing.assert_frame_equal(again.scores, plain.scores, check_exact=True)


def test_another_default_device_is_refused():
    with torch.device("meta"), pytest.raises(RuntimeError, match="got meta; call"):
        run(RunConfig(SEVERAL))


def state():
    conv, products = torch.backends.cudnn.conv, torch.backends.cuda.matmul
    return (
        torch.get_num_threads(),
        torch.get_default_dtype(),
        torch.is_grad_enabled(),
        torch.is_autocast_enabled("cpu"),
        torch.is_inference_mode_enabled(),
        conv.fp32_precision,
        products.fp32_precision,
    )


def test_what_a_run_sets_is_given_back_also_after_an_error():
    usual = state()
    torch.set_num_threads(2)
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    try:
        with float64(), torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
            before = state()
            with contextlib.suppress(KeyError), run_settings(torch.device("cpu")):
                inside = state()
                raise KeyError
            assert state() == before
    finally:
        torch.set_num_threads(usual[0])
        torch.backends.cuda.matmul.fp32_precision = usual[-1]
    assert inside[:5] == (1, torch.float32, True, False, False)
    assert inside[5:] == ("ieee", "ieee")
    random = torch.get_rng_state()
    run(RunConfig(ONE_LABEL, "CRS", batch_size=40))
    assert state() == usual and torch.get_rng_state().equal(random)


@pytest.mark.usefixtures("registers")
def test_a_loss_that_is_not_finite_ends_a_run_also_if_weights_are():
    register("endless", lambda logits, targets: 0 * logits.mean() + float("inf"))
    with pytest.raises(FloatingPointError, match="finite losses and weights"):
        run(RunConfig("cocoseq-tiny", "CRS", loss="endless"))
