"""Processes that are killed, and what they leave: the same bytes in the end."""

import multiprocessing
import os
import signal
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from interrupted import Steps, train

from prslib.attempt import attempt
from prslib.checkpoint import Checkpoint, Progress, pack, unpack
from prslib.config import METHODS, RunConfig
from prslib.datasets import load_dataset
from prslib.experiment import make_learner, make_replay, run, stream_of
from prslib.paths import project_root
from prslib.store import CHECKPOINT, Store

MLP = {"dataset": "imbal-digits-tiny"}
INTERVAL = 5  # steps


@pytest.fixture(scope="module")
def start(own_folders):
    """Start processes that have nothing to import: they are forked from one that has."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["forked"])
    path = [str(Path(__file__).parent), str(project_root()), os.environ.get("PYTHONPATH", "")]

    def start(work, *arguments):
        process = context.Process(target=work, args=arguments)
        process.start()
        return process

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(path))
        yield start


@pytest.mark.parametrize("method", ["CRS", "PRS", "EWC", "GSS", "ExStream"])
def test_killed_at_random_moments_it_ends_with_the_same_bytes(tmp_path, start, method):
    config, steps = RunConfig(**MLP, method=method), tmp_path / "steps"
    process = start(train, config, Store(tmp_path / "whole"), steps, INTERVAL)
    process.join()
    assert process.exitcode == 0
    needed = steps.stat().st_size
    steps.unlink()
    store, rng, killed = Store(tmp_path / "killed"), np.random.default_rng(0), 0
    for _ in range(4):
        before = steps.stat().st_size if steps.exists() else 0
        process = start(train, config, store, steps, INTERVAL)
        while process.is_alive() and (not steps.exists() or steps.stat().st_size == before):
            time.sleep(0.001)
        process.join(rng.uniform(0, 0.2))
        process.kill()
        process.join()
        killed += process.exitcode == -signal.SIGKILL
    process = start(train, config, store, steps, INTERVAL)
    process.join()
    assert process.exitcode == 0
    assert killed > 1
    assert store.path(config).read_bytes() == Store(tmp_path / "whole").path(config).read_bytes()
    assert [file.name for file in store.folder.iterdir()] == [store.path(config).name]
    assert needed <= steps.stat().st_size <= needed + killed * (INTERVAL + 1)
