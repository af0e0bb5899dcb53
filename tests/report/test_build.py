"""Executing notebooks that stop."""

import shutil

import pytest

from prslib.cli import main
from prslib.paths import project_root
from prslib.report import build, notebook
from prslib.report.build import executed_file
from prslib.report.topics import runs_of


def test_one_notebook_that_stops_leaves_the_others(tmp_path, monkeypatch):
    good = project_root() / "params" / "smoke" / "datasets.yaml"
    shutil.copy(good, tmp_path)
    broken = {"rho_sweep": "rhos: ['.nan']", "single_label": "a: b: c"}
    for name, text in broken.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    monkeypatch.setattr(
        notebook, "params_file", lambda profile, name: tmp_path / f"{name}.yaml"
    )
    errors = build.execute("smoke", ["datasets", *broken])
    assert sorted(errors) == sorted(broken)
    assert errors["rho_sweep"].startswith("TypeError: rhos must be a num")
    assert "single_label.yaml" in errors["single_label"]
    assert executed_file("smoke", "datasets").is_file()


def test_a_sweep_that_stops_is_no_notebook(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PRSLIB_CACHE", str(tmp_path))  # other tests' runs are not here

    def stop(_configs, _store, device):
        raise ConnectionError(f"no {device}")

    def draw(_profile, name):
        if name == "rho_sweep":
            raise RuntimeError("Kernel died")

    monkeypatch.setattr("prslib.experiments.sweep.train_all", stop)
    monkeypatch.setattr(build, "draw", draw)
    assert main(["figures", "--profile", "smoke", "datasets", "rho_sweep"]) == 1
    said = capsys.readouterr().err
    assert "training on cpu stopped: ConnectionError: no cpu" in said
    assert said.endswith("rho_sweep stopped: RuntimeError: Kernel died\n")


def test_the_runs_of_all_notebooks_are_one_sweep(tmp_path, monkeypatch):
    monkeypatch.setenv("PRSLIB_CACHE", str(tmp_path))  # other tests' runs are not here
    asked = []
    train = "prslib.experiments.sweep.train_all"
    monkeypatch.setattr(train, lambda configs, store, device: asked.append(configs))
    assert build.train("smoke", ["main_results", "rho_sweep"]) == {}
    (configs,) = asked
    needed = runs_of("smoke", "main_results") + runs_of("smoke", "rho_sweep")
    assert {config.hash for config in configs} == {config.hash for config in needed}


@pytest.mark.parametrize("command", ["figures", "plan"])
def test_an_unknown_profile_or_notebook_names_the_known_ones(command, capsys):
    assert main([command, "--profile", "nope"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("unknown profile 'nope'; known profiles: la")
    assert main([command, "--profile", "smoke", "main_result"]) == 1
    assert ", main_results, memory_distribution, " in capsys.readouterr().err
