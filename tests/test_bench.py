"""The benchmarks and studies say what they do; nobody's speed is tested."""

import sys

import pytest

from prslib.paths import project_root

BENCHMARKS = {file.stem for file in (project_root() / "bench").glob("*.py")}
PROGRAMS = [*sorted(BENCHMARKS - {"shared"}), "ewc_strength", "head"]
PROGRAMS += ["loss_strength"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_help_measures_nothing(name, program, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PRSLIB_FIGURES", str(tmp_path))
    monkeypatch.setattr(sys, "argv", [f"{name}.py", "--help"])
    with pytest.raises(SystemExit, match="0"):
        program(name).main()
    assert capsys.readouterr().out.startswith(f"usage: {name}.py [-h]")
    assert not list(tmp_path.iterdir())
