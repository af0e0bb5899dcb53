"""The benchmarks say what they do when they are asked, and measure nothing then."""

import subprocess
import sys

import pytest

from prslib.paths import project_root

FIGURES = project_root() / "figures" / "bench"
NAMES = ["gss", "many", "replay_share", "samplers", "step"]
PARTS = {"floors"}  # no programs: what bench/step.py counts with


def test_every_benchmark_is_asked():
    assert {file.stem for file in (project_root() / "bench").glob("*.py")} == {*NAMES, *PARTS}


@pytest.mark.parametrize("name", NAMES)
def test_help_measures_nothing(name):
    written = {file: file.stat().st_mtime_ns for file in FIGURES.iterdir()}
    program = project_root() / "bench" / f"{name}.py"
    done = subprocess.run([sys.executable, program, "--help"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"usage: {name}.py [-h]")
    assert written == {file: file.stat().st_mtime_ns for file in FIGURES.iterdir()}
