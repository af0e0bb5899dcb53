"""The benchmarks say what they do and count right; nobody's speed is tested."""

import importlib
import sys

import pytest

from prslib.paths import project_root

BENCH = project_root() / "bench"
PROGRAMS = ["gss", "many", "replay_share", "samplers", "step"]
STUDIES = ["ewc_strength", "head"]


@pytest.fixture
def load(monkeypatch):
    """Import a benchmark by its name."""
    folders = [str(BENCH), str(project_root() / "studies")]
    monkeypatch.setattr(sys, "path", [*folders, *sys.path])
    return importlib.import_module


def test_every_benchmark_is_asked():
    assert {file.stem for file in BENCH.glob("*.py")} == {*PROGRAMS, "shared"}


@pytest.mark.parametrize("name", [*PROGRAMS, *STUDIES])
def test_help_measures_nothing(name, load, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PRSLIB_FIGURES", str(tmp_path))
    monkeypatch.setattr(sys, "argv", [f"{name}.py", "--help"])
    with pytest.raises(SystemExit, match="0"):
        load(name).main()
    assert capsys.readouterr().out.startswith(f"usage: {name}.py [-h]")
    assert not list(tmp_path.iterdir())
