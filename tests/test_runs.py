"""Stored runs: a file each, whole or not at all, whatever happens to who trains them."""

import io
import json
import os
import subprocess
import sys
import warnings
from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from registered import call_in_turn, execute_cell

from prslib import DATASETS, METHODS, RunConfig, register, run, run_all, runs
from prslib.paths import project_root
from prslib.progress import show_progress
from prslib.runs import load, path_of, save
from prslib.train import Method

SEVERAL, ONE_LABEL = "cocoseq-tiny", "imbal-digits-tiny"
FULL = {
    "variance_points": 2,
    "features_per_class": 2,
    "predictions": True,
    "tuned_threshold": True,
    "test_resamples": 5,
    "prequential": True,
}


@pytest.fixture(scope="module")
def trained():
    """Runs with all that a run can have, and with as little as it can."""
    full = run(RunConfig(SEVERAL, "PRS", seed=1, **FULL))
    least = run(RunConfig(ONE_LABEL, "Multitask", batch_size=40))
    return {"full": full, "least": least}


def assert_equal(loaded, run):
    for name in ("scores", "gradient_variance", "prequential", "resampled"):
        first, second = getattr(loaded, name), getattr(run, name)
        if second is None:
            assert first is None
        else:
            pd.testing.assert_frame_equal(first, second, check_exact=True)
    labels = loaded.memory_labels
    np.testing.assert_array_equal(labels, run.memory_labels, strict=True)
    for name in ("features", "predictions"):
        first, second = getattr(loaded, name), getattr(run, name)
        assert first.keys() == second.keys()
        for test, rows in second.items():
            np.testing.assert_array_equal(first[test], rows, strict=True)
    assert (loaded.config, loaded.record) == (run.config, run.record)


@pytest.mark.parametrize("name", ["full", "least"])
def test_a_run_comes_back_bit_for_bit_and_equal_runs_are_equal_bytes(
    trained, name, tmp_path
):
    one = trained[name]
    first, second = tmp_path / "deep" / "runs" / "first.npz", tmp_path / "second.npz"
    save(one, first)
    loaded = load(one.config, first)
    assert_equal(loaded, one)
    save(loaded, second)
    assert first.read_bytes() == second.read_bytes()
    assert [file.name for file in first.parent.iterdir()] == ["first.npz"]
    with np.load(first) as file:  # without pickle
        about = json.loads(file["about"].item())
    assert about["config"]["dataset"] == one.config.dataset


def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    trained, tmp_path, monkeypatch
):
    path = tmp_path / "run.npz"
    save(trained["least"], path)
    before = path.read_bytes()

    def half(file, **_arrays):
        file.write(before[: len(before) // 2])
        raise OSError("No space left on device")

    monkeypatch.setattr(np, "savez_compressed", half)
    for target in (path, tmp_path / "new.npz"):
        with pytest.raises(OSError, match="No space left"):
            save(trained["full"], target)
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [before]


@pytest.fixture
def stored(trained, tmp_path, monkeypatch):
    """A cache with both runs; no run may be trained."""
    monkeypatch.setenv("PRSLIB_CACHE", str(tmp_path))
    for one in trained.values():
        save(one, path_of(one.config))
    monkeypatch.setattr(runs, "train_here", None)
    return trained


def test_stored_runs_come_in_the_order_that_is_asked_for(stored):
    configs = [one.config for one in stored.values()]
    again = run_all(one for one in [*configs, configs[0]])
    assert [one.config for one in again] == [*configs, configs[0]]
    assert_equal(again[0], stored["full"])
    assert run_all([]) == []
    path_of(configs[0]).write_bytes(b"")
    with pytest.raises(ValueError, match=r"the run in .*npz, but it cannot be read"):
        run_all(configs)


def test_a_cache_that_cannot_be_written_is_told_before_training(tmp_path, monkeypatch):
    monkeypatch.setenv("PRSLIB_CACHE", str(tmp_path))
    full = Mock(side_effect=OSError("No space left on device"))
    monkeypatch.setattr(runs, "TemporaryFile", full)
    with pytest.raises(OSError, match="No space left"):
        run_all([RunConfig("digits70tiny", "CRS")])
    assert not list(tmp_path.glob("runs/*"))


def test_runs_that_were_computed_in_two_ways_give_one_warning(stored):
    configs = [one.config for one in stored.values()]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run_all(configs)
    other = replace(stored["least"], record=stored["least"].record | {"torch": "1.0"})
    save(other, path_of(other.config))
    with pytest.warns(UserWarning, match=r"computed in 2 ways: .*; .* 1\.0") as said:
        run_all([*configs, *configs])
    assert len(said) == 1
    assert said[0].filename == __file__


@pytest.mark.parametrize("table", [DATASETS, METHODS])
def test_a_worker_with_other_data_or_rows_than_the_key_has_stores_nothing(
    tmp_path, monkeypatch, table
):
    """As after an edit of what a registered function reads, of a recipe or of a method."""
    config = RunConfig("digits70tiny", "CRS")
    path = tmp_path / "run.npz"
    read = runs.rows_of(config)
    recipe = replace(DATASETS[config.dataset].recipe, learning_rate=0.3)
    rows = {"CRS": Method(sampler="cbrs")}
    rows[config.dataset] = replace(DATASETS[config.dataset], recipe=recipe)
    (name,) = rows.keys() & table.keys()
    monkeypatch.setitem(table, name, rows[name])
    for changed in (read, runs.rows_of(config) | {config.dataset: "other data"}):
        error = runs.train_one(changed, "cpu", path, config)
        assert "got others; register them again" in error and not path.exists()


UNFIT = [
    ({"batch_size": 600}, "cpu", "up to the samples of task"),
    ({"loss": "cross_entropy", "dataset": SEVERAL}, "cpu", "loss of several labels"),
    ({}, "gpu", "unknown device 'gpu'; known: "),
]


@pytest.mark.parametrize(("fields", "device", "message"), UNFIT)
def test_what_does_not_fit_is_refused_before_any_training(
    stored, fields, device, message
):
    config = RunConfig(**{"dataset": ONE_LABEL, "method": "CRS", "seed": 8} | fields)
    good = RunConfig(ONE_LABEL, "CRS", seed=9)
    with pytest.raises(ValueError, match=message) as caught:
        run_all([good, config], device=device)
    assert "\n" not in str(caught.value)


# worker processes


def test_a_bar_that_nobody_reads_ends_no_training(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Mock(spec=io.StringIO, write=Mock()))
    sys.stderr.write.side_effect = BrokenPipeError
    assert list(show_progress("ab", 2)) == ["a", "b"]
    assert sys.stderr.write.called


NEWEST = """from prslib import Sampler
class Newest(Sampler):
    def choose(self, y, u):
        return len(self) if len(self) < self.size else int(u[0] * self.size)
"""


@pytest.mark.usefixtures("registers")
def test_runs_are_trained_and_one_that_fails_does_not_lose_the_others(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("PRSLIB_CACHE", str(tmp_path))
    register("Newest", execute_cell(NEWEST)["Newest"])
    good = [RunConfig(ONE_LABEL, "Newest", seed=n, batch_size=40) for n in (0, 1)]
    bad = replace(good[0], learning_rate=1e30)
    said = (
        r"1 of 3 runs failed, the others are stored:\nNewest on imbal-digits-tiny, se"
    )
    said += r"ed 0: FloatingPointError: expected .*; lower learning_rate, or"
    with pytest.raises(RuntimeError, match=said):
        run_all([good[0], bad, good[1]], workers=2)
    assert [path_of(one).is_file() for one in (*good, bad)] == [True, True, False]
    here, file = run(good[1]), tmp_path / "here.npz"
    save(here, file)
    assert file.read_bytes() == path_of(good[1]).read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(runs, "train_here", None)
        assert_equal(run_all(good)[1], here)


def test_edited_code_and_registrations_are_trained_in_new_processes(
    monkeypatch, tmp_path, registers
):
    """joblib keeps processes that were started with equal arguments."""
    monkeypatch.setenv("PRSLIB_CACHE", str(tmp_path))
    started = []

    def start(*_, initargs, **__):
        started.append(initargs)
        return call_in_turn()

    monkeypatch.setattr("prslib.processes.Parallel", start)

    def train(seed):
        run_all([RunConfig(ONE_LABEL, "Finetune", seed=seed, batch_size=40)])

    train(0)
    train(1)
    monkeypatch.setattr(runs, "stamp_package", lambda: "edited")
    train(2)
    register("own", lambda logits, targets: logits.mean())
    train(3)
    first, same, edited, registered = started
    assert first == same != edited != registered


def test_ctrl_c_while_processes_start_says_what_is_stored(monkeypatch):
    interrupt = Mock(side_effect=KeyboardInterrupt)
    monkeypatch.setattr("prslib.processes.Parallel.__call__", interrupt)
    with pytest.raises(runs.Interrupted, match="stopped: 0 of 1 runs are stored"):
        run_all([RunConfig(ONE_LABEL, seed=99)])


BLOCKED = """
import signal
from joblib import delayed
from prslib.processes import spread
print(*spread([delayed(signal.pthread_sigmask)(signal.SIG_BLOCK, [])], 2))
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows blocks no signals")
def test_ctrl_c_cannot_end_the_first_processes_while_they_import():
    command = [sys.executable, "-c", BLOCKED]
    assert "SIGINT" in subprocess.check_output(command, text=True)


def test_work_that_is_killed_or_stopped_ends_with_the_same_bytes(monkeypatch):
    """A few of the kills of `make soak`; no process stays, and no run is made twice."""
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)  # the command line has set it
    kinds = ["runs in two processes", "prepare in two processes"]
    soak = subprocess.run(
        [sys.executable, "tests/soak.py", "4", "0", *kinds],
        cwd=project_root(),
        env=os.environ | {"PYTHONPATH": str(project_root())},
        capture_output=True,
        text=True,
    )
    assert soak.returncode == 0, soak.stderr
    assert soak.stdout.count("all bytes equal after") == 2
