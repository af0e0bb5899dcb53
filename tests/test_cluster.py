"""Runs on a real Ray cluster of two machines, one of which is lost; all on loopback."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import psutil
import pytest

from prslib import RunConfig, configs, register, run, run_all
from prslib.paths import project_root
from prslib.runs import path_of, save
from prslib.train import Method

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
    program = Path(__file__).parent / "helpers" / "ray_machines.py"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, program], **pipes) as process:
        yield json.loads(process.stdout.readline())
        process.stdin.close()
        process.wait(timeout=600)


@pytest.fixture
def cluster(machines, tmp_path, monkeypatch):
    """A cache of its own, and the address of the machines in the environment."""
    monkeypatch.setenv("PRSLIB_CACHE", str(tmp_path))
    monkeypatch.setenv("RAY_ADDRESS", machines["address"])
    with warnings.catch_warnings():  # Ray's own, in whatever version is installed
        warnings.filterwarnings("ignore", module="ray")
        yield tmp_path


def files_in(folder):
    return {file.name: file.read_bytes() for file in folder.glob("runs/*")}


def at_work(machine):
    """Say whether a run is under way on a machine: Ray names a process after its task."""
    titles = []
    for child in psutil.Process(machine).children():
        with contextlib.suppress(psutil.NoSuchProcess):  # it ended in between
            titles += child.cmdline()
    return any("ray::train_there" in title for title in titles)


def kill_at_work(machine):
    while not at_work(machine):
        time.sleep(0.01)
    os.kill(machine, signal.SIGKILL)


@pytest.mark.usefixtures("registers")
def test_a_run_that_raises_and_a_machine_that_is_lost_end_no_other_run(
    machines, cluster, tmp_path
):
    import ray

    register("own", Method(sampler="crs"))  # the machines are told
    broken = RunConfig(**MLP, learning_rate=1e30)
    grid = configs(**MLP, method="own", seed=range(2))
    with pytest.raises(ConnectionError, match=r"a GPU in the cluster .* got none"):
        run_all(grid, device="cuda")
    second = (machines["second"],)
    killer = threading.Thread(target=kill_at_work, args=second, daemon=True)
    killer.start()
    said = r"1 of 3 runs failed, the others are stored:\nPRS rho=0 on .*FloatingPoint"
    with pytest.raises(RuntimeError, match=said):
        run_all([broken, *grid])
    assert not killer.is_alive()
    assert not ray.is_initialized()  # submitted tasks would go on
    stored = files_in(cluster)
    assert len(stored) == 2
    for config in grid:
        save(run(config), tmp_path / "here.npz")
        assert stored[path_of(config).name] == (tmp_path / "here.npz").read_bytes()
    assert [one.config for one in run_all(grid)] == grid
