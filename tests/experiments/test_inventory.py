"""`prslib runs`: what there is, and what of it is removed."""

import numpy as np
import pandas as pd
import pytest

from prslib.cli import main
from prslib.experiments.inventory import as_text, list_runs, remove
from prslib.experiments.store import CHECKPOINT, FAILURE, LOCK, Store
from prslib.training.config import Run, RunConfig
from prslib.training.grids import configs

WANTED = configs(dataset="imbal-digits-tiny", method="CRS", seed=[0, 1, 2, 3, 4])


@pytest.fixture
def mixed(tmp_path, monkeypatch):
    """A run of every kind but "running": stored, interrupted, failed, damaged, newer."""
    monkeypatch.setenv("PRSLIB_CACHE", str(tmp_path))
    store = Store()
    stored, interrupted, failed, damaged, newer = WANTED
    for config in (stored, damaged, newer):
        with monkeypatch.context() as patch:
            if config is newer:
                patch.setattr("prslib.experiments.store.FORMAT", 99)
            store.save(
                Run(config, pd.DataFrame({"seed": [0]}), np.zeros((2, 10), bool))
            )
    store.path(damaged).write_bytes(b"PK")
    with store.lock(interrupted):
        store.path(interrupted, CHECKPOINT).write_bytes(bytes(5000))
    store.record_failure(failed, FloatingPointError("no number"))
    return store


def states(store):
    return {one.hash: one.state for one in list_runs(store)}


def test_the_inventory_names_every_kind_of_run(mixed, capsys):
    expected = ["stored", "interrupted", "failed", "damaged", "newer"]
    before = {file.name: file.stat().st_mtime_ns for file in mixed.folder.iterdir()}
    assert states(mixed) == {
        c.hash: state for c, state in zip(WANTED, expected, strict=True)
    }
    assert main(["runs"]) == 0
    assert before == {
        file.name: file.stat().st_mtime_ns for file in mixed.folder.iterdir()
    }
    lines = capsys.readouterr().out.splitlines()
    (line,) = [line for line in lines if WANTED[2].hash in line]
    assert line.endswith(
        "CRS on imbal-digits-tiny, seed 2: FloatingPointError: no number"
    )
    (line,) = [line for line in lines if WANTED[1].hash in line]
    assert "interrupted" in line
    assert "5 kB" in line
    assert line.endswith("CRS on imbal-digits-tiny, seed 1")
    totals = "1 stored, 1 interrupted, 1 failed, 1 damaged, 1 newer, "
    assert lines[-1].startswith(totals)
    assert lines[-1].endswith(f" in {mixed.folder}")


def test_failed_runs_single_ones_and_all_but_held_ones_are_removed(mixed, capsys):
    before = states(mixed)
    assert main(["runs", "--remove", "failed", WANTED[0].hash[:8]]) == 0
    assert set(before) - set(states(mixed)) == {WANTED[0].hash, WANTED[2].hash}
    assert not mixed.path(WANTED[2], FAILURE).exists()
    assert main(["runs", "--remove", "nothing"]) == 1
    assert "got 'nothing', with which no hashes begin" in capsys.readouterr().err
    assert len(states(mixed)) == 3
    running = RunConfig(dataset="imbal-digits-tiny", method="PRS")
    with mixed.lock(running):
        assert states(mixed)[running.hash] == "running"
        assert main(["runs", "--remove", running.hash]) == 1
        assert "running; stop the process first" in capsys.readouterr().err
        assert main(["runs", "--remove", "all"]) == 0
        assert "removed 3 runs" in capsys.readouterr().out
        assert [file.name for file in mixed.folder.iterdir()] == [
            f"{running.hash}{LOCK}"
        ]
        assert "PRS rho=0 on imbal-digits-tiny, seed 0" in as_text(list_runs(mixed))


def test_foreign_files_are_no_runs_and_stay(mixed, capsys):
    foreign = [
        ".DS_Store",
        "notes.txt",
        f"{WANTED[0].hash}.zip.bak",
        "0123456789ab.txt",
    ]
    for name in foreign:
        (mixed.folder / name).write_text("mine")
    (mixed.folder / "0123456789ac.zip").mkdir()
    (mixed.folder / f"{WANTED[1].hash}.checkpoint.01234567.part").write_bytes(bytes(10))
    assert set(states(mixed)) == {config.hash for config in WANTED}
    assert main(["runs", "--remove", "all"]) == 0
    assert "removed 5 runs" in capsys.readouterr().out
    names = {file.name for file in mixed.folder.iterdir()}
    assert names == {*foreign, "0123456789ac.zip"}


def test_a_run_that_was_finished_meanwhile_is_not_removed(mixed, capsys):
    interrupted, failed = WANTED[1:3]
    seen = [one for one in list_runs(mixed) if one.state in ("interrupted", "failed")]
    mixed.save(Run(failed, pd.DataFrame({"seed": [0]}), np.zeros((2, 10), bool)))
    assert [one.hash for one in remove(mixed, seen)] == [interrupted.hash]
    assert states(mixed)[failed.hash] == "stored"
    assert not mixed.path(failed, LOCK).exists()
    assert not list(mixed.folder.glob(f"{interrupted.hash}*"))
    assert remove(mixed, seen) == []
    assert not mixed.path(interrupted, LOCK).exists()
