"""``prslib run``: one run from the shell; what is wrong is said in a sentence."""

import ast
import sys

import pytest

import prslib
from prslib import RunConfig
from prslib.cli import main
from prslib.paths import PACKAGE
from prslib.runs import load, path_of

FIELDS = ["run", "digits70tiny", "CRS", "--seed", "1", "--option", "batch_size=80"]


def test_one_run_is_trained_once_and_its_scores_printed(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PRSLIB_CACHE", str(tmp_path))
    config = RunConfig("digits70tiny", "CRS", seed=1, batch_size=80)
    assert main(FIELDS) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert lines[0].split() == ["C-F1", "O-F1", "mAP"]
    assert str(path_of(config)) in lines[-1] and "training 1 run" in err
    scores = load(config, path_of(config)).scores
    last = scores[(scores["trained_tasks"] == 4) & (scores["task"] == "seen")]
    overall = last[(last["group"] == "overall") & (last["metric"] == "mAP")]
    for name, value in zip(overall["test_set"], overall["value"], strict=True):
        assert any(name in line for line in lines)
        assert f"{100 * value:.1f}" in out
    before = path_of(config).stat().st_mtime_ns
    assert main(FIELDS) == 0
    assert "training" not in capsys.readouterr().err
    assert path_of(config).stat().st_mtime_ns == before


TINY = ["run", "digits70tiny"]
WRONG = [
    ([*TINY, "CRS", "--rho", "0.5"], "expected fields that CRS reads, got rho; leave"),
    (
        [*TINY, "Finetune", "--option", "memory_size=9"],
        "Finetune reads, got memory_size",
    ),
    ([*TINY, "CRS", "--option", "subsets=9"], "unknown option 'subsets'"),
    (
        [*TINY, "CRS", "--option", "memory_size"],
        "--option NAME=VALUE, got 'memory_size'",
    ),
    ([*TINY, "CRS", "--option", "batch_size=ten"], "batch_size must be a whole number"),
    (
        [*TINY, "CRS", "--option", "memory_size=10**12"],
        "memory_size must be a whole num",
    ),
    ([*TINY, "CRS", "--option", "loss=focus"], "unknown loss 'focus'; known losses: "),
    ([*TINY, "CRS", "--option", "batch_size=900"], "up to the samples of task"),
    ([*TINY, "CRS", "--device", "gpu"], "unknown device 'gpu'; known devices: "),
    ([*TINY, "crs"], "unknown method 'crs'; known methods: CBRS"),
    (["run", "coco", "CRS"], "unknown dataset 'coco'; known datasets: "),
    (["train", "--profile", "nosuch"], "unknown profile 'nosuch'; known profiles: "),
    (["train", "nosuch"], "unknown notebook 'nosuch'; known notebooks: "),
    (["conformance", "os:system"], "made as Class(size, num_classes, seed), got"),
    (["conformance", "os:path"], "is not a callable object"),
    (["conformance", "nosuch:Class"], "No module named 'nosuch'"),
]


@pytest.mark.parametrize(("arguments", "said"), WRONG)
def test_what_is_wrong_is_said_in_a_sentence(arguments, said, capsys, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert main(arguments) == 1
    text = capsys.readouterr().err
    assert said in text and "Traceback" not in text and text.count("\n") == 1


def test_the_stub_shows_the_public_names():
    tree = ast.parse((PACKAGE / "__init__.pyi").read_text("utf-8"))
    shown = {
        row.asname: node.module
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for row in node.names
    }
    assert shown == prslib._HOME
    for name in prslib.__all__:
        assert getattr(prslib, name) is not None
