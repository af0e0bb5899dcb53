"""The benchmarks and studies say what they do; nobody's speed is tested."""

import sys

import pytest

from prslib.paths import project_root

FILES = [
    file
    for folder in ("bench", "studies")
    for file in sorted((project_root() / folder).glob("*.py"))
]
MODULES = {"shared", "choosing", "clusters", "released"}
PROGRAMS = [file.stem for file in FILES if file.stem not in MODULES]


@pytest.mark.parametrize("name", PROGRAMS)
def test_help_measures_nothing(name, program, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PRSLIB_FIGURES", str(tmp_path))
    monkeypatch.setattr(sys, "argv", [f"{name}.py", "--help"])
    with pytest.raises(SystemExit, match="0"):
        program(name).main()
    assert capsys.readouterr().out.startswith(f"usage: {name}.py [-h]")
    assert not list(tmp_path.iterdir())
