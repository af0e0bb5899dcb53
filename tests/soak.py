"""Kill all kinds of work at random moments, finish it, and compare its bytes with undisturbed.

``python tests/soak.py [KILLS] [SEED]``: each process of the work is a fork of this one, which has
imported all, so that a kill takes a second and not ten. pytest does not collect it.
"""

import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from multiprocessing import get_context
from pathlib import Path

import papermill  # noqa: F401
import torch
from helpers.real_folders import write_coco, write_ids
from joblib.externals import loky

from prslib import cli, configs, run_all
from prslib.datasets.features import Backbone
from prslib.report import build, rho_sweep  # noqa: F401
from prslib.training.checkpoint import code_version

MOST, LEAST = 8, 30  # kills of one piece of work before it may finish, and of each kind in all
OTHER = ("executed", "features.json", ".lock")  # they hold times, or nothing
METHODS = ("CRS", "PRS", "GSS", "ExStream", "EWC", "Multitask")
COCOSEQ = "prepare cocoseq --images ../coco --annotations ../coco/annotations --ids ../ids"
WORK = {f"runs of {name}": f"{name} 1" for name in METHODS} | {
    "runs in two processes": "PRS 2",
    "prepare": f"{COCOSEQ} --workers 1",
    "prepare in two processes": f"{COCOSEQ} --workers 2",
    "features": "prepare features cocoseq --workers 2",
    "figures": "figures --profile smoke rho_sweep",
}


def begin(root):
    images = [(number, ["apple" if number % 2 else "bear"]) for number in range(1, 41)]
    ids = {"train": [[*range(2, 38, 2)], [*range(1, 38, 2)]], "test": [[38], [39]]}
    halves = {"train2014": images, "val2014": [(201, ["apple"]), (202, ["bear"])]}
    write_coco(root / "coco", halves, ("apple", "bear", "person"))
    write_ids(root / "ids", ids | {"teorg": [[202], [201]]}, "coco")
    torch.set_num_threads(1)  # a fork would lack the others; then what each would do again
    code_version(), Backbone().describe(), build.compile_sampler("prs")
    build.SAMPLERS = {}  # no other is left to compile
    loky.backend.context.set_start_method("fork")


def work(command, folder, output):
    os.chdir(folder), os.dup2(output, 1), os.dup2(output, 2)
    os.environ |= {f"PRSLIB_{n.upper()}": f"{folder}/{n}" for n in ("cache", "figures", "data")}
    if command[0] in METHODS:
        options = {"dataset": "imbal-digits-tiny", "seed": [0, 1], "batch_size": 40}
        options |= {"variance_points": [0, 3]} if command[0] == "CRS" else {}
        run_all(configs(method=command[0], **options), workers=int(command[1]), save_every=0.05)
    elif cli.main(command):
        sys.exit(1)
    if pool := loky.reusable_executor._executor:
        pool.shutdown()  # as a process that is no fork does at its end


def attempt(kind, folder, after=0, stop=None):
    """Do a piece of work, or kill it after some seconds; return whether it came to its end."""
    signal.alarm(1800)  # ends this process where one of the work's hangs
    (folder / "data").mkdir(parents=True, exist_ok=True)
    if kind == "features":
        shutil.copytree(folder.parent / "prepare/data", folder / "data", dirs_exist_ok=True)
    reader, writer = os.pipe()
    process = get_context("fork").Process(target=work, args=(WORK[kind].split(), folder, writer))
    process.start()
    os.close(writer)
    process.join(after)
    if stop and process.is_alive():
        getattr(process, stop)()
    with open(reader) as said:
        output = said.read()  # until its own processes have ended, too
    process.join()
    if process.exitcode > 0 or (process.exitcode and not stop):
        sys.exit(f"{kind}: exit {process.exitcode} in {folder}:\n{output}")
    return process.exitcode == 0


def contents(folder):
    found = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    return {n: path.read_bytes() for n, path in found.items() if not any(o in n for o in OTHER)}


def main(kills=1000, seed=0):
    rng, done, moments, began = random.Random(seed), Counter(), Counter(), time.monotonic()
    root, whole, seconds, pieces = Path(tempfile.mkdtemp()), {}, {}, 0
    begin(root)
    for kind in WORK:
        start = time.monotonic()
        attempt(kind, root / kind)
        seconds[kind], whole[kind] = time.monotonic() - start, contents(root / kind)
    while done.total() < kills:
        kind = min(WORK, key=lambda kind: (done[kind] >= LEAST, done[kind] * seconds[kind]))
        folder, most, pieces = root / "killed", min(MOST, kills - done.total()), pieces + 1
        made = {n for n in whole[kind] if "datasets" not in n and (kind != "features" or kind in n)}
        for killed in range(most + 1):
            how = seconds[kind] * rng.uniform(0, 0.5), rng.choice(["kill", "terminate"])
            if attempt(kind, folder, *how[: 2 * (killed < most)]):
                break
            there = contents(folder).keys()
            place = "after" if made <= there else "between" if made & there else "before"
            moments.update([place, *(s for s in ("checkpoint", "status") if s in str(there))])
            done[kind] += 1
        seconds[kind] *= 0.5 if killed < 2 else 1.25 if killed == most else 1  # as it is now
        wrong = {name for name, _ in contents(folder).items() ^ whole[kind].items()}
        wrong |= {path.name for path in folder.glob("cache/runs/*") if path.suffix != ".zip"}
        assert not wrong, f"{kind}, seed {seed}: {sorted(wrong)} differ or are left in {folder}"
        shutil.rmtree(folder)
        print(f"{kind}: equal, {done.total()} kills so far", file=sys.stderr, flush=True)
    shutil.rmtree(root)
    print(f"kills of {dict(done)}, {dict(moments)}")  # e.g. before the first file was made
    print(f"{done.total()} kills in {pieces} pieces of work: all bytes equal, nothing left")
    print(f"{time.monotonic() - began:.0f} s, {sum(os.times()[2:4]):.0f} s of CPU")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
