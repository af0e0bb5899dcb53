"""``python -m prslib runs``: what a store holds."""

import json
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from prslib.cli import main
from prslib.experiments.store import CHECKPOINT, FAILURE, LOCK, Store, inventory, remove, table
from prslib.training.config import Run, RunConfig, configs

WANTED = configs(dataset="imbal-digits-tiny", method="CRS", seed=[0, 1, 2, 3, 4])


@pytest.fixture
def store(tmp_path, monkeypatch):
    """A run of every kind but "running": stored, interrupted, failed, damaged, newer."""
    monkeypatch.setenv("PRSLIB_CACHE", str(tmp_path))
    store = Store()
    stored, interrupted, failed, damaged, newer = WANTED
    for config in (stored, damaged, newer):
        with monkeypatch.context() as patch:
            if config is newer:
                patch.setattr("prslib.experiments.store.FORMAT", 99)
            store.save(Run(config, pd.DataFrame({"seed": [0]}), np.zeros((2, 10), bool)))
    store.path(damaged).write_bytes(b"PK")
    with store.lock(interrupted):
        store.path(interrupted, CHECKPOINT).write_bytes(bytes(5000))
    store.record_failure(failed, FloatingPointError("no number"))
    return store


def states(store):
    return {one.hash: one.state for one in inventory(store)}


def test_the_inventory_names_every_kind_of_run(store, capsys):
    expected = ["stored", "interrupted", "failed", "damaged", "newer"]
    assert states(store) == {c.hash: state for c, state in zip(WANTED, expected, strict=True)}
    assert main(["runs"]) == 0
    lines = capsys.readouterr().out.splitlines()
    (line,) = [line for line in lines if WANTED[2].hash in line]
    assert line.endswith("CRS on imbal-digits-tiny, seed 2: FloatingPointError: no number")
    (line,) = [line for line in lines if WANTED[1].hash in line]
    assert "interrupted" in line
    assert "5 kB" in line
    assert line.endswith("CRS on imbal-digits-tiny, seed 1")
    totals = "1 stored, 1 interrupted, 1 failed, 1 damaged, 1 newer, "
    assert lines[-1].startswith(totals)
    assert lines[-1].endswith(f" in {store.folder}")


def test_a_held_run_is_running_and_stays(store, capsys):
    running = RunConfig(dataset="imbal-digits-tiny", method="PRS")
    with store.lock(running):
        assert states(store)[running.hash] == "running"
        assert main(["runs", "--remove", running.hash]) == 1
        assert "running; stop the process first" in capsys.readouterr().err
        assert main(["runs", "--remove", "all"]) == 0
        assert "removed 5 runs" in capsys.readouterr().out
        assert [file.name for file in store.folder.iterdir()] == [f"{running.hash}{LOCK}"]
        assert "PRS rho=0 on imbal-digits-tiny, seed 0" in table(inventory(store))


def test_failed_runs_and_single_ones_are_removed(store, capsys):
    before = states(store)
    assert main(["runs", "--remove", "failed", WANTED[0].hash[:8]]) == 0
    assert set(before) - set(states(store)) == {WANTED[0].hash, WANTED[2].hash}
    assert not store.path(WANTED[2], FAILURE).exists()
    assert main(["runs", "--remove", "nothing"]) == 1
    assert "got 'nothing', with which no hashes begin" in capsys.readouterr().err
    assert len(states(store)) == 3


def test_foreign_files_are_no_runs_and_stay(store, capsys):
    foreign = [".DS_Store", "notes.txt", f"{WANTED[0].hash}.zip.bak", "0123456789ab.txt"]
    for name in foreign:
        (store.folder / name).write_text("mine")
    (store.folder / "0123456789ac.zip").mkdir()
    (store.folder / f"{WANTED[1].hash}.checkpoint.01234567.part").write_bytes(bytes(10))
    assert set(states(store)) == {config.hash for config in WANTED}
    assert main(["runs", "--remove", "all"]) == 0
    assert "removed 5 runs" in capsys.readouterr().out
    left = {file.name for file in store.folder.iterdir()}
    assert left == {*foreign, "0123456789ac.zip"}


def test_what_cannot_be_read_has_no_words(store, monkeypatch):
    newer = store.path(WANTED[4])
    with zipfile.ZipFile(newer, "w") as file:
        file.writestr("config.json", json.dumps({"format": 99, "what": "else"}))
    store.path(WANTED[2], FAILURE).write_text('{"config": [')

    def refuse(path, *arguments, read=Path.read_text, **options):
        if path.suffix == LOCK:
            raise PermissionError(f"{path} is another user's")
        return read(path, *arguments, **options)

    monkeypatch.setattr(Path, "read_text", refuse)
    words = {one.state: one.run for one in inventory(store)}
    assert words.pop("stored").startswith("CRS on imbal-digits-tiny")
    assert words == {"interrupted": "", "failed": "", "damaged": "", "newer": ""}


def test_a_run_that_was_finished_meanwhile_is_not_removed(store, capsys):
    interrupted, failed = WANTED[1:3]
    seen = [one for one in inventory(store) if one.state in ("interrupted", "failed")]
    store.save(Run(failed, pd.DataFrame({"seed": [0]}), np.zeros((2, 10), bool)))
    assert [one.hash for one in remove(store, seen)] == [interrupted.hash]
    assert states(store)[failed.hash] == "stored"
    assert not store.path(failed, LOCK).exists()
    assert not list(store.folder.glob(f"{interrupted.hash}*"))
    assert remove(store, seen) == []
    assert not store.path(interrupted, LOCK).exists()


def test_looking_changes_nothing(store):
    before = sorted((file.name, file.stat().st_mtime_ns) for file in store.folder.iterdir())
    states(store)
    after = sorted((file.name, file.stat().st_mtime_ns) for file in store.folder.iterdir())
    assert before == after
