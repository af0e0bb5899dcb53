"""The shell's commands that train: what is wrong is said in a sentence."""

import ast

import pytest

import prslib
from prslib import RunConfig, load_dataset
from prslib.cli import _parser, main
from prslib.paths import PACKAGE
from prslib.runs import Interrupted, load, path_of

TINY = ["run", "digits70tiny"]
FIELDS = [*TINY, "CRS", "--seed", "1", "--option", "batch_size=80"]


@pytest.mark.usefixtures("trains_here")
def test_one_run_is_trained_once_and_its_scores_printed(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PRSLIB_CACHE", str(tmp_path))
    config = RunConfig("digits70tiny", "CRS", seed=1, batch_size=80)
    assert main(FIELDS) == 0
    shown = capsys.readouterr()
    assert "training 1 run" in shown.err
    lines = shown.out.splitlines()
    assert lines[0].split() == ["C-F1", "O-F1", "mAP"]
    assert lines[-1].endswith(str(path_of(config)))
    (file,) = (tmp_path / "runs").iterdir()
    scores = load(config, file).scores
    last = scores[(scores["trained_tasks"] == 4) & (scores["task"] == "seen")]
    overall = last[(last["group"] == "overall") & (last["metric"] == "mAP")]
    assert len(overall) == len(load_dataset("digits70tiny").tests)
    for test_set, value in overall.set_index("test_set")["value"].items():
        row = next(line.split() for line in lines if line.startswith(test_set))
        assert row[1] == "overall" and row[-1] == f"{100 * value:.1f}"
    assert main(FIELDS) == 0
    again = capsys.readouterr()
    assert again.out == shown.out and "training" not in again.err


def test_options_are_fields_or_those_of_the_sampler(monkeypatch):
    asked = []

    def stop(configs, device):
        asked.extend([*configs, device])
        raise Interrupted("seen")

    monkeypatch.setattr("prslib.runs.run_all", stop)
    options = ["memory_size=20", "loss=focal", "loss_options={'gamma': 1}", "subsets=3"]
    words = [word for option in options for word in ("--option", option)]
    assert main([*TINY, "GSS", "--device", "auto", *words]) == 130
    assert main([*TINY, "PRS", "--rho", "-1e-3"]) == 130
    fields = {"memory_size": 20, "loss": "focal", "loss_options": {"gamma": 1}}
    gss = RunConfig("digits70tiny", "GSS", options={"subsets": 3}, **fields)
    prs = RunConfig("digits70tiny", "PRS", rho=-1e-3)
    assert asked == [gss, "auto", prs, "cpu"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([*TINY, "CRS", "--rho", "0.5"], "unknown field of CRS 'rho'; known: "),
        ([*TINY, "PRS", "--option", "seed=3"], "unknown option of PRS 'seed'; known: "),
        ([*TINY, "GSS", "--option", "subset=3"], "subset_size, subsets, "),
        ([*TINY, "CBR"], "unknown method 'CBR'; known: "),
        (
            [*TINY, "CRS", "--option", "memory_size=10**12"],
            "memory_size must be a whole number, got '10**12'",
        ),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(arguments, said, capsys):
    assert main(arguments) == 1
    text = capsys.readouterr().err
    assert said in text and text.count("\n") == 1


def test_a_shard_is_a_part_of_a_whole(capsys):
    parse = _parser().parse_args
    shards = [parse(["train", "--shard", text]).shard for text in ("3/20", "1/1")]
    assert shards == [(3, 20), (1, 1)]
    assert parse(["train", "rho_sweep"]).shard == (1, 1)
    for wrong in ("0/3", "4/3", "-1/3", "3", "x/3", "1/2/3", "1.0/3", ""):
        with pytest.raises(SystemExit) as caught:
            main(["train", f"--shard={wrong}"])
        assert caught.value.code == 2
        assert f"a part from 1/20 to 20/20, got {wrong}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (KeyboardInterrupt(), "stopped\n"),
        (Interrupted("stopped: 1 of 2"), "stopped: 1"),
    ],
)
def test_a_command_that_is_stopped_says_so(error, said, capsys, monkeypatch):
    def stop(*_, **__):
        raise error

    monkeypatch.setattr("prslib.runs.run_all", stop)
    assert main(FIELDS) == 130
    assert capsys.readouterr().err.startswith(said)


def test_the_stub_shows_the_public_names():
    tree = ast.parse((PACKAGE / "__init__.pyi").read_text("utf-8"))
    shown = {
        row.asname: node.module
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for row in node.names
    }
    assert shown == prslib._HOME
