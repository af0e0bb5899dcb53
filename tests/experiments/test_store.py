"""Runs come back as stored, damage is noticed, `runs` lists what there is."""

import dataclasses
import errno
import json
import os
import shutil
import warnings
import zipfile
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pytest
from fake_runs import fake_run

from prslib.experiments import sweep
from prslib.experiments.inventory import list_runs
from prslib.experiments.store import (
    CHECKPOINT,
    FAILURE,
    FORMAT,
    LOCK,
    NewerStoreError,
    Store,
)
from prslib.experiments.sweep import run_all
from prslib.training.config import RunConfig

CONFIG = RunConfig(dataset="digits70tiny", rho=0.1)


@pytest.fixture
def finished():
    run = fake_run(CONFIG, lambda rows: 1 / 3)
    run.scores.loc[:2, "value"] = [np.nan, 1e-17, 1.0]
    return run


@pytest.fixture
def with_extras(finished):
    columns = ["dataset", "method", "rho", "memory_size", "schedule", "seed"]
    rows = finished.scores[columns][:3].assign(
        images=[10, 20, 30], value=[0.1, 1e-17, 3.0]
    )
    config = dataclasses.replace(
        finished.config, features_per_class=2, variance_points=3
    )
    features = np.linspace(0, 1, 12, dtype=np.float32).reshape(4, 3)
    extras = {"features": features, "gradient_variance": rows}
    return dataclasses.replace(finished, config=config, **extras)


def test_runs_come_back_bit_for_bit(tmp_path, finished, with_extras):
    store = Store(tmp_path / "deep" / "runs")
    assert store.load(finished.config) is None
    store.save(with_extras)
    assert store.load(finished.config) is None  # another configuration
    store.save(finished)
    for run in (finished, with_extras):
        loaded = store.load(run.config)
        pd.testing.assert_frame_equal(loaded.scores, run.scores, check_exact=True)
        np.testing.assert_array_equal(
            loaded.memory_labels, run.memory_labels, strict=True
        )
    np.testing.assert_array_equal(loaded.features, with_extras.features, strict=True)
    expected = with_extras.gradient_variance
    pd.testing.assert_frame_equal(loaded.gradient_variance, expected, check_exact=True)
    assert store.load(finished.config).features is None
    assert store.load(finished.config).gradient_variance is None


def test_a_run_without_what_was_asked_for_or_of_another_counts_as_absent(
    tmp_path, with_extras
):
    store = Store(tmp_path)
    store.save(dataclasses.replace(with_extras, features=None))
    with pytest.warns(UserWarning, match=r"features\.npy.* it will be trained again"):
        assert store.load(with_extras.config) is None
    other = dataclasses.replace(with_extras.config, seed=1)
    shutil.copy(store.path(with_extras.config), store.path(other))
    with pytest.warns(UserWarning, match="config.json is another run's"):
        assert store.load(other) is None


def test_damage_anywhere_is_noticed_or_changes_nothing(tmp_path, finished):
    store = Store(tmp_path)
    path = store.save(finished)
    content, hurt = path.read_bytes(), 0
    spoilt = [content[: int(kept * len(content))] for kept in (0, 0.2, 0.5, 0.99)]
    for position in range(0, len(content), 15):
        for bits in (0x01, 0xFF):
            spoilt.append(bytearray(content))
            spoilt[-1][position] ^= bits
    for damaged in spoilt:
        path.write_bytes(damaged)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            loaded = store.load(finished.config)
        (entry,) = list_runs(store)
        assert entry.state in ("stored", "damaged")
        if loaded is None:
            assert "it will be trained again" in str(said[0].message)
            hurt += 1
        else:
            assert len(damaged) == len(content)  # not cut short
            pd.testing.assert_frame_equal(
                loaded.scores, finished.scores, check_exact=True
            )
            np.testing.assert_array_equal(loaded.memory_labels, finished.memory_labels)
    assert hurt > 0.8 * len(spoilt)
    store.save(finished)
    assert store.load(finished.config) is not None


SPOILT = {
    "a row less": lambda run: {"scores": run.scores[:-1]},
    "a task less": lambda run: {"scores": run.scores[run.scores["task"] != "2"]},
    "infinite": lambda run: {"scores": run.scores.assign(value=np.inf)},
    "above 1": lambda run: {"scores": run.scores.assign(value=1.5)},
    "three dimensions": lambda run: {"memory_labels": np.zeros((3, 3, 3), bool)},
    "numbers": lambda run: {"memory_labels": run.memory_labels.astype(float)},
    "a sample less": lambda run: {"memory_labels": run.memory_labels[1:]},
    "a class less": lambda run: {"memory_labels": run.memory_labels[:, 1:]},
    "another data set": lambda run: {"scores": run.scores.assign(dataset="cocoseq")},
    "another seed": lambda run: {"scores": run.scores.assign(seed=1)},
}


@pytest.mark.parametrize("what", SPOILT)
def test_a_run_with_other_contents_than_its_configuration_gives_is_not_believed(
    tmp_path, finished, what
):
    store = Store(tmp_path)
    store.save(dataclasses.replace(finished, **SPOILT[what](finished)))
    with pytest.warns(UserWarning, match="cannot be read .* it will be trained again"):
        assert store.load(finished.config) is None


def test_what_killed_processes_left_goes_with_the_next_look_but_not_what_is_held(
    tmp_path, finished
):
    store, begun = Store(tmp_path), dataclasses.replace(finished.config, seed=1)
    for config in (finished.config, begun):
        with store.lock(config):
            (tmp_path / f"{config.hash}.zip.01234567.part").touch()
    whole = store.save(finished)
    store.path(finished.config, CHECKPOINT).touch()
    store.path(finished.config, LOCK).touch()
    with store.lock(finished.config), store.lock(begun):
        before = {file.name for file in tmp_path.glob(f"*{LOCK}")}
        assert run_all([finished.config], store)
        assert {file.name for file in tmp_path.glob(f"*{LOCK}")} == before
        assert store.path(finished.config, CHECKPOINT).exists()
    assert run_all([finished.config], store)
    assert list(tmp_path.iterdir()) == [whole]


def test_a_failed_write_leaves_the_old_file_and_no_rest(
    tmp_path, finished, monkeypatch
):
    store = Store(tmp_path)
    before = store.save(finished).read_bytes()

    def full(*_args, **_kwargs):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("zipfile.ZipFile.writestr", full)
    said = (
        rf"no run can be stored in {tmp_path} \(No space left on device\).* make room"
    )
    with pytest.raises(OSError, match=said):
        store.save(finished)
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [before]


def test_a_run_of_a_newer_version_is_an_error_and_stays(
    tmp_path, finished, monkeypatch
):
    store = Store(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr("prslib.experiments.store.FORMAT", FORMAT + 1)
        path = store.save(finished)
    before = path.read_bytes()
    said = rf"{path.name} has format {FORMAT + 1}, expected at most {FORMAT}.*the file stays as"
    with pytest.raises(NewerStoreError, match=said):
        store.load(finished.config)
    with pytest.raises(NewerStoreError, match="Update prslib"):
        run_all([finished.config], store)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def with_format(path, version):
    """Write another format into a stored run; None takes it out."""
    with zipfile.ZipFile(path) as file:
        members = {name: file.read(name) for name in file.namelist()}
    config = json.loads(members["config.json"])
    assert config.pop("format") == FORMAT
    config |= {} if version is None else {"format": version}
    members["config.json"] = json.dumps(config)
    with zipfile.ZipFile(path, "w") as file:
        for name, content in members.items():
            file.writestr(name, content)


def test_the_first_version_is_read_and_a_format_that_is_no_version_is_damage(
    tmp_path, finished
):
    store = Store(tmp_path)
    with_format(store.save(finished), None)
    assert store.load(finished.config) is not None
    for version in (float("nan"), True, 0, "1", 1.5):
        with_format(store.save(finished), version)
        with pytest.warns(UserWarning, match="format .* it will be trained again"):
            assert store.load(finished.config) is None
        assert [entry.state for entry in list_runs(store)] == ["damaged"]


@pytest.fixture
def read_only(tmp_path, monkeypatch):
    """A folder that cannot be written; root, whom no mode keeps out, is told so."""

    def refuse(dir):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(dir))

    tmp_path.chmod(0o555)
    if os.geteuid() == 0:
        monkeypatch.setattr("prslib.experiments.store.tempfile.TemporaryFile", refuse)
    yield tmp_path
    tmp_path.chmod(0o755)


@pytest.fixture
def stored(tmp_path, finished):
    Store(tmp_path).save(finished)
    return finished


def test_a_read_only_store_is_read_and_says_why_it_cannot_be_trained_in(
    stored, read_only
):
    store = Store(read_only)
    assert run_all([stored.config], store)[0].scores.equals(stored.scores)
    missing = RunConfig(dataset="imbal-digits-tiny", method="Finetune")
    said = r"no run can be stored in .* \(Permission denied\); what is stored can be loaded"
    with pytest.raises(OSError, match=said):
        run_all([stored.config, missing], store)
    assert [file.name for file in read_only.iterdir()] == [
        store.path(stored.config).name
    ]


def test_a_disk_without_room_is_an_error_before_any_training(tmp_path, monkeypatch):
    usage = shutil.disk_usage(tmp_path)._replace(free=2**20)
    monkeypatch.setattr("prslib.experiments.store.shutil.disk_usage", lambda _: usage)
    monkeypatch.setattr(sweep, "Sweep", None)
    config = RunConfig(dataset="imbal-digits-tiny", method="Finetune")
    with pytest.raises(
        OSError, match=r"expected 16 MiB free, got 1\).*make room"
    ) as raised:
        run_all([config], Store(tmp_path))
    assert raised.value.errno == errno.ENOSPC
    assert not list(tmp_path.iterdir())


def test_a_held_run_is_not_held_twice_and_is_freed_with_its_process(tmp_path, finished):
    store = Store(tmp_path)
    with store.lock(finished.config):
        assert (
            json.loads(store.path(finished.config, LOCK).read_text())["method"] == "PRS"
        )
        with pytest.raises(TimeoutError), store.lock(finished.config):
            pass
    with store.lock(finished.config):
        pass


def test_a_failure_is_recorded_with_its_time_and_forgotten_on_success(
    tmp_path, monkeypatch
):
    config, store = (
        RunConfig(dataset="imbal-digits-tiny", method="Finetune"),
        Store(tmp_path),
    )

    def broken(*_args, **_options):
        raise FloatingPointError("a loss that is not a number")

    with monkeypatch.context() as patch:
        patch.setattr(sweep, "train_group", broken)
        with pytest.raises(RuntimeError, match="1 of 1 runs failed"):
            run_all([config], store)
    record = json.loads(store.path(config, FAILURE).read_text())
    assert record["error"] == "FloatingPointError: a loss that is not a number"
    assert record["config"]["method"] == "Finetune"
    assert datetime.fromisoformat(record["time"]) <= datetime.now(UTC)
    assert "in broken" in record["traceback"]
    assert run_all([config], store)
    assert [file.name for file in tmp_path.iterdir()] == [store.path(config).name]
