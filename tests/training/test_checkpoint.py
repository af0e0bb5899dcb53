"""Checkpoints: runs that are stopped end with the same bytes."""

from dataclasses import replace

import pytest
from interrupted import stopped_at

from prslib.experiments.store import CHECKPOINT, Store
from prslib.training import checkpoint
from prslib.training.config import RunConfig
from prslib.training.run import run

SMALL = {"dataset": "imbal-digits-tiny", "batch_size": 40}


@pytest.mark.parametrize(
    ("method", "points"),
    [
        *((name, 0) for name in ("Multitask", "EWC", "CRS", "GSS", "CBRS", "OCDM")),
        ("PRS", 3),
        ("ExStream", 3),
    ],
)
def test_stopped_at_every_kind_of_step_it_goes_on(tmp_path, method, points):
    """After the first step, amid a task, at its last step, at the next one's."""
    config = RunConfig(**SMALL, method=method, variance_points=points)
    store, steps = Store(tmp_path), []
    Store(tmp_path / "whole").save(run(config))
    while not store.path(config).exists():
        steps += stopped_at(2, config, store)
    whole = Store(tmp_path / "whole").path(config).read_bytes()
    assert store.path(config).read_bytes() == whole
    assert len(steps) == len(set(steps))  # saved after every step, none taken twice


@pytest.fixture(scope="module")
def half_way(tmp_path_factory):
    """A configuration, and its checkpoint of step 20."""
    config = RunConfig(**SMALL, method="PRS")
    store = Store(tmp_path_factory.mktemp("store"))
    stopped_at(20, config, store)
    return config, store.path(config, CHECKPOINT)


def flipped(content):
    """Change a byte of the weights."""
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


@pytest.mark.parametrize(
    ("fields", "change", "why"),
    [
        ({}, lambda content: content[:-100], "BadZipFile"),
        ({}, flipped, "it is damaged"),
        ({"method": "CRS"}, bytes, "other runs wrote it"),
        ({"variance_points": 2}, bytes, "other runs wrote it"),  # it looks at more
    ],
)
def test_a_file_that_does_not_fit_costs_a_warning(
    tmp_path, half_way, fields, change, why
):
    config, path = half_way
    (tmp_path / "file").write_bytes(change(path.read_bytes()))
    config = replace(config, **fields)
    with pytest.warns(UserWarning, match=f"{why}.*; the run starts again") as caught:
        again = run(config, checkpoint=tmp_path / "file")
    assert len(caught) == 1
    assert again.scores.equals(run(config).scores)


def test_a_checkpoint_of_edited_code_does_not_count(tmp_path, half_way, monkeypatch):
    config, path = half_way
    code = tmp_path / "training" / "replay.py"
    code.parent.mkdir()
    code.write_text("edited")
    monkeypatch.setattr(checkpoint, "PACKAGE", tmp_path)
    with pytest.warns(UserWarning, match="other code or other runs wrote it"):
        run(config, checkpoint=path)


def test_a_run_goes_on_where_no_checkpoint_can_be_written(tmp_path, monkeypatch):
    config, store = RunConfig(**SMALL, method="Finetune"), Store(tmp_path)

    def full(_):
        raise OSError("No space left on device")

    monkeypatch.setattr("prslib.training.checkpoint.replacing", full)
    message = "cannot be written.*; the run goes on"
    with pytest.warns(UserWarning, match=message) as caught:
        steps = stopped_at(None, config, store, save_every=10)
    assert len(caught) == len(steps) // 10 > 1  # when their time had come
    assert store.load(config).scores.equals(run(config).scores)
