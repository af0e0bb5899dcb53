"""Whole runs: what they score, keep and measure, and that they repeat to the byte."""

import dataclasses
import weakref
from functools import lru_cache

import numpy as np
import pandas as pd
import pytest
import torch

from prslib.datasets import load_dataset
from prslib.training.config import RunConfig
from prslib.training.device import Precision
from prslib.training.methods import METHODS
from prslib.training.replay import new_samples, plan
from prslib.training.run import conditions, make_learner, run, run_at_once

TINY, ONE_LABEL = "digits70tiny", "imbal-digits-tiny"


@lru_cache
def finished(method, dataset=TINY, batch_size=40):
    return run(RunConfig(dataset=dataset, method=method, batch_size=batch_size))


@pytest.mark.parametrize(
    ("method", "dataset"),
    [*((method, ONE_LABEL) for method in METHODS), ("PRS", TINY), ("ExStream", TINY)],
)
def test_same_configuration_same_numbers(method, dataset):
    first = finished(method, dataset)
    second = run(first.config)
    pd.testing.assert_frame_equal(first.scores, second.scores, check_exact=True)
    np.testing.assert_array_equal(first.memory_labels, second.memory_labels)
    other = run(dataclasses.replace(first.config, seed=1))
    assert not first.scores["value"].equals(other.scores["value"])


def test_scores_are_tidy_and_complete():
    scores = finished("PRS").scores
    columns = "dataset method rho memory_size schedule seed trained_tasks task group metric value"
    assert list(scores) == columns.split()
    assert scores.iloc[0, :6].tolist() == [TINY, "PRS", 0.0, 50, "0,3,1,2", 0]
    tasks = scores.groupby("trained_tasks")["task"].unique().map(set).to_dict()
    assert tasks == {
        1: {"seen", "0"},
        2: {"seen", "0", "3"},
        3: {"seen", "0", "1", "3"},
        4: {"seen", "0", "1", "2", "3"},
    }
    assert not scores.duplicated(["trained_tasks", "task", "group", "metric"]).any()
    assert scores["value"].dropna().between(0, 1).all()
    # after the first task the joined test sets are that task's own
    first = scores[scores["trained_tasks"] == 1].groupby("task")["value"]
    np.testing.assert_array_equal(*(first.get_group(task) for task in ("seen", "0")))


def test_multitask_is_scored_once_on_all_tasks():
    scores = finished("Multitask").scores
    assert set(scores["trained_tasks"]) == {4}
    assert set(scores["schedule"]) == {""}
    assert scores["rho"].isna().all()


def test_finetune_forgets_and_the_net_learns():
    learned, kept = [], []  # mAP of each task but the last: when just trained, and at the end
    for seed in range(3):
        config = RunConfig(dataset=TINY, method="Finetune", seed=seed, weights="none")
        scores = run(config).scores
        own = scores[(scores["group"] == "overall") & (scores["metric"] == "mAP")]
        own = own.set_index(["trained_tasks", "task"])["value"]
        for trained, task in enumerate(scores["schedule"].iloc[0].split(",")[:-1], start=1):
            learned.append(own[trained, task])
            kept.append(own[4, task])
    chance = 1 / 24
    assert min(learned) > 1.5 * chance
    assert np.mean(kept) < 0.85 * np.mean(learned)


def test_plan_is_what_the_run_keeps():
    kept = finished("PRS")
    _, planned = plan(kept.config, load_dataset(TINY, images=False))
    np.testing.assert_array_equal(planned, kept.memory_labels)


@pytest.mark.parametrize(
    ("dataset", "method"), [(TINY, "PRS"), (ONE_LABEL, "GSS"), (ONE_LABEL, "ExStream")]
)
def test_measuring_changes_nothing_else(dataset, method):
    first = finished(method, dataset)
    plain = first.config
    second = run(dataclasses.replace(plain, variance_points=3, features_per_class=2))
    pd.testing.assert_frame_equal(first.scores, second.scores, check_exact=True)
    np.testing.assert_array_equal(first.memory_labels, second.memory_labels)
    assert first.gradient_variance is first.features is None
    rows = second.gradient_variance
    assert list(rows)[:6] == list(first.scores)[:6]
    steps = sum(len(part.batches) for part in new_samples(plain, load_dataset(dataset)))
    assert rows["images"].tolist() == [40 * round(steps * i / 3) for i in (1, 2, 3)]
    assert (rows["samples"] <= plain.resolved["memory_size"]).all()
    assert (rows["value"] > 0).all()


def test_macro_auc_is_scored_where_it_is_asked_for():
    plain = RunConfig(dataset="digits70tiny", method="CRS", batch_size=40)
    with_area = dataclasses.replace(plain, macro_auc=True)
    first, second = run_at_once([plain, with_area])
    added = second.scores["metric"] == "AUC"
    assert set(second.scores.loc[added, "task"]) > {"seen"} and added.sum() % 4 == 0
    assert second.scores.loc[added & (second.scores["group"] == "overall"), "value"].max() > 0.5
    others = second.scores[~added].reset_index(drop=True)
    pd.testing.assert_frame_equal(first.scores, others, check_exact=True)
    pd.testing.assert_frame_equal(first.scores, run(plain).scores, check_exact=True)
    with pytest.raises(TypeError, match="macro_auc must be True or False, got 1"):
        dataclasses.replace(plain, macro_auc=1)


def test_a_method_without_a_memory_measures_nothing():
    config = dataclasses.replace(finished("Finetune", ONE_LABEL).config, variance_points=3)
    assert run(config).gradient_variance is None


def test_float32_products_are_set_for_a_run_and_set_back(monkeypatch):
    knobs = (torch.backends.cuda.matmul, torch.backends.cudnn.conv, torch.backends.cudnn.rnn)
    before = [knob.fp32_precision for knob in knobs]
    for name, products in {"fp32": "ieee", "tf32": "tf32", "bf16": "tf32"}.items():
        monkeypatch.setattr(
            "prslib.training.run._run", lambda *_: [[knob.fp32_precision for knob in knobs]]
        )
        assert run(RunConfig(dataset=TINY, precision=name)) == [products] * 3
    with pytest.raises(KeyError), Precision("tf32").in_force():
        raise KeyError
    assert [knob.fp32_precision for knob in knobs] == before


def test_learners_of_earlier_runs_have_left_the_gpu_when_the_next_begins(monkeypatch):
    emptied = []
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: emptied.append(True))
    config = RunConfig(dataset=TINY)
    learner = weakref.ref(make_learner(config, load_dataset(TINY)))
    assert learner() is not None  # a cycle: nothing else holds it
    with conditions(config):
        assert learner() is None and emptied
