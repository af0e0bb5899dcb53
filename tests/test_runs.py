"""Stored runs: a file each, whole or not at all, whatever happens to who trains them."""

import json
import os
import signal
import subprocess
import sys
import time
import warnings
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import psutil
import pytest

from prslib import RunConfig, cli, run, run_all, runs
from prslib.paths import project_root
from prslib.runs import counting, load, path_of, save

SEVERAL, ONE_LABEL = "cocoseq-tiny", "imbal-digits-tiny"
SCRIPT = Path(__file__).parent / "helpers" / "run_script.py"
FULL = {
    "variance_points": 2,
    "features_per_class": 2,
    "prequential": True,
    "own_threshold": True,
    "test_resamples": 5,
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
    assert loaded.features.keys() == run.features.keys()
    for name, rows in run.features.items():
        np.testing.assert_array_equal(loaded.features[name], rows, strict=True)
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


def test_special_numbers_and_texts_come_back(trained, tmp_path):
    one = trained["full"]
    scores = one.scores.copy()
    scores.loc[:3, "value"] = [np.nan, 1e-17, 1.0, 0.1 + 0.2]
    scores.loc[:1, "group"] = ["", "größer, than \n 3"]
    odd = replace(one, scores=scores, memory_labels=one.memory_labels[:0])
    save(odd, tmp_path / "odd.npz")
    assert_equal(load(odd.config, tmp_path / "odd.npz"), odd)


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


UNFIT = [
    ({"batch_size": 600}, "cpu", "up to the samples of task"),
    ({"loss": "cross_entropy", "dataset": SEVERAL}, "cpu", "loss of several labels"),
    ({}, "gpu", "unknown device 'gpu'; known devices: "),
    ({}, "cuda:99", "unknown device 'cuda:99'; known devices: "),
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


def test_the_bar_counts_the_steps_of_all_runs(monkeypatch):
    bars = []

    class Bar(runs.Bar):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            bars.append(self)

    monkeypatch.setattr(runs, "Bar", Bar)
    with counting([30, 12]) as file:
        done = np.memmap(file, np.int64, "r+")
        done[:] = [30, 5]
        while bars[0].n < 35:
            time.sleep(0.01)
        done[1] = 12
    assert (bars[0].total, bars[0].n) == (42, 42)
    assert bars[0].desc.startswith("training 2 runs")
    assert not file.exists()


def test_a_bar_that_nobody_reads_holds_nobody_up(monkeypatch):
    reader, writer = os.pipe()
    stream = open(writer, "w", buffering=1)  # noqa: SIM115 - it cannot be closed
    os.close(reader)
    monkeypatch.setattr(runs, "bar_stream", lambda: stream)
    with counting([3]) as file:
        np.memmap(file, np.int64, "r+")[:] = 2
        time.sleep(4 * runs.POLL)
    with suppress(BrokenPipeError):
        stream.close()


def test_the_bar_is_not_red_in_a_notebook_and_reaches_papermills_terminal(monkeypatch):
    """A kernel's stderr has the file descriptor of its terminal."""
    assert runs.bar_stream() is sys.stderr
    reader, writer = os.pipe()
    stdout = SimpleNamespace(echo=None)
    monkeypatch.setattr("sys.stdout", stdout)
    monkeypatch.setattr("sys.stderr", SimpleNamespace(echo=None, fileno=lambda: writer))
    monkeypatch.setenv("JPY_SESSION_NAME", "a notebook in JupyterLab")
    assert runs.bar_stream() is stdout
    assert stdout.echo is None
    monkeypatch.delenv("JPY_SESSION_NAME")
    with runs.bar_stream().echo as terminal:
        terminal.write("\r1/2")
        assert os.read(reader, 10) == b"\r1/2"
    os.close(writer)
    os.close(reader)


# worker processes


def test_runs_are_trained_and_one_that_fails_does_not_lose_the_others(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("PRSLIB_CACHE", str(tmp_path))
    good = [RunConfig(ONE_LABEL, "CRS", seed=n, batch_size=40) for n in (0, 1)]
    bad = replace(good[0], learning_rate=1e30)
    said = r"1 of 3 runs failed, the others are stored:\nCRS on imbal-digits-tiny, se"
    said += r"ed 0: FloatingPointError: expected .*; lower learning_rate$"
    with pytest.raises(RuntimeError, match=said):
        run_all([good[0], bad, good[1]], workers=2)
    assert [path_of(one).is_file() for one in (*good, bad)] == [True, True, False]
    here, file = run(good[1]), tmp_path / "here.npz"
    save(here, file)
    assert file.read_bytes() == path_of(good[1]).read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(runs, "train_here", None)
        assert_equal(run_all(good)[1], here)


def begin(cache, *arguments):
    """Start the script, which trains runs of its own sampler, in a session of its own."""
    environment = os.environ | {"PRSLIB_CACHE": str(cache)}
    environment["PYTHONPATH"] = str(project_root())
    return subprocess.Popen(
        [sys.executable, SCRIPT, *map(str, arguments)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # a shell's background work ignores Ctrl-C, and the tests may be that
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def files_in(cache):
    return {file.name: file.read_bytes() for file in cache.glob("runs/*.npz")}


def disturb(cache, harm):
    """Harm the script, with 4 runs, once one is stored; return its output when all has ended."""
    script = begin(cache, 4, 20)
    children = []
    while script.poll() is None and not files_in(cache):
        time.sleep(0.02)
    with suppress(psutil.NoSuchProcess):
        children = psutil.Process(script.pid).children(recursive=True)
    kept = files_in(cache)
    workers = [one for one in children if "LokyProcess" in " ".join(one.cmdline())]
    assert len(workers) == 2 and kept
    if harm == "interrupt":
        os.killpg(script.pid, signal.SIGINT)
    else:
        victim = script.pid if harm == "kill" else workers[0].pid
        os.kill(victim, signal.SIGKILL)
    output, errors = script.communicate(timeout=300)
    _, alive = psutil.wait_procs(children, timeout=60)
    assert not [one for one in alive if one.status() != psutil.STATUS_ZOMBIE]
    assert kept.items() <= files_in(cache).items()
    return script.returncode, output, errors


@pytest.mark.parametrize("harm", ["interrupt", "kill", "kill a worker"])
def test_whatever_happens_finished_runs_are_kept_and_no_process_stays(tmp_path, harm):
    code, output, errors = disturb(tmp_path, harm)
    if harm == "interrupt":
        assert code == 130 and "Traceback" not in errors
        assert output.startswith("stopped: ") and output.count("\n") == 1
        assert output.endswith(
            "of 4 runs are stored and kept; the others start again\n"
        )
    elif harm == "kill a worker":
        assert code == 1 and "worker process was killed" in output
        assert output.endswith("are stored and kept; the others start again\n")
    stored = files_in(tmp_path)
    assert 1 <= len(stored) < 4
    for file in tmp_path.glob("runs/*.npz"):
        with np.load(file) as whole:
            assert all(whole[name].size >= 0 for name in whole.files)
    if harm == "kill a worker":  # the next call goes on
        output, errors = begin(tmp_path, 4, 20).communicate()
        assert output == "4 runs\n", errors
        assert stored.items() <= files_in(tmp_path).items()
        assert {file.suffix for file in tmp_path.glob("runs/*")} <= {".npz", ".part"}


def test_a_command_that_is_stopped_says_so(capsys, monkeypatch):
    def stop(*_, **__):
        raise runs.Interrupted("stopped: 1 of 2 runs are stored and kept")

    monkeypatch.setattr(runs, "run_all", stop)
    assert cli.main(["run", ONE_LABEL, "CRS"]) == 130
    said = capsys.readouterr().err
    assert said == "stopped: 1 of 2 runs are stored and kept\n"
    assert runs.Interrupted("said")._render_traceback_() == ["said"]
