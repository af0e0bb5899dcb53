"""Runs that differ only in what they look at, trained once, against each trained alone."""

import errno

import numpy as np
import pandas as pd
import pytest
from interrupted import stopped_at

from prslib.experiments import workers
from prslib.experiments.store import CHECKPOINT, FAILURE, Store
from prslib.experiments.sweep import run_all
from prslib.experiments.workers import group_runs, train_and_store
from prslib.training.config import RunConfig, configs
from prslib.training.run import run, run_at_once

TINY = {"dataset": "digits70tiny", "batch_size": 80}
MLP = {"dataset": "imbal-digits-tiny", "batch_size": 30}
LOOKS = [
    {},
    {"test_set": "imbalanced"},
    {"features_per_class": 2},
    {"variance_points": 3},
    {"variance_points": 4, "features_per_class": 1, "test_set": "imbalanced"},
]


def looks(method="CRS"):
    return [RunConfig(**TINY, method=method, **look) for look in LOOKS]


def test_groups_keep_the_order_of_what_is_asked_for():
    crs, prs = looks(), looks("PRS")
    mixed = [crs[0], prs[1], crs[2], prs[0]]
    assert group_runs(mixed, "cpu") == [(crs[0], crs[2]), (prs[1], prs[0])]
    others = configs(**TINY, method=["CRS", "PRS"], seed=[0, 1], memory_size=[20, 30])
    assert len({config.training for config in others}) == len(others)


@pytest.mark.parametrize("method", ["PRS", "ExStream", "Multitask"])
def test_trained_once_each_run_is_what_it_is_alone(method):
    wanted = looks(method)
    for together, config in list(zip(run_at_once(wanted), wanted, strict=True))[::2]:
        alone = run(config)
        assert together.config == config
        pd.testing.assert_frame_equal(together.scores, alone.scores, check_exact=True)
        np.testing.assert_array_equal(together.memory_labels, alone.memory_labels)
        assert (together.features is None) == (alone.features is None)
        if alone.features is not None:
            np.testing.assert_array_equal(together.features, alone.features)
        assert (together.gradient_variance is None) == (alone.gradient_variance is None)
        if alone.gradient_variance is not None:
            pd.testing.assert_frame_equal(together.gradient_variance, alone.gradient_variance)


def test_runs_that_train_differently_are_refused():
    with pytest.raises(ValueError, match=r"expected runs that train alike .* got 2 trainings"):
        run_at_once([RunConfig(**TINY, seed=seed) for seed in (0, 1)])


def test_a_sweep_goes_through_a_training_once(tmp_path):
    store, apart, wanted = Store(tmp_path), Store(tmp_path / "apart"), looks()
    (group,) = group_runs(wanted, "cpu")
    assert stopped_at(None, group, store) == stopped_at(None, wanted[:1], apart)
    assert store.path(wanted[0]).read_bytes() == apart.path(wanted[0]).read_bytes()
    assert [found.config for found in run_all(wanted, store)] == wanted  # nothing is missing


@pytest.mark.parametrize(
    ("method", "names"), [("CRS", ["all", "plain"]), ("ExStream", ["watched"])]
)
def test_stopped_runs_go_on_together_or_with_some_of_them(tmp_path, method, names):
    wanted = looks(method)
    kept_of = {"all": wanted, "watched": wanted[3:], "plain": wanted[:2]}
    whole = Store(tmp_path / "whole")
    needed = len(stopped_at(None, wanted, whole))
    for name in names:
        store, kept = Store(tmp_path / name), kept_of[name]
        assert len(stopped_at(needed // 2, wanted, store)) == needed // 2
        (file,) = store.folder.glob(f"*{CHECKPOINT}")
        file.rename(min(store.path(config, CHECKPOINT) for config in kept))
        assert len(stopped_at(None, kept, store)) == needed - needed // 2
        for config in kept:
            assert store.path(config).read_bytes() == whole.path(config).read_bytes()
        assert not list(store.folder.glob(f"*{CHECKPOINT}"))


def test_runs_that_look_at_more_than_was_saved_start_over(tmp_path):
    plain, store = looks()[0], Store(tmp_path)
    stopped_at(3, [plain], store)
    with pytest.warns(UserWarning, match="runs that look at less; the run starts over"):
        run_at_once(looks(), checkpoint=store.path(plain, CHECKPOINT))


def test_an_error_while_looking_ends_one_run_only(tmp_path, monkeypatch):
    def broken(*_args):
        raise FloatingPointError("a variance that is not a number")

    monkeypatch.setattr("prslib.training.run.memory_variance", broken)
    wanted, store = looks(), Store(tmp_path)
    errors = [outcome.error for outcome in train_and_store(wanted, store)]
    assert [error is None for error in errors] == [True, True, True, False, False]
    assert [store.load(config) is not None for config in wanted] == [True] * 3 + [False] * 2


def test_a_run_that_cannot_be_stored_is_not_trained_again(tmp_path, monkeypatch):
    store, trained = Store(tmp_path), []
    group = [RunConfig(**MLP, method="CRS", variance_points=points) for points in (0, 2, 3)]

    def train(some, *arguments, train=workers.train_group):
        trained.append(len(some))
        return train(some, *arguments)

    def save(store, run, save=Store.save):
        if run.config.variance_points == 2:
            raise OSError(errno.EDQUOT, "Disk quota exceeded")
        return save(store, run)

    monkeypatch.setattr(workers, "train_group", train)
    monkeypatch.setattr(Store, "save", save)
    outcomes = workers.train_and_store(group, store)
    assert trained == [3]
    assert [outcome.error is None for outcome in outcomes] == [True, False, True]
    assert "Disk quota exceeded" in outcomes[1].error
    assert store.path(group[1], FAILURE).exists()
    assert [store.load(config) is not None for config in group] == [True, False, True]
