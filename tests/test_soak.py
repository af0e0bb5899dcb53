"""Work that is disturbed at random ends with the same bytes; the soak sees it if not.

It forks, in a process that has nothing but this to do: a fork of a process with other
threads can wait for ever for a lock that one of them held.
"""

import os
import subprocess
import sys
from pathlib import Path

SOAK = Path(__file__).with_name("soak.py")
IN_PLACE = """
import os, random, sys
from pathlib import Path
import soak, torch
from prslib import runs

def in_place(run, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"half of it")
    os._exit(9)

torch.set_num_threads(1)  # a fork would lack the others
soak.loky.backend.context.set_start_method("fork")
folder = Path(sys.argv[1])
(folder / "data").mkdir()
save, runs.save = runs.save, in_place
soak.attempt("PRS 1", folder, 60)
runs.save = save
soak.attempt("PRS 1", folder)
print(sorted(map(len, soak.contents(folder).values()))[0])
"""


def run(*arguments):
    folders = [str(SOAK.parent), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(folders)}
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def test_runs_that_are_disturbed_end_with_the_same_bytes():
    done = run(SOAK, 4, 0, "runs in two processes", "two that ask for the same runs")
    assert done.stdout.count("all bytes equal after") == 2, done.stderr[-2000:]


def test_the_soak_sees_a_run_that_is_written_in_place(tmp_path):
    done = run("-c", IN_PLACE, tmp_path)
    assert done.stdout.strip() == "10", done.stderr[-2000:]  # half of it is left
