"""Runs come back as stored, damage is noticed, nothing half written stays."""

import errno
import os
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from fake_runs import fake_run, with_variance

from prslib.experiments.store import LOCK, Store
from prslib.experiments.sweep import run_all
from prslib.training.config import RunConfig

CONFIG = RunConfig(dataset="digits70tiny", rho=0.1)


@pytest.fixture
def finished():
    run = fake_run(CONFIG, lambda rows: 1 / 3)
    run.scores.loc[:3, "value"] = [np.nan, 1e-17, 1.0, 0.1 + 0.2]
    return run


@pytest.fixture
def with_extras(finished):
    config = replace(CONFIG, features_per_class=2, variance_points=3)
    features = np.linspace(0, 1, 12, dtype=np.float32).reshape(4, 3)
    run = with_variance(finished, [0.1, 1e-17, 3.0])
    draws = np.array([[0.5, np.nan], [1 / 3, 1e-7]], np.float16)
    resampled = pd.DataFrame(draws, [2, 5])  # rows of the scores
    return replace(run, config=config, features=features, resampled=resampled)


def test_runs_come_back_bit_for_bit(tmp_path, finished, with_extras):
    store = Store(tmp_path / "deep" / "runs")
    store.save(with_extras)
    assert store.load(CONFIG) is None  # another configuration
    store.save(finished)
    for run in (finished, with_extras):
        loaded = store.load(run.config)
        pd.testing.assert_frame_equal(loaded.scores, run.scores, check_exact=True)
        labels = loaded.memory_labels
        np.testing.assert_array_equal(labels, run.memory_labels, strict=True)
    np.testing.assert_array_equal(loaded.features, with_extras.features, strict=True)
    expected = with_extras.gradient_variance
    pd.testing.assert_frame_equal(loaded.gradient_variance, expected, check_exact=True)
    expected = with_extras.resampled
    pd.testing.assert_frame_equal(loaded.resampled, expected, check_exact=True)
    assert store.load(CONFIG).features is store.load(CONFIG).resampled is None


def test_damage_anywhere_is_noticed_or_changes_nothing(tmp_path, finished):
    store = Store(tmp_path)
    path = store.save(finished)
    content, hurt = path.read_bytes(), 0
    spoilt = [content[: int(share * len(content))] for share in (0, 0.2, 0.5, 0.99)]
    for position in range(0, len(content), 15):
        for bits in (0x01, 0xFF):
            spoilt.append(bytearray(content))
            spoilt[-1][position] ^= bits
    for damaged in spoilt:
        path.write_bytes(damaged)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            loaded = store.load(CONFIG)
        if loaded is None:
            assert "it will be trained again" in str(said[0].message)
            hurt += 1
        else:
            assert len(damaged) == len(content)  # not cut short
            scores = finished.scores
            pd.testing.assert_frame_equal(loaded.scores, scores, check_exact=True)
            np.testing.assert_array_equal(loaded.memory_labels, finished.memory_labels)
    assert hurt > 0.7 * len(spoilt)  # what is left is in config.json, or in no use


def test_a_failed_write_leaves_the_old_file_and_no_rest(
    tmp_path, finished, monkeypatch
):
    store = Store(tmp_path)
    before = store.save(finished).read_bytes()

    def full(*_args, **_kwargs):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("zipfile.ZipFile.writestr", full)
    with pytest.raises(OSError, match="No space left on device"):
        store.save(finished)
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [before]


def test_a_store_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "runs").touch()  # no folder can be made here, even by root
    with pytest.warns(UserWarning, match="runs"), pytest.raises(OSError, match="runs"):
        run_all([RunConfig("imbal-digits-tiny")], Store(tmp_path / "runs"))


def test_a_lock_is_free_again_after_its_release_and_says_what_it_is_for(tmp_path):
    store = Store(tmp_path)
    lock = store.lock(CONFIG)
    text = store.path(CONFIG, LOCK).read_text()
    assert text == "PRS rho=0.1 on digits70tiny, seed 0"
    looks = replace(CONFIG, test_set="imbalanced")  # trains alike
    with pytest.raises(TimeoutError):
        store.lock(looks)
    lock.release()
    store.lock(looks).release()
