"""Checkpoints: runs that are stopped end with the same bytes."""

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from interrupted import stopped_at

from prslib.checks import checksum
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


def forged(content, **changes):
    """Change what a checkpoint holds, with the right checksums."""
    saved = torch.load(io.BytesIO(content), weights_only=True)
    saved["progress"] |= changes
    saved["checksum"] = checksum(saved["progress"])
    torch.save(saved, file := io.BytesIO())
    return file.getvalue()


@pytest.mark.parametrize("step", [10**9, -5, None, 2.5, 1])
def test_a_forged_checkpoint_is_refused_by_its_content(tmp_path, half_way, step):
    config, path = half_way
    # of step 1 there are no scores yet, nor were all classes seen
    changes = {"step": step} if step != 1 else {"step": 1, "scores": [{}]}
    (tmp_path / "file").write_bytes(forged(path.read_bytes(), **changes))
    with pytest.warns(UserWarning, match="cannot resume .*; the run starts again"):
        again = run(config, checkpoint=tmp_path / "file")
    assert again.scores.equals(run(config).scores)


def test_forged_scores_and_rows_are_refused(half_way, tmp_path):
    config, path = half_way
    file = tmp_path / "file"
    saved = torch.load(path, weights_only=True)["progress"]
    (first,) = saved["scores"]
    ((name, frame),) = first.items()
    columns = frame[checkpoint.FRAME]
    high = columns | {"value": [7.0] * len(columns["value"])}
    fewer = {key: column[1:] for key, column in columns.items()}
    for changes, why in (
        (
            {"scores": [{name: {checkpoint.FRAME: high}}]},
            "scores in \\[0, 1\\], got 7.0",
        ),
        ({"scores": [{name: {checkpoint.FRAME: fewer}}]}, "scores in .* cells"),
        ({"variances": {3: {"value": -1.0}}}, "gradient variance must be at least 0"),
    ):
        file.write_bytes(forged(path.read_bytes(), **changes))
        with pytest.warns(UserWarning, match=why):
            stopped_at(1, config, Store(tmp_path), file=file)


@pytest.mark.parametrize(
    "part", ["weights", "optimiser", "scores", "generator", "seconds"]
)
def test_a_part_of_another_checkpoint_is_refused(half_way, tmp_path, part):
    """Each is of the right form."""
    config, path = half_way
    saved = torch.load(path, weights_only=True)
    progress = saved["progress"]
    model, optimizer, *_ = progress["states"]
    (scores,) = progress["scores"][0].values()
    if part == "weights":
        next(iter(model.values())).view(-1)[0] += 1
    elif part == "optimiser":
        optimizer["state"][0]["momentum_buffer"].view(-1)[0] += 1
    elif part == "scores":
        scores[checkpoint.FRAME]["value"][0] = 0.5
    elif part == "generator":
        progress["generator"]["state"]["state"] += 2
    else:
        progress["seconds"] += 1
    torch.save(saved, tmp_path / "file")
    with pytest.warns(UserWarning, match="its content is not what was saved"):
        stopped_at(1, config, Store(tmp_path), file=tmp_path / "file")


def first_entry(optimizer, **changes):
    """Change the state that an optimiser keeps of its first weight."""
    state = optimizer["state"]
    return optimizer | {"state": state | {0: state[0] | changes}}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda old: old | {"param_groups": []}, "settings of the optimiser"),
        (lambda old: first_entry(old, momentum_buffer="text"), "a tensor of shape"),
        (
            lambda old: first_entry(old, momentum_buffer=torch.zeros(0)),
            "a tensor of shape",
        ),
        (lambda old: old | {"state": old["state"] | {0: {}}}, "the same entries"),
        (lambda old: old | {"state": old["state"] | {99: {}}}, "the same entries"),
    ],
)
def test_a_forged_optimiser_is_refused(half_way, tmp_path, change, why):
    config, path = half_way
    states = torch.load(path, weights_only=True)["progress"]["states"]
    states[1] = change(states[1])
    (tmp_path / "file").write_bytes(forged(path.read_bytes(), states=states))
    with pytest.warns(UserWarning, match=why):
        stopped_at(1, config, Store(tmp_path), file=tmp_path / "file")


class Code:
    """Unpickled it leaves a file."""

    def __init__(self, file):
        self.file = file

    def __reduce__(self):
        return Path.touch, (self.file,)


def test_a_checkpoint_runs_no_code_and_an_old_one_starts_over(half_way, tmp_path):
    config, path = half_way
    file = tmp_path / "file"
    content = forged(path.read_bytes(), scores=Code(tmp_path / "ran"))
    file.write_bytes(content)
    with pytest.warns(UserWarning, match="more than tensors, numbers and text") as said:
        run(config, checkpoint=file)
    assert len(said) == 1
    assert not (tmp_path / "ran").exists()


def test_a_checkpoint_of_a_gpu_is_not_continued_on_a_cpu(half_way, tmp_path):
    config, path = half_way
    saved = torch.load(path, weights_only=True)
    saved["conditions"] |= {"device": "cuda", "card": "A100"}
    torch.save(saved, tmp_path / "file")
    with pytest.warns(UserWarning, match="A100.*; the run starts again"):
        run(config, checkpoint=tmp_path / "file")


def test_arrays_and_numbers_come_back_as_they_were():
    state = {
        "array": np.arange(6, dtype=np.int32).reshape(2, 3),
        "fortran": np.asfortranarray(np.eye(2, dtype=np.float32)),
        "empty": np.zeros((0, 3), bool),
        "number": np.float64(0.1),
        "tensor": torch.ones(2),
        "nested": {"array": np.array(3, np.uint8), "text": "name", "long": 1 << 127},
    }
    torch.save(checkpoint.as_tensors(state), file := io.BytesIO())
    file.seek(0)
    again = checkpoint.as_arrays(torch.load(file, weights_only=True))
    assert isinstance(again["number"], np.float64)
    assert isinstance(again["tensor"], torch.Tensor)
    for name in ("array", "fortran", "empty", "number"):
        np.testing.assert_array_equal(again[name], state[name], strict=True)
    assert again["nested"]["array"].shape == ()
    assert again["nested"]["long"] == 1 << 127


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
