"""The soak fails where results are written in place.

It forks, in a process that has nothing but this to do: a fork of a process with other
threads can wait for ever for a lock that one of them held.
"""

import os
import subprocess
import sys
from pathlib import Path

SOAK = """
import os, random, sys
from pathlib import Path
import prslib.training.run, torch, soak
from prslib.experiments import store

def in_place(path):
    if path.suffix != store.RESULT:
        return usual(path)
    path.write_bytes(b"half of it")
    os._exit(9)

torch.set_num_threads(1)  # a fork would lack the others
folder = Path(sys.argv[1])
store.replacing, usual = in_place, store.replacing
soak.attempt("PRS 1", folder, 60)
store.replacing = usual
soak.killed("PRS 1", folder, 1.0, 0, random.Random(0))
"""


def test_the_soak_catches_results_that_are_written_in_place(tmp_path):
    folders = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(folders)}
    command = [sys.executable, "-c", SOAK, str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert "were whole and made again" in done.stderr.splitlines()[-1]
