"""`prslib runs`: what there is, and what of it is removed."""

import pytest
from fake_runs import fake_run

from prslib.cli import main
from prslib.experiments.inventory import list_runs
from prslib.experiments.store import CHECKPOINT, FAILURE, LOCK, Store
from prslib.training.grids import configs

WANTED = configs(dataset="imbal-digits-tiny", method="CRS", seed=[0, 1, 2, 3, 4])


@pytest.fixture
def mixed(tmp_path, monkeypatch):
    """A run of every kind: stored, interrupted, failed, damaged, running."""
    monkeypatch.setenv("PRSLIB_CACHE", str(tmp_path))
    store = Store()
    stored, interrupted, failed, damaged, running = WANTED
    store.save(fake_run(stored, 0.5))
    store.lock(interrupted).release()
    store.path(interrupted, CHECKPOINT).write_bytes(bytes(50_000))
    store.lock(failed).release()
    store.record_failure(failed, FloatingPointError("no number"))
    store.path(damaged).write_bytes(b"PK")
    lock = store.lock(running)
    yield store
    lock.release()


def test_the_inventory_names_every_kind_of_run(mixed, capsys):
    before = {file: file.stat().st_mtime_ns for file in mixed.folder.iterdir()}
    assert main(["runs"]) == 0
    assert before == {file: file.stat().st_mtime_ns for file in mixed.folder.iterdir()}
    lines = capsys.readouterr().out.splitlines()
    expected = [
        ("stored", "CRS on imbal-digits-tiny, seed 0"),
        ("interrupted", "CRS on imbal-digits-tiny, seed 1"),
        ("failed", "seed 2: FloatingPointError: no number"),
        ("stored", "damaged: will be trained again"),
        ("running", "CRS on imbal-digits-tiny, seed 4"),
    ]
    for config, (state, end) in zip(WANTED, expected, strict=True):
        name = config.hash if state == "stored" else config.training
        (line,) = [line for line in lines if line.strip().startswith(name)]
        assert state in line and line.endswith(end)
    assert "2 stored" in lines[-1] and lines[-1].endswith(f"0.05 MB in {mixed.folder}")


def test_failed_runs_single_ones_and_all_but_running_ones_are_removed(mixed, capsys):
    foreign = mixed.folder / "notes.txt"
    foreign.write_text("mine")
    assert main(["runs", "--remove", "failed", WANTED[0].hash]) == 0
    assert not mixed.path(WANTED[0]).exists()
    assert not mixed.path(WANTED[2], FAILURE).exists()
    assert main(["runs", "--remove", "nothing"]) == 1
    assert "expected a run, a state" in capsys.readouterr().err
    assert len(list_runs(mixed)) == 3
    assert main(["runs", "--remove", "all"]) == 0
    assert set(mixed.folder.iterdir()) == {foreign, mixed.path(WANTED[4], LOCK)}
