"""The soak ends well, and fails where results are written in place.

It forks, in a process that has nothing but this to do: a fork of a process with other
threads can wait for ever for a lock that one of them held.
"""

import os
import subprocess
import sys
from pathlib import Path

SOAK = """
import contextlib, os, random, sys
from pathlib import Path
import prslib.training.run, torch, soak
from prslib.experiments import store

torch.set_num_threads(1)  # a fork would lack the others
folder, rng = Path(sys.argv[1]), random.Random(0)
soak.attempt("PRS 1 rival", folder / "whole")
assert soak.killed("PRS 1", folder / "killed", 1.0, 2, rng)
assert soak.contents(folder / "whole") == soak.contents(folder / "killed")
print("equal", flush=True)

@contextlib.contextmanager
def in_place(path):
    path.write_bytes(b"half of it")
    os._exit(9)
    yield

store.replacing, usual = in_place, store.replacing
soak.attempt("PRS 1", folder / "in place", 60)
store.replacing = usual
soak.killed("PRS 1", folder / "in place", 1.0, 0, rng)
"""


def test_killed_work_ends_with_the_same_bytes_and_a_fault_is_caught(tmp_path):
    path = os.pathsep.join(
        [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    )
    command = [sys.executable, "-c", SOAK, str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": path}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.stdout == "equal\n", done.stderr
    assert "were whole and made again" in done.stderr.splitlines()[-1]
