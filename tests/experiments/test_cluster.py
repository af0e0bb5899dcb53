"""Runs on a real Ray cluster of two machines, one of which is lost; all on loopback."""

import contextlib
import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pytest

from prslib.experiments import pool, sweep
from prslib.experiments.store import Store
from prslib.paths import project_root
from prslib.training.config import RunConfig
from prslib.training.grids import configs
from prslib.training.methods import METHODS, Method, _added

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
    if importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is not installed")
    with ExitStack() as running:
        for _ in range(3):  # Ray gives up on a machine that is not there in 30 s
            process = running.enter_context(started())
            if answer := process.stdout.readline():
                break
        yield json.loads(answer)


@contextmanager
def started():
    program = Path(__file__).parents[1] / "helpers" / "ray_machines.py"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, program], **pipes) as process:
        try:
            yield process
        finally:
            process.stdin.close()
            process.wait(timeout=600)


@pytest.fixture
def address(machines):
    with warnings.catch_warnings():  # Ray's own, in whatever version is installed
        warnings.filterwarnings("ignore", module="ray")
        yield machines["address"]


@pytest.fixture(scope="module")
def connection(machines):
    """Stay connected, so that the machines keep their processes from test to test."""
    ray, connected = pool.connect(machines["address"])
    assert connected
    yield ray
    ray.shutdown()


def stored(folder):
    return {file.name: file.read_bytes() for file in folder.glob("*.zip")}


def test_no_ray_or_no_cluster_is_said_at_once(tmp_path, monkeypatch):
    wanted = [RunConfig(**MLP, method="CRS")]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(
        ConnectionError, match=r"expected a Ray cluster .*, or start one \(`ray start"
    ):
        sweep.run_all(wanted, Store(tmp_path), address=f"127.0.0.1:{port}")
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install '.\[cluster\]'"):
        sweep.run_all(wanted, Store(tmp_path), address="auto")


def test_a_head_that_does_not_answer_is_an_error_that_tells_where_to_look(
    tmp_path, monkeypatch
):
    ray = pytest.importorskip("ray")

    def silent(**_options):
        raise ConnectionError("Failed to connect to Ray cluster")

    monkeypatch.setattr(ray, "init", silent)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ConnectionError, match=r"`ray status`.*gcs_server\.out"):
            sweep.run_all([RunConfig(**MLP)], Store(tmp_path), address=address)
    # one attempt of Ray's, 40 s, in place of 20
    assert os.environ["RAY_NUM_REDIS_GET_RETRIES"] == "1"


def test_ctrl_c_leaves_the_cluster_and_keeps_what_is_finished(
    address, tmp_path, monkeypatch
):
    import ray

    def interrupt(*_args):
        raise KeyboardInterrupt

    wanted = configs(**MLP, method="Finetune", seed=list(range(6)))
    store = Store(tmp_path)
    monkeypatch.setattr(sweep, "describe", interrupt)  # called when a run has ended
    with pytest.raises(KeyboardInterrupt):
        sweep.run_all(wanted, store, address=address)
    assert not ray.is_initialized()
    assert 1 <= len(stored(tmp_path)) < 6
    for config in wanted:  # no lock is left behind
        with store.lock(config):
            pass


def test_a_machine_without_the_data_is_named_before_any_work(
    address, connection, tmp_path, monkeypatch
):
    def differ(_configs, _hashes):
        raise ValueError("other data")

    wanted = [RunConfig(**MLP, method="CRS")]
    with monkeypatch.context() as patch:
        patch.setattr(pool, "check_hashes", differ)
        with pytest.raises(pool.ClusterError, match=r"got .*: other data"):
            sweep.run_all(wanted, Store(tmp_path), address=address)
    with pytest.raises(pool.ClusterError, match="a machine with a CPU and a GPU"):
        sweep.run_all(wanted, Store(tmp_path), device="cuda", address=address)
    assert not stored(tmp_path)


def at_work(machine):
    """Say whether a run is under way on a machine: Ray names a process after its task."""
    titles = []
    for child in psutil.Process(machine).children():
        with contextlib.suppress(psutil.NoSuchProcess):  # it ended in between
            titles += child.cmdline()
    return any("ray::prslib run" in title for title in titles)


def kill_at_work(machine, said):
    while not at_work(machine):
        time.sleep(0.01)
    os.kill(machine, signal.SIGKILL)
    said.append(time.monotonic())


@pytest.mark.usefixtures("connection")
def test_a_run_that_raises_and_a_machine_that_is_lost_end_no_other_run(
    machines, address, tmp_path, monkeypatch
):
    monkeypatch.setenv("RAY_ADDRESS", address)
    weights = tmp_path / "weights.pth"
    weights.write_bytes(b"no weights")
    broken = RunConfig(**MLP, model="resnet18_imagenet", weights=str(weights))
    own = Method("crs")  # as `register` adds it: the machines are told
    monkeypatch.setitem(METHODS, "own", own)
    monkeypatch.setitem(_added, ("method", "own"), (own, __name__))
    wanted = configs(
        dataset="digits70tiny", method="own", seed=[0, 1, 2], batch_size=10
    )
    store, local, killed = Store(tmp_path / "there"), Store(tmp_path / "here"), []
    killer = threading.Thread(
        target=kill_at_work, args=(machines["second"], killed), daemon=True
    )
    killer.start()
    with pytest.raises(
        RuntimeError, match=r"1 of 4 runs failed, the others are stored(.|\n)*PRS"
    ):
        sweep.run_all([broken, *wanted], store)
    assert killed
    killer.join()
    (failure,) = store.folder.glob("*.failed.json")
    assert (
        "in train" in json.loads(failure.read_text())["traceback"]
    )  # where, on the machine
    monkeypatch.delenv("RAY_ADDRESS")
    sweep.run_all(wanted, local, workers=1)
    assert stored(store.folder) == stored(local.folder)
    assert len(stored(store.folder)) == 3
