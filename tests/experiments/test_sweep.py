import errno
import os
import signal
import subprocess
import sys
import time
import zipfile

import pytest

from prslib.experiments import sweep
from prslib.experiments import workers as attempt
from prslib.experiments import workers as pool
from prslib.experiments.store import FAILURE, Store
from prslib.paths import project_root
from prslib.training.config import RunConfig, configs

TINY = {"dataset": "digits49tiny", "batch_size": 15}
MLP = {"dataset": "imbal-digits-tiny", "batch_size": 30}


def test_runs_are_trained_once_and_come_in_order(tmp_path, capfd):
    store = Store(tmp_path)
    wanted = configs(**TINY, method=["CRS", "PRS"], seed=[0])
    runs = sweep.run_all(wanted, store, workers=2)
    assert [run.config for run in runs] == wanted
    assert [set(run.scores["method"]) for run in runs] == [{"CRS"}, {"PRS"}]
    bar = capfd.readouterr().err
    assert "2/2" in bar
    assert "on digits49tiny, seed 0" in bar
    written = {file: file.stat().st_mtime_ns for file in tmp_path.iterdir()}
    again = sweep.run_all([*wanted, wanted[0]], store, device="of another machine")
    assert len(again) == 3
    assert written == {file: file.stat().st_mtime_ns for file in tmp_path.iterdir()}
    assert "training" not in capfd.readouterr().err


def test_nothing_is_trained_when_one_configuration_does_not_fit(tmp_path):
    fits = RunConfig(**TINY, method="Finetune")
    too_large = RunConfig(**TINY, method="CRS", memory_size=100_000)
    with pytest.raises(ValueError, match="choose a smaller memory"):
        sweep.run_all([fits, too_large], Store(tmp_path))
    assert not list(tmp_path.iterdir())


def test_what_is_finished_stays_when_the_work_is_interrupted(tmp_path, monkeypatch):
    store = Store(tmp_path)
    wanted = configs(**TINY, method="Finetune", seed=[0, 1, 2])

    def interrupt(*_args):
        raise KeyboardInterrupt

    monkeypatch.setattr(pool, "describe", interrupt)  # called when the first run has ended
    with pytest.raises(KeyboardInterrupt):
        sweep.run_all(wanted, store, workers=1)
    finished = [config for config in wanted if store.load(config) is not None]
    assert finished == wanted[: len(finished)]
    assert 1 <= len(finished) < 3


def test_a_process_that_is_killed_takes_no_other_run_with_it(tmp_path, monkeypatch):
    store, wanted = Store(tmp_path), configs(**MLP, method="Finetune", seed=[0, 1])

    def kill(unit, *arguments):
        if unit[0].seed == 1:  # as a system does whose memory does not suffice
            with Store(tmp_path).lock(unit[0]):
                os.kill(os.getpid(), signal.SIGKILL)
        return attempt.train_and_store(unit, *arguments)

    monkeypatch.setattr(pool, "train_and_store", kill)
    with pytest.raises(RuntimeError, match=r"1 of 2 runs failed(?s:.*)seed 1 .* was killed"):
        sweep.run_all(wanted, store, workers=2)
    assert [store.load(config) is not None for config in wanted] == [True, False]
    assert store.path(wanted[1], FAILURE).exists()


PROGRAM = """
from prslib.training.config import configs
from prslib.experiments.store import Store
from prslib.experiments.sweep import run_all

if __name__ == "__main__":
    run_all(configs(dataset="digits70tiny", method="CRS", seed=list(range(40))), Store(), workers=2)
"""


def test_ctrl_c_in_a_terminal_stops_cleanly_and_keeps_what_is_finished(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    runs = tmp_path / "cache" / "runs"
    process = subprocess.Popen(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        env=os.environ
        | {"PRSLIB_CACHE": str(tmp_path / "cache"), "PYTHONPATH": str(project_root())},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 120
    while len(list(runs.glob("*.zip"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.2)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does, to every process of the group
    output, _ = process.communicate(timeout=60)
    assert process.returncode not in (0, None)
    assert "KeyboardInterrupt" in output
    finished = list(runs.glob("*.zip"))
    assert 2 <= len(finished) < 40
    for file in finished:
        with zipfile.ZipFile(file) as content:
            assert content.testzip() is None
    deadline = time.monotonic() + 20  # the workers are gone too
    while time.monotonic() < deadline and _alive(process.pid):
        time.sleep(0.2)
    assert not _alive(process.pid)


def _alive(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_run_that_fails_does_not_lose_the_others(tmp_path, monkeypatch):
    store, wanted = Store(tmp_path), configs(**MLP, method="Finetune", seed=[0, 1, 2])

    def break_down(unit, *arguments, train=attempt.train):
        if unit[0].seed == 1:
            raise FloatingPointError("no number")
        return train(unit, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(attempt, "train", break_down)
        said = rf"1 of 3 runs failed(?s:.*)seed 1 \({wanted[1].hash}\): FloatingPointError: no numb"
        with pytest.raises(RuntimeError, match=said):
            sweep.run_all(wanted, store, workers=1)
    assert [store.load(config) is not None for config in wanted] == [True, False, True]
    assert store.path(wanted[1], FAILURE).exists()
    assert len(sweep.run_all(wanted, store, workers=1)) == 3
    assert not store.path(wanted[1], FAILURE).exists()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"workers": "2"}, TypeError, "workers must be a whole number, got '2'"),
        ({"workers": 1.5}, TypeError, "workers must be a whole number, got 1.5"),
        ({"workers": -3}, ValueError, "workers must be at least 1, got -3"),
        ({"save_every": 0}, ValueError, "save_every must be above 0 seconds, got 0"),
        ({"save_every": float("nan")}, ValueError, "save_every must be above 0 seconds, got nan"),
        ({"save_every": "5"}, TypeError, "save_every must be a number of seconds, got '5'"),
    ],
)
def test_bad_options_are_refused_before_any_training(tmp_path, options, error, message):
    with pytest.raises(error, match=message):
        sweep.run_all([RunConfig(**MLP)], Store(tmp_path), **options)
    assert not list(tmp_path.iterdir())


def test_a_run_that_has_vanished_is_named(tmp_path, monkeypatch):
    store, config = Store(tmp_path), RunConfig(**MLP, method="Finetune")
    monkeypatch.setattr(pool, "train", lambda *_: None)
    with pytest.raises(RuntimeError, match=rf"expected {config.hash} in .*ask again"):
        sweep.run_all([config], store)


def test_a_run_that_cannot_be_stored_is_not_trained_again(tmp_path, monkeypatch):
    store, trained = Store(tmp_path), []
    unit = [RunConfig(**MLP, method="CRS", variance_points=points) for points in (0, 2, 3)]

    def train(some, *arguments, train=attempt.train):
        trained.append(len(some))
        return train(some, *arguments)

    def save(store, run, save=Store.save):
        if run.config.variance_points == 2:
            raise OSError(errno.EDQUOT, "Disk quota exceeded")
        return save(store, run)

    monkeypatch.setattr(attempt, "train", train)
    monkeypatch.setattr(Store, "save", save)
    outcomes = attempt.train_and_store(unit, store)
    assert trained == [3]
    assert [outcome.error is None for outcome in outcomes] == [True, False, True]
    assert "Disk quota exceeded" in outcomes[1].error
    assert store.path(unit[1], FAILURE).exists()
    assert [store.load(config) is not None for config in unit] == [True, False, True]
