"""`run_all` trains what is missing, once, and keeps what is finished whatever happens."""

import errno
import os
import signal
import subprocess
import sys
import time
import weakref
from concurrent.futures import Future
from contextlib import nullcontext, suppress
from dataclasses import replace

import pytest
from fake_runs import fake_run
from joblib import Parallel, delayed

from prslib.experiments import sweep
from prslib.experiments.inventory import list_runs
from prslib.experiments.store import CHECKPOINT, FAILURE, RECORD, RESULT, Store
from prslib.paths import project_root
from prslib.training.config import RunConfig
from prslib.training.grids import configs

MLP = {"dataset": "imbal-digits-tiny", "batch_size": 30}


def test_runs_are_trained_once_and_come_in_order(tmp_path, capfd):
    store = Store(tmp_path)
    grid = configs(**MLP, method=["CRS", "PRS"], seed=[0])
    runs = sweep.run_all(grid, store, workers=1)
    assert [run.config for run in runs] == grid
    assert [set(run.scores["method"]) for run in runs] == [{"CRS"}, {"PRS"}]
    bar = capfd.readouterr().err
    assert "2/2" in bar
    assert "on imbal-digits-tiny, seed 0" in bar
    written = {file: file.stat().st_mtime_ns for file in tmp_path.iterdir()}
    again = sweep.run_all([*grid, grid[0]], store, device="cuda:7")
    assert len(again) == 3
    assert written == {file: file.stat().st_mtime_ns for file in tmp_path.iterdir()}
    assert "training" not in capfd.readouterr().err


@pytest.mark.parametrize(
    ("fields", "options", "error", "message"),
    [
        ({}, {"workers": "2"}, TypeError, "workers must be a whole number, got '2'"),
        ({}, {"workers": -3}, ValueError, "workers must be at least 1, got -3"),
        (
            {},
            {"device": "gpu"},
            ValueError,
            "unknown device 'gpu'; known devices: auto",
        ),
        ({"memory_size": 10**5}, {}, ValueError, "memory_size up to the 1150 images"),
    ],
)
def test_errors_come_before_any_training(tmp_path, fields, options, error, message):
    grid = [RunConfig(**MLP, method="Finetune"), RunConfig(**MLP, **fields)]
    with pytest.raises(error, match=message):
        sweep.run_all(grid, Store(tmp_path), **options)
    assert not list(tmp_path.iterdir())


def test_a_process_that_is_killed_takes_no_other_run_with_it(tmp_path, monkeypatch):
    grid = configs(**MLP, method="Finetune", seed=[0, 1, 2, 3])
    store, notes = Store(tmp_path / "runs"), tmp_path / "notes"
    made = {config.seed: [fake_run(config, 0.5, whole=True)] for config in grid}

    def kill(group, **_options):
        if group[0].seed == 1:  # as a system does whose memory does not suffice
            with open(notes, "a") as file:
                file.write("x")
            os.kill(os.getpid(), signal.SIGKILL)
        return made[group[0].seed]

    monkeypatch.setattr(sweep, "train_group", kill)
    message = r"1 of 4 runs failed(?s:.*)seed 1: .*memory usage(?s:.*)SIGKILL"
    with pytest.raises(RuntimeError, match=message):
        sweep.run_all(grid, store, workers=2)
    assert notes.read_text() == "xxx"  # a try beside others, and two alone
    stored = [store.load(config) is not None for config in grid]
    assert stored == [True, False, True, True]
    assert store.path(grid[1], FAILURE).exists()


def test_a_killed_process_uses_up_no_retry_of_the_others(tmp_path, monkeypatch):
    grid = configs(**MLP, method="Finetune", seed=[0, 1])
    store, notes = Store(tmp_path / "runs"), tmp_path / "notes"
    made = {config.seed: [fake_run(config, 0.5, whole=True)] for config in grid}

    def kill_once(group, **_options):
        with open(notes, "a") as file:
            file.write(f"{group[0].seed}")
        both = {"0", "1"}
        while not both <= set(notes.read_text()):
            time.sleep(0.01)
        # the first in company, then whatever is tried first by itself
        if notes.read_text() in ("01", "10") or len(notes.read_text()) == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return made[group[0].seed]

    monkeypatch.setattr(sweep, "train_group", kill_once)
    assert len(sweep.run_all(grid, store, workers=2)) == 2
    assert len(notes.read_text()) == 5


class Large:
    """As a network on a GPU."""


def test_a_run_without_memory_is_tried_again_alone_and_keeps_nothing(
    tmp_path, monkeypatch
):
    grid = configs(**MLP, method="Finetune", seed=[0, 1])
    tried, kept = [], []

    class OutOfMemoryError(RuntimeError):
        pass

    def run_at_once(group, **_options):
        tried.append(group[0].seed)
        network = Large()
        kept.append(weakref.ref(network))
        if len(tried) == 1:
            raise OutOfMemoryError("CUDA out of memory")
        return [fake_run(group[0], 0.5, whole=True)]

    monkeypatch.setattr("prslib.training.run.run_at_once", run_at_once)
    assert len(sweep.run_all(grid, Store(tmp_path), workers=1)) == 2
    assert tried == [0, 1, 0]
    assert not any(reference() for reference in kept)


PROGRAM = """
import signal
import prslib

class Newest(prslib.Sampler):
    def choose(self, y, u):
        return self.seen % self.size

if __name__ == "__main__":  # the processes are told of the sampler
    prslib.register("Newest", Newest)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    many = {"seed": list(range(500)), "batch_size": 30}
    grid = prslib.configs(dataset="imbal-digits-tiny", method="Newest", **many)
    prslib.run_all(grid, workers=2)
"""


def test_ctrl_c_in_a_terminal_ends_all_processes_and_keeps_what_is_finished(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    store = Store(tmp_path / "cache" / "runs")
    folders = {
        "PRSLIB_CACHE": str(tmp_path / "cache"),
        "PYTHONPATH": str(project_root()),
    }
    pipe = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    options = {"cwd": tmp_path, "env": os.environ | folders, "start_new_session": True}
    command = [sys.executable, "program.py"]
    with subprocess.Popen(command, **pipe, **options) as process:
        while not any(store.folder.glob("*.zip")) and process.poll() is None:
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)  # reaches every process of the group
        # ends when every process that could write is gone
        output, _ = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "KeyboardInterrupt" in output
    runs = list_runs(store)
    assert set(runs["state"]) <= {"stored", "interrupted"}
    assert 1 <= sum(runs["state"] == "stored") < 500
    assert not runs["what"].str.contains("damaged").any()


def test_runs_that_differ_in_what_they_look_at_are_trained_once(tmp_path, monkeypatch):
    tiny = {"dataset": "digits70tiny", "batch_size": 80, "method": "CRS"}
    other = {"test_set": "imbalanced"}, {"features_per_class": 2}
    looks = {}, *other, {"variance_points": 3}, {"variance_points": 2}
    grid = [RunConfig(**tiny, **look) for look in looks]
    groups, train = [], sweep.train_group

    def note(group, **options):
        groups.append(group)
        return train(group, **options)

    monkeypatch.setattr(sweep, "train_group", note)
    together, alone = Store(tmp_path / "together"), Store(tmp_path / "alone")
    balanced, imbalanced, *_ = sweep.run_all(grid, together, workers=1)
    assert not balanced.scores["value"].equals(imbalanced.scores["value"])
    for config in grid:
        sweep.run_all([config], alone, workers=1)
        assert together.path(config).read_bytes() == alone.path(config).read_bytes()
    assert groups == [grid, *([config] for config in grid)]


def test_runs_of_one_training_take_no_processes():
    alike = configs(**MLP, variance_points=[0, 2])
    _, pool = sweep.make_pool(alike, "cpu", workers=2, address=None)
    with pool as (_, at_once):
        assert at_once == 1


def test_small_networks_share_a_gpu_and_large_ones_have_it_alone(tmp_path, monkeypatch):
    small = configs(**MLP, method="Finetune", seed=list(range(10)))
    large = configs(**MLP, method="Finetune", model="resnet18", seed=[0, 1])
    running, together = {}, []

    def submit(_share, _function, _added, _task, group):
        running[future := Future()] = group[0]
        together.append([config.resolved["model"] for config in running.values()])
        return future

    def wait(_in_pool, *_):
        oldest = next(iter(running))
        oldest.set_result([fake_run(running.pop(oldest), 0.5, whole=True)])
        return {oldest}, set()

    monkeypatch.setattr(sweep, "wait", wait)
    work = sweep.Sweep(Store(tmp_path), "cuda", save_every=300.0)
    work.train([*small[:5], *large, *small[5:]], nullcontext((submit, 100)))
    assert max(together, key=len) == ["mlp"] * 8
    assert together.count(["resnet18"]) == 2
    assert all("resnet18" not in models for models in together if len(models) > 1)


def test_runs_that_were_computed_in_two_ways_are_named(tmp_path):
    store, runs = Store(tmp_path), configs(method="CRS", seed=[0, 1, 2], **MLP)
    record = {"device": "cpu", "card": "x86_64", "torch": "2.11.0", "numpy": "2.3.1"}
    records = [record | {"steps": 9, "seconds": 1.0}, None, None]
    records[1] = records[0] | {"device": "cuda", "card": "A100"}
    for config, how in zip(runs, records, strict=True):
        store.save(replace(fake_run(config, 0.5, whole=True), record=how))
    with pytest.warns(UserWarning, match=r"in 2 ways: 1 on cpu .*; 1 on cuda \(A100\)"):
        sweep.run_all(runs, store)
    assert len(sweep.run_all([runs[0], runs[2]], store)) == 2  # of one nothing is known


def test_a_pool_leaves_joblib_as_it_was():
    with suppress(ValueError), sweep.processes(2) as (submit, _):
        assert submit(0.0, abs, -1).result() == 1
        raise ValueError
    assert Parallel(n_jobs=2)([delayed(abs)(-1)] * 2) == [1, 1]


def test_a_run_that_fails_does_not_lose_the_others(tmp_path, monkeypatch):
    grid = configs(**MLP, method="Finetune", seed=[0, 1, 2])
    store, failing = Store(tmp_path), grid[1]

    def break_down(group, train=sweep.train_group, **options):
        if failing in group:
            raise FloatingPointError("no number")
        if grid[2] in group:
            store.lock(failing).release()  # another process may try it
        return train(group, **options)

    with monkeypatch.context() as patch:
        patch.setattr(sweep, "train_group", break_down)
        said = r"1 of 3 runs failed(?s:.*)seed 1: FloatingPointError: no number"
        with pytest.raises(RuntimeError, match=said) as raised:
            sweep.run_all(grid, store, workers=1)
    assert isinstance(raised.value.__cause__, FloatingPointError)
    assert [config for config in grid if store.load(config) is None] == [failing]
    text = store.path(failing, FAILURE).read_text()
    assert "Finetune batch_size=30 on imbal-digits-tiny, seed 1" in text
    assert "in break_down" in text
    assert len(sweep.run_all(grid, store, workers=1)) == 3
    assert {file.suffix for file in tmp_path.iterdir()} == {".zip", ".json"}


def test_a_run_that_cannot_be_stored_goes_on_at_its_checkpoint(tmp_path, monkeypatch):
    store, config = Store(tmp_path), RunConfig(**MLP, method="CRS")

    def full(*_):
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    with monkeypatch.context() as patch:
        patch.setattr(Store, "save", full)
        with pytest.raises(RuntimeError, match=r"1 of 1(?s:.*)Disk quota exceeded"):
            sweep.run_all([config], store, workers=1, save_every=1e-9)
    assert store.path(config, CHECKPOINT).exists()
    assert sweep.run_all([config], store, workers=1)


def test_a_run_that_another_process_gave_up_is_trained(tmp_path, monkeypatch):
    store, config = Store(tmp_path), RunConfig(**MLP, method="Finetune")
    lock = store.lock(config)
    monkeypatch.setattr(sweep.time, "sleep", lambda _: lock.release())
    assert sweep.run_all([config], store, workers=1)[0].config == config
    names = {store.path(config, kind).name for kind in (RESULT, RECORD)}
    assert {file.name for file in tmp_path.iterdir()} == names


def test_ctrl_c_frees_the_locks_and_keeps_the_checkpoint(tmp_path, monkeypatch):
    store, config = Store(tmp_path), RunConfig(**MLP, method="CRS")

    def interrupt(group, checkpoint, **_options):
        checkpoint.write_bytes(b"half a run")
        raise KeyboardInterrupt

    monkeypatch.setattr(sweep, "train_group", interrupt)
    with pytest.raises(KeyboardInterrupt) as raised:
        sweep.run_all([config], store, workers=1)
    assert store.path(config, CHECKPOINT).exists()
    store.lock(config).release()
    assert raised.traceback  # which holds on to the lock


def test_a_machine_that_makes_other_runs_refuses():
    with pytest.raises(ValueError, match="install there the data"):
        sweep.train_group([RunConfig(**MLP)], hashes=["0" * 12], device="cpu")


def test_progress_reaches_the_terminal_under_papermill(monkeypatch):
    """A kernel's stderr has the file descriptor of its terminal."""
    reader, writer = os.pipe()

    class OutStream:
        echo = None

        def fileno(self):
            return writer

    monkeypatch.setattr("sys.stderr", OutStream())
    monkeypatch.setenv("JPY_SESSION_NAME", "a notebook in JupyterLab")
    assert sweep.bar_stream().echo is None
    monkeypatch.delenv("JPY_SESSION_NAME")
    with sweep.bar_stream().echo as terminal:
        terminal.write("\r1/2")
        assert os.read(reader, 10) == b"\r1/2"
    os.close(writer)
    os.close(reader)
