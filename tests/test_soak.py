"""The soak fails where it must: a seeded fault of each kind is caught."""

import contextlib
import importlib.util
import os
import signal
import time
from pathlib import Path

import pytest

from prslib.experiments import store, sweep

spec = importlib.util.spec_from_file_location(
    "soak", Path(__file__).with_name("soak.py")
)
soak = importlib.util.module_from_spec(spec)
spec.loader.exec_module(soak)

RUNS, RIVALS = "PRS 1", "PRS 1 rival"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    assert soak.attempt(RIVALS, folder)
    soak.trained_once(folder)
    return soak.contents(folder)


def test_work_without_a_fault_passes(tmp_path, whole):
    assert not soak.attempt(RUNS, tmp_path, 0.3, "kill")
    before = soak.finished(tmp_path)
    assert soak.attempt(RUNS, tmp_path)
    soak.made_again(tmp_path, before)
    soak.check(RUNS, tmp_path, whole)


@pytest.mark.filterwarnings("ignore:the stored run")
def test_writing_in_place_is_caught(tmp_path, monkeypatch):
    @contextlib.contextmanager
    def in_place(path):
        path.write_bytes(b"half of it")
        os.kill(os.getpid(), signal.SIGKILL)
        yield

    with monkeypatch.context() as patch:
        patch.setattr(store, "replacing", in_place)
        assert not soak.attempt(RUNS, tmp_path, 60, "kill")
    before = soak.finished(tmp_path)
    assert soak.attempt(RUNS, tmp_path)
    with pytest.raises(soak.Fault, match="were whole and made again"):
        soak.made_again(tmp_path, before)


def test_runs_without_a_lock_are_caught(tmp_path, monkeypatch):
    monkeypatch.setattr(store.Store, "lock", lambda *_: contextlib.nullcontext())
    # two at one run train it twice, or take away each other's checkpoint
    with pytest.raises(soak.Fault, match=r"trained more than once|exit 1"):
        soak.attempt(RIVALS, tmp_path)
        soak.trained_once(tmp_path)


def test_files_that_are_left_after_a_save_are_caught(tmp_path, whole, monkeypatch):
    monkeypatch.setattr(sweep.Sweep, "finish", lambda *_: None)
    monkeypatch.setattr(store.Store, "settle", lambda _: None)
    assert soak.attempt(RUNS, tmp_path)
    with pytest.raises(soak.Fault, match=r"\.lock"):
        soak.check(RUNS, tmp_path, whole)


def test_an_image_left_out_of_a_prepared_set_is_caught(tmp_path):
    (tmp_path / "images.npy").write_bytes(bytes(20))
    with pytest.raises(soak.Fault, match=r"images\.npy"):
        soak.check("prepare", tmp_path, {"images.npy": bytes(30)})


def test_an_orphan_ends_at_the_limit(tmp_path):
    def orphan(*_):
        os.setsid()
        if os.fork() == 0:
            time.sleep(60)

    start = time.monotonic()
    with pytest.raises(soak.Fault, match="still runs after 1 s"):
        soak.attempt(RUNS, tmp_path, limit=1, do=orphan)
    assert time.monotonic() - start < 30
