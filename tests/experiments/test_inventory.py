"""`prslib runs`: what there is, whether it is right, and what of it is removed."""

import json
import os
import zipfile
import zlib
from dataclasses import replace

import pytest
from fake_runs import fake_run

from prslib.cli import main
from prslib.experiments.inventory import list_runs
from prslib.experiments.store import (
    CHECKPOINT,
    FAILURE,
    LOCK,
    RECORD,
    RUNNING,
    Store,
)
from prslib.training.grids import configs

WANTED = configs(dataset="imbal-digits-tiny", method="CRS", seed=[0, 1, 2, 3, 4])


@pytest.fixture
def mixed(tmp_path, monkeypatch):
    """A run of every kind: stored, interrupted, failed, damaged, running."""
    monkeypatch.setenv("PRSLIB_CACHE", str(tmp_path))
    store = Store()
    stored, interrupted, failed, damaged, running = WANTED
    store.save(fake_run(stored, 0.5, whole=True))
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
        name = config.hash if state == "stored" else config.training_hash
        (line,) = [line for line in lines if line.strip().startswith(name)]
        assert state in line and line.endswith(end)
    assert "2 stored" in lines[-1] and lines[-1].endswith(f"0.06 MB in {mixed.folder}")


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
    running = {mixed.path(WANTED[4], kind) for kind in (LOCK, RUNNING)}
    assert set(mixed.folder.iterdir()) == {foreign, *running}


RECORDS = [
    {"device": "cpu", "card": "x86_64", "torch": "2.11.0", "numpy": "2.3.1"},
    {"device": "cuda", "card": "A100", "torch": "2.12.0", "numpy": "2.3.1"},
]
RECORDS[1] |= {"cudnn": "91900", "tf32": True}


def computed(config, how, seconds=90.0, score=0.5):
    record = how | {"steps": 30, "seconds": seconds}
    return replace(fake_run(config, score, whole=True), record=record)


def test_runs_say_how_long_they_took_and_name_a_mixture(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PRSLIB_CACHE", str(tmp_path))
    store = Store()
    for config in WANTED[:2]:
        store.save(computed(config, RECORDS[0]))
    assert main(["runs"]) == 0
    said = capsys.readouterr().out
    assert said.count("90.00 cpu (x86_64), torch 2.11.0, numpy 2.3.1") == 2
    assert "ways" not in said
    store.save(computed(WANTED[2], RECORDS[1]))
    store.save(fake_run(WANTED[3], 0.5, whole=True))  # of an earlier version
    assert main(["runs"]) == 0
    line = capsys.readouterr().out.splitlines()[-2]
    assert line.startswith("runs computed in 3 ways: 2 on cpu (x86_64), torch 2.11.0")
    assert "1 on cuda (A100), torch 2.12.0, numpy 2.3.1, cuDNN 91900, TF32" in line
    assert "1 on what is not recorded" in line


def test_results_of_others_are_checked(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PRSLIB_CACHE", str(tmp_path / "ours"))
    theirs = Store(tmp_path / "theirs")
    for config in WANTED[:3]:
        theirs.save(computed(config, RECORDS[0]))
    Store().save(computed(WANTED[0], RECORDS[0]))
    Store().save(computed(WANTED[1], RECORDS[0], score=0.25))
    assert main(["runs", "--check", str(theirs.folder)]) == 1
    lines = capsys.readouterr().out.splitlines()
    verdicts = {line[:12]: line.rpartition(": ")[2] for line in lines[:-1]}
    expected = ["right, as ours", "other scores than ours", "right"]
    assert [verdicts[config.hash] for config in WANTED[:3]] == expected
    assert lines[-1].startswith("2 of 3 results are right")
    run = computed(WANTED[2], RECORDS[0])
    Store().save(replace(run, memory_labels=~run.memory_labels))
    assert main(["runs", "--check", str(theirs.folder)]) == 1
    assert "other memory_labels than ours" in capsys.readouterr().out
    theirs.path(WANTED[1]).rename(theirs.path(WANTED[3]))
    (theirs.folder / "mine.zip").write_bytes(b"PK")
    assert main(["runs", "--check", str(theirs.folder)]) == 1
    said = capsys.readouterr().out
    assert f"expected the name {WANTED[1].hash}, got {WANTED[3].hash}" in said
    assert "mine  unknown: refused: BadZipFile" in said
    assert main(["runs", "--check", str(tmp_path / "nowhere")]) == 1
    assert "expected a folder of stored runs" in capsys.readouterr().err


def test_a_listing_shows_no_control_characters_and_needs_no_record(mixed, capsys):
    record = {"steps": 1, "seconds": 1, "card": "\x1b[31m\n" * 200, "device": "cpu"}
    record |= {"torch": "2.11.0", "numpy": "2.3.1"}
    mixed.path(WANTED[1], RUNNING).write_text("one\x1b[2Jtwo\nthree")
    mixed.path(WANTED[2], FAILURE).write_text("a\x07bell " * 200)
    for changes in ({}, {"seconds": 10**400}, {"steps": float("nan")}, {"torch": None}):
        mixed.path(WANTED[0], RECORD).write_text(json.dumps(record | changes))
        assert main(["runs"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert len([line for line in lines if line.split()[0].isalnum()]) <= 8
        assert all(line.isprintable() for line in lines)
        assert main(["runs", "--check", str(mixed.folder)]) == 1
        assert "\x1b" not in capsys.readouterr().out


def broken_stream(path):
    """Write a zip file whose compressed bytes are none."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("config.json", "".join(map(str, range(500))))
    content = bytearray(path.read_bytes())
    content[41:60] = bytes([0xFF] * 19)
    path.write_bytes(content)


def test_no_bad_file_stops_a_listing(mixed, capsys):
    broken_stream(mixed.path(WANTED[3]))
    with pytest.raises(zlib.error), zipfile.ZipFile(mixed.path(WANTED[3])) as file:
        file.read("config.json")
    mixed.path(WANTED[2], FAILURE).write_bytes(b"")
    mixed.path(WANTED[1], RUNNING).write_bytes(b"\xff\xfe")
    mixed.path(WANTED[0], RECORD).write_text("[]")
    with zipfile.ZipFile(mixed.folder / "list.zip", "w") as file:
        file.writestr("config.json", "[1]")
    (mixed.folder / "folder.zip").mkdir()
    os.utime(mixed.path(WANTED[0]), (-1e12, -1e12))
    assert main(["runs"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.endswith("no error recorded") for line in lines)
    assert sum(line.endswith("will be trained again") for line in lines) == 3
    assert main(["runs", "--remove", "stored", "failed"]) == 0
    left = {path.name for path in mixed.folder.iterdir()}
    assert "folder.zip" in left  # is none of ours
    assert not left & {"list.zip", mixed.path(WANTED[3]).name}
