"""Checkpoints: runs that are killed or stopped end with the same bytes."""

import errno
import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from interrupted import attempt, stopped_at, sweep, train

from prslib.experiments.store import CHECKPOINT, Store
from prslib.paths import project_root
from prslib.training.checkpoint import Checkpoint, Progress, code_version
from prslib.training.config import RunConfig, configs
from prslib.training.methods import METHODS
from prslib.training.run import run

MLP = {"dataset": "imbal-digits-tiny"}
INTERVAL = 5  # steps


@pytest.fixture(scope="module")
def start(own_folders):
    """Start processes that have nothing to import: they are forked from one that has."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["forked"])
    helpers = Path(__file__).parents[1] / "helpers"
    path = [str(helpers), str(project_root()), os.environ.get("PYTHONPATH", "")]

    def start(work, *arguments):
        process = context.Process(target=work, args=arguments)
        process.start()
        return process

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(path))
        yield start


@pytest.mark.parametrize("method", ["PRS", "GSS"])
def test_killed_at_random_moments_it_ends_with_the_same_bytes(tmp_path, start, method):
    config, steps = RunConfig(**MLP, method=method, batch_size=20), tmp_path / "steps"
    whole, store = (Store(tmp_path / name) for name in ("whole", "killed"))
    rng = np.random.default_rng(0)

    def exit_code(store, *killed_after):
        process = start(train, config, store, steps, INTERVAL, *killed_after)
        process.join()
        return process.exitcode

    assert exit_code(whole) == 0
    needed = steps.stat().st_size
    steps.unlink()
    killed = sum(exit_code(store, rng.uniform(0, 0.03)) == -signal.SIGVTALRM for _ in range(2))
    assert killed and exit_code(store) == 0
    assert store.path(config).read_bytes() == whole.path(config).read_bytes()
    assert [file.name for file in store.folder.iterdir()] == [store.path(config).name]
    assert needed <= steps.stat().st_size <= needed + killed * (INTERVAL + 1)


def wholly(config, folder):
    """Train without an interruption and return the stored bytes."""
    assert attempt(config, Store(folder)).error is None
    return Store(folder).path(config).read_bytes()


def test_two_processes_that_ask_for_the_same_runs_train_them_once(tmp_path, start):
    wanted = configs(**MLP, method=["CRS", "PRS"], seed=[0, 1, 2], batch_size=40)
    store, noted = Store(tmp_path / "runs"), tmp_path / "noted"
    both = [start(sweep, wanted, store, noted, tmp_path / str(i)) for i in range(2)]
    for process in both:
        process.join()
    assert [process.exitcode for process in both] == [0, 0]
    trained, by = zip(*[line.split() for line in noted.read_text().splitlines()], strict=True)
    assert sorted(trained) == sorted(config.hash for config in wanted)
    assert len(set(by)) == 2  # they share the work
    assert len(list(store.folder.iterdir())) == 6  # the results and nothing else


@pytest.mark.parametrize(
    ("method", "points"), [*((name, 0) for name in METHODS), *(("PRS", 3), ("ExStream", 3))]
)
def test_stopped_at_every_kind_of_step_it_goes_on(tmp_path, method, points):
    """Stopped with the first batch, in mid-part, at the last step of a part and at the first."""
    config = RunConfig(**MLP, method=method, batch_size=40, variance_points=points)
    store, steps = Store(tmp_path), []
    whole = wholly(config, tmp_path / "whole")
    while not store.path(config).exists():
        steps += stopped_at(2, [config], store)
    assert store.path(config).read_bytes() == whole
    assert len(steps) == len(set(steps))  # saved after every step, none was taken twice


@pytest.fixture(scope="module")
def half_way(tmp_path_factory):
    """The checkpoint of a run that was stopped, and that run."""
    config = RunConfig(**MLP, method="GSS", batch_size=40)
    store = Store(tmp_path_factory.mktemp("s"))
    stopped_at(10, [config], store, INTERVAL)
    return store.path(config, CHECKPOINT), config


def resumed(path, config):
    Checkpoint(path, config.training).resume(Progress(_Nothing()))


def test_a_damaged_checkpoint_is_noticed_and_the_run_starts_over(tmp_path, half_way):
    config, store = half_way[1], Store(tmp_path / "store")
    whole = half_way[0].read_bytes()
    for kept in (0, 0.5, 0.99):
        (tmp_path / "file").write_bytes(whole[: int(kept * len(whole))])
        with pytest.warns(UserWarning, match="it cannot be read: .*; the run starts over"):
            resumed(tmp_path / "file", config)
    content, path = bytearray(whole), store.path(config, CHECKPOINT)
    content[len(content) // 2] ^= 0xFF
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.warns(UserWarning, match="cannot be read: .* is damaged; the run starts over"):
        assert attempt(config, store).error is None
    assert store.path(config).read_bytes() == wholly(config, tmp_path / "whole")


def test_a_checkpoint_that_no_run_has_written_costs_a_warning(tmp_path, half_way):
    path, config = half_way
    content, store = torch.load(path, weights_only=True), Store(tmp_path)
    wrong = {"learner": {}, "scores": [1], "memory": ("fields", {}), "rng": {"state": "none"}}
    for spoil in ({name: value} for name, value in wrong.items()):
        torch.save(content | {"progress": content["progress"] | spoil}, tmp_path / "file")
        with pytest.warns(UserWarning, match="has such a state: .*; the run starts over"):
            found = run(config, checkpoint=tmp_path / "file")
    store.save(found)
    assert store.path(config).read_bytes() == wholly(config, tmp_path / "whole")


def test_a_checkpoint_names_the_code_that_began(tmp_path, monkeypatch):
    version = "prslib.training.checkpoint.code_version"
    monkeypatch.setattr(version, lambda: "old")
    saved = Checkpoint(tmp_path / "file", "run", 1e-9)
    monkeypatch.setattr(version, lambda: "new")  # edited meanwhile
    saved.after_step(Progress(_Nothing()))
    with pytest.warns(UserWarning, match="other code wrote it; the run starts over"):
        Checkpoint(tmp_path / "file", "run").resume(Progress(_Nothing()))


def test_checkpoints_outlive_edits_that_cannot_change_training(tmp_path):
    source = "def place(labels):\n    return labels\n"
    for name in ("samplers/crs.py", "report/tables.py", "memory.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(source)

    def edited(name, text):
        (tmp_path / name).write_text(text)
        return code_version.__wrapped__(tmp_path)

    begun = edited("memory.py", source)
    assert edited("report/tables.py", "other = 1") == begun
    sentence = source.replace(":\n", ':\n    """Place labels."""  # here\n\n')
    assert edited("samplers/crs.py", '"""CRS."""\n' + sentence) == begun
    assert edited("samplers/crs.py", source.replace("labels\n", "labels + 1\n")) != begun
    assert edited("samplers/crs.py", source) == begun
    assert edited("memory.py", source + "SIZE = 1\n") != begun


def test_every_source_that_training_loads_is_in_its_version():
    code = (
        "import sys; from prslib.training import run, checkpoint; from pathlib import Path;"
        "files = {file for name in checkpoint.TRAINING for file in checkpoint.PACKAGE.glob(name)};"
        "loaded = {n: Path(m.__file__) for n, m in sys.modules.items() if n[:6] == 'prslib'};"
        "print([name for name, file in loaded.items() if file not in files])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_checkpoint_of_another_run_is_refused(half_way):
    path, config = half_way
    other = RunConfig(**MLP, method="CRS")
    said = f"belongs to training {config.training}, expected {other.training}"
    with pytest.raises(ValueError, match=said):
        run(other, checkpoint=path)
    with pytest.raises(ValueError, match="save_every must be above 0 seconds"):
        run(config, checkpoint=path, save_every=0)
    assert path.exists()


def test_a_disk_that_is_full_costs_the_checkpoint_and_not_the_run(tmp_path, monkeypatch):
    config, store = RunConfig(**MLP, method="Finetune", batch_size=40), Store(tmp_path)

    def full(_handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("prslib.paths.os.fsync", full)
        with pytest.warns(UserWarning, match="No space.*the run goes on") as caught:
            outcome = attempt(config, store, save_every=0.01)
    (said,) = {str(warning.message) for warning in caught}  # no name at random in it
    assert f"No space left on device: '{store.path(config, CHECKPOINT)}'" in said
    assert "make room, or set PRSLIB_CACHE" in outcome.error
    assert not store.path(config).exists()
    assert attempt(config, store).error is None
    assert [file.name for file in tmp_path.iterdir()] == [store.path(config).name]


def test_without_a_path_nothing_is_written_and_the_clock_is_kept(tmp_path, monkeypatch):
    now, progress = [0.0], Progress(_Nothing())
    monkeypatch.setattr("prslib.training.checkpoint.time.monotonic", lambda: now[0])
    Checkpoint(None, "run", 1).after_step(progress)
    saved = Checkpoint(tmp_path / "file", "run", 10)
    written = []
    for now[0] in range(1, 40):
        saved.after_step(progress)
        written += [now[0]] if saved.path.exists() else []
        saved.path.unlink(missing_ok=True)
    assert written == [10, 20, 30]


class _Nothing:
    def state_dict(self):
        return {}
