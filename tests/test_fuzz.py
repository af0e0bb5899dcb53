"""The fuzz runs: a few damaged files of each kind give no wrong number."""

import subprocess
import sys
from pathlib import Path


def test_damaged_files_of_every_kind_are_refused_or_the_same():
    script = Path(__file__).with_name("fuzz.py")
    command = [sys.executable, str(script), "4", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 9
