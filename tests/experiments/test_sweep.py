"""`run_all` trains what is missing, once, and keeps what is finished whatever happens."""

import os
import signal
import subprocess
import sys
import time
import zipfile

import pytest

from prslib.experiments import sweep, workers
from prslib.experiments.store import FAILURE, Store, inventory
from prslib.paths import project_root
from prslib.training.config import RunConfig, configs

MLP = {"dataset": "imbal-digits-tiny", "batch_size": 30}


def test_runs_are_trained_once_and_come_in_order(tmp_path, capfd):
    store = Store(tmp_path)
    wanted = configs(**MLP, method=["CRS", "PRS"], seed=[0])
    runs = sweep.run_all(wanted, store, workers=1)
    assert [run.config for run in runs] == wanted
    assert [set(run.scores["method"]) for run in runs] == [{"CRS"}, {"PRS"}]
    bar = capfd.readouterr().err
    assert "2/2" in bar
    assert "on imbal-digits-tiny, seed 0" in bar
    written = {file: file.stat().st_mtime_ns for file in tmp_path.iterdir()}
    again = sweep.run_all([*wanted, wanted[0]], store, device="of another machine")
    assert len(again) == 3
    assert written == {file: file.stat().st_mtime_ns for file in tmp_path.iterdir()}
    assert "training" not in capfd.readouterr().err


def test_nothing_is_trained_when_one_configuration_does_not_fit(tmp_path):
    fits = RunConfig(**MLP, method="Finetune")
    too_large = RunConfig(**MLP, method="CRS", memory_size=100_000)
    with pytest.raises(ValueError, match="choose a smaller memory"):
        sweep.run_all([fits, too_large], Store(tmp_path))
    assert not list(tmp_path.iterdir())


def test_a_process_that_is_killed_takes_no_other_run_with_it(tmp_path, monkeypatch):
    store, wanted = Store(tmp_path), configs(**MLP, method="Finetune", seed=[0, 1])

    def kill(group, *arguments):
        if group[0].seed == 1:  # as a system does whose memory does not suffice
            with Store(tmp_path).lock(group[0]):
                os.kill(os.getpid(), signal.SIGKILL)
        return workers.train_and_store(group, *arguments)

    monkeypatch.setattr(workers, "train_and_store", kill)
    with pytest.raises(RuntimeError, match=r"1 of 2 runs failed(?s:.*)seed 1 .* was killed"):
        sweep.run_all(wanted, store, workers=2)
    assert [store.load(config) is not None for config in wanted] == [True, False]
    assert store.path(wanted[1], FAILURE).exists()


PROGRAM = """
import signal
from prslib import Store, configs, run_all

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    many = {"seed": list(range(500)), "batch_size": 30}
    run_all(configs(dataset="imbal-digits-tiny", method="CRS", **many), Store(), workers=2)
"""


@pytest.mark.parametrize("how", ["Ctrl-C in a terminal", signal.SIGKILL])
def test_however_it_ends_its_workers_end_and_what_is_finished_stays(tmp_path, how):
    (tmp_path / "program.py").write_text(PROGRAM)
    runs = tmp_path / "cache" / "runs"
    folders = {"PRSLIB_CACHE": str(tmp_path / "cache"), "PYTHONPATH": str(project_root())}
    pipe = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    command = [sys.executable, "program.py"]
    options = {"cwd": tmp_path, "env": os.environ | folders, "start_new_session": True}
    with subprocess.Popen(command, **pipe, **options) as process:
        while not any(runs.glob("*.zip")) and process.poll() is None:
            time.sleep(0.01)
        if ctrl_c := isinstance(how, str):  # a terminal sends it to every process of the group
            os.killpg(process.pid, signal.SIGINT)
        else:
            process.send_signal(how)
        # ends when every process that could write is gone
        output, _ = process.communicate(timeout=60)
    assert process.returncode != 0
    assert ctrl_c == ("KeyboardInterrupt" in output)
    states = {entry.state for entry in inventory(Store(runs))}  # settles what was killed
    assert "stored" in states <= {"stored", "interrupted"}
    assert not list(runs.glob("*.part"))
    assert len(list(runs.glob("*.lock"))) == len(list(runs.glob("*.checkpoint")))
    finished = list(runs.glob("*.zip"))
    assert 1 <= len(finished) < 500
    for file in finished:
        with zipfile.ZipFile(file) as content:
            assert content.testzip() is None


def test_a_run_that_fails_does_not_lose_the_others(tmp_path, monkeypatch):
    store, wanted = Store(tmp_path), configs(**MLP, method="Finetune", seed=[0, 1, 2])

    def break_down(group, *arguments, train=workers.train_group):
        if group[0].seed == 1:
            raise FloatingPointError("no number")
        return train(group, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(workers, "train_group", break_down)
        said = rf"1 of 3 runs failed(?s:.*)seed 1 \({wanted[1].hash}\): FloatingPointError: no numb"
        with pytest.raises(RuntimeError, match=said):
            sweep.run_all(wanted, store, workers=1)
    assert [store.load(config) is not None for config in wanted] == [True, False, True]
    assert store.path(wanted[1], FAILURE).exists()
    assert len(sweep.run_all(wanted, store, workers=1)) == 3


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"workers": "2"}, TypeError, "workers must be a whole number, got '2'"),
        ({"workers": -3}, ValueError, "workers must be at least 1, got -3"),
        ({"save_every": 0}, ValueError, "save_every must be above 0 seconds, got 0"),
        ({"save_every": float("nan")}, ValueError, "save_every must be above 0 seconds, got nan"),
    ],
)
def test_bad_options_are_refused_before_any_training(tmp_path, options, error, message):
    with pytest.raises(error, match=message):
        sweep.run_all([RunConfig(**MLP)], Store(tmp_path), **options)
    assert not list(tmp_path.iterdir())


def test_a_folder_in_the_place_of_a_result_is_an_error_before_any_training(tmp_path, monkeypatch):
    store, config = Store(tmp_path), RunConfig(**MLP, method="Finetune")
    store.path(config).mkdir()
    monkeypatch.setattr(workers, "train_missing", None)
    with pytest.raises(IsADirectoryError, match=rf"at .*{config.hash}\.zip, got a folder; move it"):
        sweep.run_all([config], store)


def test_a_run_that_has_vanished_is_named(tmp_path, monkeypatch):
    store, config = Store(tmp_path), RunConfig(**MLP, method="Finetune")
    monkeypatch.setattr(workers, "train_missing", lambda *_: None)
    with pytest.raises(RuntimeError, match=rf"expected {config.hash} in .*ask again"):
        sweep.run_all([config], store)
