"""The soak fails where it must: a seeded fault of each kind is caught.

The soak forks. It does so in a process that has nothing but this to do: a fork of a
process with other threads can wait for ever for a lock that one of them held.
"""

import contextlib
import importlib.util
import os
import signal
import time
from pathlib import Path
from unittest.mock import patch

import pytest
from joblib.externals import loky

from prslib.experiments import store, sweep

RUNS, RIVALS = "PRS 1", "PRS 1 rival"


def load_soak():
    spec = importlib.util.spec_from_file_location(
        "soak", Path(__file__).with_name("soak.py")
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


soak = load_soak()


@pytest.fixture(scope="module")
def apart():
    """Call functions in a process of their own; return what they return or raise."""
    with loky.ProcessPoolExecutor(1) as pool:
        pool.submit(load_all).result()
        yield lambda function, *arguments: pool.submit(function, *arguments).result()


def load_all():
    """Import what each fork would import again."""
    import torch

    import prslib.training.run  # noqa: F401

    torch.set_num_threads(1)  # a fork would lack the others


def undisturbed(folder):
    assert soak.attempt(RIVALS, folder)
    soak.trained_once(folder)
    return soak.contents(folder)


@pytest.fixture(scope="module")
def whole(apart, tmp_path_factory):
    return apart(undisturbed, tmp_path_factory.mktemp("whole"))


def work_without_a_fault(folder, whole):
    assert not soak.attempt(RUNS, folder, 0.3, "kill")
    before = soak.finished(folder)
    assert soak.attempt(RUNS, folder)
    soak.made_again(folder, before)
    soak.check(RUNS, folder, whole)


def test_work_without_a_fault_passes(tmp_path, apart, whole):
    apart(work_without_a_fault, tmp_path, whole)


def writing_in_place(folder):
    @contextlib.contextmanager
    def in_place(path):
        path.write_bytes(b"half of it")
        os.kill(os.getpid(), signal.SIGKILL)
        yield

    with patch.object(store, "replacing", in_place):
        assert not soak.attempt(RUNS, folder, 60, "kill")
    before = soak.finished(folder)
    assert soak.attempt(RUNS, folder)
    with pytest.raises(soak.Fault, match="were whole and made again"):
        soak.made_again(folder, before)


def test_writing_in_place_is_caught(tmp_path, apart):
    apart(writing_in_place, tmp_path)


def runs_without_a_lock(folder):
    unlocked = patch.object(store.Store, "lock", lambda *_: contextlib.nullcontext())
    # two at one run train it twice, or take away each other's checkpoint
    with unlocked, pytest.raises(soak.Fault, match=r"trained more than once|exit 1"):
        soak.attempt(RIVALS, folder)
        soak.trained_once(folder)


def test_runs_without_a_lock_are_caught(tmp_path, apart):
    apart(runs_without_a_lock, tmp_path)


def files_left_after_a_save(folder, whole):
    never = patch.object(sweep.Sweep, "finish", lambda *_: None)
    with never, patch.object(store.Store, "settle", lambda _: None):
        assert soak.attempt(RUNS, folder)
    with pytest.raises(soak.Fault, match=r"\.lock"):
        soak.check(RUNS, folder, whole)


def test_files_that_are_left_after_a_save_are_caught(tmp_path, apart, whole):
    apart(files_left_after_a_save, tmp_path, whole)


def test_an_image_left_out_of_a_prepared_set_is_caught(tmp_path):
    (tmp_path / "images.npy").write_bytes(bytes(20))
    with pytest.raises(soak.Fault, match=r"images\.npy"):
        soak.check("prepare", tmp_path, {"images.npy": bytes(30)})


def orphan_at_the_limit(folder):
    def orphan(*_):
        os.setsid()
        if os.fork() == 0:
            time.sleep(60)

    start = time.monotonic()
    with pytest.raises(soak.Fault, match="still runs after 1 s"):
        soak.attempt(RUNS, folder, limit=1, do=orphan)
    assert time.monotonic() - start < 30


def test_an_orphan_ends_at_the_limit(tmp_path, apart):
    apart(orphan_at_the_limit, tmp_path)
