"""Executing notebooks that stop."""

import shutil

import pytest

from prslib.cli import main
from prslib.paths import project_root
from prslib.report import build, notebook
from prslib.report.build import executed_file
from prslib.report.topics import runs_of
from prslib.runs import key_of


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

    def stop(_configs, device):
        raise ConnectionError(f"no {device}")

    def draw(_profile, name):
        if name == "rho_sweep":
            raise RuntimeError("Kernel died")

    monkeypatch.setattr("prslib.runs.train", stop)
    monkeypatch.setattr(build, "draw", draw)
    assert main(["figures", "--profile", "smoke", "datasets", "rho_sweep"]) == 1
    said = capsys.readouterr().err
    assert "training stopped: ConnectionError: no cpu" in said
    assert said.endswith("rho_sweep stopped: RuntimeError: Kernel died\n")


def test_the_runs_of_all_notebooks_are_one_sweep(tmp_path, monkeypatch):
    monkeypatch.setenv("PRSLIB_CACHE", str(tmp_path))  # other tests' runs are not here
    asked = []
    monkeypatch.setattr(
        "prslib.runs.train", lambda configs, device: asked.append(configs)
    )
    names = ["main_results", "imbalanced_test", "rho_sweep"]
    build.train("smoke", names)
    (configs,) = asked
    keys = [key_of(config) for config in configs]
    needed = {
        key_of(config.to_train) for name in names for config in runs_of("smoke", name)
    }
    assert set(keys) == needed
    assert len(keys) == len(needed)  # each once, on whichever test set it is read


def test_shards_are_cut_from_all_runs_whatever_is_stored(tmp_path, monkeypatch):
    monkeypatch.setenv("PRSLIB_CACHE", str(tmp_path))
    asked = []
    monkeypatch.setattr(
        "prslib.runs.train", lambda configs, device: asked.append(configs)
    )
    build.train("smoke", ["main_results"])
    every = sorted(map(key_of, asked.pop()))
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / f"{every[0]}.npz").touch()
    for number in (1, 2, 3):
        build.train("smoke", ["main_results"], (number, 3))
        assert sorted(map(key_of, asked.pop())) == every[number - 1 :: 3]


def test_an_error_of_a_training_reaches_the_command_line(monkeypatch, capsys):
    def stop(_configs, device):
        raise RuntimeError("1 of 9 runs failed")

    monkeypatch.setattr("prslib.runs.train", stop)
    assert main(["train", "--profile", "smoke", "rho_sweep", "--shard", "1/2"]) == 1
    assert capsys.readouterr().err == "1 of 9 runs failed\n"


@pytest.mark.parametrize("command", ["figures", "train"])
def test_an_unknown_profile_or_notebook_names_the_known_ones(command, capsys):
    assert main([command, "--profile", "nope"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("unknown profile 'nope'; known profiles: la")
    assert main([command, "--profile", "smoke", "main_result"]) == 1
    assert ", main_results, memory_distribution, " in capsys.readouterr().err
