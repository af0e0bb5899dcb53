"""``prslib run``: one run from the shell; what is wrong is said in a sentence."""

import ast
import os
import subprocess
import sys

import pytest

import prslib
from prslib.cli import main
from prslib.experiments.store import Store
from prslib.paths import PACKAGE, project_root
from prslib.training.config import RunConfig

FIELDS = ["run", "digits70tiny", "CRS", "--seed", "1", "--option", "batch_size=80"]


def test_one_run_is_trained_once_and_its_scores_printed(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PRSLIB_CACHE", str(tmp_path))
    config = RunConfig("digits70tiny", "CRS", seed=1, batch_size=80)
    assert main(FIELDS) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["C-F1", "O-F1", "mAP"]
    assert any(line.startswith("overall") for line in lines)
    assert str(Store().path(config)) in lines[-1]
    scores = Store().load(config).scores
    last = scores[(scores["trained_tasks"] == 4) & (scores["task"] == "seen")]
    overall = last[(last["group"] == "overall") & (last["metric"] == "mAP")]["value"]
    assert f"{100 * overall.item():.1f}" in "\n".join(lines)
    assert main(FIELDS) == 0
    assert "training" not in capsys.readouterr().err
    for option, said in (("memory_size", "NAME=VALUE"), ("batch_size=ten", "ten")):
        assert main([*FIELDS[:3], "--option", option]) == 1
        assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["run", "digits70tiny", "CRS", "--rho", "0.5"],
            "options that CRS has, got rho",
        ),
        (
            ["run", "digits70tiny", "Finetune", "--option", "memory_size=9"],
            "options that Finetune has, got memory_size; leave them out",
        ),
        (["run", "digits70tiny", "CRS", "--option", "subsets=9"], "known: none"),
        (["run", "digits70tiny", "CRS", "--option", "seed=1"], "got seed again"),
        (["run", "digits70tiny", "CRS", "--option", "method=PRS"], "got method again"),
        (
            ["run", "digits70tiny", "PRS", "--rho", "0", "--option", "rho=1"],
            "--seed for the seed, got rho again",
        ),
        (["run", "digits70tiny", "CRS", "--device", "gpu"], "unknown device 'gpu'"),
        (
            ["run", "digits70tiny", "CRS", "--option", "memory_size=10**12"],
            "memory_size must be a whole number",
        ),
        (
            ["run", "digits70tiny", "CRS", "--option", f"memory_size={10**12}"],
            "expected memory_size up to the",
        ),
        (
            ["run", "digits70tiny", "PRS", "--option", "memry_size=5"],
            "mean 'memory_size'",
        ),
        (["runs", "--check", ""], "expected a folder of stored runs"),
        (["conformance", "os:system"], "made as Class(size, num_classes, seed), got"),
        (["conformance", "os:path"], "is not a callable object"),
        (["conformance", "nosuch:Class"], "No module named 'nosuch'"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(arguments, said, capsys, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert main(arguments) == 1
    text = capsys.readouterr().err
    assert said in text and "Traceback" not in text


def test_a_command_that_is_stopped_says_so(capsys, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("prslib.experiments.sweep.run_all", stop)
    assert main(FIELDS) == 130
    assert capsys.readouterr().err.startswith("stopped; the same command goes on")


def test_a_plan_names_the_file_of_parameters_that_is_none(
    tmp_path, monkeypatch, capsys
):
    folder = tmp_path / "params" / "smoke"
    folder.mkdir(parents=True)
    (folder / "rho_sweep.yaml").write_text("seeds: [0")
    (folder / "inter_task.yaml").write_text("")
    (tmp_path / "notebooks").symlink_to(project_root() / "notebooks")
    for name in ("prslib.paths", "prslib.report.notebook"):
        monkeypatch.setattr(f"{name}.project_root", lambda: tmp_path, raising=False)
    assert main(["plan", "--profile", "smoke"]) == 1
    text = capsys.readouterr().err
    for name in ("rho_sweep", "inter_task"):
        assert f"left out: {folder / name}.yaml: " in text


@pytest.mark.parametrize("names", ["nosuch", "../x", "exits", "raises,nosuch"])
def test_a_plug_in_that_cannot_be_loaded_is_named(names, tmp_path):
    (tmp_path / "exits.py").write_text("import sys; sys.exit()")
    (tmp_path / "raises.py").write_text("1 / 0")
    folders = {"PYTHONPATH": f"{project_root()}{os.pathsep}{tmp_path}"}
    environment = os.environ | folders | {"PRSLIB_PLUGINS": names}

    def call(*arguments):
        command = [sys.executable, *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True)

    done = call("-m", "prslib", "runs")
    assert done.returncode == 1
    first = names.partition(",")[0]
    assert f"variable PRSLIB_PLUGINS, got {first!r}" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    done = call("-c", "import prslib")
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ImportError: expected modules in the environment variable")


def test_the_stub_shows_the_public_names():
    tree = ast.parse((PACKAGE / "__init__.pyi").read_text("utf-8"))
    shown = {
        row.asname: node.module
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for row in node.names
    }
    assert shown == prslib._HOME
