"""Checkpoints: runs that are killed or stopped end with the same bytes."""

import errno
import hashlib
import io
import multiprocessing
import os
import signal
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
import torch
from interrupted import stopped_at, train

from prslib.experiments.store import CHECKPOINT, Store
from prslib.paths import project_root
from prslib.training.checkpoint import DIGEST_SIZE, code_version
from prslib.training.config import RunConfig
from prslib.training.methods import METHODS
from prslib.training.run import run, run_at_once

SMALL = {"dataset": "imbal-digits-tiny", "batch_size": 40}


@pytest.fixture(scope="module")
def start(own_folders):
    """Start processes that import nothing: they are forked from one that has."""
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
    config = RunConfig("imbal-digits-tiny", method, batch_size=20)
    whole, store = Store(tmp_path / "whole"), Store(tmp_path / "killed")
    steps, rng = tmp_path / "steps", np.random.default_rng(0)

    def exit_code(store, *killed_after):
        process = start(train, config, store, steps, 5, *killed_after)
        process.join()
        return process.exitcode

    assert exit_code(whole) == 0
    needed = steps.stat().st_size
    steps.unlink()
    codes = [exit_code(store, rng.uniform(0, 0.03)) for _ in range(2)]
    killed = codes.count(-signal.SIGVTALRM)
    assert killed and exit_code(store) == 0
    assert store.path(config).read_bytes() == whole.path(config).read_bytes()
    assert needed <= steps.stat().st_size <= needed + killed * 6


@pytest.mark.parametrize(
    ("method", "points"),
    [*((name, 0) for name in METHODS), ("PRS", 3), ("ExStream", 3)],
)
def test_stopped_at_every_kind_of_step_it_goes_on(tmp_path, method, points):
    """After the first step, amid a task, at its last step, at the next one's."""
    config = RunConfig(**SMALL, method=method, variance_points=points)
    store, steps = Store(tmp_path), []
    Store(tmp_path / "whole").save(run(config))
    while not store.path(config).exists():
        steps += stopped_at(2, [config], store)
    whole = Store(tmp_path / "whole").path(config).read_bytes()
    assert store.path(config).read_bytes() == whole
    assert len(steps) == len(set(steps))  # saved after every step, none taken twice


@pytest.fixture(scope="module")
def half_way(tmp_path_factory):
    """A configuration, its checkpoint of step 20 and its scores at the end."""
    config = RunConfig(**SMALL, method="PRS")
    store = Store(tmp_path_factory.mktemp("store"))
    stopped_at(20, [config], store)
    return config, store.path(config, CHECKPOINT), run(config).scores


def starts_over(config, path, scores, why):
    """Run from a file that cannot be resumed, as one line must say; compare scores."""
    with pytest.warns(UserWarning, match=why) as caught:
        again = run(config, checkpoint=path)
    assert len(caught) == 1 and "\n" not in str(caught[0].message)
    assert str(caught[0].message).endswith("; the run starts again")
    assert again.scores.equals(scores)


def test_damaged_files_cost_a_warning(tmp_path, half_way):
    config, path, scores = half_way
    content, file = path.read_bytes(), tmp_path / "file"
    flipped = bytearray(content)
    flipped[len(content) // 2] ^= 0xFF
    for damaged in (b"", content[:-100], bytes(flipped), b"text" * 100):
        file.write_bytes(damaged)
        starts_over(config, file, scores, "it is not as it was written")


def test_forged_checkpoints_never_go_on(tmp_path, half_way):
    """Their digest is right: what does not fit the run is refused even so."""
    config, path, scores = half_way
    content = torch.load(io.BytesIO(path.read_bytes()[DIGEST_SIZE:]), weights_only=True)
    progress = content["progress"]
    replay = progress["replay"]
    sampler = replay["sampler"] | {"size": 7}
    changes = [
        *({"step": step} for step in (10**9, -5, "20", None)),
        {"learner": {}},
        {"scores": [1]},
        {"replay": None},
        {"replay": replay | {"sampler": sampler}},
        {"replay": replay | {"memory": {}}},
        {"replay": replay | {"rng": {"state": "none"}}},
    ]
    forged = [content | {"progress": progress | change} for change in changes]
    forged += [
        {name: content[name] for name in content if name != key} for key in content
    ]
    for content in forged:
        saved = io.BytesIO()
        torch.save(content, saved)
        digest = hashlib.sha256(saved.getvalue()).digest()
        (tmp_path / "file").write_bytes(digest + saved.getvalue())
        starts_over(
            config, tmp_path / "file", scores, "cannot resume from the checkpoint"
        )


def test_a_checkpoint_is_of_its_runs_and_its_code(tmp_path, half_way, monkeypatch):
    config, path, scores = half_way
    other = RunConfig(**SMALL, method="CRS")
    starts_over(other, path, run(other).scores, "other runs wrote it")
    watched = RunConfig(**SMALL, method="PRS", variance_points=2)  # looks at more
    with pytest.warns(UserWarning, match="other runs wrote it"):
        run_at_once([config, watched], checkpoint=path)
    monkeypatch.setattr("prslib.training.checkpoint.code_version", lambda: "edited")
    starts_over(config, path, scores, "other code wrote it")
    with pytest.raises(ValueError, match="save_every must be above 0 seconds"):
        run(config, checkpoint=path, save_every=0)


def test_checkpoints_outlive_edits_of_what_training_does_not_import(tmp_path):
    def edited(name, text):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
        return code_version.__wrapped__(tmp_path)

    edited("report/tables.py", "one = 1")
    before = edited("samplers/crs.py", "one = 1")
    assert edited("report/tables.py", "other = 1") == before
    assert edited("samplers/crs.py", "other = 1") != before
    assert edited("samplers/crs.py", "one = 1") == before
    code = (
        "import sys; from prslib.training import run, checkpoint as c;"
        "files = {str(f) for name in c.TRAINING for f in c.PACKAGE.glob(name)};"
        "loaded = {n: m.__file__ for n, m in sys.modules.items() if n[:6] == 'prslib'};"
        "print([name for name, file in loaded.items() if file not in files])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"


def test_a_full_disk_costs_the_checkpoint_and_not_the_run(tmp_path, monkeypatch):
    def full(_handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("prslib.paths.os.fsync", full)
    config = RunConfig(**SMALL, method="Finetune")
    with pytest.warns(UserWarning, match="No space.*the run goes on") as caught:
        run(config, checkpoint=tmp_path / "file", save_every=1e-9)
    assert len({str(warning.message) for warning in caught}) == 1
    assert not list(tmp_path.iterdir())


def test_files_are_written_when_their_time_has_come(tmp_path, monkeypatch):
    config, times = RunConfig(**SMALL, method="Finetune"), []
    monkeypatch.setattr(
        "prslib.training.checkpoint.replacing",
        lambda path: times.append(path) or nullcontext(io.BytesIO()),
    )
    steps = stopped_at(None, [config], Store(tmp_path), save_every=10)
    assert len(times) == len(steps) // 10 > 1
