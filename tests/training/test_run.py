"""Whole runs: what they score, keep and measure, and that they repeat to the byte."""

import contextlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import lru_cache
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from torch.nn.utils import parameters_to_vector

from prslib.datasets import load_dataset
from prslib.metrics import best_thresholds, score
from prslib.resamples import image_draws
from prslib.training.config import RunConfig
from prslib.training.device import check_device
from prslib.training.learner import Learner, further_decisions, score_tasks
from prslib.training.methods import METHODS
from prslib.training.replay import held_out_rows, stream, without_training
from prslib.training.run import initial_model, one_thread, run, variance_steps
from prslib.training.validation import OWN

TINY, ONE_LABEL = "digits70tiny", "imbal-digits-tiny"


@lru_cache
def finished(method, dataset=TINY, batch_size=40):
    return run(RunConfig(dataset, method, batch_size=batch_size))


def test_replayed_rows_are_those_in_memory(monkeypatch):
    """Every step trains on its new rows, and on rows that the memory held before it."""
    dataset, joined = load_dataset(ONE_LABEL), []
    join = Learner.join

    def note(learner, inputs, labels, new, slots, replay):
        rows = replay.memory.read(slots)["index"] if len(slots) else slots
        inputs_and_targets = join(learner, inputs, labels, new, slots, replay)
        joined.append((new, rows, inputs_and_targets[1]))
        return inputs_and_targets

    monkeypatch.setattr(Learner, "join", note)
    run(RunConfig(ONE_LABEL, "CRS", batch_size=40))
    shown = set()
    for new, rows, targets in joined:
        assert set(rows) <= shown and len(rows) == (10 if shown else 0)
        both = dataset.train.labels[np.concatenate([new, rows])]
        np.testing.assert_array_equal(targets.numpy(), both)
        shown |= set(new)


def test_scores_are_tidy_and_complete():
    scores = finished("PRS").scores
    columns = "dataset method rho memory_size schedule seed trained_tasks task group"
    assert list(scores) == [*columns.split(), "metric", "value"]
    assert scores.iloc[0, :6].tolist() == [TINY, "PRS", 0.0, 50, "0,3,1,2", 0]
    tasks = scores.groupby("trained_tasks")["task"].unique().map(sorted).tolist()
    assert tasks[:2] == [["0", "seen"], ["0", "3", "seen"]]
    assert tasks[2:] == [["0", "1", "3", "seen"], ["0", "1", "2", "3", "seen"]]
    assert not scores.duplicated(["trained_tasks", "task", "group", "metric"]).any()
    assert scores["value"].dropna().between(0, 1).all()
    # after the first task the joined test sets are that task's own
    first = scores[scores["trained_tasks"] == 1]
    first = first.groupby("task")["value"]
    np.testing.assert_array_equal(first.get_group("seen"), first.get_group("0"))
    offline = finished("Multitask").scores
    assert set(offline["trained_tasks"]) == {4} and set(offline["schedule"]) == {""}
    assert offline["rho"].isna().all()


def test_methods_of_one_seed_begin_with_the_same_weights():
    """Else differences between methods would not be paired."""
    dataset = load_dataset(TINY)

    def weights_of(method, seed):
        config = RunConfig(TINY, method, seed, weights="none")
        return parameters_to_vector(initial_model(config, dataset).parameters())

    for method in METHODS:
        assert torch.equal(weights_of(method, 1), weights_of("PRS", 1))
    assert not torch.equal(weights_of("PRS", 0), weights_of("PRS", 1))


def test_finetune_forgets_and_the_net_learns():
    scores = run(RunConfig(TINY, "Finetune", seed=3, weights="none")).scores
    overall = (scores["group"] == "overall") & (scores["metric"] == "mAP")
    by_task = scores[overall].set_index(["trained_tasks", "task"])["value"]
    tasks = scores["schedule"].iloc[0].split(",")[:-1]
    learned = [by_task[trained, task] for trained, task in enumerate(tasks, 1)]
    assert min(learned) > 1.5 / 24  # chance
    assert by_task[4][tasks].mean() < 0.85 * np.mean(learned)


def test_resamples_are_of_the_groups_and_of_classes_where_they_are_asked_for():
    """Each is a score of the run on as many test images, some of them twice."""
    plain = run(RunConfig("cocoseq-tiny", "CRS"))
    every = run(RunConfig("cocoseq-tiny", "CRS", class_draws=True))
    pd.testing.assert_frame_equal(plain.scores, every.scores, check_exact=True)
    rows = plain.scores.loc[plain.resampled.index]
    assert set(rows["group"]) == {"overall", "majority", "moderate", "minority"}
    assert set(rows.loc[rows["task"] != "seen", "metric"]) == {"C-F1", "O-F1", "mAP"}
    of_classes = every.scores.loc[every.resampled.index.difference(rows.index)]
    assert set(of_classes["metric"]) == {"AP", "F1"}
    assert of_classes["value"].notna().all()
    same = every.resampled.loc[rows.index]
    pd.testing.assert_frame_equal(plain.resampled, same, check_exact=True)
    usual = (rows["group"] == "overall") & rows["metric"].isin(["C-F1", "O-F1", "mAP"])
    spread = plain.resampled[usual].astype(float)
    gaps = spread.mean(axis=1) - rows.loc[spread.index, "value"]
    assert (gaps.abs() < 0.05).all()
    assert (spread.std(axis=1) < 0.05).all()


def test_a_threshold_of_its_own_is_chosen_on_images_that_are_held_out(monkeypatch):
    """The run trains on the same samples; its scores at 0.5 stay."""
    chosen = []

    def note(probabilities, labels):
        chosen.append((len(probabilities), best_thresholds(probabilities, labels)))
        return {"C-F1": 0.0, "O-F1": np.inf}

    monkeypatch.setattr("prslib.training.run.best_thresholds", note)
    scores = run(RunConfig("cocoseq-tiny", "PRS", own_threshold=True)).scores
    rows = held_out_rows(RunConfig("cocoseq-tiny"), load_dataset("cocoseq-tiny"))
    images = len(load_dataset("cocoseq-tiny", images=False).train)
    assert len(rows) == len(set(rows)) == images // 5
    assert [count for count, _ in chosen][-1] == len(rows)
    assert all(0 < t["C-F1"] < 1 for _, t in chosen)

    at_end = scores[(scores["trained_tasks"] == 4) & (scores["group"] == "overall")]
    values = at_end.set_index(["task", "metric"])["value"]["seen"]
    labels = load_dataset("cocoseq-tiny", images=False).tests["both"].labels
    precision = labels.mean()  # all are predicted
    f1 = values["C-F1 (own threshold)"]
    assert f1 == pytest.approx(2 * precision / (1 + precision))
    assert values["O-F1 (own threshold)"] == 0  # none is
    others = run(RunConfig("cocoseq-tiny", "PRS")).scores
    usual = scores[~scores["metric"].str.contains("own")].reset_index(drop=True)
    pd.testing.assert_frame_equal(usual, others)


def test_a_label_is_predicted_above_a_threshold_and_not_at_it():
    decisions = further_decisions(
        np.array([[0.3, 0.4]]), np.array([True, True]), {"C-F1": 0.3}
    )
    ((metric, _, predicted),) = [one for one in decisions if one[1] == OWN]
    assert (metric, predicted.tolist()) == ("C-F1", [[False, True]])


def test_open_images_count_once_a_class_is_seen_and_with_these_classes_alone():
    """The learner is right about all labels of all images, also of tasks to come."""
    dataset = load_dataset("cocoseq-tiny")
    test = dataset.tests["open"]
    learner = SimpleNamespace(
        probabilities=lambda inputs, rows: 0.1 + 0.8 * test.labels[rows]
    )
    frame = score_tasks(learner, None, test, dataset, [(0,), (3,)])
    values = frame.set_index(["task", "group", "metric"])["value"]
    for task in ("seen", "0", "3"):
        assert values[task, "overall", "C-R"] == values[task, "overall", "mAP"] == 1
    names = np.array(dataset.class_names)
    trained = np.isin(dataset.class_task, (0, 3))
    scored = frame[frame["metric"] == "AP"].dropna(subset="value")
    assert set(scored["group"]) == set(names[trained & test.labels.any(axis=0)])
    both = test.labels[:, dataset.class_task == 0].any(axis=1)
    both &= test.labels[:, dataset.class_task == 3].any(axis=1)
    assert both.any()  # images that count for both tasks


def test_resamples_of_a_task_are_of_its_own_images():
    """Against each resample written out, in which an image stands as often as drawn."""
    dataset = load_dataset("cocoseq-tiny")
    test = dataset.tests["open"]
    rng = np.random.default_rng(0)
    given = 0.3 * test.labels + 0.7 * rng.random(test.labels.shape)
    learner = SimpleNamespace(probabilities=lambda inputs, rows: given[rows])
    frame = score_tasks(learner, None, test, dataset, [(0,), (3,)], resamples=2)
    weights = image_draws(len(test), 2).astype(int)
    for task, tasks in {"seen": (0, 3), "0": (0,), "3": (3,)}.items():
        classes = np.isin(dataset.class_task, tasks)
        rows = np.flatnonzero(test.labels[:, classes].any(axis=1))
        drawn = frame[frame["task"] == task].set_index(["group", "metric"])["draws"]
        for number, often in enumerate(weights, 1):
            again = rows.repeat(often[rows])
            labels = test.labels[again] & classes
            for group, metric, value in score(
                given[again], labels, dataset.class_group
            ):
                assert drawn[group, metric][number] == pytest.approx(value, nan_ok=True)


def test_a_memory_without_training_is_what_the_run_keeps():
    run = finished("PRS")
    dataset = load_dataset(TINY, images=False)
    replay = without_training(run.config, dataset)
    np.testing.assert_array_equal(replay.sampler.labels, run.memory_labels)
    rows = replay.memory.read(replay.memory.filled)["index"]
    np.testing.assert_array_equal(dataset.train.labels[rows], run.memory_labels)


@pytest.mark.parametrize(
    ("dataset", "method"), [(TINY, "PRS"), (ONE_LABEL, "ExStream")]
)
def test_same_configuration_same_numbers_whatever_is_measured(dataset, method):
    first = finished(method, dataset)
    plain = first.config
    other = run(replace(plain, seed=1))
    assert not first.scores["value"].equals(other.scores["value"])
    steps = sum(len(s.batches) for s in stream(plain, load_dataset(dataset)))
    # from the first step on, whose samples count: before it there are none
    looks = {"variance_points": steps, "features_per_class": 2}
    second = run(replace(plain, **looks))
    pd.testing.assert_frame_equal(first.scores, second.scores, check_exact=True)
    np.testing.assert_array_equal(first.memory_labels, second.memory_labels)
    assert first.gradient_variance is first.features is None
    rows = second.gradient_variance
    assert list(rows)[:6] == list(first.scores)[:6]
    assert rows["images"].tolist() == [40 * (i + 1) for i in range(steps)]
    assert (rows["samples"] <= plain.resolved["memory_size"]).all()
    assert (rows["value"] > 0).all()
    assert variance_steps(replace(plain, variance_points=3), 20) == {7, 13, 20}


def test_auto_is_a_gpu_where_there_is_one(monkeypatch):
    assert check_device("auto") == "cpu" or torch.cuda.is_available()
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    assert check_device("auto") == check_device("mps") == "mps"
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    assert check_device("auto") == "cuda"
    assert check_device("cuda:1") == "cuda:1"
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: False)
    with pytest.raises(ValueError, match="known devices: cpu, cuda, cuda:0, cuda:1"):
        check_device("mps")


@pytest.mark.parametrize("device", ["cuda:99", "gpu", None])
def test_a_device_that_is_not_there_is_refused(device):
    with pytest.raises(ValueError, match=f"unknown device '{device}'; known devices: "):
        run(RunConfig(TINY), device)


def threads_of_a_run():
    before = torch.get_num_threads()
    with contextlib.suppress(KeyError), one_thread():
        inside = torch.get_num_threads()
        raise KeyError
    return before, inside, torch.get_num_threads()


def test_a_run_sets_one_thread_and_sets_it_back():
    threads = torch.get_num_threads()
    with ThreadPoolExecutor() as pool:  # torch counts them thread by thread
        elsewhere = pool.submit(threads_of_a_run).result()
    assert threads_of_a_run() == elsewhere == (threads, 1, threads)
