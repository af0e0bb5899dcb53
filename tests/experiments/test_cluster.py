"""Runs on a real Ray cluster of two machines, one of which is lost; all on loopback."""

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
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from prslib.experiments import cluster, sweep, workers
from prslib.experiments.store import NewerStoreError, Store
from prslib.paths import project_root
from prslib.training.config import RunConfig, configs
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
        pytest.skip("needs prslib[cluster]")
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
    with cluster.connected(machines["address"]) as ray:
        yield ray


def stored(folder):
    return {file.name: file.read_bytes() for file in folder.glob("*.zip")}


def test_no_ray_or_no_cluster_is_said_at_once(tmp_path, monkeypatch):
    wanted = [RunConfig(**MLP, method="CRS")]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(ConnectionError, match=r"expected a Ray cluster .*; start one \(`ray start"):
        sweep.run_all(wanted, Store(tmp_path), address=f"127.0.0.1:{port}")
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'prslib\[cluster\]'"):
        sweep.run_all(wanted, Store(tmp_path), address="auto")


def test_ctrl_c_leaves_the_cluster_and_keeps_what_is_finished(address, tmp_path, monkeypatch):
    import ray

    def interrupt(*_args):
        raise KeyboardInterrupt

    wanted, store = configs(**MLP, method="Finetune", seed=list(range(6))), Store(tmp_path)
    monkeypatch.setattr(workers, "describe", interrupt)  # called when the first run has ended
    with pytest.raises(KeyboardInterrupt):
        sweep.run_all(wanted, store, address=address)
    assert not ray.is_initialized()
    assert 1 <= len(stored(tmp_path)) < 6
    for config in wanted:  # no lock is left behind
        with store.lock(config, wait=False):
            pass


def test_a_machine_without_the_data_is_named_before_any_work(
    address, connection, tmp_path, monkeypatch
):
    monkeypatch.setattr(cluster, "fingerprint", lambda _name: "ours")
    wanted = [RunConfig(**MLP, method="CRS")]
    with pytest.raises(
        cluster.ClusterError, match=r"imbal-digits-tiny: other labels .* expected ours\)"
    ):
        sweep.run_all(wanted, Store(tmp_path), address=address)
    look = connection.remote(cluster.data_set_faults).options(num_cpus=0)
    (said,) = connection.get(look.remote({"imbal-mnistseq": ""}))
    assert "PRSLIB_DATA" in said
    with pytest.raises(cluster.ClusterError, match="a machine with a CPU and a GPU"):
        sweep.run_all(wanted, Store(tmp_path), device="cuda", address=address)
    assert not stored(tmp_path)


def at_work(machine):
    """Say whether a run is under way on a machine: Ray names a process after its task."""
    titles = [" ".join(child.cmdline()) for child in psutil.Process(machine).children()]
    return any("ray::prslib" in title and "data sets" not in title for title in titles)


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
    wanted = configs(dataset="digits70tiny", method="own", seed=[0, 1, 2], batch_size=10)
    store, local, killed = Store(tmp_path / "there"), Store(tmp_path / "here"), []
    killer = threading.Thread(target=kill_at_work, args=(machines["second"], killed), daemon=True)
    killer.start()
    with pytest.raises(RuntimeError, match=r"1 of 4 runs failed, the others are stored(.|\n)*PRS"):
        sweep.run_all([broken, *wanted], store)
    assert killed
    killer.join()
    (failure,) = store.folder.glob("*.failed.json")
    assert "in train" in json.loads(failure.read_text())["traceback"]  # where, on the machine
    for config in wanted:
        workers.train_and_store([config], local)
    assert stored(store.folder) == stored(local.folder)
    assert len(stored(store.folder)) == 3


class Inline:
    """Ray's calls, each answered in this process when it is fetched."""

    def remote(self, work):
        task = SimpleNamespace(remote=partial(partial, work))
        return SimpleNamespace(options=lambda **_options: task)

    def get(self, answer):
        return answer()

    def wait(self, answers, timeout):
        return answers[:1], answers[1:]


def test_a_run_that_cannot_be_locked_or_stored_ends_alone(tmp_path, monkeypatch):
    wanted = configs(**MLP, method="Finetune", seed=[0, 1, 2])
    store, trained = Store(tmp_path), []

    def train(configs, device, train=cluster.train_group):
        trained.append(configs[0].seed)
        return train(configs, device)

    def load(store, config, load=Store.load):
        if config == wanted[0]:
            raise NewerStoreError("a newer version wrote it")
        return load(store, config)

    def save(store, run, save=Store.save):
        if run.config == wanted[1]:
            raise OSError("Disk quota exceeded")
        return save(store, run)

    monkeypatch.setattr(cluster, "train_group", train)
    monkeypatch.setattr(Store, "load", load)
    monkeypatch.setattr(Store, "save", save)
    groups = [(config,) for config in wanted]
    outcomes = list(cluster._train(Inline(), groups, store, "cpu", wait=False))
    errors = {outcome.config.seed: outcome.error for outcome in outcomes}
    said = {0: "NewerStoreError: a newer version wrote it", 1: "OSError: Disk quota exceeded"}
    assert errors == said | {2: None}
    assert trained == [1, 2]
    assert len(stored(tmp_path)) == 1


def test_a_gpu_is_shared_by_small_networks_only():
    small, large = RunConfig("imbal-digits"), RunConfig("imbal-digits", model="resnet18")
    assert cluster.gpu_share([small, large], "cpu") == 0
    assert cluster.gpu_share([small], "cuda") < cluster.gpu_share([small, large], "cuda") == 1
    assert workers.process_count(1.0) == 1
    assert workers.process_count(0.5) == min(2, workers.cpu_count())


def test_a_machine_that_makes_other_runs_refuses():
    with pytest.raises(ValueError, match="other data or another version"):
        cluster.train_there([RunConfig(**MLP)], ["0" * 12], "cpu")
