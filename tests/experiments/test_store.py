"""Runs come back as stored, damage is noticed, nothing half written stays."""

import errno
import io
import json
import math
import os
import warnings
import zipfile
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from fake_runs import fake_run, with_variance

from prslib.datasets import load_dataset
from prslib.datasets.curation import feature_rows
from prslib.experiments.store import RECORD, RUNNING, Store, describe
from prslib.experiments.sweep import run_all
from prslib.training.config import RunConfig

CONFIG = RunConfig(dataset="cocoseq-tiny", rho=0.1)


@pytest.fixture
def finished():
    run = fake_run(CONFIG, lambda rows: 1 / 3, whole=True)
    run.scores.loc[:3, "value"] = [np.nan, 1e-17, 1.0, 0.1 + 0.2]
    return run


@pytest.fixture
def with_extras(finished):
    config = replace(CONFIG, features_per_class=2, variance_points=3)
    test = load_dataset(CONFIG.dataset, images=False).tests["both"]
    rows = len(feature_rows(test, 2))
    features = np.linspace(0, 1, 3 * rows, dtype=np.float32).reshape(rows, 3)
    run = with_variance(finished, [0.1, 1e-17, 3.0])
    return replace(run, config=config, features=features)


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
    assert store.load(CONFIG).features is None


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
    text = store.path(CONFIG, RUNNING).read_text()
    assert text == "PRS rho=0.1 on cocoseq-tiny, seed 0"
    looks = replace(CONFIG, test_set="imbalanced")  # shares the training
    with pytest.raises(TimeoutError):
        store.lock(looks)
    lock.release()
    store.lock(looks).release()


def rewritten(path, changes, digest=b""):
    """Change members of a stored run, with the right checksums."""
    with zipfile.ZipFile(path) as file:
        members = {name: file.read(name) for name in file.namelist()}
    with zipfile.ZipFile(path, "w") as file:
        file.comment = digest  # none, as in files of earlier versions
        for name, content in members.items():
            if name in changes:
                content = changes[name](content)
            if content is not None:
                file.writestr(name, content)


def edit(change):
    """Let a function change the scores."""

    def edited(content):
        frame = pd.read_csv(io.BytesIO(content), keep_default_na=False)
        return change(frame).to_csv(index=False)

    return edited


def npy(array):
    content = io.BytesIO()
    np.save(content, array)
    return content.getvalue()


def with_settings(**others):
    return lambda content: json.dumps(json.loads(content) | others)


LIES = {
    "other data": {"config.json": with_settings(data="0" * 12)},
    "seed 99": {"scores.csv": edit(lambda rows: rows.assign(seed=99))},
    "other method": {"scores.csv": edit(lambda rows: rows.assign(method="CRS"))},
    "other rho": {"scores.csv": edit(lambda rows: rows.assign(rho=0.2))},
    "format NaN": {"config.json": with_settings(format=math.nan)},
    "half of the rows": {"scores.csv": edit(lambda rows: rows[::2])},
    "a row twice": {"scores.csv": edit(lambda rows: rows.iloc[[0, *range(len(rows))]])},
    "scores of 7": {"scores.csv": edit(lambda rows: rows.assign(value=7.0))},
    "text": {"scores.csv": edit(lambda rows: rows.assign(value="good"))},
    "no rows": {"scores.csv": edit(lambda rows: rows[:0])},
    "fewer slots": {"memory_labels.npy": lambda _: npy(np.zeros((3, 70), bool))},
    "numbers": {"memory_labels.npy": lambda _: npy(np.zeros((50, 70)))},
    "no features": {"features.npy": lambda _: None},
    "no config": {"config.json": lambda _: None},
    "variances below 0": {
        "gradient_variance.csv": edit(lambda rows: rows.assign(value=-1.0))
    },
}


@pytest.mark.parametrize("changes", LIES.values(), ids=LIES)
def test_a_result_that_is_not_what_it_says_is_trained_again(
    tmp_path, with_extras, changes
):
    store = Store(tmp_path)
    path = store.save(with_extras)
    rewritten(path, {})
    assert store.load(with_extras.config) is not None
    rewritten(path, changes)
    with pytest.warns(UserWarning, match="expected|no item named|could not convert"):
        assert store.load(with_extras.config) is None


MEMBERS = "memory_labels.npy", "features.npy", "resampled.npy", "resampled_rows.npy"


@pytest.mark.parametrize("name", MEMBERS)
def test_a_member_of_another_run_is_refused(tmp_path, with_extras, name):
    store = Store(tmp_path)
    path = store.save(with_extras)
    with zipfile.ZipFile(path) as file:
        digest = file.comment
    rewritten(path, {}, digest)
    assert store.load(with_extras.config) is not None

    def other(content):
        array = np.load(io.BytesIO(content))
        return npy(np.roll(array, 1, axis=0))  # of the right form

    rewritten(path, {name: other}, digest)
    with pytest.warns(UserWarning, match="expected the members that were written"):
        assert store.load(with_extras.config) is None


def test_what_is_said_of_a_damaged_run_is_one_short_line(tmp_path, finished):
    store = Store(tmp_path)
    path = store.save(finished)
    long = edit(lambda rows: rows.assign(dataset="\x1b[31m\n" * 400))
    for change in (long, lambda content: content + b"1,2\n" + b"," * 40):
        store.save(finished)
        rewritten(path, {"scores.csv": change})
        with pytest.warns(UserWarning, match="cannot be read") as said:
            assert store.load(CONFIG) is None
        text = str(said[0].message)
        assert str(path) in text and text.isprintable() and len(text) < 600


def test_a_run_that_is_not_what_it_says_is_not_stored(tmp_path, finished):
    seven = replace(finished, scores=finished.scores.assign(value=7.0))
    with pytest.raises(ValueError, match=r"expected scores in \[0, 1\], got 7.0"):
        Store(tmp_path).save(seven)
    assert not list(tmp_path.iterdir())


def test_how_a_run_was_computed_is_beside_the_bytes_that_are_compared(tmp_path):
    config = RunConfig("imbal-digits-tiny", "CRS", batch_size=40)
    (run,) = run_all([config], store := Store(tmp_path), workers=1)
    content = store.path(config).read_bytes()
    record = run.record
    assert record["device"] == "cpu" and record["torch"] == torch.__version__
    assert record["steps"] == 27 and 0 < record["seconds"] < 600
    store.save(replace(run, record=record | {"card": "another", "seconds": 1.0}))
    assert store.path(config).read_bytes() == content
    assert store.load(config).record["card"] == "another"
    for text in ("", "[]", '{"seconds": "long"}'):  # a record loses no result
        store.path(config, RECORD).write_text(text)
        assert store.load(config).record is None
    store.save(replace(run, record=None))
    assert not store.path(config, RECORD).exists()


def test_a_description_tells_two_settings_apart():
    usual = RunConfig("digits70tiny", "PRS", seed=3)
    assert describe(usual.identity) == "PRS rho=0 on digits70tiny, seed 3"
    larger = replace(usual, memory_size=60, schedule=(3, 2, 1, 0), rho=0.5)
    text = "PRS rho=0.5 memory_size=60 schedule=3,2,1,0 on digits70tiny, seed 3"
    assert describe(larger.identity) == text
    gss = RunConfig("digits70tiny", "GSS", options={"subsets": 5})
    assert describe(gss.identity).startswith("GSS options=subsets:5 on")
