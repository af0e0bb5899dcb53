"""Runs on a real Ray cluster of two machines, one of which is lost; all on loopback."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import psutil
import pytest
from fake_runs import fake_run

from prslib.experiments import sweep
from prslib.experiments.store import FAILURE, Store
from prslib.paths import project_root
from prslib.training.config import RunConfig
from prslib.training.grids import configs
from prslib.training.methods import ADDED, METHODS, Method

MLP = {"dataset": "imbal-digits-tiny", "batch_size": 30}
RAY = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # keeps Ray on loopback, on every system
    "RAY_worker_niceness": "0",  # by default 15: beside other tests its turn would never come
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}


@pytest.fixture(scope="module", autouse=True)
def environment():
    """Ray reads its settings when it is imported first, by whatever test."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("PRSLIB_DATA", "RAY_ADDRESS"):
            patch.delenv(name, raising=False)
        for name, value in (RAY | {"PYTHONPATH": str(project_root())}).items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="module")
def machines():
    pytest.importorskip("ray")
    program = Path(__file__).parents[1] / "helpers" / "ray_machines.py"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, program], **pipes) as process:
        yield json.loads(process.stdout.readline())
        process.stdin.close()
        process.wait(timeout=600)


@pytest.fixture
def address(machines):
    with warnings.catch_warnings():  # Ray's own, in whatever version is installed
        warnings.filterwarnings("ignore", module="ray")
        yield machines["address"]


def stored(folder):
    return {file.name: file.read_bytes() for file in folder.glob("*.zip")}


def test_no_ray_or_no_cluster_is_said_at_once(tmp_path, monkeypatch):
    grid = [RunConfig(**MLP, method="CRS")]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(ConnectionError, match=r"a Ray cluster .*; start one"):
        sweep.run_all(grid, Store(tmp_path), address=f"127.0.0.1:{port}")
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install '.\[cluster\]'"):
        sweep.run_all(grid, Store(tmp_path), address="auto")


def test_ctrl_c_leaves_the_cluster_and_keeps_what_is_finished(
    address, tmp_path, monkeypatch
):
    import ray

    finish = Store.finish

    def interrupt(store, group):
        finish(store, group)
        raise KeyboardInterrupt

    grid = configs(**MLP, method="Finetune", seed=list(range(6)))
    store = Store(tmp_path)
    with pytest.raises(ConnectionError, match=r"a GPU in the cluster .* got none"):
        sweep.run_all(grid, store, device="cuda", address=address)
    made = {config.seed: [fake_run(config, 0.5, whole=True)] for config in grid}
    monkeypatch.setattr(sweep, "train_group", lambda group, **_: made[group[0].seed])
    monkeypatch.setattr(Store, "finish", interrupt)
    with pytest.raises(KeyboardInterrupt):
        sweep.run_all(grid, store, address=address)
    assert not ray.is_initialized()
    assert 1 <= len(stored(tmp_path)) < 6
    for config in grid:  # no lock is left behind
        store.lock(config).release()


def at_work(machine):
    """Say whether a run is under way on a machine: Ray names a process after its task."""
    titles = []
    for child in psutil.Process(machine).children():
        with contextlib.suppress(psutil.NoSuchProcess):  # it ended in between
            titles += child.cmdline()
    return any("ray::with_registered" in title for title in titles)


def kill_at_work(machine):
    while not at_work(machine):
        time.sleep(0.01)
    os.kill(machine, signal.SIGKILL)


def test_a_run_that_raises_and_a_machine_that_is_lost_end_no_other_run(
    machines, address, tmp_path, monkeypatch
):
    monkeypatch.setenv("RAY_ADDRESS", address)
    weights = tmp_path / "weights.pth"
    weights.write_bytes(b"no weights")
    broken = RunConfig(**MLP, model="convnet", weights=str(weights))
    method = Method(sampler="crs")  # as `register` adds it: the machines are told
    monkeypatch.setitem(METHODS, "own", method)
    monkeypatch.setitem(ADDED, (Method, "own"), method)
    grid = configs(**MLP, method="own", seed=[0, 1])
    store, local = Store(tmp_path / "there"), Store(tmp_path / "here")
    second = (machines["second"],)
    killer = threading.Thread(target=kill_at_work, args=second, daemon=True)
    killer.start()
    said = r"1 of 3 runs failed, the others are stored(.|\n)*PRS(.|\n)*ValueError"
    with pytest.raises(RuntimeError, match=said):
        sweep.run_all([broken, *grid], store)
    assert not killer.is_alive()
    # where, on the machine
    assert "in train" in store.path(broken, FAILURE).read_text()
    monkeypatch.delenv("RAY_ADDRESS")
    sweep.run_all(grid, local, workers=1)
    assert stored(store.folder) == stored(local.folder)
    assert len(stored(store.folder)) == 2
