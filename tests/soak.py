"""Kill all kinds of work at random moments, finish it, and compare its bytes with undisturbed.

``python tests/soak.py [KILLS] [SEED]``: a kill takes a few seconds. pytest does not collect it.
"""

import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from helpers.real_folders import write_coco, write_ids

ROOT = Path(__file__).parents[1]
MOST = 6  # kills of one piece of work before it may finish
OTHER = ("executed", "features.json", ".lock")  # they hold times, or nothing
RUNS = """
import sys
from prslib import configs, run_all

if __name__ == "__main__":
    more = {"variance_points": [0, 3]} if sys.argv[1] == "CRS" else {}
    wanted = configs(
        dataset="imbal-digits-tiny", method=sys.argv[1], seed=[0, 1], batch_size=40, **more
    )
    run_all(wanted, workers=2, save_every=0.05)
"""
PRSLIB = [sys.executable, "-m", "prslib"]
METHODS = ("CRS", "PRS", "GSS", "ExStream", "EWC", "Multitask")
WORK = {f"runs of {name}": [sys.executable, "runs.py", name] for name in METHODS} | {
    "prepare": [
        *(*PRSLIB, "prepare", "cocoseq", "--workers", "2", "--images", "coco"),
        *("--annotations", "coco/annotations", "--ids", "ids"),
    ],
    "features": [*PRSLIB, "prepare", "features", "cocoseq", "--workers", "2"],
    "figures": [*PRSLIB, "figures", "--profile", "smoke", "rho_sweep"],
}


def begin(folder, prepared=None):
    """Make a folder with what all kinds of work read, images of two classes and a program."""
    images = [(number, ["apple" if number % 2 else "bear"]) for number in range(1, 129)]
    ids = {"train": [[*range(2, 120, 2)], [*range(1, 121, 2)]], "test": [[120], [121]]}
    halves = {"train2014": images, "val2014": [(201, ["apple"]), (202, ["bear"])]}
    write_coco(folder / "coco", halves, ("apple", "bear", "person"))
    write_ids(folder / "ids", ids | {"teorg": [[202], [201]]}, "coco")
    (folder / "runs.py").write_text(RUNS)
    shutil.copytree(prepared, folder / "data") if prepared else (folder / "data").mkdir()


def start(command, folder):
    named = {"CACHE": "cache", "FIGURES": "figures", "DATA": "data"}
    environment = {f"PRSLIB_{name}": str(folder / value) for name, value in named.items()}
    environment |= {"PYTHONPATH": str(ROOT)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen(command, cwd=folder, env=os.environ | environment, **pipes)


def finish(command, folder):
    process = start(command, folder)
    output, _ = process.communicate()
    if process.returncode:
        sys.exit(f"{command} failed in {folder}:\n{output}")


def contents(folder):
    files = [path for part in ("cache", "figures", "data") for path in folder.glob(f"{part}/**/*")]
    names = {str(path.relative_to(folder)): path for path in files if path.is_file()}
    return {
        name: path.read_bytes()
        for name, path in names.items()
        if not any(other in name for other in OTHER)
    }


def main(kills, seed):
    rng, done, rounds, began = random.Random(seed), Counter(), 0, time.monotonic()
    with tempfile.TemporaryDirectory() as root:
        whole, seconds = {}, {}
        for kind, command in WORK.items():
            folder = Path(root, "whole", kind)
            begin(folder, Path(root, "whole/prepare/data") if kind == "features" else None)
            start_time = time.monotonic()
            finish(command, folder)
            seconds[kind], whole[kind] = time.monotonic() - start_time, contents(folder)
        while done.total() < kills:
            kind, rounds = list(WORK)[rounds % len(WORK)], rounds + 1
            folder = Path(root, "killed")
            begin(folder, Path(root, "whole/prepare/data") if kind == "features" else None)
            for _ in range(rng.randint(1, min(MOST, kills - done.total()))):
                with start(WORK[kind], folder) as process:
                    time.sleep(seconds[kind] * rng.uniform(0.3, 1))
                    if process.poll() is None:
                        process.send_signal(rng.choice([signal.SIGKILL, signal.SIGTERM]))
                        done[kind] += 1
                    process.communicate(timeout=60)  # until its workers have ended, too
            finish(WORK[kind], folder)
            wrong = {name for name, _ in contents(folder).items() ^ whole[kind].items()}
            if wrong:
                sys.exit(f"{kind}, seed {seed}, {done.total()} kills: {sorted(wrong)} differ")
            if left := [path for path in folder.glob("cache/runs/*") if path.suffix != ".zip"]:
                sys.exit(f"{kind}, seed {seed}, {done.total()} kills: {left} left")
            shutil.rmtree(folder)
            print(f"{kind}: equal, {done.total()} kills so far", file=sys.stderr, flush=True)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(", ".join(f"{count} of {kind}" for kind, count in sorted(done.items())))
    print(
        f"{done.total()} kills in {rounds} pieces of work, {time.monotonic() - began:.0f} s "
        f"({used.ru_utime + used.ru_stime:.0f} s of CPU): all bytes equal, nothing left"
    )


if __name__ == "__main__":
    given = [int(text) for text in sys.argv[1:]]
    main(*given, *(1000, 0)[len(given) :])
